"""Alignment of pairs with gold by normalised Levenshtein distance (DisSent, appendix A.2).

With `d(a, b) = Levenshtein(a, b) / max(len(a), len(b))` over the symbols of two strings
(characters, or words at one symbol each), `d1 = d(S1, G1)` and `d2 = d(S2, G2)`, two criteria say
whether a pair is aligned with a gold pair:

- `criterion_paper`: the least `min(d1, d2)` over all gold pairs is below 0.7;
- `criterion_strict`: the least `max(d1, d2)` over the gold pairs of the same document and marker
  is at most 0.3.

The quality of an aligned pair is `(d1 + d2) / 2` to that gold pair, the best one where several
are equally near. The control asks the same of gold from *other* documents, where nothing
should be found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

PAPER, STRICT = "criterion_paper", "criterion_strict"
BELOW, AT_MOST = np.float32(0.7), np.float32(0.3)
CELLS = 1 << 20
"""Distances held at once: a bound on memory (two arrays of 4 MB), and small enough for a cache."""
SHORT = 64
"""rapidfuzz compares several strings of up to so many symbols with another one at once."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """Pairs or gold pairs as strings, with document and marker codes."""

    first: list[str]
    second: list[str]
    doc: Ints
    marker: Ints

    def __len__(self) -> int:
        return len(self.first)

    def take(self, rows: Ints) -> Sequences:
        chosen = rows.tolist()
        return Sequences(
            [self.first[i] for i in chosen],
            [self.second[i] for i in chosen],
            self.doc[rows],
            self.marker[rows],
        )


@dataclass(slots=True)
class Distances:
    """For each pair and criterion the mean distance to its gold pair; nan where it has none.

    `own` over all gold pairs, `control` over those of other documents.
    """

    own: dict[str, Floats]
    control: dict[str, Floats]


def measure(pairs: Sequences, gold: Sequences) -> Distances:
    """Align every pair by both criteria, with and without the gold of its own document."""
    found = Distances(*({key: _nothing(len(pairs)) for key in (PAPER, STRICT)} for _ in range(2)))
    if not len(pairs) or not len(gold):
        return found
    gold = gold.take(np.argsort(gold.doc, kind="stable"))  # _align_paper relies on it
    step = max(1, CELLS // len(gold))
    for start in range(0, len(pairs), step):
        rows = slice(start, start + step)
        _align_paper(pairs, gold, rows, found)
    for block, columns in _blocks(pairs, gold):
        _align_strict(pairs, gold, block, columns, found)
    return found


def summary(
    distances: dict[str, Floats], markers: Ints, names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """`{criterion: {"overall", "per_marker"}}`; `markers` are the pairs' codes into `names`."""
    return {
        criterion: {
            "overall": _row(values),
            "per_marker": {name: _row(values[markers == i]) for i, name in enumerate(names)},
        }
        for criterion, values in distances.items()
    }


def _row(values: Floats) -> dict[str, Any]:
    aligned = values[~np.isnan(values)].astype(np.float64)
    return {
        "extracted": len(values),
        "aligned": len(aligned),
        "error_rate": 1 - len(aligned) / len(values) if len(values) else None,
        "distance": float(aligned.mean()) if len(aligned) else None,
    }


def _nothing(size: int) -> Floats:
    return np.full(size, np.nan, dtype=np.float32)


def distances(one: Sequence[str], other: Sequence[str]) -> Floats:
    """Normalised Levenshtein distance [one, other] of each string to each other one.

    Rows of short strings apart from the long ones, and long ones with short ones the other way
    round: only rows that are all short are compared several at once (ten times as fast).
    """
    short, long = _by_length(one)
    if not len(long):
        return _matrix(one, other)
    short_other, long_other = _by_length(other)
    found = np.empty((len(one), len(other)), dtype=np.float32)
    found[short] = _matrix(_at(one, short), other)
    of_long = _at(one, long)
    found[np.ix_(long, short_other)] = _matrix(_at(other, short_other), of_long).T
    found[np.ix_(long, long_other)] = _matrix(of_long, _at(other, long_other))
    return found


