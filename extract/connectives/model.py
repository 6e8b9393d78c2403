"""The models of connectives: sums of weights that hashed features look up in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from extract.connectives.candidates import NOWHERE, Finder, Lexicon, Places
from extract.connectives.features import SINGLE, Keys, keys
from extract.parse import Ints
from extract.trees import Batch

MODEL = Path(__file__).with_name("model.npz")
BITS = 20
SENSE_BITS = 17
"""The tables have 2 to the power of `BITS` weights, and `SENSE_BITS` rows of weights."""
Floats = NDArray[np.float32]


def slots(features: Keys, bits: int) -> NDArray[np.intp]:
    """Return the places of hashes in a table of 2 to the power of `bits` rows."""
    return (features >> np.uint64(64 - bits)).astype(np.intp)


TREES = ("gold", "parsed")
"""Trees of a treebank, and those of a parser: each has its own weights of the detection."""


@dataclass(frozen=True)
class Model:
    """Weights of the detection [`TREES`, 2 ** `BITS`] and the senses [2 ** `SENSE_BITS`, senses].

    They are whole numbers of steps. A candidate's log-odds of being a connective, or of having a
    sense, are the bias and the weights of its features; `detection_usual` [`TREES`, lexicon] and
    `sense_usual` [lexicon, senses] add how usual either is for its words. `thresholds` are the
    least probabilities of a connective [`TREES`].
    """

    detection: NDArray[np.int8]
    detection_step: Floats
    detection_bias: Floats
    detection_usual: NDArray[np.float16]
    thresholds: Floats
    senses: tuple[str, ...]
    sense: NDArray[np.int8]
    sense_step: float
    sense_bias: Floats
    sense_usual: NDArray[np.float16]

    def detect(self, features: Keys, entry: Ints, trees: str = "parsed") -> Floats:
        """Return the log-odds [candidates] of being a connective; `entry` as in `Places`."""
        kind = TREES.index(trees)
        weights = self.detection[kind][slots(features, BITS)].sum(axis=1, dtype=np.int64)
        score = self.detection_bias[kind] + self.detection_step[kind] * weights
        score = score + self.detection_usual[kind][entry]
        return score.astype(np.float32)

    def threshold(self, trees: str = "parsed") -> float:
        """Return the least probability of a connective."""
        return float(self.thresholds[TREES.index(trees)])

    def judge(self, features: Keys, entry: Ints) -> Floats:
        """Return the log-odds [candidates, senses] of each sense; `entry` as in `Places`."""
        weights = np.zeros((len(features), len(self.senses)), dtype=np.int32)
        for places in slots(features[:, SINGLE], SENSE_BITS).T:
            weights += self.sense.take(places, axis=0)
        score = self.sense_bias + self.sense_step * weights + self.sense_usual[entry]
        return score.astype(np.float32)


@cache
def load_model(path: Path = MODEL) -> Model:
    """Return the model in a file, the shipped one by default."""
    with np.load(path, allow_pickle=False) as arrays:
        return Model(
            detection=arrays["detection"],
            detection_step=arrays["detection_step"],
            detection_bias=arrays["detection_bias"],
            detection_usual=arrays["detection_usual"],
            thresholds=arrays["thresholds"],
            senses=tuple(arrays["senses"].tolist()),
            sense=arrays["sense"],
            sense_step=float(arrays["sense_step"]),
            sense_bias=arrays["sense_bias"],
            sense_usual=arrays["sense_usual"],
        )


@cache
def english() -> Finder:
    """Return the finder of the shipped lexicon."""
    return Finder(Lexicon.english())


def probability(score: Floats) -> Floats:
    """Return the probability of log-odds."""
    return (1 / (1 + np.exp(-score))).astype(np.float32)


def sense_probabilities(score: Floats) -> Floats:
    """Return probabilities of senses [rows, senses] that sum up to 1, from their log-odds."""
    alone = probability(score)
    return (alone / alone.sum(axis=1, keepdims=True)).astype(np.float32)


@dataclass(frozen=True)
class Candidates:
    """Candidates with their features in each parser's trees [candidates, features]."""

    places: Places
    features: tuple[Keys, ...]

    @classmethod
    def of(cls, batches: Sequence[Batch]) -> Candidates:
        """Return the candidates of one batch, with the same tokens' trees of each parser."""
        finder = english()
        places = finder.find(batches[0])
        return cls(places, tuple(keys(batch, places, finder.lexicon) for batch in batches))

    def probabilities(self, model: Model, trees: str = "parsed") -> Floats:
        """Return the probability [candidates] of being a connective: the parsers' mean log-odds."""
        entry = self.places.entry
        scores = [model.detect(features, entry, trees) for features in self.features]
        return self.joined(probability(np.mean(scores, axis=0)))

    def joined(self, probabilities: Floats) -> Floats:
        """Return probabilities in which those of connectives in two parts follow their parts'.

        Two adverbials ("on the one hand ... on the other hand") are as likely as the likelier one.
        A conjunction that is announced ("not only ... but also", "either ... or") is at least as
        likely as a connective that is the beginning of its second part: both are one.
        """
        result, bounds, finder = probabilities.copy(), self.places.bounds, english()
        alone: dict[tuple[int, int], float] = {}
        for (first, last), apart, share in zip(
            bounds[:, 0].tolist(),
            self.places.second != NOWHERE,
            probabilities.tolist(),
            strict=True,
        ):
            if not apart:
                alone[first, last] = share
        for row, entry in enumerate(self.places.entry.tolist()):
            parts = [tuple(ends) for ends in bounds[row].tolist()]
            if entry in finder.adverbials:
                result[row] = max(alone.get(ends, 0.0) for ends in parts)
            elif entry in finder.announced:
                first, last = parts[1]
                shares = (alone.get((first, end), 0.0) for end in range(first, last + 1))
                result[row] = max(result[row], *shares)
        return result

    def judged(self, model: Model, rows: Sequence[int]) -> Floats:
        """Return the probability of each sense [rows, senses] of some candidates."""
        index = np.array(rows, dtype=np.intp)
        entry = self.places.entry[index]
        scores = [model.judge(features[index], entry) for features in self.features]
        return sense_probabilities(np.mean(scores, axis=0))

    def chosen(self, probabilities: Floats, least: float) -> list[int]:
        """Return the candidates that are likely enough, in the order of the text.

        Of those that share a token the likeliest is chosen, or the longest if two are alike.
        """
        used: set[int] = set()
        rows = []
        for row in np.lexsort((-self.places.size, -probabilities)).tolist():
            if probabilities[row] < least:
                break
            tokens = self.places.tokens(row)
            if used.isdisjoint(tokens):
                used.update(tokens)
                rows.append(row)
        return sorted(rows)
