"""From parsed documents to pairs: candidates, matches, spans, texts; why the rest was refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document, Span
from extract.batch import Batch, BoolArray, make_batch
from extract.candidates import Candidates, find_candidates
from extract.columns import PairColumns, SpanColumn
from extract.compiled import CompiledPatterns
from extract.matcher import PREVIOUS, REASONS, Matcher, Matches
from extract.pairs import Reject
from extract.parse import Ints, ParsedDocument
from extract.spans import Runs, clause_runs
from extract.text import texts_of

MODES = ("recall", "require_clause", "own_subjects")
TEXTS = ("written", "tokenised")
REFUSALS = ("", "s1_empty", "s2_empty", "s1_no_clause", "s2_no_clause")
SEPARATING = " \t\n\r.,;:-–—…•*/。，、；："
LEADING = re.compile(r"(?:[\s,;–—…•。，、；：]|[.:*/-]{2,}|[.:*/-](?=\s|$))*")
"""What a sentence does not begin with; a single mark that opens its first word stays (".NET")."""
OnReject = Callable[[Reject], None]


@dataclass(slots=True)
class Found:
    """Matched candidates with the spans of both sides, whole and as their texts take them."""

    candidates: Candidates
    matches: Matches
    spans: tuple[SpanColumn, SpanColumn]
    loud: tuple[SpanColumn, SpanColumn]
    has_clauses: BoolArray

    def take(self, keep: BoolArray) -> Found:
        return Found(
            self.candidates.take(keep),
            self.matches.take(keep),
            (self.spans[0].take(keep), self.spans[1].take(keep)),
            (self.loud[0].take(keep), self.loud[1].take(keep)),
            self.has_clauses[keep],
        )


def extract_batch(
    documents: Sequence[Document],
    parses: Sequence[ParsedDocument],
    patterns: CompiledPatterns,
    *,
    mode: str,
    text: str,
    counts: Counter[str],
    on_reject: OnReject | None = None,
) -> PairColumns:
    """All pairs of some documents.

    Every candidate that is none is counted in `counts` by its reason and, if wanted, handed to
    `on_reject`. `documents` have a sentence layer; `parses` are theirs, in order, and share one
    string table.
    """
    batch = make_batch(parses, patterns)
    _part_conversations(batch, documents)

    def refuse(found: Candidates, why: Ints, reasons: Sequence[str]) -> None:
        for number, n in enumerate(np.bincount(why, minlength=1).tolist()):
            if n:
                counts[reasons[number]] += n
        if on_reject is not None:
            _hand_over(batch, patterns, found, [reasons[k] for k in why.tolist()], on_reject)

    found = find_candidates(batch, patterns)
    asked = patterns.wanted[found.sequence]
    refuse(found.take(~asked), np.zeros(len(found) - int(asked.sum()), np.int32), ["multiword"])
    found = found.take(asked)
    matches = Matcher(batch, patterns, mode != "recall").match(found)
    failed = matches.row < 0
    refuse(found.take(failed), matches.stage[failed], REASONS)
    pairs, why = _sides(
        batch, documents, patterns, found.take(~failed), matches.take(~failed), mode
    )
    refuse(pairs.candidates.take(why > 0), why[why > 0], REFUSALS)
    return _columns(batch, documents, patterns, pairs.take(why == 0), text)


def _part_conversations(batch: Batch, documents: Sequence[Document]) -> None:
    """A sentence does not go on from the one before it if that is of another conversation.

    In a chat log the turns of several conversations stand between each other (`Turns`).
    """
    for number, document in enumerate(documents):
        turns, sentences = document.turns, document.sentences
        if not turns or sentences is None:
            continue
        rows = np.flatnonzero((batch.row_doc == number) & batch.row_linked)
        starts = np.array(sentences.start)[batch.row_sentence[rows] - np.array([[0], [1]])]
        turn = np.maximum(np.searchsorted(turns.start, starts, side="right") - 1, 0)
        here, before = np.array(turns.conversation)[turn]
        batch.row_linked[rows[(here != before) & (here >= 0) & (before >= 0)]] = False


def _sides(
    batch: Batch,
    documents: Sequence[Document],
    patterns: CompiledPatterns,
    found: Candidates,
    matches: Matches,
    mode: str,
) -> tuple[Found, NDArray[np.int8]]:
    """The spans of every match, and why it is no pair: an index into `REFUSALS`, 0 if it is one."""
    before = _sentences_before(batch, documents, found, matches)
    spans, loud = [
        (_side(runs, 1, batch, len(found), before), _side(runs, 2, batch, len(found)))
        for runs in clause_runs(batch, patterns, found, matches)
    ]
    s1, s2 = _clauses(batch, patterns, found, matches, ("statement",))
    whole = s1 & s2
    if mode == "own_subjects":
        needs = ("finite",) if patterns.table.pro_drop else ("finite", "subject")
        s1, s2 = _clauses(batch, patterns, found, matches, needs)
    strict = mode != "recall"
    conditions = [loud[0].counts == 0, loud[1].counts == 0, strict & ~s1, strict & ~s2]
    why = np.select(conditions, [1, 2, 3, 4], default=0).astype(np.int8)
    return Found(found, matches, spans, loud, whole), why


def _clauses(
    batch: Batch,
    patterns: CompiledPatterns,
    found: Candidates,
    matches: Matches,
    needs: Sequence[str],
) -> tuple[BoolArray, BoolArray]:
    """Whether the heads of S1 and S2 have all the properties of `needs`.

    For the sentence before, its root tells; where that sentence was not parsed, it has none.
    """
    need = patterns.mask(needs)
    whole = (batch.traits & need) == need
    row_is_clause = np.zeros(len(batch.row_doc) + 1, dtype=bool)
    row_is_clause[batch.row[(batch.head < 0) & whole]] = True
    row = batch.row[found.first]
    before = np.maximum(row - 1, 0)
    parsed = (row > 0) & (batch.row_doc[before] == batch.row_doc[row])
    parsed &= batch.row_sentence[before] == batch.row_sentence[row] - 1
    same = matches.s1 >= 0
    looking = (matches.s1 == PREVIOUS) & parsed & row_is_clause[before]
    return (same & whole[matches.s1]) | looking, whole[matches.s2]


def _side(
    runs: Runs, side: int, batch: Batch, n: int, before: tuple[list[int], list[Span]] | None = None
) -> SpanColumn:
    """The runs of one side as spans; `before`: the matches whose S1 is the sentence before."""
    mine = runs.side == side
    owner, start, end = runs.match[mine], batch.start[runs.first[mine]], batch.end[runs.last[mine]]
    if before is not None and before[0]:
        given = np.array(before[1], dtype=np.int32)
        owner = np.concatenate([owner, np.array(before[0], dtype=np.int32)])
        order = np.argsort(owner, kind="stable")
        owner = owner[order]
        start = np.concatenate([start, given[:, 0]])[order]
        end = np.concatenate([end, given[:, 1]])[order]
    return SpanColumn.of(np.bincount(owner, minlength=n), start, end)


def _sentences_before(
    batch: Batch, documents: Sequence[Document], found: Candidates, matches: Matches
) -> tuple[list[int], list[Span]]:
    """The matches that look back, with the span of the sentence before, without its full stop."""
    owners: list[int] = []
    spans: list[Span] = []
    for i in np.flatnonzero(matches.s1 == PREVIOUS).tolist():
        row = batch.row[found.first[i]]
        document = documents[batch.row_doc[row]]
        if document.sentences is None:
            continue
        start, end = document.sentences[int(batch.row_sentence[row]) - 1]
        piece = document.text[start:end]
        opening = LEADING.match(piece)
        left = start + (opening.end() if opening else 0)
        right = start + len(piece.rstrip(SEPARATING))
        if right > left:
            owners.append(i)
            spans.append((left, right))
    return owners, spans


def _hand_over(
    batch: Batch,
    patterns: CompiledPatterns,
    found: Candidates,
    reasons: Sequence[str],
    on_reject: OnReject,
) -> None:
    """The candidates as `Reject` objects."""
    rows = batch.row[found.first].tolist()
    starts, ends = batch.start[found.first], batch.end[found.first + found.length - 1]
    names = [patterns.sequences[s].name for s in found.sequence.tolist()]
    for row, name, reason, start, end in zip(
        rows, names, reasons, starts.tolist(), ends.tolist(), strict=True
    ):
        document = batch.documents[batch.row_doc[row]].doc
        on_reject(Reject(reason, name, (start, end), document, int(batch.row_sentence[row])))


def _columns(
    batch: Batch,
    documents: Sequence[Document],
    patterns: CompiledPatterns,
    pairs: Found,
    text: str,
) -> PairColumns:
    rows = batch.row[pairs.candidates.first]
    s1, s2 = pairs.spans
    table = patterns.table
    doc = batch.row_doc[rows]
    return PairColumns(
        documents=documents,
        markers=[s.name for s in patterns.sequences],
        patterns=[row.pattern.id for row in patterns.rows],
        doc=doc,
        sentence=batch.row_sentence[rows],
        marker=pairs.candidates.sequence,
        pattern=pairs.matches.row,
        previous=pairs.matches.s1 == PREVIOUS,
        s1_first=s1.start[s1.offsets[:-1]] < s2.start[s2.offsets[:-1]],
        has_clauses=pairs.has_clauses,
        marker_spans=_marker_spans(batch, pairs.candidates),
        s1_spans=s1,
        s2_spans=s2,
        s1=texts_of(batch, documents, doc, pairs.loud[0], text, table),
        s2=texts_of(batch, documents, doc, pairs.loud[1], text, table),
    )


def _marker_spans(batch: Batch, found: Candidates) -> SpanColumn:
    first = np.stack([found.first, found.second], axis=1).ravel()
    length = np.stack([found.length, found.second_length], axis=1).ravel()
    there = length > 0
    first, last = first[there], (first + length - 1)[there]
    counts = 1 + (found.second_length > 0)
    return SpanColumn.of(counts.astype(np.int32), batch.start[first], batch.end[last])