def _matrix(one: Sequence[str], other: Sequence[str]) -> Floats:
    scorer = Levenshtein.normalized_distance
    return process.cdist(one, other, scorer=scorer, dtype=np.float32)


def _by_length(strings: Sequence[str]) -> tuple[Ints, Ints]:
    """The indices of the short strings, and of the others."""
    is_short = np.array([len(string) <= SHORT for string in strings], dtype=np.bool_)
    return np.flatnonzero(is_short), np.flatnonzero(~is_short)


def _at(strings: Sequence[str], indices: Ints) -> list[str]:
    return [strings[i] for i in indices.tolist()]


def _align_paper(pairs: Sequences, gold: Sequences, rows: slice, found: Distances) -> None:
    d1 = distances(pairs.first[rows], gold.first)
    d2 = distances(pairs.second[rows], gold.second)
    nearest = np.minimum(d1, d2)
    found.own[PAPER][rows] = _quality(nearest, d1, d2, nearest.min(axis=1) < BELOW)
    # The gold is sorted by document, so a pair's own document is one run of columns.
    docs = pairs.doc[rows]
    runs = np.searchsorted(gold.doc, docs, "left"), np.searchsorted(gold.doc, docs, "right")
    for row, (first, last) in enumerate(zip(*runs, strict=True)):
        nearest[row, first:last] = np.inf
    found.control[PAPER][rows] = _quality(nearest, d1, d2, nearest.min(axis=1) < BELOW)


def _quality(key: Floats, d1: Floats, d2: Floats, aligned: NDArray[np.bool_]) -> Floats:
    """The mean distance to the gold pair of the least key, the least mean among equals."""
    quality = _nothing(len(key))
    chosen = np.flatnonzero(aligned)
    if len(chosen):
        row, column = np.nonzero(key[chosen] == key[chosen].min(axis=1, keepdims=True))
        mean = (d1[chosen[row], column] + d2[chosen[row], column]) / 2
        firsts = np.searchsorted(row, np.arange(len(chosen)))
        quality[chosen] = np.minimum.reduceat(mean, firsts)
    return quality


def _blocks(pairs: Sequences, gold: Sequences) -> Iterator[tuple[Ints, Ints]]:
    """Rows and columns of one marker each: no other cell can pass the strict criterion."""
    for marker in np.unique(pairs.marker):
        rows, columns = (np.flatnonzero(side.marker == marker) for side in (pairs, gold))
        step = max(1, CELLS // max(1, len(columns)))
        for start in range(0, len(rows) if len(columns) else 0, step):
            yield rows[start : start + step], columns


def _align_strict(
    pairs: Sequences, gold: Sequences, rows: Ints, columns: Ints, found: Distances
) -> None:
    chunk, block = pairs.take(rows), gold.take(columns)
    d1 = distances(chunk.first, block.first)
    # Both have to be near: the second sides matter only where the first ones are.
    d2 = _distances_at(d1 <= AT_MOST, chunk.second, block.second)
    farthest = np.maximum(d1, d2)
    same = chunk.doc[:, None] == block.doc
    for target, left_out in ((found.own, ~same), (found.control, same)):
        key = np.where(left_out, np.float32(np.inf), farthest)
        target[STRICT][rows] = _quality(key, d1, d2, key.min(axis=1) <= AT_MOST)


def _distances_at(cells: NDArray[np.bool_], one: Sequence[str], other: Sequence[str]) -> Floats:
    """The distances in the chosen cells, 1 in all others."""
    found = np.ones(cells.shape, dtype=np.float32)
    rows, columns = np.nonzero(cells)
    found[rows, columns] = process.cpdist(
        [one[row] for row in rows.tolist()],
        [other[column] for column in columns.tolist()],
        scorer=Levenshtein.normalized_distance,
        dtype=np.float32,
    )
    return found
