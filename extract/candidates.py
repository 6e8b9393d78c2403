"""Occurrences of markers in a batch: single words, fixed word sequences, and correlatives."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from extract.batch import Batch, BoolArray
from extract.compiled import CompiledPatterns, WordSequence
from extract.parse import Ints


@dataclass(slots=True)
class Candidates:
    """Parallel columns [c], in the order of the text.

    `sequence` indexes `CompiledPatterns.sequences`; the marker is the tokens
    `first:first + length`, and `second:second + second_length` where `second` >= 0. The rows look
    at the part that is the marker which the sequence is like ("if" of "if ... then", "but" of "not
    only ... but"): `lead` is its first token, `token` the syntactic head in it.
    """

    sequence: Ints
    first: Ints
    length: Ints
    second: Ints
    second_length: Ints
    lead: Ints
    token: Ints

    def __len__(self) -> int:
        return len(self.first)

    def take(self, keep: BoolArray | Ints) -> Candidates:
        return Candidates(
            self.sequence[keep],
            self.first[keep],
            self.length[keep],
            self.second[keep],
            self.second_length[keep],
            self.lead[keep],
            self.token[keep],
        )


def find_candidates(batch: Batch, patterns: CompiledPatterns) -> Candidates:
    """Every occurrence; a token belongs to one at most (correlatives first, then the longest)."""
    by_word = _positions(batch)
    claimed = np.zeros(len(batch) + 1, dtype=bool)
    found: list[Ints] = []
    for number, sequence in enumerate(patterns.sequences):
        first = _starts(batch, by_word, sequence.words)
        first = first[~_taken(claimed, first, len(sequence.words))]
        if sequence.last_deprels:
            labels = patterns.last_labels[number]
            first = first[labels[batch.label[first + len(sequence.words) - 1]]]
        second = np.full(len(first), -1, dtype=np.int32)
        if sequence.second:
            others = _starts(batch, by_word, sequence.second)
            others = others[~_taken(claimed, others, len(sequence.second))]
            first, second = _correlated(batch, sequence, first, others)
        for start, length in ((first, len(sequence.words)), (second, len(sequence.second))):
            for k in range(length):
                claimed[start + k] = True
        found.append(np.stack([np.full(len(first), number, dtype=np.int32), first, second]))
    return _in_order(batch, patterns.sequences, np.concatenate(found, axis=1))


def _in_order(batch: Batch, sequences: list[WordSequence], columns: Ints) -> Candidates:
    sequence, first, second = columns[:, np.argsort(columns[1], kind="stable")]
    length, second_length = (
        np.array([len(part(s)) for s in sequences], dtype=np.int32)[sequence]
        for part in (attrgetter("words"), attrgetter("second"))
    )
    later = np.array([s.like_second for s in sequences], dtype=bool)[sequence]
    lead = np.where(later, second, first)
    token = _head_token(batch, lead, np.where(later, second_length, length))
    return Candidates(sequence, first, length, second, second_length, lead, token)


def _positions(batch: Batch) -> dict[int, Ints]:
    """The tokens of each word that occurs in a marker, in the order of the text."""
    hits = np.flatnonzero(batch.word)
    words = batch.word[hits]
    order = np.argsort(words, kind="stable")
    hits, words = hits[order], words[order]
    present, begin = np.unique(words, return_index=True)
    return dict(zip(present.tolist(), np.split(hits, begin[1:]), strict=False))


def _starts(batch: Batch, by_word: dict[int, Ints], sequence: tuple[int, ...]) -> Ints:
    """Where the words of `sequence` stand side by side in one sentence."""
    starts = by_word.get(sequence[0], np.empty(0, dtype=np.intp))
    for k, word in enumerate(sequence[1:], start=1):
        starts = starts[starts + k < len(batch)]
        starts = starts[
            (batch.word[starts + k] == word) & (batch.row[starts + k] == batch.row[starts])
        ]
    return starts


def _taken(claimed: BoolArray, starts: Ints, length: int) -> BoolArray:
    """Where one of `length` words belongs to another candidate already."""
    found = np.zeros(len(starts), dtype=bool)
    for k in range(length):
        found |= claimed[starts + k]
    return found


def _correlated(
    batch: Batch, sequence: WordSequence, first: Ints, second: Ints
) -> tuple[Ints, Ints]:
    """Pairs of a first and a later second part in one sentence whose clauses are linked.

    "if ... then": the clause of "then" governs that of "if"; "not only ... but": the conjunct
    of "but" hangs on that of "only"; or both words hang on one head.
    """
    by_row: dict[int, list[int]] = defaultdict(list)
    for token in second.tolist():
        by_row[int(batch.row[token])].append(token)
    head, pairs = batch.head, []
    governor = head[_head_token(batch, first, np.full(len(first), len(sequence.words)))]
    for token, a in zip(first.tolist(), governor.tolist(), strict=True):
        for other in by_row.get(int(batch.row[token]), ()):
            b = int(head[other])
            if other > token and a >= 0 and b >= 0 and (a == b or head[a] == b or head[b] == a):
                pairs.append((token, other))
                by_row[int(batch.row[token])].remove(other)
                break
    columns = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _head_token(batch: Batch, first: Ints, length: Ints) -> Ints:
    """The last token of each marker whose head lies outside it (the first one if there is none).

    In "even though" both words may hang on the clause; the conjunction is the last.
    """
    token = first.copy()
    for i in np.flatnonzero(length > 1):
        inside = range(int(first[i]), int(first[i] + length[i]))
        outward = (t for t in reversed(inside) if int(batch.head[t]) not in inside)
        token[i] = next(outward, first[i])
    return token
