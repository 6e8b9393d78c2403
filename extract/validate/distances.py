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

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from extract.validate.material import GoldText, Words

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

PAPER, STRICT = "criterion_paper", "criterion_strict"
BELOW, AT_MOST = np.float32(0.7), np.float32(0.3)
CELLS = 1 << 20
"""Distances held at once: a bound on memory (two arrays of 4 MB), and small enough for a cache."""
SHORT = 64
"""rapidfuzz compares several strings of up to this many symbols with another one at once."""
SIZE = 10_000
UNKNOWN, NUMBER = "<unk>", "N"
# One character a word: Levenshtein distance on words is then that on strings, which is the
# form that rapidfuzz compares fastest: twice as fast again where the code is below 256, so the
# frequent words come first. Surrogates are kept clear of.
FIRST_CODE = 1
LIMIT = 0xD800 - FIRST_CODE


class Alignment(TypedDict):
    """The pairs of one marker, or of all, and how many of them are aligned."""

    extracted: int
    aligned: int
    error_rate: float | None
    distance: float | None


class AlignmentTable(TypedDict):
    overall: Alignment
    per_marker: dict[str, Alignment]


class Vocabulary:
    """The `size` most frequent words of some texts; all others are one unknown word.

    The paper ran on the Penn Treebank in the language modelling form of Mikolov et al. (2010):
    lower case, no punctuation, numbers as `N`, 10,000 words.
    """

    def __init__(self, texts: Iterable[GoldText], size: int = SIZE) -> None:
        """Raises `ValueError` for a size that does not fit into one character a word."""
        if not 0 < size <= LIMIT - 2:
            raise ValueError(f"a vocabulary of {size} words: expected 1 to {LIMIT - 2}")
        frequency = Counter(_normal(word) for text in texts for word in text.words)
        frequency.pop(NUMBER, None)
        # Equal frequencies in alphabetic order: the cut does not depend on that of the texts.
        kept = sorted(frequency, key=lambda word: (-frequency[word], word))[:size]
        self._words = [UNKNOWN, NUMBER, *kept]
        self._codes = {word: chr(FIRST_CODE + code) for code, word in enumerate(self._words)}

    def __len__(self) -> int:
        return len(self._words) - 2

    def encode(self, words: Sequence[str]) -> str:
        """One character a word."""
        unknown = self._codes[UNKNOWN]
        return "".join(self._codes.get(_normal(word), unknown) for word in words)

    def decode(self, encoded: str) -> str:
        """The words of an encoded text, with `<unk>` and `N`, joined by spaces."""
        return " ".join(self._words[ord(code) - FIRST_CODE] for code in encoded)


def _normal(word: str) -> str:
    return word if any(map(str.isalpha, word)) else NUMBER


