"""The text of a pair: as its author wrote it, or as the paper's tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from corpora.document import Document, Span
from corpora.sentence_rules import CITATIONS
from extract.batch import Batch
from extract.columns import SpanColumn
from extract.parse import Ints
from extract.patterns import PatternTable

TERMINAL = ".!?…。！？"
CLOSERS = "\"'”’»)]}"
OPENERS = "\"'“‘«([{"
EMPHASIS = "_"
_PAIRS = {")": "(", "]": "[", "}": "{", "”": "“", "»": "«"}
QUOTES = frozenset(OPENERS + CLOSERS + EMPHASIS)
_CITED = re.compile(rf"(?<=[.!?…\"'”’])\s*{CITATIONS.pattern}$")


def texts_of(
    batch: Batch,
    documents: Sequence[Document],
    doc: Ints,
    column: SpanColumn,
    text: str,
    table: PatternTable,
) -> list[str]:
    """The text of each row of spans, `written` or `tokenised`; `doc` numbers its document."""
    blank, stop = " " if table.spaces else "", table.stop
    if text == "written":
        sources = [document.text for document in documents]
        return _all_written(sources, doc, column, stop, blank)
    rows = zip(doc.tolist(), column.lists(), strict=True)
    sizes = np.array([len(d.head) for d in batch.documents])
    ends = np.cumsum(sizes).tolist()
    begins = [0, *ends[:-1]]
    return [
        tokenised(_forms(batch, begins[d], ends[d], spans) or _pieces(documents[d], spans), stop)
        for d, spans in rows
    ]


def _pieces(document: Document, spans: Sequence[Span]) -> list[str]:
    """The words at white space, where the sentence before was not parsed and has no tokens."""
    return [piece for start, end in spans for piece in document.text[start:end].split()]


def _forms(batch: Batch, begin: int, end: int, spans: Sequence[Span]) -> list[str]:
    """The forms of the tokens of one document that begin inside the spans."""
    strings = batch.documents[0].strings.strings
    forms: list[str] = []
    for span in spans:
        first, last = begin + np.searchsorted(batch.start[begin:end], span)
        forms.extend(strings[code] for code in batch.form[first:last].tolist())
    return forms


def _all_written(
    sources: Sequence[str], doc: Ints, column: SpanColumn, stop: str, blank: str
) -> list[str]:
    """`written` for every row, without an object for a row of one span."""
    start, end = column.start.tolist(), column.end.tolist()
    bounds = column.offsets.tolist()
    texts: list[str] = []
    for d, a, b in zip(doc.tolist(), bounds, bounds[1:], strict=False):
        text = sources[d]
        if b == a + 1:
            texts.append(_finished(text[start[a] : end[a]], stop))
        else:
            parts = [text[start[k] : end[k]] for k in range(a, b)]
            texts.append(_finished(_joined(parts, blank), stop))
    return texts


def written(text: str, spans: Sequence[Span], stop: str = ".", blank: str = " ") -> str:
    """The author's own text under `spans`: white space folded, first letter raised, a final stop.

    A bracket, double quote or `_` of emphasis at either end whose partner lies outside is taken
    away, and so is a citation behind the stop (`[28]`).
    """
    return _finished(_joined([text[a:b] for a, b in spans], blank), stop)


def _finished(joined: str, stop: str) -> str:
    if "  " in joined or not joined.isprintable():
        joined = " ".join(joined.split()) or stop
    first, last = joined[0], joined[-1]
    if first in QUOTES or last in QUOTES:
        joined = _raised(_balanced(_CITED.sub("", joined)))
        return joined if _ends(joined) else joined + stop
    if not first.isupper():
        joined = first.upper() + joined[1:]
    return joined if last in TERMINAL else joined + stop


def tokenised(forms: Sequence[str], stop: str = ".") -> str:
    """The tokens parted by blanks, first letter raised, ` .` at the end, as in the paper's data."""
    text = _raised(" ".join(forms))
    return text if _ends(text) else f"{text} {stop}"


def _joined(parts: list[str], blank: str) -> str:
    """The parts with a blank between them, none before a closing mark."""
    joined = parts[0]
    for part in parts[1:]:
        joined += part if part[:1] in TERMINAL else blank + part
    return joined


def _ends(text: str) -> bool:
    stripped = text.rstrip(CLOSERS + " ")
    return bool(stripped) and stripped[-1] in TERMINAL


def _raised(text: str) -> str:
    """The text with its first letter raised (a quote or bracket may stand before it)."""
    if text[:1].islower():
        return text[0].upper() + text[1:]
    if text and text[0] in OPENERS + EMPHASIS and len(text) > 1:
        return text[0] + text[1].upper() + text[2:]
    return text


def _balanced(text: str) -> str:
    """The text without quotes and brackets at its ends whose partner is not in it."""
    for _ in range(8):
        shorter = _strip_once(text)
        if shorter == text or not shorter:
            break
        text = shorter
    return text


def _strip_once(text: str) -> str:
    first, last = text[:1], text[-1:]
    if first in _PAIRS or (first in _PAIRS.values() and not _closed(text, first)):
        return text[1:].lstrip(" ,;:")
    if first in ('"', EMPHASIS) and text.count(first) % 2:
        return text[1:].lstrip(" ,;:")
    if last in _PAIRS.values() or (last in _PAIRS and _PAIRS[last] not in text):
        return text[:-1].rstrip(" ,;:")
    if last in ('"', EMPHASIS) and text.count(last) % 2:
        return text[:-1].rstrip(" ,;:")
    return text


def _closed(text: str, opener: str) -> bool:
    return any(close in text for close, open_ in _PAIRS.items() if open_ == opener)
