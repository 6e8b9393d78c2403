"""Alignment of two forms of one text on their non-white characters.

Gold annotation has its own text (tokens joined by spaces, the Wall Street Journal's line breaks),
while extraction reads the author's paragraphs. Both contain the same characters apart from white
space, which is enough to map spans from one to the other.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from corpora.document import Span
from corpora.errors import InputError

OffsetMap = NDArray[np.int64]

# Zero-width space, word joiner and byte-order mark: invisible, and dropped by some tokenisers.
_INVISIBLE = "\u200b\u2060\ufeff"
_CONTEXT = 30
"""Characters of text shown around a mismatch."""


def align(source: str, target: str, *, where: str) -> OffsetMap:
    """Map each offset of `source` to `target`, which differs in white space only.

    Returns an array `[len(source) + 1]`: for offset `i` the offset in `target` of the first
    non-white character at or after `i` (`len(target)` past the last one). White space is that of
    Unicode, and the zero-width space, word joiner and byte-order mark. Linear in the texts. Raises
    `InputError`, which names `where`, the offsets and both contexts, at a mismatch.
    """
    source_offsets, target_offsets = _visible(source), _visible(target)
    pairs = enumerate(zip(source_offsets, target_offsets, strict=False))
    common = min(len(source_offsets), len(target_offsets))
    mismatch = next((n for n, (i, j) in pairs if source[i] != target[j]), common)
    if mismatch < common or len(source_offsets) != len(target_offsets):
        in_source = [*source_offsets, len(source)][mismatch]
        in_target = [*target_offsets, len(target)][mismatch]
        raise InputError(
            f"the two texts differ at offset {in_source} ({_context(source, in_source)}) "
            f"and {in_target} ({_context(target, in_target)})",
            where=where,
            hint="they must contain the same characters apart from white space; "
            "check that both come from the same release of the corpus",
        )
    # An offset maps to the place of the next visible character.
    rank = np.searchsorted(source_offsets, np.arange(len(source) + 1))
    return np.array([*target_offsets, len(target)])[rank]


def map_spans(offsets: OffsetMap, spans: Iterable[Span]) -> list[Span]:
    """Map `spans` of the source to spans of the target, with the array that `align` returns.

    A mapped span starts and ends at a visible character; one without any is dropped.
    """
    mapped = []
    for start, end in spans:
        # Find the last visible character before `end`. The offsets after it, up to `end`, map to
        # the same offset of the target; so it stands just before the first of these offsets.
        last = int(np.searchsorted(offsets, offsets[end], side="left")) - 1
        if last >= start:
            mapped.append((int(offsets[start]), int(offsets[last]) + 1))
    return mapped


def _visible(text: str) -> list[int]:
    """Return the offsets of a text's visible characters."""
    return [i for i, c in enumerate(text) if not c.isspace() and c not in _INVISIBLE]


def _context(text: str, offset: int) -> str:
    """Return the text around an offset, for a message."""
    if offset >= len(text):
        return f"end of text after {text[max(0, offset - _CONTEXT) :]!r}"
    return repr(text[max(0, offset - _CONTEXT // 3) : offset + _CONTEXT])
