"""Distinct texts as 8 bytes each: to count what two splits share, without the texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MERGED_AT = 1 << 19


class Keys:
    """The hashes of distinct texts. They differ from run to run, and must not leave a process."""

    def __init__(self) -> None:
        self._known = np.zeros(0, np.int64)
        self._new: list[NDArray[np.int64]] = []
        self._waiting = 0

    def add(self, texts: Sequence[str]) -> None:
        """Take in some texts; those that are known take no room for long."""
        self._new.append(np.fromiter(map(hash, texts), np.int64, len(texts)))
        self._waiting += len(texts)
        if self._waiting > max(MERGED_AT, len(self._known)):
            self._merge()

    def sorted(self) -> NDArray[np.int64]:
        """All keys, each once."""
        self._merge()
        return self._known

    def _merge(self) -> None:
        keys = np.concatenate([self._known, *self._new])
        keys.sort()  # `np.unique` hashes, which takes ten times as long here
        self._known = keys[np.append(True, keys[1:] != keys[:-1])[: keys.size]]
        self._new, self._waiting = [], 0


def shared(one: NDArray[np.int64], two: NDArray[np.int64]) -> int:
    """How many keys are in both; both are sorted and without repetition."""
    few, many = sorted((one, two), key=len)
    if not len(few):
        return 0
    at = np.minimum(np.searchsorted(many, few), len(many) - 1)
    return int((many[at] == few).sum())
