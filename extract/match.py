"""Occurrences of markers in a batch, each with the row of the table that it matches.

Markers are single words, fixed word sequences and correlatives. Each row of
the table takes a few array operations over the occurrences of its marker; there is no object per
token and no parse per marker (DisSent, section 4.2 and appendix A.1, made declarative).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from extract.parse import BoolArray, Ints
from extract.patterns.compiled import Row, WordSequence
from extract.trees import Batch

Test = Callable[[Ints], BoolArray]
PREVIOUS = -2
"""Stands for the head of S1 if S1 is the previous sentence."""
MAX_DEPTH = 1000
GOVERNORS = 3
"""Steps from a clause with "that" up to the conjunct that it is part of."""
REASONS = ("no_pattern", "marker_relation", "marker_place", "s2_head", "s1_head", "order")
"""Why no row matched: the first condition that the best row did not meet."""


@dataclass(slots=True)
class Matches:
    """Candidates as parallel columns [c], in the order of the text.

    `sequence` indexes `CompiledPatterns.sequences`; the marker is the tokens
    `first:first + length`, and `second:second + second_length` where `second` >= 0. Rows use
    the part that equals the marker whose rows the sequence uses ("if" of "if ... then", "but" of
    "not only ... but"): `lead` is its first token, `token` its syntactic head.

    `row` is the row that matched (-1: none), `s2` and `s1` the heads (S1's is `PREVIOUS` for the
    previous sentence), `stage` how far the best row got (an index into `REASONS`).
    """

    sequence: Ints
    first: Ints
    length: Ints
    second: Ints
    second_length: Ints
    lead: Ints
    token: Ints
    row: Ints
    s2: Ints
    s1: Ints
    stage: Ints

    def __len__(self) -> int:
        return len(self.first)

    def take(self, keep: BoolArray | Ints) -> Matches:
        return Matches(*(getattr(self, column.name)[keep] for column in fields(self)))

    def marker_tokens(self) -> tuple[Ints, Ints]:
        """Every token of every marker: the number of its candidate, and the token."""
        which, tokens = [], []
        for start, length in ((self.first, self.length), (self.second, self.second_length)):
            begin = np.cumsum(length) - length
            which.append(np.repeat(np.arange(len(self)), length))
            tokens.append(np.arange(int(length.sum())) + np.repeat(start - begin, length))
        return np.concatenate(which), np.concatenate(tokens)


def find_candidates(batch: Batch) -> Matches:
    """Every occurrence; a token belongs to at most one (correlatives first, then the longest)."""
    sequences = batch.patterns.sequences
    by_word = _positions(batch)
    claimed = np.zeros(len(batch) + 1, dtype=bool)

    def free(words: tuple[int, ...]) -> Ints:
        """Where the words are adjacent and no other candidate has one of them."""
        starts = _starts(batch, by_word, words)
        return starts[~claimed[_tokens(starts, words)].any(axis=1)]

    columns: list[Ints] = []
    for number, sequence in enumerate(sequences):
        first = free(sequence.words)
        if sequence.last_deprels:
            labels = batch.patterns.last_labels[number]
            first = first[labels[batch.label[first + len(sequence.words) - 1]]]
        second = np.full(len(first), -1, dtype=np.int32)
        if sequence.second:
            first, second = _correlated(batch, sequence, first, free(sequence.second))
        claimed[_tokens(first, sequence.words)] = True
        claimed[_tokens(second, sequence.second)] = True
        columns.append(np.stack([np.full(len(first), number, dtype=np.int32), first, second]))
    table = np.concatenate(columns, axis=1)
    number, first, second = table[:, np.argsort(table[1], kind="stable")]
    length = np.array([len(s.words) for s in sequences], dtype=np.int32)[number]
    second_length = np.array([len(s.second) for s in sequences], dtype=np.int32)[number]
    later = np.array([s.like_second for s in sequences], dtype=bool)[number]
    lead = np.where(later, second, first)
    token = _head_token(batch, lead, np.where(later, second_length, length))
    row, s2, s1 = np.full((3, len(first)), -1, dtype=np.int32)
    stage = np.zeros(len(first), dtype=np.int32)
    return Matches(
        number, first, length, second, second_length, lead, token, row, s2=s2, s1=s1, stage=stage
    )


def _positions(batch: Batch) -> dict[int, Ints]:
    """The tokens of each word that occurs in a marker, in the order of the text."""
    hits = np.flatnonzero(batch.word)
    hits = hits[np.argsort(batch.word[hits], kind="stable")]
    present, begin = np.unique(batch.word[hits], return_index=True)
    return dict(zip(present.tolist(), np.split(hits, begin[1:]), strict=False))


def _starts(batch: Batch, by_word: dict[int, Ints], words: tuple[int, ...]) -> Ints:
    """Where the words are adjacent in one sentence."""
    starts = by_word.get(words[0], np.empty(0, dtype=np.intp))
    for k, word in enumerate(words[1:], start=1):
        starts = starts[starts + k < len(batch)]
        here = (batch.word[starts + k] == word) & (batch.row[starts + k] == batch.row[starts])
        starts = starts[here]
    return starts


def _tokens(starts: Ints, words: tuple[int, ...]) -> Ints:
    """The tokens [starts, words] of the sequence at each start."""
    return starts[:, None] + np.arange(len(words))


def _correlated(
    batch: Batch, sequence: WordSequence, first: Ints, second: Ints
) -> tuple[Ints, Ints]:
    """Pairs of a first and a later second part in one sentence whose clauses are linked.

    "if ... then": the clause of "then" governs that of "if"; "not only ... but": the conjunct
    of "but" depends on that of "only"; or both words have the same head.
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
    """The last token of each marker whose head is outside it (the first one if there is none).

    In "even though" both words may depend on the clause; the conjunction is the last.
    """
    token = first.copy()
    for i in np.flatnonzero(length > 1):
        inside = range(int(first[i]), int(first[i] + length[i]))
        outward = (t for t in reversed(inside) if int(batch.head[t]) not in inside)
        token[i] = next(outward, first[i])
    return token


