"""Batches of like length, in an order that depends on the seed and the epoch alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from torch.utils.data import Sampler

from corpora.rng import stream

WINDOW = 50
"""Batches in one window: rows are sorted inside a window only, so that batches still vary."""


class EpochSampler(Sampler[int]):
    """Row numbers such that each batch holds rows of like length.

    The rows are shuffled, cut into windows of 50 batches, sorted by length inside a window, and
    the batches shuffled (as `LengthGroupedSampler` of transformers does, whose order comes from
    the global generator, so that a run resumed in a later epoch sees another order).
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self.lengths = np.asarray(lengths, np.int64)
        self.batch_size, self.seed, self.epoch = batch_size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        return iter(self.order(self.epoch).tolist())

    def order(self, epoch: int) -> np.ndarray:
        """The order of `epoch`: a permutation of the rows, `[rows]`."""
        random = stream(self.seed, "zoo.batches", epoch=epoch)
        rows = random.permutation(len(self.lengths))
        size = self.batch_size * WINDOW
        for start in range(0, len(rows), size):
            window = rows[start : start + size]
            rows[start : start + size] = window[np.argsort(-self.lengths[window], kind="stable")]
        whole = len(rows) // self.batch_size * self.batch_size
        batches = rows[:whole].reshape(-1, self.batch_size)
        # A last batch that is not full stays last: in the middle it would shift all others.
        return np.concatenate([random.permutation(batches).ravel(), rows[whole:]])
