"""Alignment of pairs with gold by normalised Levenshtein distance (DisSent, appendix A.2).

With `d(a, b) = Levenshtein(a, b) / max(len(a), len(b))` over the symbols of two strings
(characters, or words at one symbol each), `d1 = d(S1, G1)` and `d2 = d(S2, G2)`, two criteria
define alignment with a gold pair:

- `criterion_paper`: the least `min(d1, d2)` over all gold pairs is below 0.7;
- `criterion_strict`: the least `max(d1, d2)` over the gold pairs of the same document and marker
  is at most 0.3.

The quality of an aligned pair is `(d1 + d2) / 2` for that gold pair (the least value, if several
are equally near). The control uses gold from *other* documents, where nothing should align.

`criterion_paper` is what the appendix says. It aligns every pair, so figure 2 of the paper
must use another criterion; the one that comes nearest to that figure is

- `criterion_nearest`: the least `max(d1, d2)` over the gold pairs of the same marker is below 0.7,
  with words as symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from corpora import vocabulary
from corpora.vocabulary import NUMBER
from extract.validate.material import GoldText, Words
from extract.validate.strict import ByMarker

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

PAPER, STRICT, NEAREST = "criterion_paper", "criterion_strict", "criterion_nearest"
BELOW, AT_MOST = np.float32(0.7), np.float32(0.3)
CELLS = 1 << 20
"""Maximum number of distances computed at once, in two arrays of 4 MB, which fit a cache."""
SHORT = 64
"""rapidfuzz compares several strings of up to this many symbols with another one at once."""
SIZE = 10_000
UNKNOWN = "<unk>"


class Alignment(TypedDict):
    """Numbers of pairs and of aligned pairs, of one marker or all."""

    extracted: int
    aligned: int
    error_rate: float | None
    distance: float | None


class Aligned(ByMarker[Alignment]):
    """Alignment by marker, and of all aligned pairs how many there are by distance (figure 3)."""

    histogram: dict[str, int]
    """By the lower end of a step of a tenth: "0.0", ..., "1.0"."""


class Vocabulary:
    """The `size` most frequent words of some texts; all others become one unknown word.

    The paper ran on the Penn Treebank in the language modelling form of Mikolov et al. (2010):
    lower case, no punctuation, numbers as `N`, 10,000 words.
    """

    def __init__(self, texts: Iterable[GoldText], size: int = SIZE) -> None:
        words = (word for text in texts for word in text.words)
        self.words = [UNKNOWN, NUMBER, *vocabulary.most_frequent(words, size)]
        # One character a word, frequent words first: rapidfuzz compares strings fastest, those
        # of codes below 256 twice as fast again.
        self._codes = {word: chr(1 + code) for code, word in enumerate(self.words)}

    def encode(self, words: Sequence[str]) -> str:
        """The words as a string, one character for each word."""
        unknown = self._codes[UNKNOWN]
        return "".join(self._codes.get(vocabulary.normal(word), unknown) for word in words)

    def decode(self, encoded: str) -> str:
        """The words of an encoded text, with `<unk>` and `N`, joined by spaces."""
        return " ".join(self.words[ord(code) - 1] for code in encoded)


def joined(encoded: str, words: Words) -> str:
    """The words at these indices of an encoded text, as a string."""
    return "".join(encoded[word] for word in words)


@dataclass(frozen=True, slots=True)
class Sequences:
    """Pairs or gold pairs as columns: both sides as strings, and codes of document and marker."""

    first: list[str]
    second: list[str]
    doc: Ints
    marker: Ints

    def __len__(self) -> int:
        return len(self.first)

    def take(self, rows: Ints) -> Sequences:
        first, second = ([side[i] for i in rows.tolist()] for side in (self.first, self.second))
        return Sequences(first, second, self.doc[rows], self.marker[rows])


@dataclass(slots=True)
class Distances:
    """The distance of each pair to the gold pair it is aligned with, by criterion; nan without one.

    `all_gold` has distances to any gold pair, `control` to gold pairs of other documents only.
    """

    all_gold: dict[str, Floats]
    control: dict[str, Floats]


def measure(pairs: Sequences, gold: Sequences) -> Distances:
    """Align every pair by two criteria, with all gold pairs and with those of other documents."""
    paper = _distances_to_gold(pairs, gold, PAPER)
    strict = np.full_like(paper, np.nan)
    # Marker by marker: the strict criterion aligns only pairs and gold of the same marker.
    for marker in np.unique(pairs.marker):
        rows, columns = (np.flatnonzero(side.marker == marker) for side in (pairs, gold))
        strict[:, rows] = _distances_to_gold(pairs.take(rows), gold.take(columns), STRICT)
    all_gold, control = ({PAPER: paper[view], STRICT: strict[view]} for view in (0, 1))
    return Distances(all_gold, control)


def nearest_reading(pairs: Sequences, gold: Sequences) -> Floats:
    """Return distances [pairs] by `criterion_nearest`, nan for a pair that is not aligned.

    The symbols of the sequences are words.
    """
    quality = np.full(len(pairs), np.nan, dtype=np.float32)
    for marker in np.unique(pairs.marker):
        rows, columns = (np.flatnonzero(side.marker == marker) for side in (pairs, gold))
        quality[rows] = _distances_to_gold(pairs.take(rows), gold.take(columns), NEAREST)[0]
    return quality


def _distances_to_gold(pairs: Sequences, gold: Sequences, criterion: str) -> Floats:
    """Return the distance of each pair to the gold pair it is aligned with: [2, pairs].

    Row 0 aligns with all gold pairs, row 1 (the control) with those of other documents only. With
    `d1` and `d2`, the distances of S1 and of S2 to the gold arguments, the gold pair with the least
    `min(d1, d2)` (criterion of the paper) or `max(d1, d2)` (strict) is chosen; if several have the
    least value, the one with the least mean. The distance is `(d1 + d2) / 2`; nan if not aligned.
    """
    quality = np.full((2, len(pairs)), np.nan, dtype=np.float32)
    far = np.float32(np.inf)
    step = max(1, CELLS // max(1, len(gold)))
    for start in range(0, len(pairs) if len(gold) else 0, step):
        chunk = pairs.take(np.arange(start, min(start + step, len(pairs))))
        d1, d2 = distances(chunk.first, gold.first), distances(chunk.second, gold.second)
        key = np.minimum(d1, d2) if criterion == PAPER else np.maximum(d1, d2)
        same_document = chunk.doc[:, None] == gold.doc
        all_gold = np.where(same_document, key, far) if criterion == STRICT else key
        control = np.where(same_document, far, key)
        for view, keys in enumerate((all_gold, control)):
            least = keys.min(axis=1)
            aligned = least <= AT_MOST if criterion == STRICT else least < BELOW
            for row in np.flatnonzero(aligned):
                best = keys[row] == least[row]
                quality[view, start + row] = ((d1[row, best] + d2[row, best]) / 2).min()
    return quality


def summary(
    distances: dict[str, Floats], markers: Ints, names: Sequence[str]
) -> dict[str, Aligned]:
    """Return the figures by criterion of pairs whose `markers` are indices into `names`."""
    return {
        criterion: {
            "overall": _alignment(values),
            "per_marker": {name: _alignment(values[markers == i]) for i, name in enumerate(names)},
            "histogram": _histogram(values),
        }
        for criterion, values in distances.items()
    }


def _histogram(values: Floats) -> dict[str, int]:
    """Return the number of distances in each tenth from 0 to 1, without nan."""
    tenths = np.floor(values[~np.isnan(values)] * 10 + 1e-6).astype(int)
    return {f"{n / 10:.1f}": int((tenths == n).sum()) for n in range(11)}


def _alignment(values: Floats) -> Alignment:
    """Return the figures of pairs from their distances; nan is that of a pair without alignment."""
    aligned = values[~np.isnan(values)].astype(np.float64)
    return {
        "extracted": len(values),
        "aligned": len(aligned),
        "error_rate": 1 - len(aligned) / len(values) if len(values) else None,
        "distance": float(aligned.mean()) if len(aligned) else None,
    }


def distances(strings: Sequence[str], others: Sequence[str]) -> Floats:
    """Normalised Levenshtein distance [strings, others] of each string to each other one.

    Short and long strings are compared separately: rapidfuzz compares several at once (ten times
    as fast) only if all strings of a row are short.
    """
    short, long = _by_length(strings)
    if not len(long):
        return _all_distances(strings, others)
    short_other, long_other = _by_length(others)
    of_short, of_long = ([strings[i] for i in indices] for indices in (short, long))
    result = np.empty((len(strings), len(others)), dtype=np.float32)
    result[short] = _all_distances(of_short, others)
    result[np.ix_(long, short_other)] = _all_distances([others[i] for i in short_other], of_long).T
    result[np.ix_(long, long_other)] = _all_distances(of_long, [others[i] for i in long_other])
    return result


def _all_distances(strings: Sequence[str], others: Sequence[str]) -> Floats:
    scorer = Levenshtein.normalized_distance
    return process.cdist(strings, others, scorer=scorer, dtype=np.float32)


def _by_length(strings: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the indices of the short strings, and those of the long strings."""
    short = [i for i, string in enumerate(strings) if len(string) <= SHORT]
    return short, [i for i, string in enumerate(strings) if len(string) > SHORT]
