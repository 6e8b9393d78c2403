"""The results of extraction: `Pair`, `Reject` with its reason, and columns of spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.document import Span
from corpora.schemas import SPAN, SPANS
from extract.parse import BoolArray, Ints

POSITIONS = ("same_sentence", "previous_sentence")
ORDERS = ("s2_first", "s1_first")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two clauses joined by a marker (DisSent, section 2), as the author wrote them.

    `sentence` is the index of the connective's sentence in the document's sentence layer.
    All spans are `[start, end)` in code points of `Document.text`; `s1` and `s2` are the
    normalised texts of `s1_spans` and `s2_spans`. S2 is the clause that the marker introduces.
    `position` is `same_sentence` or `previous_sentence`, `order` is `s1_first` or
    `s2_first`: the side that begins first in the text.
    `has_clauses`: both sides have a finite verb or copula and an overt subject.
    `pattern` is the id of the row of the pattern table that matched. `s2_added` is the beginning of
    `s2` that its spans do not contain: the subject and auxiliaries that it shares with the clause
    before (`subjects = "restored"`). `confidence` is the probability that the pair is right
    (`extract.confidence`), None for a language without a model.
    """

    doc: str
    group: str
    source: str
    licence: str
    language: str
    sentence: int
    marker: str
    marker_spans: tuple[Span, ...]
    s1_spans: tuple[Span, ...]
    s2_spans: tuple[Span, ...]
    s1: str
    s2: str
    position: str
    order: str
    has_clauses: bool
    pattern: str
    s2_added: str = ""
    confidence: float | None = None


def pairs_of(rows: pa.RecordBatch) -> Iterator[Pair]:
    """Yield the rows of `corpora.schemas.PAIRS` as objects."""
    yield from map(pair_of, rows.to_pylist())


def pair_of(row: Mapping[str, Any]) -> Pair:
    """Return a row of `corpora.schemas.PAIRS` as an object."""
    spans = {k: tuple(map(tuple, row[k])) for k in ("marker_spans", "s1_spans", "s2_spans")}
    return Pair(**{**row, **spans})


MEANINGS = {
    "multiword": 'the word is part of a longer connective that is not a marker (as in "so that")',
    "no_pattern": "the table has no pattern for the marker",
    "marker_relation": 'no pattern of the marker allows its dependency label (as in "after lunch")',
    "marker_place": 'the marker is at the wrong place in its clause (as in "so cold", "so can he")',
    "s2_head": "the marker is in a phrase, not in a clause that a pattern allows "
    '(as in "cats and dogs")',
    "s1_head": 'there is no clause (as in "peel and chop the onions"), or no sentence before, '
    "to join to",
    "order": "the pattern does not allow this order of the clauses "
    '(as in "So we stayed, she slept")',
    "s1_empty": "S1 has nothing but punctuation",
    "s2_empty": "S2 has nothing but punctuation",
    "confidence": "the confidence is below `min_confidence`",
    "language": "the document is clearly not in the language of the table",
    "sentence_too_long": "a sentence, not a candidate: over 5,000 characters or 500 tokens (with "
    "stanza: gold tokens, or words at white space), so it was not parsed",
    "s1_no_clause": "S1 lacks a finite verb or an overt subject, and is not an imperative",
    "s2_no_clause": "S2 lacks a finite verb or an overt subject, and is not an imperative",
    "previous": "the previous sentence is not a whole statement of the same speaker",
    "construction": "the row is not for clauses that stand alone, or one of its `checks` holds "
    '(as in "as tall as he is", "as he put it")',
    "apart": "words between S1 and the marker belong to neither side",
    "speech": "the sides are of two speakers, or of speech and narration",
    "s1_lost_word": 'S1 lost a word that changes its sense (such as "if"), or denies the reason S2',
    "s2_lost_word": 'S2 lost a word that changes its sense (such as "if", "neither")',
    "s1_fragment": "S1 is a relative clause or an indirect question, or breaks off",
    "s2_fragment": "S2 is a relative clause or an indirect question, or breaks off",
    "markup": "a side has markup, the caption of a picture, the end of a proof, or broken "
    'characters (such as "<b>", "□", "&amp;")',
}
"""Why candidates are rejected, by the name of the reason; the last eleven only in `standalone`."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A rejected candidate: its marker, position and reason, one of `MEANINGS`.

    `pattern` is the id of the row of the pattern table that matched ("" if none did).
    """

    reason: str
    marker: str
    span: Span
    doc: str = ""
    sentence: int = -1
    pattern: str = ""


@dataclass(slots=True)
class SpanColumn:
    """Lists of spans, one list for each row: row `i` has the spans `offsets[i]:offsets[i + 1]`."""

    offsets: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(cls, counts: Ints, start: Ints, end: Ints) -> SpanColumn:
        """Return a column whose row `i` has `counts[i]` spans. `start` and `end` [spans] are the
        bounds of the spans of all rows, one row after another."""
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return cls(offsets, start, end)

    @property
    def counts(self) -> Ints:
        return np.diff(self.offsets)

    def followed_by(self, other: SpanColumn) -> SpanColumn:
        """Return a column of the same rows, each with its spans and then those of `other`."""
        row = np.concatenate([np.repeat(np.arange(len(c.counts)), c.counts) for c in (self, other)])
        order = np.argsort(row, kind="stable")
        start = np.concatenate([self.start, other.start])[order]
        end = np.concatenate([self.end, other.end])[order]
        return SpanColumn.of(self.counts + other.counts, start, end)

    def take(self, rows: Ints | BoolArray) -> SpanColumn:
        """Return some rows: flags mark them, or `rows` are their numbers in the new order."""
        counts = self.counts[rows]
        first = np.repeat(self.offsets[:-1][rows] - (np.cumsum(counts) - counts), counts)
        spans = first + np.arange(len(first))
        return SpanColumn.of(counts, self.start[spans], self.end[spans])

    def then(self, other: SpanColumn) -> SpanColumn:
        """Return a column with the rows of this column, then those of the other."""
        counts = np.concatenate([self.counts, other.counts])
        start, end = (
            np.concatenate([getattr(c, n) for c in (self, other)]) for n in ("start", "end")
        )
        return SpanColumn.of(counts, start, end)

    def lists(self) -> list[list[Span]]:
        """Return the rows as Python lists of `(start, end)`."""
        flat = list(zip(self.start.tolist(), self.end.tolist(), strict=True))
        return [flat[a:b] for a, b in pairwise(self.offsets.tolist())]

    def to_arrow(self) -> pa.ListArray:
        """Return the rows as an Arrow column of lists of `[start, end]`."""
        flat = np.stack([self.start, self.end], axis=1).ravel()
        spans = pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.int32()), type=SPAN)
        return pa.ListArray.from_arrays(self.offsets, spans, type=SPANS)
