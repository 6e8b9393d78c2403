"""Find the spans of S1 and S2: each head's clause without the other clause, marker and commas.

Every token gets the side code of its nearest ancestor that has one. The heads have the codes S1 and
S2, the marker's tokens and the children that a row drops have 0; pointer doubling then carries the
codes down to all tokens of the sentence in log(depth) steps, for all matches of the batch at once.
A token of both clauses thus belongs to the inner one, so S1 and S2 never overlap. Children that a
row mutes (the "that" or "but" which introduces the clause) have a code `+ MUTED`: they belong to
the span of their side but not to its text. So do the modifiers of the subordinator that opens a
clause, whether it is the marker ("right after he left") or muted ("but only if he left"): UD
attaches them to the clause's head. Their code is `+ MODIFIER` until it is known whether they stand
directly before the subordinator.

A word behind the marker that the parser attached to it (class `stray`: "but [what remained] went to
her") is the beginning of S2, because a marker has no dependents of this kind.

A subordinator introduces its clause only if it comes first. In "he was to leave" and "the plan is
that he leaves" it follows a subject or copula; the text keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corpora.document import Span
from extract.match import PREVIOUS, Matches
from extract.pairs import SpanColumn
from extract.parse import BoolArray, Ints
from extract.seen import LABEL
from extract.trees import Batch

if TYPE_CHECKING:
    from extract.standalone import Judge

REFUSALS = (
    *("", "s1_empty", "s2_empty", "s1_no_clause", "s2_no_clause"),
    *("previous", "construction", "speech", "apart", "s1_fragment", "s2_fragment"),
    *("s1_lost_word", "s2_lost_word", "markup"),
)
"""Reasons to reject a match by number, "" for a pair; from the sixth on they are `standalone`'s."""
SEPARATORS = " \t\n\r.,;:-–—…•*/。，、；："
LEADING_SEPARATORS = re.compile(r"(?:[\s,;–—…•。，、；：]|[.:*/-]{2,}|[.:*/-](?=\s|$))*")
"""Separators left out before a sentence; a mark that begins its first word (".NET") stays."""
MAX_DOUBLINGS = 32
"""Enough for any depth; readers reject trees with a cycle."""
TOKENS_AT_ONCE = 1 << 20
"""The tokens of a block's sentences, counted once for each match: a bound of memory."""
SideCodes = NDArray[np.int8]
"""The side of each token: S1, S2, or 0 for neither. `S1 + MUTED` belongs to S1 but not to its text;
`S1 + MODIFIER` is muted only where the side begins with it and its subordinator comes next ("only
because"). So a code above S2 is muted, or may be."""
S1, S2, MUTED, MODIFIER = 1, 2, 2, 4
TokenRuns = tuple[Ints, SideCodes, Ints, Ints]
"""Columns of runs of tokens [runs]: match, side (S1 or S2), first and last token."""


@dataclass(slots=True)
class Sides:
    """S1 and S2 of matches: their full `spans`, and `spoken`, the spans of their texts.

    Each tuple has a value for S1 and one for S2. `asks` flags the sides that are questions; `added`
    has the spans of S1's clause that S2's text repeats (a shared subject), `has_clauses` flags the
    matches whose sides both have a finite verb or copula and a subject, and `rejection` indexes
    `REFUSALS`.
    """

    spans: tuple[SpanColumn, SpanColumn]
    spoken: tuple[SpanColumn, SpanColumn]
    asks: tuple[BoolArray, BoolArray]
    added: SpanColumn
    has_clauses: BoolArray
    rejection: SideCodes

    def then(self, other: Sides) -> Sides:
        """Return the sides of these matches followed by those of the matches of `other`."""
        return Sides(
            (self.spans[0].then(other.spans[0]), self.spans[1].then(other.spans[1])),
            (self.spoken[0].then(other.spoken[0]), self.spoken[1].then(other.spoken[1])),
            (np.append(self.asks[0], other.asks[0]), np.append(self.asks[1], other.asks[1])),
            self.added.then(other.added),
            np.append(self.has_clauses, other.has_clauses),
            np.append(self.rejection, other.rejection),
        )

    def take(self, keep: BoolArray | Ints) -> Sides:
        """Return the sides of some matches, given by flags [matches] or by their numbers."""
        return Sides(
            (self.spans[0].take(keep), self.spans[1].take(keep)),
            (self.spoken[0].take(keep), self.spoken[1].take(keep)),
            (self.asks[0][keep], self.asks[1][keep]),
            self.added.take(keep),
            self.has_clauses[keep],
            self.rejection[keep],
        )


