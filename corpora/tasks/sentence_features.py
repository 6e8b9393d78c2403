"""Hashed words of every sentence, on disk: texts are compared sentence by sentence in no memory.

A text is a run of entries: before each sentence one with the feature `START` and the number of
its words, then its features (words and pairs of words) with their counts.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.tasks.intruders import Flags, Matrix, Scene
from corpora.tasks.postings import Vector
from corpora.tasks.similar import FEATURES, KEPT, Hasher

START = FEATURES
ENTRY = np.dtype([("feature", "<i4"), ("count", "<i4")])

COMMON = 0.1
"""Words of a larger share of the texts say little of what a text is about."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """The features of some texts' sentences, counted over all of them.

    `feature`, `weight` and `sentence`, an entry each: the sentences are unit vectors of TF-IDF.
    `words` and `text`, a sentence each: its number of words, and which of the texts it is in.
    """

    feature: NDArray[np.int32]
    weight: Matrix
    sentence: NDArray[np.int64]
    words: NDArray[np.int64]
    text: NDArray[np.int64]


class SentenceFeatures:
    """The features of texts by the order in which they came: 8 bytes each in memory.

    Weights depend on all texts: read nothing before the last one is in. The file is in `folder`
    and has no name; use as a context manager.
    """

    def __init__(self, folder: Path) -> None:
        self.frequency = np.zeros(FEATURES, np.int64)
        self._hasher = Hasher()
        self._column = np.full(FEATURES, -1, np.int32)
        self._ends = array("q", [0])
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115

    def __enter__(self) -> SentenceFeatures:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, texts: Sequence[Sequence[str]]) -> None:
        """Take in some texts, each a list of sentences."""
        sentences = [sentence for text in texts for sentence in text]
        if not sentences:
            return
        counts = self._hasher.numbers(sentences)
        starts = counts.indptr[:-1] + np.arange(len(sentences))
        entries = np.empty(counts.nnz + len(sentences), ENTRY)
        inside = np.ones(len(entries), bool)
        inside[starts] = False
        entries["feature"][inside], entries["count"][inside] = counts.indices, counts.data
        entries["feature"][starts] = START
        entries["count"][starts] = [len(sentence.split()) for sentence in sentences]
        ends = np.append(starts, len(entries))[np.cumsum([len(text) for text in texts])]
        for piece in np.split(entries["feature"], ends[:-1]):
            features = np.unique(piece)
            self.frequency[features[features < START]] += 1
        self._ends.extend((self._ends[-1] + ends).tolist())
        self._file.write(entries.tobytes())

    def profile(self, row: int, kept: int = KEPT) -> Vector:
        """The `kept` weightiest features of a text as a unit vector."""
        entries, _ = self._read([row])
        entries = entries[entries["feature"] < START]
        feature, inverse = np.unique(entries["feature"], return_inverse=True)
        counts = np.bincount(inverse, entries["count"], len(feature))
        value = (1 + np.log(counts)) * self._weights[feature]
        best = np.sort(np.lexsort((feature, -value))[:kept])
        value = value[best] / (np.sqrt(value[best] @ value[best]) or 1.0)
        return feature[best], value.astype(np.float32)

    def sentences(self, rows: Sequence[int]) -> Sentences:
        """The sentences of some texts, in their order."""
        entries, sizes = self._read(rows)
        start = entries["feature"] == START
        sentence = np.cumsum(start) - 1
        text = np.repeat(np.arange(len(sizes)), sizes)[start]
        words, inside = entries["count"][start].astype(np.int64), ~start
        feature, sentence = entries["feature"][inside], sentence[inside]
        weight = (1 + np.log(entries["count"][inside])) * self._weights[feature]
        length = np.sqrt(np.bincount(sentence, weight**2, len(words)))
        return Sentences(feature, weight / length[sentence], sentence, words, text)

    def scene(self, found: Sentences, usable: Flags) -> Scene:
        """The first of these texts as the host, the sentences of the others as its guests.

        `usable` [sentences]: which may intrude; the host's own are not asked.
        """
        own = int(np.searchsorted(found.text, 1))
        columns = np.unique(found.feature[found.sentence < own])
        self._column[columns] = np.arange(len(columns))
        column = self._column[found.feature]
        self._column[columns] = -1
        there = column >= 0
        dense = np.zeros((len(found.words), len(columns)))
        dense[found.sentence[there], column[there]] = found.weight[there]
        marks = np.bincount(found.sentence, self._few[found.feature], len(found.words))
        return Scene(
            dense[:own],
            dense[own:],
            self._few[columns],
            marks.astype(np.int64),
            found.words,
            usable[own:],
        )

    def _read(self, rows: Sequence[int]) -> tuple[Any, list[int]]:
        """The entries of some texts, one after the other, and how many each has."""
        self._file.flush()
        size, file = ENTRY.itemsize, self._file.fileno()
        spans = [(self._ends[row], self._ends[row + 1]) for row in rows]
        found = [os.pread(file, (end - start) * size, start * size) for start, end in spans]
        return np.frombuffer(b"".join(found), ENTRY), [end - start for start, end in spans]

    @cached_property
    def _weights(self) -> Matrix:
        """Inverse document frequencies; a little above 0, so that no text is without features."""
        weights: Matrix = np.log((1 + len(self)) / (1 + self.frequency)) + 0.01
        return weights

    @cached_property
    def _few(self) -> Flags:
        """Which features few texts have."""
        few: Flags = self.frequency <= max(10, COMMON * len(self))
        return few