def joined(encoded: str, words: Words) -> str:
    """The words at these indices of an encoded text, as a string."""
    if words and words[-1] - words[0] == len(words) - 1:
        return encoded[words[0] : words[-1] + 1]
    return "".join(encoded[word] for word in words)


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
    none = np.full((2, 2, len(pairs)), np.nan, dtype=np.float32)
    result = Distances(*(dict(zip((PAPER, STRICT), rows, strict=True)) for rows in none))
    if not len(pairs) or not len(gold):
        return result
    gold = gold.take(np.argsort(gold.doc, kind="stable"))  # _align_paper relies on it
    step = max(1, CELLS // len(gold))
    for start in range(0, len(pairs), step):
        _align_paper(pairs, gold, slice(start, start + step), result)
    # Of one marker each: no other cell can pass the strict criterion.
    for marker in np.unique(pairs.marker):
        rows, columns = (np.flatnonzero(side.marker == marker) for side in (pairs, gold))
        step = max(1, CELLS // max(1, len(columns)))
        for start in range(0, len(rows) if len(columns) else 0, step):
            _align_strict(pairs, gold.take(columns), rows[start : start + step], result)
    return result


def summary(
    distances: dict[str, Floats], markers: Ints, names: Sequence[str]
) -> dict[str, AlignmentTable]:
    """A table a criterion; `markers` are the pairs' codes into `names`."""
    return {
        criterion: {
            "overall": _row(values),
            "per_marker": {name: _row(values[markers == i]) for i, name in enumerate(names)},
        }
        for criterion, values in distances.items()
    }


def _row(values: Floats) -> Alignment:
    aligned = values[~np.isnan(values)].astype(np.float64)
    return {
        "extracted": len(values),
        "aligned": len(aligned),
        "error_rate": 1 - len(aligned) / len(values) if len(values) else None,
        "distance": float(aligned.mean()) if len(aligned) else None,
    }


def distances(one: Sequence[str], other: Sequence[str]) -> Floats:
    """Normalised Levenshtein distance [one, other] of each string to each other one.

    Rows of short strings apart from the long ones, and long ones with short ones the other way
    round: only rows that are all short are compared several at once (ten times as fast).
    """
    short, long = _by_length(one)
    if not len(long):
        return _matrix(one, other)
    short_other, long_other = _by_length(other)
    of_short, of_long = ([one[i] for i in indices] for indices in (short, long))
    result = np.empty((len(one), len(other)), dtype=np.float32)
    result[short] = _matrix(of_short, other)
    result[np.ix_(long, short_other)] = _matrix([other[i] for i in short_other], of_long).T
    result[np.ix_(long, long_other)] = _matrix(of_long, [other[i] for i in long_other])
    return result


def _matrix(one: Sequence[str], other: Sequence[str]) -> Floats:
    scorer = Levenshtein.normalized_distance
    return process.cdist(one, other, scorer=scorer, dtype=np.float32)


def _by_length(strings: Sequence[str]) -> tuple[list[int], list[int]]:
    """The indices of the short strings, and of the others."""
    short = [i for i, string in enumerate(strings) if len(string) <= SHORT]
    return short, [i for i, string in enumerate(strings) if len(string) > SHORT]


def _align_paper(pairs: Sequences, gold: Sequences, rows: slice, result: Distances) -> None:
    d1 = distances(pairs.first[rows], gold.first)
    d2 = distances(pairs.second[rows], gold.second)
    nearest = np.minimum(d1, d2)
    result.own[PAPER][rows] = _quality(nearest, d1, d2, nearest.min(axis=1) < BELOW)
    # The gold is sorted by document, so a pair's own document is one run of columns.
    docs = pairs.doc[rows]
    runs = np.searchsorted(gold.doc, docs, "left"), np.searchsorted(gold.doc, docs, "right")
    for row, (first, last) in enumerate(zip(*runs, strict=True)):
        nearest[row, first:last] = np.inf
    result.control[PAPER][rows] = _quality(nearest, d1, d2, nearest.min(axis=1) < BELOW)


def _align_strict(pairs: Sequences, gold: Sequences, rows: Ints, result: Distances) -> None:
    chunk = pairs.take(rows)
    d1 = distances(chunk.first, gold.first)
    # Both have to be near: the second sides matter only where the first ones are.
    near = np.nonzero(d1 <= AT_MOST)
    d2 = np.ones(d1.shape, dtype=np.float32)
    d2[near] = process.cpdist(
        [chunk.second[row] for row in near[0].tolist()],
        [gold.second[column] for column in near[1].tolist()],
        scorer=Levenshtein.normalized_distance,
        dtype=np.float32,
    )
    farthest = np.maximum(d1, d2)
    same = chunk.doc[:, None] == gold.doc
    for target, left_out in ((result.own, ~same), (result.control, same)):
        key = np.where(left_out, np.float32(np.inf), farthest)
        target[STRICT][rows] = _quality(key, d1, d2, key.min(axis=1) <= AT_MOST)


def _quality(key: Floats, d1: Floats, d2: Floats, aligned: NDArray[np.bool_]) -> Floats:
    """The mean distance to the gold pair of the least key, the least mean among equals."""
    quality = np.full(len(key), np.nan, dtype=np.float32)
    chosen = np.flatnonzero(aligned)
    if len(chosen):
        row, column = np.nonzero(key[chosen] == key[chosen].min(axis=1, keepdims=True))
        mean = (d1[chosen[row], column] + d2[chosen[row], column]) / 2
        firsts = np.searchsorted(row, np.arange(len(chosen)))
        quality[chosen] = np.minimum.reduceat(mean, firsts)
    return quality
