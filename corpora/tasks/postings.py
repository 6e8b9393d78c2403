"""An inverted index on disk: which rows are most like a given one, in constant memory but for
20 bytes a row.

A row is a sparse unit vector. A feature's postings (rows and weights) stand together in a file;
those of a row's features are read and added up, so a look-up costs the same in any corpus.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Vector = tuple[NDArray[np.int32], NDArray[np.float32]]
"""The features of a row and their weights."""

ENTRY = np.dtype([("feature", "<i4"), ("row", "<i4"), ("weight", "<f4")])
NUMBER = np.dtype("<i4")
READ = 12_000
"""Postings that one look-up reads: those of the rarest features, as many whole ones as fit."""

BLOCK = 500_000
"""Entries that are sorted in memory at a time."""


class Postings:
    """Looks up the rows that share most with a given one, by the cosine of unit vectors.

    `rows` come in their order, once. Features in more than `most` rows are not looked up, and of
    a row's others the rarest ones only, up to `READ` postings. Temporary files are in `folder`;
    use as a context manager.
    """

    def __init__(
        self, folder: Path, rows: Iterable[Vector], features: int, *, most: int, block: int = BLOCK
    ) -> None:
        stack = self._open = ExitStack()
        self._written = stack.enter_context(TemporaryFile(dir=folder))  # noqa: SIM115
        self._ends = array("q", [0])
        counts = np.zeros(features, np.int64)
        for feature, weight in rows:
            entries = np.zeros(len(feature), ENTRY)
            entries["feature"], entries["row"], entries["weight"] = feature, len(self), weight
            self._written.write(entries.tobytes())
            self._ends.append(self._ends[-1] + len(entries))
            counts[feature] += 1
        self._written.flush()
        counts[counts > most] = 0
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        with TemporaryFile(dir=folder) as ranges:
            self._spread(ranges, block)
            self._postings = stack.enter_context(TemporaryFile(dir=folder))  # noqa: SIM115
            self._sort(ranges, block)
        self._score, self._last = np.zeros(len(self)), np.zeros(len(self), NUMBER)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __enter__(self) -> Postings:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def nearest(self, row: int, number: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The `number` rows most similar to `row`, and how similar; ties by their order.

        Only rows that share a feature are found.
        """
        found = [np.zeros(0, NUMBER)]
        for feature, own in self._looked_up(row):
            others, weight = self._of(feature)
            # A feature's postings name each row once, so that adding by index misses nothing.
            self._score[others] += own * weight
            found.append(others)
        others = np.concatenate(found)
        self._last[others] = np.arange(len(others), dtype=NUMBER)
        others = others[self._last[others] == np.arange(len(others))]  # each row once
        scores = self._score[others]
        self._score[others] = 0
        others, scores = others[others != row].astype(np.int64), scores[others != row]
        if others.size > number:  # only the best, with all that tie for the last place, are sorted
            least = np.partition(scores, -number)[-number]
            others, scores = others[scores >= least], scores[scores >= least]
        best = np.lexsort((others, -scores))[:number]
        return others[best], scores[best]

    def _looked_up(self, row: int) -> list[tuple[int, float]]:
        """The features of a row by which others are found, and its weights."""
        own = _read(self._written, ENTRY, self._ends[row], self._ends[row + 1])
        sizes = self._starts[own["feature"] + 1] - self._starts[own["feature"]]
        order = np.lexsort((own["feature"], sizes))
        own = own[order[np.cumsum(sizes[order]) <= READ]]
        return list(zip(own["feature"].tolist(), own["weight"].tolist(), strict=True))

    def _of(self, feature: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The postings of a feature: the rows that have it, then their weights."""
        start, end = int(self._starts[feature]), int(self._starts[feature + 1])
        both = _read(self._postings, NUMBER, 2 * start, 2 * end)
        return both[: end - start], both[end - start :].view(np.float32)

    def _spread(self, target: IO[bytes], block: int) -> None:
        """Copy all entries that are looked up, those of each range of features together."""
        ranges = list(self._ranges(block))
        at = [int(self._starts[low]) for low, _ in ranges]
        edges = np.array([high for _, high in ranges])
        for start in range(0, self._ends[-1], block):
            entries = _read(self._written, ENTRY, start, min(start + block, self._ends[-1]))
            feature = entries["feature"]
            entries = entries[self._starts[feature] < self._starts[feature + 1]]
            which = np.searchsorted(edges, entries["feature"], side="right")
            entries = entries[np.argsort(which, kind="stable")]
            ends = np.cumsum(np.bincount(which, minlength=len(edges)))
            for i, piece in enumerate(np.split(entries, ends[:-1])):
                target.seek(at[i] * ENTRY.itemsize)
                target.write(piece.tobytes())
                at[i] += len(piece)
        target.flush()

    def _sort(self, source: IO[bytes], block: int) -> None:
        """Write the postings of each feature together, by row."""
        for low, high in self._ranges(block):
            entries = _read(source, ENTRY, int(self._starts[low]), int(self._starts[high]))
            entries = entries[np.argsort(entries["feature"], kind="stable")]
            ends = self._starts[low + 1 : high] - self._starts[low]
            for some in np.split(entries, ends[np.diff(ends, prepend=0) > 0]):
                self._postings.write(some["row"].tobytes() + some["weight"].tobytes())
        self._postings.flush()

    def _ranges(self, block: int) -> Iterator[tuple[int, int]]:
        """Ranges of features of at most `block` entries together (or of one feature)."""
        low, last = 0, len(self._starts) - 1
        while low < last:
            high = int(np.searchsorted(self._starts, self._starts[low] + block, side="right")) - 1
            high = min(max(high, low + 1), last)
            yield low, high
            low = high


def _read(file: IO[bytes], kind: np.dtype[Any], start: int, end: int) -> Any:
    """Records `start` to `end` of a file."""
    size = kind.itemsize
    return np.frombuffer(os.pread(file.fileno(), (end - start) * size, start * size), kind)