def sides_of(
    batch: Batch, matches: Matches, judge: Judge | None = None, *, restore: bool = False
) -> Sides:
    """Return S1 and S2 of every match, and the reasons to reject some matches.

    The matches are processed in blocks with about `TOKENS_AT_ONCE` tokens. Each side needs a text.
    With `judge`, each head must also be in `judge.whole`, and `judge` may reject more. With
    `restore`, a subject that S2 shares with S1 is copied if possible.
    """
    n = len(matches)
    rows = batch.row[matches.first]
    size = batch.offsets[rows + 1] - batch.offsets[rows]
    block_number = np.cumsum(size, dtype=np.int64) // TOKENS_AT_ONCE
    # The first match of each block
    bounds = [*np.flatnonzero(np.diff(block_number, prepend=-1)).tolist(), n]
    # Tokens of each side, within the sentence of the marker
    full_runs: list[TokenRuns] = []
    text_runs: list[TokenRuns] = []
    judged, asks = np.zeros(n, dtype=np.int8), np.zeros((2, n), dtype=bool)
    for first, last in pairwise(bounds):
        block = Block(batch, matches.take(slice(first, last)), first)
        side = block.sides()
        full_runs.append(block.runs(np.where(side > S2, side - MUTED, side)))
        if judge is not None:
            judged[first:last], asks[:, first:last] = judge.judge(block, side)
        text_runs.append(block.runs(np.where(side > S2, 0, side)))
    # The previous sentence, where it is S1
    sentences: dict[int, Sequence[Span]] = {}  # by match, the previous sentence that is its S1
    for i in np.flatnonzero(matches.s1 == PREVIOUS).tolist():
        layer = batch.document(matches.first[i]).sentences
        assert layer is not None
        start, end = layer[int(batch.row_sentence[rows[i]]) - 1]
        label = LABEL.match(batch.document(matches.first[i]).text, start, end)
        sentences[i] = [(label.end() if label else start, end)]
    spans = _columns_of_runs(batch, n, full_runs, _trimmed(batch, matches, sentences))
    # Whether each side is a whole clause, and the shared subjects that S2 copies
    copies: dict[int, list[Span]] = {}
    s1_whole, s2_whole = _whole_heads(batch, matches, batch.tagged("statement"))
    has_clauses = s1_whole & s2_whole
    if judge is not None:
        whole_sentences = judge.previous(matches, sentences)
        fragments = [i for i in sentences if i not in whole_sentences and not judged[i]]
        judged[fragments] = REFUSALS.index("previous")
        sentences = whole_sentences
        copies = judge.restored(matches) if restore else {}
        s1_whole, s2_whole = _whole_heads(batch, matches, judge.whole)
        s1_whole |= matches.s1 == PREVIOUS  # `judge.previous` decides
        has_clauses |= s1_whole & s2_whole
    else:
        s1_whole = s2_whole = np.ones(n, dtype=bool)
    added = _column_of(n, [(i, *span) for i, pieces in copies.items() for span in pieces])
    s2_whole = s2_whole | (added.counts > 0)
    texts = _columns_of_runs(batch, n, text_runs, _trimmed(batch, matches, sentences))
    texts = texts[0], added.followed_by(texts[1])
    no_spans, no_text = ([column.counts == 0 for column in pair] for pair in (spans, texts))
    # The first condition that holds counts; 1 to 4 are the first reasons of `REFUSALS`.
    conditions = [*no_spans, ~s1_whole, ~s2_whole, judged > 0, *no_text]
    rejection = np.select(conditions, [1, 2, 3, 4, judged, 1, 2], 0).astype(np.int8)
    return Sides(spans, texts, (asks[0], asks[1]), added, has_clauses, rejection)


def _columns_of_runs(
    batch: Batch, n: int, blocks: Sequence[TokenRuns], previous: SpanColumn
) -> tuple[SpanColumn, SpanColumn]:
    """Return the spans of S1 and of S2 of `n` matches, one column for each side.

    Each of `blocks` has the token runs of both sides (`Block.runs`) for a part of the matches.
    `previous` has the spans of each S1 that is in the previous sentence.
    """
    empty: Any = (np.empty(0, dtype=np.int32),) * 4
    match, side, first, last = map(np.concatenate, zip(empty, *blocks, strict=True))
    start, end = batch.start[first], batch.end[last]
    s1, s2 = (
        SpanColumn.of(np.bincount(match[of_side], minlength=n), start[of_side], end[of_side])
        for of_side in (side == S1, side == S2)
    )
    return s1.followed_by(previous), s2


