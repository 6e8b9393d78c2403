"""Precision, recall and F1 of pairs against gold relations, with bootstrap intervals.

*Occurrence*: the extracted marker is a gold explicit connective, word for word. *Exact*: also, S1
is Arg1 and S2 is Arg2. *Dice*: also, both overlap with a token Dice of at least 0.7.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from corpora.intervals import FEW
from extract.validate.material import Gold, Item, Material, Words

Counts = NDArray[np.int64]
OfMarker = TypeVar("OfMarker")

COLUMNS = ("extracted", "gold", "occurrence", "exact", "dice")
METRICS = COLUMNS[2:]
POLICIES = ("other", "head", "ignore")
DICE = 0.7
INTERVAL = 0.95


class Score(TypedDict):
    """Precision, recall, F1 and its interval; None if undefined, or for few documents."""

    p: float | None
    r: float | None
    f1: float | None
    ci: list[float] | None


class Figures(TypedDict):
    """The scores of one marker, or of all markers.

    `occurrence`, `exact` and `dice` are the three kinds of hit; `extracted` is the number of pairs,
    `gold` that of relations, and `documents` that of documents with a pair or a relation.
    """

    occurrence: Score
    exact: Score
    dice: Score
    extracted: int
    gold: int
    documents: int


class ByMarker(TypedDict, Generic[OfMarker]):
    overall: OfMarker
    per_marker: dict[str, OfMarker]


class _Hit(NamedTuple):
    """The indices of a pair and a gold relation, and whether their arguments agree."""

    pair: int
    gold: int
    exact: bool
    dice: bool


def count(material: Material, markers: Sequence[str], policy: str) -> Counts:
    """Count pairs, gold relations and the three kinds of hit: [documents, markers, COLUMNS].

    `policy` is for gold connectives such as "even though", which contain a selected marker but are
    not selected. `other`: they are different connectives, so a pair of the marker is wrong. `head`:
    they are relations of the marker. `ignore`: neither they nor pairs inside them count. A relation
    matches at most one pair and a pair at most one relation, the best first. A relation whose
    lengths the filters do not allow does not count either, nor does a pair at it.
    """
    column = {marker: i for i, marker in enumerate(markers)}
    # Pairs and relations that do not count
    ignored = {
        (relation.doc, word)
        for relation in material.gold
        if not relation.fits or (policy == "ignore" and is_multiword(relation, column))
        for word in relation.connective
    }
    pairs = [
        p for p in material.pairs if not p.connective or (p.doc, p.connective[0]) not in ignored
    ]
    gold: list[Gold] = []  # the relations to find
    owner: list[int] = []  # the marker's column of each
    # The relations that a marker at some words of a document may match.
    at: defaultdict[tuple[int, str, Words], list[int]] = defaultdict(list)
    for relation in material.gold:
        if not relation.connective or not relation.fits:
            continue
        if relation.marker in column:
            at[relation.doc, relation.marker, relation.connective].append(len(gold))
            owner.append(column[relation.marker])
        elif policy == "head" and is_multiword(relation, column):
            for name, word in zip(relation.names, relation.connective, strict=False):
                if name in column:
                    at[relation.doc, name, (word,)].append(len(gold))
            owner.append(column[next(name for name in relation.names if name in column)])
        else:
            continue
        gold.append(relation)
    # Pairs whose marker is at the place of a relation
    candidates = (
        (p, g)
        for p, pair in enumerate(pairs)
        for g in at.get((pair.doc, pair.marker, pair.connective), ())
    )
    counts = np.zeros((len(material.texts), len(markers), len(COLUMNS)), dtype=np.int64)
    for pair in pairs:
        counts[pair.doc, column[pair.marker], 0] += 1
    for hit in _best(candidates, pairs, gold):
        # For "if ... then" either word may be the hit: the pair decides which marker it is.
        owner[hit.gold] = column[pairs[hit.pair].marker]
        counts[gold[hit.gold].doc, owner[hit.gold], 2:] += (1, hit.exact, hit.dice)
    for relation, marker in zip(gold, owner, strict=True):
        counts[relation.doc, marker, 1] += 1
    return counts


def is_multiword(relation: Gold, markers: dict[str, int]) -> bool:
    """Return whether a connective is not selected, but one of its words is a selected marker."""
    return relation.marker not in markers and any(name in markers for name in relation.names)


def count_unmarked(material: Material, markers: Sequence[str]) -> dict[str, int]:
    """Count gold relations whose connective has no span, and pairs with the same arguments.

    They cannot be occurrences, so they are in no other figure.
    """
    pairs = material.pairs
    gold = [g for g in material.gold if not g.connective and g.fits and g.marker in markers]
    candidates = (
        (p, g)
        for p, pair in enumerate(pairs if gold else ())
        for g, relation in enumerate(gold)
        if (pair.doc, pair.marker) == (relation.doc, relation.marker)
        and any(_agreement(pair, relation))
    )
    hits = _best(candidates, pairs, gold)
    agreeing = {key: sum(getattr(hit, key) for hit in hits) for key in ("exact", "dice")}
    return {"gold": len(gold), **agreeing}


def draws(documents: int, resamples: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Draw bootstrap samples: how often each document is in each, [resamples, documents]."""
    if not documents:
        return np.zeros((resamples, 0))
    shares = np.full(documents, 1 / documents)
    return generator.multinomial(documents, shares, size=resamples).astype(np.float64)


