"""Boosted decision trees as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extract.parse import Ints

DEPTH = 4
"""Questions that each tree asks."""
ROWS = 4096
"""Rows that are scored at once: a bound of memory."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Boosted:
    """Complete trees of `DEPTH` levels; the score of a row is `bias` and one leaf of each tree.

    Node n of a tree asks whether the feature `names[asked[tree, n]]` is above `threshold[tree, n]`;
    the next node is 2n + 1 if not, 2n + 2 if so. `values` [trees, leaves] are those of the leaves.
    """

    names: tuple[str, ...]
    bias: float
    asked: Ints
    threshold: Floats
    values: Floats

    def scores(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        """Return the score (log-odds) of each row from its features by name."""
        if not len(columns[self.names[0]]):
            return np.empty(0, dtype=np.float32)
        table = np.stack([columns[name].astype(np.float32) for name in self.names])
        nodes = np.stack([self.asked, self.threshold]).reshape(2, -1)
        questions, index = np.unique(nodes, axis=1, return_inverse=True)
        feature, threshold = questions[0].astype(np.intp), questions[1].astype(np.float32)[:, None]
        index = index.reshape(self.asked.shape)
        parts = []
        for start in range(0, table.shape[1], ROWS):
            answers = table[:, start : start + ROWS][feature] > threshold
            node = np.zeros((len(index), answers.shape[1]), dtype=np.int8)  # where each row is
            for level in range(DEPTH):
                first = 2**level - 1
                answer = answers[index[:, first]]
                for number in range(first + 1, 2 * first + 1):
                    here = answers[index[:, number]]
                    answer = np.where(node == number, here, answer)
                node = 2 * node + 1 + answer
            leaf = node.astype(np.intp) - (2**DEPTH - 1)
            parts.append(np.take_along_axis(self.values, leaf, axis=1).sum(axis=0) + self.bias)
        return np.concatenate(parts).astype(np.float32)
