"""Arrays that give something for each code of a growing string table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from extract.parse import Ints, StringTable


class Lookup:
    """`value(string)` for every string of a table, worked out once for each and kept."""

    __slots__ = ("_strings", "_value", "_values")

    def __init__(
        self, strings: StringTable, value: Callable[[str], int | bool], dtype: DTypeLike
    ) -> None:
        self._strings, self._value = strings, value
        self._values: NDArray[Any] = np.empty(0, dtype=dtype)

    def __getitem__(self, codes: Ints) -> NDArray[Any]:
        """The values of the strings with these codes."""
        known = len(self._values)
        if known < len(self._strings):
            new = [self._value(string) for string in self._strings.strings[known:]]
            self._values = np.concatenate([self._values, np.array(new, dtype=self._values.dtype)])
        return self._values.take(codes)
