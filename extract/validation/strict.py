"""Precision, recall and F1 of pairs against gold relations, with bootstrap intervals.

*Occurrence*: the extracted marker is a gold explicit connective, word for word. *Exact*: and
S1 is Arg1 and S2 is Arg2. *Dice*: and both overlap with a token Dice of at least 0.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.intervals import FEW
from extract.validation.material import Gold, Item, Material
from extract.validation.words import Words

Counts = NDArray[np.int64]

COLUMNS = ("extracted", "gold", "occurrence", "exact", "dice")
METRICS = COLUMNS[2:]
POLICIES = ("other", "head", "ignore")
DICE = 0.7
INTERVAL = 0.95


class Match(NamedTuple):
    """A pair and the relation that it was found to be, by index, and how well they agree."""

    pair: int
    gold: int
    exact: bool
    dice: bool


def count(material: Material, markers: Sequence[str], policy: str = "other") -> Counts:
    """Counts [documents, markers, COLUMNS] of pairs, gold relations and the three kinds of hit.

    A gold connective of several words that holds a selected marker ("even though") is, by
    `policy`: `other`, a connective of its own, so that the bare marker inside it is wrong;
    `head`, a relation of the bare marker; `ignore`, nothing, and neither is a pair inside it.
    One that is selected itself is a marker as any other. A relation matches at most one pair
    and a pair at most one relation, the best first.
    """
    column = {marker: i for i, marker in enumerate(markers)}
    pairs = material.pairs
    if policy == "ignore":
        inside = _inside(material, column)
        pairs = [p for p in pairs if not p.connective or (p.doc, p.connective[0]) not in inside]
    gold, keys = _targets(material, column, policy)
    hits = _match(pairs, gold, keys)
    counts = np.zeros((len(material.texts), len(markers), len(COLUMNS)), dtype=np.int64)
    for pair in pairs:
        counts[pair.doc, column[pair.marker], 0] += 1
    owner = [column[_bare(relation, column)] for relation in gold]
    for hit in hits:
        # Inside "if ... then" either word may be the hit: the pair says which marker it was.
        owner[hit.gold] = column[pairs[hit.pair].marker]
        counts[gold[hit.gold].doc, owner[hit.gold], 2:] += (1, hit.exact, hit.dice)
    for relation, marker in zip(gold, owner, strict=True):
        counts[relation.doc, marker, 1] += 1
    return counts


def count_unmarked(material: Material, markers: Sequence[str]) -> dict[str, int]:
    """Gold relations whose connective has no span, scored apart: by their arguments alone.

    They can be no occurrence, so they are in no other figure.
    """
    gold = [g for g in material.gold if not g.connective and g.marker in markers]
    candidates = [
        Match(p, g, *agreement(pair, relation))
        for p, pair in enumerate(material.pairs if gold else ())
        for g, relation in enumerate(gold)
        if (pair.doc, pair.marker) == (relation.doc, relation.marker)
    ]
    hits = _assign([c for c in candidates if c.exact or c.dice], material.pairs)
    exact, dice = (sum(getattr(hit, metric) for hit in hits) for metric in ("exact", "dice"))
    return {"gold": len(gold), "exact": exact, "dice": dice}


def draws(documents: int, resamples: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """How often each document is in each bootstrap sample: [resamples, documents]."""
    if not documents:
        return np.zeros((resamples, 0))
    shares = np.full(documents, 1 / documents)
    return generator.multinomial(documents, shares, size=resamples).astype(np.float64)


def summary(counts: Counts, markers: Sequence[str], weights: NDArray[np.float64]) -> dict[str, Any]:
    """`{"overall", "per_marker"}` of counts and weights over the same documents."""
    table = np.concatenate((counts.sum(axis=1, keepdims=True), counts), axis=1)
    resampled = np.tensordot(weights, table.astype(np.float64), axes=1)
    rows = [_row(table[:, i], resampled[:, i]) for i in range(table.shape[1])]
    return {"overall": rows[0], "per_marker": dict(zip(markers, rows[1:], strict=True))}


def ratios(extracted: int, gold: int, hits: int) -> dict[str, float | None]:
    """Precision, recall and F1; None where there is nothing to divide by."""
    return {
        "p": hits / extracted if extracted else None,
        "r": hits / gold if gold else None,
        "f1": 2 * hits / (extracted + gold) if extracted + gold else None,
    }


def agreement(pair: Item, gold: Gold) -> tuple[bool, bool]:
    """Whether both arguments are equal, and whether both have a Dice of at least 0.7."""
    exact = bool(pair.arg1 and pair.arg2) and (pair.arg1, pair.arg2) == (gold.arg1, gold.arg2)
    return exact, _alike(pair.arg1, gold.arg1) and _alike(pair.arg2, gold.arg2)


def _alike(one: Words, other: Words) -> bool:
    # In integers, so that a Dice of exactly 0.7 is not lost to rounding.
    shared = len(set(one).intersection(other))
    return shared > 0 and 10 * 2 * shared >= 7 * (len(one) + len(other))


def _inside(material: Material, column: dict[str, int]) -> set[tuple[int, int]]:
    """The words, as (document, word), of multiword connectives that hold a marker."""
    return {
        (relation.doc, word)
        for relation in material.gold
        if is_multiword(relation, column)
        for word in relation.connective
    }


def is_multiword(relation: Gold, markers: dict[str, int]) -> bool:
    """A connective of several words, not selected itself, with a selected marker among them."""
    return relation.marker not in markers and any(name in markers for name in relation.names)


def _bare(relation: Gold, markers: dict[str, int]) -> str:
    if relation.marker in markers:
        return relation.marker
    return next(name for name in relation.names if name in markers)


def _targets(
    material: Material, column: dict[str, int], policy: str
) -> tuple[list[Gold], dict[tuple[int, str, Words], list[int]]]:
    """The relations to be found, and which of them a marker at certain words may match."""
    gold: list[Gold] = []
    keys: dict[tuple[int, str, Words], list[int]] = {}
    for relation in material.gold:
        if not relation.connective:
            continue
        if relation.marker in column:
            keys.setdefault((relation.doc, relation.marker, relation.connective), []).append(
                len(gold)
            )
        elif policy == "head" and is_multiword(relation, column):
            for name, word in zip(relation.names, relation.connective, strict=False):
                if name in column:
                    keys.setdefault((relation.doc, name, (word,)), []).append(len(gold))
        else:
            continue
        gold.append(relation)
    return gold, keys


def _match(
    pairs: Sequence[Item],
    gold: Sequence[Gold],
    keys: dict[tuple[int, str, Words], list[int]],
) -> list[Match]:
    """One-to-one matches of pairs and relations at the same marker, the best agreement first."""
    return _assign(
        [
            Match(p, g, *agreement(pair, gold[g]))
            for p, pair in enumerate(pairs)
            for g in keys.get((pair.doc, pair.marker, pair.connective), ())
        ],
        pairs,
    )


def _assign(candidates: list[Match], pairs: Sequence[Item]) -> list[Match]:
    # The spans decide between pairs alike in both, so that the pairs' order never does.
    candidates.sort(key=lambda c: (-c.exact, -c.dice, pairs[c.pair].arg1, pairs[c.pair].arg2, c))
    taken: set[int] = set()
    found: set[int] = set()
    hits = []
    for candidate in candidates:
        if candidate.pair not in taken and candidate.gold not in found:
            taken.add(candidate.pair)
            found.add(candidate.gold)
            hits.append(candidate)
    return hits


def _row(counts: Counts, resampled: NDArray[np.float64]) -> dict[str, Any]:
    """The scores of `counts [documents, COLUMNS]`; no interval of too few documents."""
    total = counts.sum(axis=0)
    documents = int(np.count_nonzero(counts[:, :2].sum(axis=1)))
    row: dict[str, Any] = {}
    for metric in METRICS:
        at = COLUMNS.index(metric)
        scores = ratios(int(total[0]), int(total[1]), int(total[at]))
        ci = None
        if documents >= FEW:
            ci = _interval(resampled[:, at], resampled[:, :2].sum(axis=1))
        row[metric] = {**scores, "ci": ci}
    return row | {"extracted": int(total[0]), "gold": int(total[1]), "documents": documents}


def _interval(hits: NDArray[np.float64], sizes: NDArray[np.float64]) -> list[float]:
    """The middle 95 % of F1 over the samples that have anything to score."""
    scored = sizes > 0
    tails = ((1 - INTERVAL) / 2, (1 + INTERVAL) / 2)
    return [float(q) for q in np.quantile(2 * hits[scored] / sizes[scored], tails)]