def match_rows(batch: Batch, matches: Matches, whole_clauses: bool = False) -> None:
    """Fill in row, heads and stage: rows in the order of the table, the first that holds wins.

    With `whole_clauses`, S1 of a subordinate clause is the nearest clause above that is finite or
    has a subject, whatever the row says: clauses in between could not stand alone.
    """
    matcher = _Matcher(batch, matches, whole_clauses)
    for marker, rows in batch.patterns.rows_of.items():
        which = np.flatnonzero(batch.patterns.uses[marker][matches.sequence])
        for row in rows:
            if len(which) == 0:
                break
            matcher.try_row(row, which)
            which = which[matches.row[which] < 0]


class _Matcher:
    """Arrays that several rows need, computed once for a batch."""

    def __init__(self, batch: Batch, matches: Matches, whole_clauses: bool) -> None:
        self.batch, self.matches, self.whole_clauses = batch, matches, whole_clauses
        self.patterns = batch.patterns
        self.conjunct_before = batch.previous_conjunct()
        self.first_core = batch.leftmost_child("core")
        self.first_subject = batch.leftmost_child("subject")
        tokens = np.arange(len(batch), dtype=np.int32)
        self.whole = batch.has(tokens, self.patterns.mask(("finite", "subject")))
        that = batch.labelled("subordinator") & self.patterns.listed["complementizer"][batch.form]
        self.complement = batch.with_child(that & (batch.head > tokens))
        self.complement_before = _last_before(self.complement)
        self.asks = np.zeros(len(batch.row_doc), dtype=bool)
        self.asks[batch.row[batch.patterns.asking[batch.form]]] = True
        content = ~batch.labelled("punctuation")
        self.content_before = _last_before(content)
        self.opening = _last_before(content & ~batch.labelled("opener"))

    def try_row(self, row: Row, which: Ints) -> None:
        """Narrow `which` condition by condition, and record how far each candidate got."""
        batch, matches, pattern = self.batch, self.matches, row.pattern

        def reached(stage: int) -> None:
            matches.stage[which] = np.maximum(matches.stage[which], stage)

        reached(1)
        token = matches.token[which]
        fits = row.labels["deprels"][batch.label[token]] & batch.has(token, row.bits["tags"])
        after = np.minimum(token + 1, len(batch) - 1)
        fits &= ~row.words["not_before"][batch.word[after]]
        if pattern.after_words:
            fits &= row.words["after_words"][batch.word[np.maximum(matches.first[which] - 1, 0)]]
        which = which[fits]
        reached(2)
        if len(which) == 0:
            return
        s2 = self.s2_head(row, matches.token[which])
        placed = (s2 >= 0) & self.placed(row, which, s2)
        if pattern.uninverted:
            placed &= ~self.inverted(which, s2)
        which, s2 = which[placed], s2[placed]
        reached(3)
        fits = (
            batch.has(s2, row.bits["s2_needs"], row.bits["s2_lacks"])
            & row.labels["s2_deprels"][batch.label[s2]]
        )
        if pattern.s2_words:
            fits &= row.words["s2_words"][batch.word[s2]]
        if pattern.compared:
            fits &= self.compares(row)[batch.head[s2]] & (batch.head[s2] >= 0)
        which, s2 = which[fits], s2[fits]
        reached(4)
        if len(which) == 0:
            return
        s1 = self.s1_head(row, matches.token[which], s2)
        fits = self.s1_fits(row, matches.lead[which], s1, s2)
        which, s2, s1 = which[fits], s2[fits], s1[fits]
        reached(5)
        if pattern.order != "any":
            ordered = (s1 < s2) == (pattern.order == "s1_first")
            which, s2, s1 = which[ordered], s2[ordered], s1[ordered]
        matches.row[which], matches.s2[which], matches.s1[which] = row.index, s2, s1

    def placed(self, row: Row, which: Ints, s2: Ints) -> BoolArray:
        """Whether the marker is where the row requires it, relative to S2's head."""
        place, first = row.pattern.place, self.matches.lead[which]
        if place == "initial":
            return self.opening[first] < self.batch.offsets[self.batch.row[first]]
        if place == "edge":
            return (first < s2) & (first < self.first_core[np.maximum(s2, 0)])
        if place == "after_governor":
            return first > self.batch.head[self.matches.token[which]]
        if place in ("before", "after"):
            return (first < s2) == (place == "before")
        return np.ones(len(first), dtype=bool)

    def inverted(self, which: Ints, s2: Ints) -> BoolArray:
        """Whether S2's verb or auxiliary follows the marker, and its subject comes after it.

        "So do I" is said of another subject: "so" is a pro-form. Questions are inverted anyway.
        """
        batch = self.batch
        first = self.matches.first[which]
        verb = np.minimum(first + self.matches.length[which], len(batch) - 1)
        auxiliary = self.patterns.classes["auxiliary"][batch.label[verb]]
        auxiliary &= (batch.head[verb] == s2) | (batch.head[verb] == first)
        subject = self.first_subject[np.maximum(s2, 0)]
        turned = (subject > verb) & (subject < len(batch)) & ~self.asks[batch.row[first]]
        return ((verb == s2) | auxiliary) & turned

    def compares(self, row: Row) -> BoolArray:
        """The words of `compared`, the tokens that these modify from the left, and their heads.

        The clause of "as tall as he is" depends on "tall", or in a parse on the verb above it.
        """
        named = row.words["compared"][self.batch.word] & ~self.batch.labelled("subordinator")
        words = np.flatnonzero(named)
        heads = self.batch.head[words]
        heads = heads[heads > words]
        above = self.batch.head[heads]
        flag = np.zeros(len(self.batch), dtype=bool)
        flag[words] = flag[heads] = flag[above[above >= 0]] = True
        return flag

    def s2_head(self, row: Row, token: Ints) -> Ints:
        """S2's head, -1 if there is none."""
        head, choice = self.batch.head[token], row.pattern.s2
        if choice == "self":
            return token
        if choice == "complement":
            labels = row.labels["s2_deprels"]
            return self.batch.child_beside(token, token, labels[self.batch.label], after=True)
        if choice == "right_conjunct":
            conjunct = self.batch.labelled("conjunct")
            return self.batch.child_beside(token, head, conjunct, after=True)
        if choice == "edge_clause":
            # From the head up through the subject, object or adverbial that it is in, as long as
            # these precede the predicate: the clause whose first phrase the marker modifies.
            dependent = self.labelled(self.patterns.classes["dependent"])
            top = self.ascend(head, lambda t: dependent(t) & (self.batch.head[t] > t))
            return np.where((top != head) & (top > token), top, -1)
        return head

    def s1_head(self, row: Row, token: Ints, s2: Ints) -> Ints:
        """S1's head, -1 if there is none, `PREVIOUS` for the previous sentence."""
        head, choice = self.batch.head, row.pattern.s1
        if choice == "previous":
            linked = self.batch.row_linked[self.batch.row[s2]]
            return np.where(linked, PREVIOUS, -1).astype(np.int32)
        if choice == "sibling":
            return self.batch.sibling_before(s2, self.patterns.classes["reported_clause"])
        if choice == "conjunct":
            s1 = self.with_subject(self.conjunct_before[s2], s2)
            if self.whole_clauses:
                s1 = self.complement_alike(s1, s2)
        elif choice == "marker_head":
            s1 = self.with_subject(head[token], s2)
        else:
            s1 = head[s2]
        if row.pattern.alike:
            # Conjuncts are alike: if S2 is finite, the finite clause above.
            finite = self.having("finite")
            above = self.ascend(s1, lambda t: ~finite(t))
            return np.where((s1 >= 0) & finite(s2) & finite(above), above, s1)
        climbed = self.labelled(row.labels["climb"])
        if choice not in ("clause", "sentence"):
            s1 = self.ascend(s1, climbed)
            return self.last_conjunct(s1, s2) if choice == "parent" and self.whole_clauses else s1
        clause = self.having("clause")
        if choice == "clause" and not self.whole_clauses:
            return self.ascend(s1, lambda t: ~clause(t) | climbed(t))
        whole = self.having("finite", "subject", "statement", "imperative")
        s1 = self.ascend(s1, lambda t: ~clause(t) | ~whole(t) | climbed(t))
        return self.with_subject(s1, s2) if self.whole_clauses else s1

    def complement_alike(self, s1: Ints, s2: Ints) -> Ints:
        """S1's head, or the last clause with "that" inside S1 if S2 has a "that" and S1 has none.

        In "she learnt that he had left and that the house was sold" a parser may hang the second
        clause on the verb above both.
        """
        that, below = self.complement, self.complement_before[s2]
        unlike = (s1 >= 0) & that[s2] & ~that[s1] & (below > s1)
        above = below
        for _ in range(GOVERNORS):
            above = np.where((above >= 0) & (above != s1), self.batch.head[above], above)
        return np.where(unlike & (above == s1), below, s1)

    def last_conjunct(self, s1: Ints, s2: Ints) -> Ints:
        """S1's head, or its last conjunct before S2 that is a clause with its own subject.

        A clause that is joined without a conjunction continues the clause right before it.
        """
        wanted = self.batch.labelled("conjunct") & self.whole
        last = self.batch.child_beside(s2, s1, wanted, after=False)
        return np.where(last > s1, last, s1)

    def with_subject(self, s1: Ints, s2: Ints) -> Ints:
        """S1's head, or if S2 has its own subject, the earlier conjunct whose subject S1 shares.

        In "he coughed, spat and swore, but we ignored him" S1 is the whole clause; "swore" alone
        would lack the shared subject. Imperatives share no subject, nor do verbs that need none
        (`pro_drop`).
        """
        if self.patterns.table.pro_drop:
            return s1
        subject, statement = self.having("subject"), self.having("statement")
        top = s1.copy()
        sharing = np.flatnonzero((s1 >= 0) & subject(s2) & statement(s1))
        while len(sharing := sharing[~subject(top[sharing])]):
            top[sharing] = self.conjunct_before[top[sharing]]
        return top

    def s1_fits(self, row: Row, first: Ints, s1: Ints, s2: Ints) -> BoolArray:
        if row.pattern.s1 == "previous":
            return s1 == PREVIOUS
        batch, label = self.batch, self.batch.label[s1]
        fits = (s1 >= 0) & batch.has(s1, row.bits["s1_needs"], row.bits["s1_lacks"])
        fits &= row.labels["s1_deprels"][label] & ~row.labels["s1_not"][label]
        if row.pattern.apart:
            bits = self.patterns.bits
            events = batch.has(s1, bits["finite"])
            events &= batch.has(s2, bits["finite"] | bits["complement"])
            fits &= events | (self.content_before[first] != s1)
        return fits

    def having(self, *names: str) -> Test:
        """Marks the tokens that have one of the properties."""
        bits = self.patterns.mask(names)
        return lambda tokens: (self.batch.traits[tokens] & bits) != 0

    def labelled(self, labels: BoolArray) -> Test:
        """Marks the tokens that have one of the labels."""
        return lambda tokens: labels[self.batch.label[tokens]]

    def ascend(self, tokens: Ints, through: Test) -> Ints:
        """Each token's nearest ancestor, or itself, that `through` does not mark."""
        tokens = tokens.copy()
        passing = np.flatnonzero(tokens >= 0)
        for _ in range(MAX_DEPTH):
            passing = passing[through(tokens[passing]) & (self.batch.head[tokens[passing]] >= 0)]
            if len(passing) == 0:
                break
            tokens[passing] = self.batch.head[tokens[passing]]
        return tokens


def _last_before(wanted: BoolArray) -> Ints:
    """For each token the last wanted one before it; -1 if there is none."""
    running = np.maximum.accumulate(np.where(wanted, np.arange(len(wanted), dtype=np.int32), -1))
    return np.concatenate([np.array([-1], dtype=running.dtype), running[:-1]])