def _column_of(n: int, spans: Sequence[tuple[int, int, int]]) -> SpanColumn:
    """Return the spans of `n` matches as a column from (match, start, end), ordered by match."""
    owner, start, end = np.array(spans, dtype=np.int32).reshape(-1, 3).T
    return SpanColumn.of(np.bincount(owner, minlength=n), start, end)


def _trimmed(batch: Batch, matches: Matches, spans: Mapping[int, Sequence[Span]]) -> SpanColumn:
    """Return a column of the `spans` (by match), without separators at either end of each span."""
    trimmed: list[tuple[int, int, int]] = []
    for i, pieces in spans.items():
        text = batch.document(matches.first[i]).text
        for start, end in pieces:
            piece = text[start:end]
            opening = LEADING_SEPARATORS.match(piece)
            begin = start + (opening.end() if opening else 0)
            finish = start + len(piece.rstrip(SEPARATORS))
            if finish > begin:
                trimmed.append((i, begin, finish))
    return _column_of(len(matches), trimmed)


def _whole_heads(batch: Batch, matches: Matches, whole: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Return for each match whether the heads of S1 and of S2 are among the tokens `whole`.

    If S1 is the previous sentence, its root is the head of S1; a sentence without a parse has no
    head.
    """
    row = batch.row[matches.first]
    row_is_whole = batch.rows_with((batch.head < 0) & whole)
    previous_whole = (matches.s1 == PREVIOUS) & batch.row_follows[row] & row_is_whole[row - 1]
    return ((matches.s1 >= 0) & whole[matches.s1]) | previous_whole, whole[matches.s2]


class Block:
    """The tokens of the sentences of some matches, end to end; a position is an index into them.

    A sentence with two matches comes twice. `match` and `token` [positions] are the match at a
    position and its token in the batch; `token + shift[match]` is the position. `number` is the
    number of the first match among all.
    """

    def __init__(self, batch: Batch, matches: Matches, number: int) -> None:
        """Place the sentences of the matches end to end; `number` is that of the first match."""
        self.batch, self.matches, self.number = batch, matches, number
        rows = batch.row[matches.first]
        size = batch.offsets[rows + 1] - batch.offsets[rows]
        self.shift = np.cumsum(size, dtype=np.int32) - size - batch.offsets[rows]
        self.match = np.repeat(np.arange(len(rows), dtype=np.int32), size)
        self.token = np.arange(len(self.match), dtype=np.int32) - np.repeat(self.shift, size)
        self.head = batch.head[self.token]
        which, token = matches.marker_tokens()
        self.marker = token + self.shift[which]
        """The positions of all markers."""
        self.words = ~batch.labelled("punctuation")[self.token]
        self.subordinate = batch.patterns.subordinates[matches.row]
        """Flags [matches]: the marker is the subordinator of S2."""

    def matches_at(self, positions: BoolArray | Ints) -> BoolArray:
        """Flag the matches that have at least one of the positions (given as numbers or flags)."""
        flag = np.zeros(len(self.matches), dtype=bool)
        flag[self.match[positions]] = True
        return flag

    def first_words(self, marked: BoolArray) -> Ints:
        """Return the position of the first marked word of each match that has one."""
        positions = np.flatnonzero(marked & self.words)
        # Positions where the match changes
        return positions[np.diff(self.match[positions], prepend=-1) > 0]

    def end_words(self, marked: BoolArray) -> tuple[Ints, Ints]:
        """Return the first and the last marked word of each match, as tokens; -1 without one."""
        positions = np.flatnonzero(marked & self.words)
        first, last = np.full((2, len(self.matches)), -1, dtype=np.int32)
        # Later values replace earlier ones: from the back, the first word of a match remains.
        first[self.match[positions[::-1]]] = self.token[positions[::-1]]
        last[self.match[positions]] = self.token[positions]
        return first, last

    def sides(self) -> SideCodes:
        """Return the side code of each position: that of its nearest ancestor which has one.

        `ancestor` points from each position to its head, and from a position with its own code to
        itself. Followed to the end, it leads to the position whose code counts.
        """
        matches, shift = self.matches, self.shift
        positions = np.arange(len(self.token), dtype=np.int32)
        ancestor = np.where(self.head >= 0, self.head + shift[self.match], positions)
        # Give codes to children of the heads, to the heads, and to the marker.
        side, opener = np.zeros((2, len(positions)), dtype=np.int8)
        coded = np.zeros(len(positions), dtype=bool)
        for children, codes, opened_sides in self.coded_children():
            coded[children] = True
            side[children] = codes
            opener[children] = opened_sides
        opener[(matches.first + shift)[self.subordinate]] = S2
        same_sentence = np.flatnonzero(matches.s1 >= 0)
        s1, s2 = matches.s1[same_sentence] + shift[same_sentence], matches.s2 + shift
        coded[s1] = coded[s2] = True
        side[s1] = S1
        side[s2] = S2
        marker = self.marker
        marker_only = marker[(side[marker] == 0) | (side[marker] > S2)]
        coded[marker_only], side[marker_only] = True, 0
        ancestor[coded] = positions[coded]
        # Words behind the marker that the parser attached to it belong to S2.
        stray = self.batch.labelled("stray")[self.token] & ~coded
        stray &= (self.head == matches.token[self.match]) & (self.token > self.head)
        ancestor[stray] = s2[self.match[stray]]
        for _ in range(MAX_DOUBLINGS):
            farther = ancestor[ancestor]  # the ancestor's ancestor: each round doubles the steps
            if np.array_equal(farther, ancestor):
                break
            ancestor = farther
        side = side[ancestor]
        side[marker] = 0  # even where one of them is a head
        self.give_last_mark_to_s2(side)
        return self.with_whole_multiwords(self.with_modifiers_muted(side, opener))

    def coded_children(self) -> Iterator[tuple[Ints, Ints | int, Ints | int]]:
        """Yield children of the two heads, their side codes, and the side they open (0: none).

        Modifiers come first (`with_modifiers_muted` mutes those of a subordinator), then the
        children that the row of the table mutes, then those that it drops. A later code replaces an
        earlier one. A muted subordinator opens its side.
        """
        # The children of both heads
        batch = self.batch
        s1, s2 = self.matches.s1[self.match], self.matches.s2[self.match]
        children = np.flatnonzero(((self.head == s1) | (self.head == s2)) & (self.head >= 0))
        match, token, head = self.match[children], self.token[children], self.head[children]
        of_s2 = (head == s2[children]).astype(np.int8)
        other_head = np.where(of_s2 == 1, s1[children], s2[children])
        # Where each child stands (before or behind its head, behind both heads), and its kind
        place = (token > head).astype(np.int8)
        place[(token > head) & (other_head > head) & (token > other_head)] = 2
        kind = batch.tagged("clause")[token].astype(np.int8)
        kind[batch.tagged("subject")[token]] = 2
        # The axes of `CompiledPatterns.lost`.
        cell = (self.matches.row[match], of_s2, place, kind, batch.label[token])
        modifier = batch.labelled("modifier")[token]
        yield children[modifier], S1 + of_s2[modifier] + MODIFIER, 0
        # A subordinator introduces its clause only before subject, copula, auxiliary and object.
        clause = match * 2 + of_s2
        first_core = np.full(2 * len(self.matches), len(batch), dtype=np.int32)
        core = np.flatnonzero(batch.labelled("core")[token])[::-1]
        first_core[clause[core]] = token[core]
        introduces = (token < head) & (token < first_core[clause])
        subordinator = batch.labelled("subordinator")[token]
        muted = batch.patterns.lost("mute")[cell] & (introduces | ~subordinator)
        opened_side = (subordinator & batch.listed("named")[token]) * (S1 + of_s2)
        yield children[muted], S1 + of_s2[muted] + MUTED, opened_side[muted]
        yield children[batch.patterns.lost("drop")[cell]], 0, 0

    def give_last_mark_to_s2(self, side: SideCodes) -> None:
        """Give a "?" or "!" behind S2 to S2 (in `side`) if S2 is coordinate with S1.

        UD attaches the mark to the root, the first conjunct; but in "I called, but did he answer?"
        the second conjunct is the question. S1 keeps the mark if S1 is a question itself, or if S2
        is subordinate to it.
        """
        # Take the marks "?" and "!" in S1, in matches whose S2 is coordinate with S1.
        batch, match = self.batch, self.match
        marks = np.flatnonzero((side == S1) & ~self.words)
        marks = marks[batch.listed("terminal")[self.token[marks]]]
        marks = marks[~self.subordinate[match[marks]]]
        # Keep the marks whose last word before them belongs to S2, to its text or only to its span.
        words = np.flatnonzero(self.words)
        before = np.searchsorted(words, marks) - 1
        marks, word_before = marks[before >= 0], words[before[before >= 0]]
        of_s2 = np.isin(side[word_before], (S2, S2 + MUTED, S2 + MODIFIER))
        marks = marks[(match[word_before] == match[marks]) & of_s2]
        # S1 is a question, and keeps the mark, if its auxiliary precedes its subject, or if its
        # first word is interrogative.
        s1 = self.matches.s1[match[marks]]
        subject = batch.leftmost_child("subject")[s1]
        asks = (batch.leftmost_child("auxiliary")[s1] < subject) & (subject < len(batch))
        first_tokens, _ = self.end_words(side == S1)
        asks |= batch.tagged("interrogative")[first_tokens[match[marks]]]
        side[marks[~asks]] = S2

    def with_modifiers_muted(self, side: SideCodes, opener: SideCodes) -> SideCodes:
        """Return the codes with each code `side + MODIFIER` replaced by `side + MUTED` or `side`.

        A run of modifiers is muted if its side begins with it and the word that opens the side
        comes next. `opener` has the number of the side that a position opens, else 0.
        """
        modifier = side > MODIFIER
        plain = np.where(modifier, side - MODIFIER, side).astype(np.int8)
        before_opener = np.zeros(len(side), dtype=bool)
        before_opener[:-1] = modifier[:-1] & (opener[1:] == plain[:-1]) & ~self.begins()[1:]
        if not before_opener.any():
            return plain
        run = np.cumsum(self.begins(side)) - 1
        ends_at_opener, begins_side = np.zeros((2, int(run[-1]) + 1), dtype=bool)
        ends_at_opener[run[before_opener]] = True
        for number in (S1, S2):
            begins_side[run[self.first_words(plain == number)]] = True
        muted = modifier & (ends_at_opener & begins_side)[run]
        return np.where(muted, plain + MUTED, plain).astype(np.int8)

    def begins(self, side: SideCodes | None = None) -> BoolArray:
        """Mark the first position of each match; with `side`, also those where the code changes."""
        begins = np.ones(len(self.match), dtype=bool)
        begins[1:] = self.match[1:] != self.match[:-1]
        if side is not None:
            begins[1:] |= side[1:] != side[:-1]
        return begins

    def with_whole_multiwords(self, side: SideCodes) -> SideCodes:
        """Return the codes with one code for all words of a multiword token such as "wanna".

        The code is that of the first word, or 0 if one of the words belongs to neither side.
        """
        starts, ends = self.batch.start[self.token], self.batch.end[self.token]
        shared = ~self.begins()
        shared[1:] &= starts[1:] < ends[:-1]
        if not shared.any():
            return side
        # The first word of each multiword token or other token
        leaders = np.flatnonzero(~shared)
        lowest = np.minimum.reduceat(side, leaders)
        lowest = np.where(lowest > 0, side[leaders], 0)
        return np.repeat(lowest, np.diff(np.append(leaders, len(side)))).astype(np.int8)

    def runs(self, side: SideCodes) -> TokenRuns:
        """Return the longest runs of tokens with the same code, without those of code 0.

        Separators at the ends of a run are left out, and so are runs of punctuation, except the
        mark that ends the sentence.
        """
        run = np.cumsum(self.begins(side)) - 1
        separator = self.batch.listed("separator")[self.token]  # whatever label a parser gave it
        word = (self.words & ~separator) | self.batch.listed("terminal")[self.token]
        has_words = np.zeros(int(run[-1]) + 1 if len(run) else 0, dtype=bool)
        has_words[run[word & (side > 0)]] = True
        content = np.flatnonzero(has_words[run] & ~separator)
        before_next_run = np.flatnonzero(np.diff(run[content]))
        first = content[np.append(0, before_next_run + 1)] if len(content) else content
        last = content[np.append(before_next_run, len(content) - 1)] if len(content) else content
        return self.match[first] + self.number, side[first], self.token[first], self.token[last]
