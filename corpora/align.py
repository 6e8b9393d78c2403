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


def align(source: str, target: str, *, where: str) -> OffsetMap:
    """Map each offset of `source` to `target`, which differs in white space only.

    Returns an array `[len(source) + 1]`: for offset `i` the offset in `target` of the first
    non-white character at or after `i` (`len(target)` past the last one). White space is that of
    Unicode, and the zero-width space, word joiner and byte-order mark. Linear in the texts. Raises
    `InputError`, which names `where`, the offsets and both contexts, at a mismatch.
    """
    kept, other = _visible(source), _visible(target)
    pairs = enumerate(zip(kept, other, strict=False))
    shared = min(len(kept), len(other))
    different = next((n for n, (i, j) in pairs if source[i] != target[j]), shared)
    if different < shared or len(kept) != len(other):
        here, there = [*kept, len(source)][different], [*other, len(target)][different]
        raise InputError(
            f"the two texts differ at offset {here} ({_context(source, here)}) "
            f"and {there} ({_context(target, there)})",
            where=where,
            hint="they must contain the same characters apart from white space; "
            "check that both come from the same release of the corpus",
        )
    rank = np.searchsorted(kept, np.arange(len(source) + 1))
    return np.array([*other, len(target)])[rank]


def map_spans(offsets: OffsetMap, spans: Iterable[Span]) -> list[Span]:
    """Map spans with the map of `align`; a span without visible characters is dropped.

    The result starts and ends at a visible character.
    """
    moved = []
    for start, end in spans:
        # The map rises exactly after a visible character: the last one before `end` is there.
        last = int(np.searchsorted(offsets, offsets[end], side="left")) - 1
        if last >= start:
            moved.append((int(offsets[start]), int(offsets[last]) + 1))
    return moved


def _visible(text: str) -> list[int]:
    """The offsets of a text's visible characters."""
    return [at for at, c in enumerate(text) if not c.isspace() and c not in _INVISIBLE]


def _context(text: str, at: int) -> str:
    if at >= len(text):
        return f"end of text after {text[max(0, at - _CONTEXT) :]!r}"
    return repr(text[max(0, at - _CONTEXT // 3) : at + _CONTEXT])
