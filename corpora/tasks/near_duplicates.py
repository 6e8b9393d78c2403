"""Pairs that are nearly the same as an earlier one (optional: extra `dedup`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpora.errors import ConfigError
from corpora.store.scratch import Scratch

HASHES = 128
RECALL = 0.99
"""The chance that two pairs as alike as the threshold are compared at all."""


class NearDuplicates(Scratch):
    """Finds pairs whose sets of words are nearly those of another (MinHash, LSH).

    The sketches, 512 bytes a pair, wait in a file until it is known which pairs come first; the
    index, in memory, holds those that stay. Use as a context manager; the file is removed at the
    end.
    """

    def __init__(self, threshold: float, path: Path) -> None:
        try:
            from datasketch import MinHash, MinHashLSH
        except ImportError as error:
            raise ConfigError(
                f"near_duplicates = {threshold} needs the library datasketch",
                hint="install it with: pip install 'discorpora[dedup]', or set near_duplicates = 0",
            ) from error
        super().__init__(path)
        self.threshold = threshold
        self._empty = MinHash(num_perm=HASHES)
        self._index = MinHashLSH(num_perm=HASHES, params=bands(threshold))

    def add(self, marker: NDArray[np.int64], s1: Sequence[str], s2: Sequence[str]) -> None:
        """Take in the sketches of a batch, of those pairs whose `marker` is not -1."""
        for row in np.flatnonzero(marker >= 0).tolist():
            words = f"{marker[row]} {s1[row]} {s2[row]}".lower().split()
            sketch = self._empty.copy()
            sketch.update_batch([word.encode() for word in words])
            self._file.write(sketch.hashvalues.astype(np.uint32).tobytes())

    def alike(self, order: Iterable[int]) -> NDArray[np.int64]:
        """Those pairs (numbered as they were added) that are nearly one before them in `order`.

        The Jaccard similarity is estimated from the whole sketches; the index only says which.
        """
        self._file.flush()
        found = []
        for row in order:
            sketch = self._empty.copy()
            sketch.hashvalues = self._sketch(row)
            others = map(self._sketch, self._index.query(sketch))
            if any(np.mean(other == sketch.hashvalues) >= self.threshold for other in others):
                found.append(row)
            else:
                self._index.insert(row, sketch, check_duplication=False)
        return np.array(found, np.int64)

    def _sketch(self, row: int) -> NDArray[np.uint32]:
        size = 4 * HASHES
        return np.frombuffer(os.pread(self._file.fileno(), size, size * row), np.uint32)


def bands(threshold: float) -> tuple[int, int]:
    """Bands and rows of the index: as many rows as find so similar pairs with `RECALL`."""
    rows = (r for r in range(HASHES // 2, 1, -1) if _recall(threshold, HASHES // r, r) >= RECALL)
    best = next(rows, 1)
    return HASHES // best, best


def _recall(similarity: float, bands: int, rows: int) -> float:
    """The chance that two sets are in one bucket of any band."""
    return float(1 - (1 - similarity**rows) ** bands)
