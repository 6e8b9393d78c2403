"""The text of a pair: as its author wrote it, or as the paper's tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from corpora.document import Document, Span
from corpora.sentences.rules import CITATIONS
from extract.batch import Batch
from extract.columns import SpanColumn
from extract.parse import Ints
from extract.patterns import PatternTable
from extract.quotes import EMPHASIS, MARKS, OPENERS, PAIRED, closed_in, ends, finished

TERMINAL = ".!?…。！？"
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
            spans = list(zip(start[a:b], end[a:b], strict=True))
            texts.append(_finished(_joined(text, spans, blank), stop))
    return texts


def written(text: str, spans: Sequence[Span], stop: str = ".", blank: str = " ") -> str:
    """The author's own text under `spans`: white space folded, first letter raised, a final stop.

    Quotes are paired (`extract.quotes`). A bracket or `_` of emphasis at either end whose partner
    lies outside is taken away, and so is a citation behind the stop (`[28]`).
    """
    return _finished(_joined(text, spans, blank), stop)


def _finished(joined: str, stop: str) -> str:
    if "  " in joined or not joined.isprintable():
        joined = " ".join(joined.split()) or stop
    first, last = joined[0], joined[-1]
    if first in MARKS or last in MARKS or PAIRED.search(joined):
        return _raised(finished(_CITED.sub("", joined), stop, TERMINAL))
    if not first.isupper():
        joined = first.upper() + joined[1:]
    return joined if last in TERMINAL else joined + stop


def tokenised(forms: Sequence[str], stop: str = ".") -> str:
    """The tokens parted by blanks, first letter raised, ` .` at the end, as in the paper's data."""
    text = _raised(" ".join(forms))
    return text if ends(text, TERMINAL) else f"{text} {stop}"


def _joined(text: str, spans: Sequence[Span], blank: str) -> str:
    """The parts with a blank between them, none before a closing mark; quotes stay closed."""
    joined = text[slice(*spans[0])]
    for (_, end), (start, stop) in pairwise(spans):
        joined += closed_in(text[end:start], joined)
        part = text[start:stop]
        joined += part if part[:1] in TERMINAL else blank + part
    return joined


def _raised(text: str) -> str:
    """The text with its first letter raised (a quote or bracket may stand before it)."""
    if text[:1].islower():
        return text[0].upper() + text[1:]
    if text and text[0] in OPENERS + EMPHASIS and len(text) > 1:
        return text[0] + text[1].upper() + text[2:]
    return text
