"""S1 and S2 as spans: the clause of each head minus the other clause, the marker, and commas.

Every token belongs to its nearest marked ancestor. The heads are marked S1 and S2, the marker's
tokens and the children that a row drops 0; pointer doubling then carries the marks down to all
tokens of the sentence in log(depth) steps, for all matches of the batch at once. A token of
both clauses thus belongs to the inner one, so S1 and S2 never overlap. Children that a row mutes
(the "that" or "but" which introduces the clause) are marked `+ MUTED`: they belong to the span of
their side but not to its text. So do the modifiers of the subordinator that opens a clause, be it
the marker ("right after he left") or a muted one ("but only if he left"): UD attaches them to
the clause's head. They are marked `+ MODIFIER` until it is known whether they directly precede it.

A following word that the parser attached to the marker (class `stray`: "but [what remained] went to
her") is the beginning of S2: a marker has no such dependents.

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
"""Why a match was rejected, "" for a pair; all but the first five come from `standalone`."""
SEPARATING = " \t\n\r.,;:-–—…•*/。，、；："
LEADING = re.compile(r"(?:[\s,;–—…•。，、；：]|[.:*/-]{2,}|[.:*/-](?=\s|$))*")
"""Not at the start of a sentence, except a single mark that begins its first word (".NET")."""
MAX_DOUBLINGS = 32
"""Enough for any depth; readers reject trees with a cycle."""
WORDS_AT_ONCE = 1 << 20
"""Bounds memory: matches times the tokens of their sentences."""
Marks = NDArray[np.int8]
"""A token's side: S1 or S2, 0 for neither. `S1 + MUTED` belongs to S1 but not to its text; `S1 +
MODIFIER` is muted only where the side begins with it and its subordinator comes next ("only
because"). Marks above S2 are muted, or may be."""
S1, S2, MUTED, MODIFIER = 1, 2, 2, 4
Runs = tuple[Ints, Marks, Ints, Ints]
"""Runs of tokens, one a row: which match, which side (1 or 2), first and last token."""


@dataclass(slots=True)
class Sides:
    """S1 and S2 of matches: their full `spans`, and the spans of their texts.

    `refused` indexes `REFUSALS`. `asks` marks the sides that are questions, `added` has the words
    that S2's text takes from S1's clause.
    """

    spans: tuple[SpanColumn, SpanColumn]
    spoken: tuple[SpanColumn, SpanColumn]
    asks: tuple[BoolArray, BoolArray]
    added: SpanColumn
    has_clauses: BoolArray
    refused: Marks

    def then(self, other: Sides) -> Sides:
        """Return these sides, then the other ones."""
        return Sides(
            (self.spans[0].then(other.spans[0]), self.spans[1].then(other.spans[1])),
            (self.spoken[0].then(other.spoken[0]), self.spoken[1].then(other.spoken[1])),
            (np.append(self.asks[0], other.asks[0]), np.append(self.asks[1], other.asks[1])),
            self.added.then(other.added),
            np.append(self.has_clauses, other.has_clauses),
            np.append(self.refused, other.refused),
        )

    def take(self, keep: BoolArray | Ints) -> Sides:
        """Return the sides of the matches that a mask marks, or with these numbers."""
        return Sides(
            (self.spans[0].take(keep), self.spans[1].take(keep)),
            (self.spoken[0].take(keep), self.spoken[1].take(keep)),
            (self.asks[0][keep], self.asks[1][keep]),
            self.added.take(keep),
            self.has_clauses[keep],
            self.refused[keep],
        )


def sides_of(
    batch: Batch, matches: Matches, judge: Judge | None = None, *, restore: bool = False
) -> Sides:
    """Both sides of every match, and whether they may be a pair.

    Both sides need a text. With `judge`, both heads must also be `whole`, and it may reject more.
    With `restore`, S2 may lack its subject if the subject can be copied.
    """
    n = len(matches)
    rows = batch.row[matches.first]
    size = batch.offsets[rows + 1] - batch.offsets[rows]
    number = np.cumsum(size, dtype=np.int64) // WORDS_AT_ONCE
    bounds = [*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), n]
    full_runs: list[Runs] = []
    text_runs: list[Runs] = []
    judged, asks = np.zeros(n, dtype=np.int8), np.zeros((2, n), dtype=bool)
    for first, last in pairwise(bounds):
        block = Block(batch, matches.take(slice(first, last)), first)
        side = block.sides()
        full_runs.append(block.runs(np.where(side > S2, side - MUTED, side)))
        if judge is not None:
            judged[first:last], asks[:, first:last] = judge.judge(block, side)
        text_runs.append(block.runs(np.where(side > S2, 0, side)))
    sentences: dict[int, Sequence[Span]] = {}
    for i in np.flatnonzero(matches.s1 == PREVIOUS).tolist():
        layer = batch.document(matches.first[i]).sentences
        assert layer is not None
        start, end = layer[int(batch.row_sentence[rows[i]]) - 1]
        label = LABEL.match(batch.document(matches.first[i]).text, start, end)
        sentences[i] = [(label.end() if label else start, end)]
    spans = _columns(batch, n, full_runs, _trimmed(batch, matches, sentences))
    copies: dict[int, list[Span]] = {}
    s1_whole, s2_whole = _clauses(batch, matches, batch.tagged("statement"))
    has_clauses = s1_whole & s2_whole
    if judge is not None:
        statements = judge.previous(matches, sentences)
        fragments = [i for i in sentences if i not in statements and not judged[i]]
        judged[fragments] = REFUSALS.index("previous")
        sentences = statements
        copies = judge.restored(matches) if restore else {}
        s1_whole, s2_whole = _clauses(batch, matches, judge.whole)
        s1_whole |= matches.s1 == PREVIOUS  # `judge.previous` decides
        has_clauses |= s1_whole & s2_whole
    else:
        s1_whole = s2_whole = np.ones(n, dtype=bool)
    added = _column(n, [(i, *span) for i, pieces in copies.items() for span in pieces])
    s2_whole = s2_whole | (added.counts > 0)
    texts = _columns(batch, n, text_runs, _trimmed(batch, matches, sentences))
    texts = texts[0], added.followed_by(texts[1])
    # The first that holds, as indices into `REFUSALS`: 1 and 2 are an empty S1 and S2.
    why = [spans[0].counts == 0, spans[1].counts == 0, ~s1_whole, ~s2_whole, judged > 0]
    why += [texts[0].counts == 0, texts[1].counts == 0]
    refused = np.select(why, [1, 2, 3, 4, judged, 1, 2], 0).astype(np.int8)
    return Sides(spans, texts, (asks[0], asks[1]), added, has_clauses, refused)


def _columns(
    batch: Batch, n: int, parts: Sequence[Runs], before: SpanColumn
) -> tuple[SpanColumn, SpanColumn]:
    """The runs of S1 and of S2 as spans; `before` are those of S1 in the previous sentence."""
    empty: Any = (np.empty(0, dtype=np.int32),) * 4
    match, side, first, last = (
        np.concatenate(columns) for columns in zip(empty, *parts, strict=True)
    )
    start, end = batch.start[first], batch.end[last]
    s1, s2 = (
        SpanColumn.of(np.bincount(match[of_side], minlength=n), start[of_side], end[of_side])
        for of_side in (side == S1, side == S2)
    )
    return s1.followed_by(before), s2


def _column(n: int, spans: Sequence[tuple[int, int, int]]) -> SpanColumn:
    """Return the spans of `n` matches as a column from (match, start, end), ordered by match."""
    owner, start, end = np.array(spans, dtype=np.int32).reshape(-1, 3).T
    return SpanColumn.of(np.bincount(owner, minlength=n), start, end)


def _trimmed(batch: Batch, matches: Matches, spans: Mapping[int, Sequence[Span]]) -> SpanColumn:
    """The spans of matches without the separators at either end."""
    trimmed: list[tuple[int, int, int]] = []
    for i, pieces in spans.items():
        text = batch.document(matches.first[i]).text
        for start, end in pieces:
            piece = text[start:end]
            opening = LEADING.match(piece)
            begin = start + (opening.end() if opening else 0)
            finish = start + len(piece.rstrip(SEPARATING))
            if finish > begin:
                trimmed.append((i, begin, finish))
    return _column(len(matches), trimmed)


def _clauses(batch: Batch, matches: Matches, whole: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Whether the heads of S1 and S2 are `whole`.

    If S1 is the previous sentence, its root counts; a sentence without a parse is not whole.
    """
    row = batch.row[matches.first]
    row_is_clause = batch.rows_with((batch.head < 0) & whole)
    previous_whole = (matches.s1 == PREVIOUS) & batch.row_follows[row] & row_is_clause[row - 1]
    return ((matches.s1 >= 0) & whole[matches.s1]) | previous_whole, whole[matches.s2]


class Block:
    """Some matches with the tokens of their sentences, as columns [t].

    A sentence with two matches comes twice. `match` and `token` are the match and token at a
    position; `shift` [matches] maps a token of a match's sentence to its position.
    """

    def __init__(self, batch: Batch, matches: Matches, number: int) -> None:
        self.batch, self.matches, self.number = batch, matches, number
        rows = batch.row[matches.first]
        size = batch.offsets[rows + 1] - batch.offsets[rows]
        self.shift = np.cumsum(size, dtype=np.int32) - size - batch.offsets[rows]
        self.match = np.repeat(np.arange(len(rows), dtype=np.int32), size)
        here = np.arange(len(self.match), dtype=np.int32)
        self.token = here - np.repeat(self.shift, size)
        self.head = batch.head[self.token]
        which, token = matches.marker_tokens()
        self.marker = token + self.shift[which]
        """The positions of all markers."""
        self.words = ~batch.labelled("punctuation")[self.token]
        self.subordinate = batch.patterns.subordinates[matches.row]
        """By match, whether its marker is the subordinator of S2."""

    def any(self, places: BoolArray | Ints) -> BoolArray:
        """Return for each match whether one of its positions is in `places`."""
        flag = np.zeros(len(self.matches), dtype=bool)
        flag[self.match[places]] = True
        return flag

    def first_words(self, marked: BoolArray) -> Ints:
        """Return the position of the first marked word of each match that has one."""
        places = np.flatnonzero(marked & self.words)
        return places[np.diff(self.match[places], prepend=-1) > 0]

    def ends(self, marked: BoolArray) -> tuple[Ints, Ints]:
        """Return the first and the last marked word of each match, as tokens; -1 without one."""
        places = np.flatnonzero(marked & self.words)
        first, last = np.full((2, len(self.matches)), -1, dtype=np.int32)
        first[self.match[places[::-1]]] = self.token[places[::-1]]
        last[self.match[places]] = self.token[places]
        return first, last

    def sides(self) -> Marks:
        """For each position the side of its nearest marked ancestor, or that side MUTED."""
        matches, shift = self.matches, self.shift
        here = np.arange(len(self.token), dtype=np.int32)
        pointer = np.where(self.head >= 0, self.head + shift[self.match], here)
        side, opener = np.zeros((2, len(here)), dtype=np.int8)
        marked = np.zeros(len(here), dtype=bool)
        for children, value, opens in self.special_children():
            marked[children] = True
            side[children] = value
            opener[children] = opens
        opener[(matches.first + shift)[self.subordinate]] = S2
        same = np.flatnonzero(matches.s1 >= 0)
        s1, s2 = matches.s1[same] + shift[same], matches.s2 + shift
        marked[s1] = marked[s2] = True
        side[s1] = S1
        side[s2] = S2
        marker = self.marker
        unclaimed = marker[(side[marker] == 0) | (side[marker] > S2)]
        marked[unclaimed], side[unclaimed] = True, 0
        pointer[marked] = here[marked]
        stray = self.batch.labelled("stray")[self.token] & ~marked
        stray &= (self.head == matches.token[self.match]) & (self.token > self.head)
        pointer[stray] = s2[self.match[stray]]
        for _ in range(MAX_DOUBLINGS):
            jumped = pointer[pointer]
            if np.array_equal(jumped, pointer):
                break
            pointer = jumped
        side = side[pointer]
        side[marker] = 0  # even where one of them is a head
        self.give_last_mark(side)
        return self.undivided(self.with_modifiers_muted(side, opener))

    def special_children(self) -> Iterator[tuple[Ints, Ints | int, Ints | int]]:
        """Some children of the two heads, their mark, and the side that they open (0: none).

        First come the modifiers (`with_modifiers_muted` mutes those of a subordinator), then the
        children that the row of the table mutes, then those that it drops. A later mark replaces an
        earlier one. A muted subordinator opens its side.
        """
        batch = self.batch
        s1, s2 = self.matches.s1[self.match], self.matches.s2[self.match]
        children = np.flatnonzero(((self.head == s1) | (self.head == s2)) & (self.head >= 0))
        match, token, head = self.match[children], self.token[children], self.head[children]
        owner = (head == s2[children]).astype(np.int8)
        other = np.where(owner == 1, s1[children], s2[children])
        place = (token > head).astype(np.int8)
        place[(token > head) & (other > head) & (token > other)] = 2
        kind = batch.tagged("clause")[token].astype(np.int8)
        kind[batch.tagged("subject")[token]] = 2
        where = (self.matches.row[match], owner, place, kind, batch.label[token])
        modifier = batch.labelled("modifier")[token]
        yield children[modifier], S1 + owner[modifier] + MODIFIER, 0
        # A subordinator introduces from before the subject, copula, auxiliary and object.
        clause = match * 2 + owner
        first_core = np.full(2 * len(self.matches), len(batch), dtype=np.int32)
        core = np.flatnonzero(batch.labelled("core")[token])[::-1]
        first_core[clause[core]] = token[core]
        introduces = (token < head) & (token < first_core[clause])
        subordinator = batch.labelled("subordinator")[token]
        muted = batch.patterns.lost("mute")[where] & (introduces | ~subordinator)
        opens = (subordinator & batch.listed("named")[token]) * (S1 + owner)
        yield children[muted], S1 + owner[muted] + MUTED, opens[muted]
        yield children[batch.patterns.lost("drop")[where]], 0, 0

    def give_last_mark(self, side: Marks) -> None:
        """Give a "?" or "!" after S2 to S2 if S2 is coordinate with S1, not inside S1.

        UD attaches it to the root, the first conjunct; but in "I called, but did he answer?" the
        second is the question. S1 keeps the mark if S1 is a question itself, and a subordinate
        clause leaves it to the clause that it belongs to.
        """
        batch, match = self.batch, self.match
        marks = np.flatnonzero((side == S1) & ~self.words)
        marks = marks[batch.listed("terminal")[self.token[marks]]]
        marks = marks[~self.subordinate[match[marks]]]
        spoken = np.flatnonzero(self.words)
        at = np.searchsorted(spoken, marks) - 1
        marks, before = marks[at >= 0], spoken[at[at >= 0]]
        of_s2 = np.isin(side[before], (S2, S2 + MUTED, S2 + MODIFIER))
        marks = marks[(match[before] == match[marks]) & of_s2]
        s1 = self.matches.s1[match[marks]]
        subject = batch.leftmost_child("subject")[s1]
        asks = (batch.leftmost_child("auxiliary")[s1] < subject) & (subject < len(batch))
        opening = self.ends(side == S1)[0][match[marks]]
        asks |= batch.tagged("interrogative")[opening]
        side[marks[~asks]] = S2

    def with_modifiers_muted(self, side: Marks, opener: Marks) -> Marks:
        """Each modifier on its side, or muted where the side begins with it before its `opener`."""
        modifier = side > MODIFIER
        plain = np.where(modifier, side - MODIFIER, side).astype(np.int8)
        before = np.zeros(len(side), dtype=bool)
        before[:-1] = modifier[:-1] & (opener[1:] == plain[:-1]) & ~self.begins()[1:]
        if not before.any():
            return plain
        run = np.cumsum(self.begins(side)) - 1
        fits, begins = np.zeros((2, int(run[-1]) + 1), dtype=bool)
        fits[run[before]] = True
        for number in (S1, S2):
            begins[run[self.first_words(plain == number)]] = True
        return np.where(modifier & (fits & begins)[run], plain + MUTED, plain).astype(np.int8)

    def begins(self, side: Marks | None = None) -> BoolArray:
        """Mark the positions where a match begins; with `side`, also those where it changes."""
        begins = np.ones(len(self.match), dtype=bool)
        begins[1:] = self.match[1:] != self.match[:-1]
        if side is not None:
            begins[1:] |= side[1:] != side[:-1]
        return begins

    def undivided(self, side: Marks) -> Marks:
        """Words that share one span (of a multiword token such as "wanna") stay on one side.

        They follow the first word; they belong to neither side if one of them is the marker.
        """
        starts, ends = self.batch.start[self.token], self.batch.end[self.token]
        shared = ~self.begins()
        shared[1:] &= starts[1:] < ends[:-1]
        if not shared.any():
            return side
        leaders = np.flatnonzero(~shared)
        lowest = np.minimum.reduceat(side, leaders)
        lowest = np.where(lowest > 0, side[leaders], 0)
        return np.repeat(lowest, np.diff(np.append(leaders, len(side)))).astype(np.int8)

    def runs(self, side: Marks) -> Runs:
        """Return the maximal runs of one side: their match, side, first and last token.

        Separators at the ends of a run are left out, and so are runs of punctuation, except the
        mark that ends the sentence.
        """
        run = np.cumsum(self.begins(side)) - 1
        separator = self.batch.listed("separator")[self.token]  # whatever label a parser gave it
        word = (self.words & ~separator) | self.batch.listed("terminal")[self.token]
        alive = np.zeros(int(run[-1]) + 1 if len(run) else 0, dtype=bool)
        alive[run[word & (side > 0)]] = True
        content = np.flatnonzero(alive[run] & ~separator)
        edge = np.flatnonzero(np.diff(run[content]))
        first = content[np.append(0, edge + 1)] if len(content) else content
        last = content[np.append(edge, len(content) - 1)] if len(content) else content
        return self.match[first] + self.number, side[first], self.token[first], self.token[last]
