"""Windows of a long text, and its years, for the link scorer.

The file needs only Python: the folder of the shipped scorer has a copy.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

YEAR = re.compile(r"\b(1\d\d\d|20[0-3]\d)\b")
"""A year from 1000 to 2039, such as 1848."""


def years_ascend(sentences: Sequence[str]) -> float:
    """Return how steadily years ascend from one dated sentence to the next: -1 to 1.

    It is the mean sign of the differences between unequal neighbouring years, 0 if there are none.
    Only the first year of a sentence counts.
    """
    years = [int(year[0]) for sentence in sentences if (year := YEAR.search(sentence))]
    signs = [1 if after > before else -1 for before, after in pairwise(years) if after != before]
    return sum(signs) / len(signs) if signs else 0.0


def window_bounds(lengths: Sequence[int], budget: int) -> list[tuple[int, int]]:
    """Divide the pieces of a text, of these `lengths`, into overlapping windows: `[start, end)`.

    No piece is longer than `budget`. Each window has as many pieces as fit into it, and the next
    begins halfway through it; the last ends with the text. A window that would end where the
    previous one ends is left out.
    """
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    bounds: list[tuple[int, int]] = []
    start = last_end = 0
    while last_end < len(lengths):
        end = bisect_right(ends, ends[start] + budget) - 1
        if end > last_end:
            bounds.append((start, end))
            last_end = end
        start += max(1, (end - start) // 2)
    return bounds