def summary(
    counts: Counts, markers: Sequence[str], weights: NDArray[np.float64]
) -> ByMarker[Figures]:
    """Return the scores of each marker and of all together, with their intervals.

    `counts` are `[documents, markers, COLUMNS]`; `weights [resamples, documents]` say how often
    each document is in a resample.
    """
    table = np.concatenate((counts.sum(axis=1, keepdims=True), counts), axis=1)
    resampled = np.tensordot(weights, table.astype(np.float64), axes=1)
    overall, *rows = map(_row, table.swapaxes(0, 1), resampled.swapaxes(0, 1))
    return {"overall": overall, "per_marker": dict(zip(markers, rows, strict=True))}


def score(extracted: int, gold: int, hits: int, ci: list[float] | None = None) -> Score:
    """Return precision, recall and F1 of counts, with the interval `ci` of F1."""
    return {
        "p": hits / extracted if extracted else None,
        "r": hits / gold if gold else None,
        "f1": 2 * hits / (extracted + gold) if extracted + gold else None,
        "ci": ci,
    }


def interval(f1: NDArray[np.float64], documents: int) -> list[float] | None:
    """Return the interval of F1 from resampled ones; None for too few documents."""
    if documents < FEW or not len(f1):
        return None
    bounds: list[float] = np.quantile(f1, ((1 - INTERVAL) / 2, (1 + INTERVAL) / 2)).tolist()
    return bounds


def _agreement(pair: Item, gold: Gold) -> tuple[bool, bool]:
    """Return whether both arguments are equal, and whether both have a Dice of at least 0.7."""
    exact = bool(pair.arg1 and pair.arg2) and (pair.arg1, pair.arg2) == (gold.arg1, gold.arg2)
    return exact, alike(pair.arg1, gold.arg1) and alike(pair.arg2, gold.arg2)


def alike(one: Words, other: Words) -> bool:
    """Return whether two arguments have a Dice of at least 0.7 in words."""
    # In integers, so that a Dice of exactly 0.7 is not lost to rounding.
    shared = len(set(one).intersection(other))
    return shared > 0 and 10 * 2 * shared >= 7 * (len(one) + len(other))


def _best(
    candidates: Iterable[tuple[int, int]], pairs: Sequence[Item], gold: Sequence[Gold]
) -> list[_Hit]:
    """Match pairs with relations one to one, the best agreement of all `candidates` first."""
    ranked = [_Hit(p, g, *_agreement(pairs[p], gold[g])) for p, g in candidates]
    # Ties are broken by the spans, so the pairs' order does not matter.
    ranked.sort(key=lambda c: (-c.exact, -c.dice, pairs[c.pair].arg1, pairs[c.pair].arg2, c))
    matched_pairs: set[int] = set()
    matched_gold: set[int] = set()
    hits = []
    for hit in ranked:
        if hit.pair not in matched_pairs and hit.gold not in matched_gold:
            matched_pairs.add(hit.pair)
            matched_gold.add(hit.gold)
            hits.append(hit)
    return hits


def _row(counts: Counts, resampled: NDArray[np.float64]) -> Figures:
    """Return scores, with intervals from `resampled` counts unless there are too few documents."""
    extracted, gold, *hits = counts.sum(axis=0).tolist()
    documents = int(np.count_nonzero(counts[:, :2].sum(axis=1)))
    sizes = resampled[:, :2].sum(axis=1)
    scored = sizes > 0
    scores: dict[str, Score] = {}
    for metric, hit, resampled_hits in zip(METRICS, hits, resampled[:, 2:].T, strict=True):
        f1 = 2 * resampled_hits[scored] / sizes[scored]
        scores[metric] = score(extracted, gold, hit, interval(f1, documents))
    return cast(Figures, scores | {"extracted": extracted, "gold": gold, "documents": documents})
