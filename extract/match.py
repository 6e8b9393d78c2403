"""Find the markers in a batch, and for each the row of the pattern table that it matches.

Markers are single words, fixed word sequences and correlatives. Each row of the table takes a few
array operations over all occurrences of its marker. The rows declare the patterns of DisSent,
section 4.2 and appendix A.1, and more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from extract.parse import BoolArray, Ints
from extract.patterns.table import Pattern
from extract.trees import Batch

PREVIOUS = -2
"""Stands for the head of S1 where S1 is the previous sentence."""
GOVERNORS = 3
"""Steps from a clause with "that" up to the conjunct that it is part of."""
REASONS = ("no_pattern", "marker_relation", "marker_place", "s2_head", "s1_head", "order")
"""Reasons why no row matched, by stage: the first condition that the best row did not meet."""


@dataclass(slots=True)
class Matches:
    """Candidates as parallel columns [c], in the order of the text.

    `sequence` indexes `CompiledPatterns.sequences`; the marker is the tokens
    `first:first + length`, and `second:second + second_length` where `second` >= 0. Rows use
    the part that equals the marker whose rows the sequence uses ("if" of "if ... then", "but" of
    "not only ... but"): `lead` is its first token, `token` its syntactic head.

    `row` is the row that matched (-1: none), `s2` and `s1` the heads (S1's is `PREVIOUS` for the
    previous sentence), `stage` the first condition that the best row failed (index into `REASONS`).
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

    def take(self, keep: BoolArray | Ints | slice) -> Matches:
        return Matches(*(getattr(self, column.name)[keep] for column in fields(self)))

    def then(self, other: Matches) -> Matches:
        names = [column.name for column in fields(self)]
        return Matches(*(np.concatenate([getattr(m, n) for m in (self, other)]) for n in names))

    def marker_tokens(self) -> tuple[Ints, Ints]:
        """Return two columns over all tokens of all markers: the candidate's number, the token."""
        start = np.concatenate([self.first, self.second])
        length = np.concatenate([self.length, self.second_length])
        begin = np.cumsum(length) - length
        number = np.repeat(np.tile(np.arange(len(self)), 2), length)
        return number, np.arange(int(length.sum())) + np.repeat(start - begin, length)


def find_candidates(batch: Batch) -> Matches:
    """Find all markers; where two overlap, correlatives take precedence, then the longest."""
    tokens = np.flatnonzero(batch.word)
    tokens = tokens[np.argsort(batch.word[tokens], kind="stable")]
    numbers, begin = np.unique(batch.word[tokens], return_index=True)
    tokens_of = dict(zip(numbers.tolist(), np.split(tokens, begin[1:]), strict=False))
    free = np.ones(len(batch), dtype=bool)

    def places(words: Sequence[int]) -> Ints:
        """Return the first tokens of a sequence of adjacent words in which no marker was found."""
        starts = tokens_of.get(words[0], np.empty(0, dtype=np.intp))
        for k, word in enumerate(words):
            starts = starts[starts + k < len(batch)]
            is_word = (batch.word[starts + k] == word) & free[starts + k]
            starts = starts[is_word & (batch.row[starts + k] == batch.row[starts])]
        return starts

    # For each sequence, find its tokens, and mark them as taken.
    columns: list[Ints] = []
    for number, sequence in enumerate(batch.patterns.sequences):
        words = batch.patterns.numbers(sequence.words.split())
        later = batch.patterns.numbers(sequence.second.split())
        first = places(words)
        if sequence.last_deprels:
            labels = batch.patterns.labels(sequence.last_deprels)
            first = first[labels[batch.label[first + len(words) - 1]]]
        second = np.full(len(first), -1, dtype=np.int32)
        if later:
            first, second = _linked_parts(batch, len(words), first, places(later))
        for start, part in ((first, words), (second, later)):
            free[start[:, None] + np.arange(len(part))] = False
        second_is_lead = bool(later) and sequence.second == sequence.like
        shape = (number, len(words), len(later), second_is_lead)
        columns.append(np.stack([first, second, *(np.full(len(first), n) for n in shape)]))
    # Put the candidates of all sequences in the order of the text.
    table = np.concatenate(columns, axis=1).astype(np.int32)
    table = table[:, np.argsort(table[0], kind="stable")]
    first, second, number, length, second_length, second_is_lead = table
    lead = np.where(second_is_lead, second, first)
    token = _head_token(batch, lead, np.where(second_is_lead, second_length, length))
    row, s2, s1 = np.full((3, len(first)), -1, dtype=np.int32)
    stage = np.zeros(len(first), dtype=np.int32)
    return Matches(
        number, first, length, second, second_length, lead, token, row, s2=s2, s1=s1, stage=stage
    )


def _linked_parts(batch: Batch, length: int, first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Pair first and second parts of a correlative in one sentence if their clauses are linked.

    `first` and `second` have the tokens where parts begin; a first part has `length` words. In one
    sentence the clause of "then" governs that of "if" ("if ... then"), the conjunct of "but"
    depends on that of "only" ("not only ... but"), or both words have the same head.
    """
    by_row: dict[int, list[int]] = defaultdict(list)
    for token in second.tolist():
        by_row[int(batch.row[token])].append(token)
    head, pairs = batch.head, []
    governor = head[_head_token(batch, first, np.full(len(first), length))]
    for token, clause in zip(first.tolist(), governor.tolist(), strict=True):
        candidates = by_row[int(batch.row[token])]
        for other in candidates:
            other_clause = int(head[other])
            linked = other_clause in (clause, head[clause]) or head[other_clause] == clause
            if other > token and clause >= 0 and other_clause >= 0 and linked:
                pairs.append((token, other))
                candidates.remove(other)
                break
    columns = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _head_token(batch: Batch, first: Ints, length: Ints) -> Ints:
    """Return the last token of each marker whose head is outside the marker, else its first token.

    In "even though" both words may depend on the clause; the conjunction is the last.
    """
    token = first.copy()
    for i in np.flatnonzero(length > 1):
        inside = range(int(first[i]), int(first[i] + length[i]))
        outward = (t for t in reversed(inside) if int(batch.head[t]) not in inside)
        token[i] = next(outward, first[i])
    return token


def match_rows(
    batch: Batch, matches: Matches, whole_clauses: bool = False, *, previous: bool = True
) -> None:
    """Set `row`, `s2`, `s1` and `stage` of `matches`, by the first row of the table that matches.

    With `whole_clauses`, S1 of a subordinate clause is the nearest clause above that is finite or
    has a subject, whatever the row says: clauses in between could not stand alone. Without
    `previous`, no sentence continues the one before it.
    """
    heads = _HeadFinder(batch, whole_clauses, previous)
    for number, row in enumerate(batch.patterns.table.patterns):
        which = np.flatnonzero(
            batch.patterns.users[row.marker][matches.sequence] & (matches.row < 0)
        )
        if len(which) == 0:
            continue
        _raise_stage(matches, which, 1)
        which = which[heads.marker_meets_conditions(row, matches, which)]
        _raise_stage(matches, which, 2)
        if len(which) == 0:
            continue
        s2 = heads.s2(row, matches.token[which])
        fits = (s2 >= 0) & heads.marker_is_placed(row, matches, which, s2)
        which, s2 = which[fits], s2[fits]
        _raise_stage(matches, which, 3)
        fits = heads.s2_meets_conditions(row, s2)
        which, s2 = which[fits], s2[fits]
        _raise_stage(matches, which, 4)
        s1 = heads.s1(row, matches.token[which], s2)
        fits = heads.s1_meets_conditions(row, matches.lead[which], s1, s2)
        which, s2, s1 = which[fits], s2[fits], s1[fits]
        _raise_stage(matches, which, 5)
        if row.order != "any":
            fits = (s1 < s2) == (row.order == "s1_first")
            which, s2, s1 = which[fits], s2[fits], s1[fits]
        matches.row[which], matches.s2[which], matches.s1[which] = number, s2, s1


def _raise_stage(matches: Matches, which: Ints, stage: int) -> None:
    """Set `stage` of the matches with the numbers `which` to at least `stage`."""
    matches.stage[which] = np.maximum(matches.stage[which], stage)


class _HeadFinder:
    """Finds the heads of S1 and S2 by a row's rules, and checks the row's conditions.

    The methods take columns of some matches; `which` has the numbers of these among all matches.
    For `whole_clauses` and `previous` see `match_rows`. The attributes are flags [tokens], except
    `complement_before`, `content_before` and `opening` (the last such token before each token),
    `row_linked` and `asks` (flags [sentences]) and `pro_drop` (of the language).
    """

    def __init__(self, batch: Batch, whole_clauses: bool, previous: bool) -> None:
        self.batch, self.whole_clauses = batch, whole_clauses
        self.row_linked = batch.row_linked & previous
        self.pro_drop = batch.patterns.table.pro_drop
        that = batch.labelled("subordinator") & batch.listed("complementizer")
        self.complement = batch.with_child(that & (batch.head > batch.tokens))
        self.complement_before = _last_before(self.complement)
        content = ~batch.labelled("punctuation")
        self.content_before = _last_before(content)
        self.opening = _last_before(content & ~batch.labelled("opener"))
        self.asks = batch.rows_with(batch.listed("asking"))
        finite, subject = batch.tagged("finite"), batch.tagged("subject")
        self.no_clause = ~batch.tagged("clause")
        whole = finite | subject | batch.tagged("statement") | batch.tagged("imperative")
        self.no_sentence = self.no_clause | ~whole
        self.full_conjunct = batch.labelled("conjunct") & finite & subject

    def labelled_as(self, labels: tuple[str, ...], tokens: Ints) -> BoolArray:
        """Return whether each token has one of the labels (see `CompiledPatterns.labels`)."""
        return self.batch.patterns.labels(labels)[self.batch.label[tokens]]

    def is_one_of(self, words: tuple[str, ...], tokens: Ints) -> BoolArray:
        """Return whether each token is one of the words."""
        return self.batch.patterns.words(words)[self.batch.word[tokens]]

    def marker_meets_conditions(self, row: Pattern, matches: Matches, which: Ints) -> BoolArray:
        """Return whether each marker meets the row's conditions on labels, tags and neighbours."""
        token = matches.token[which]
        fits = self.labelled_as(row.deprels, token) & self.batch.has(token, row.tags)
        # A marker at either end of the batch has no neighbour: it is compared with itself.
        if row.not_before:
            fits &= ~self.is_one_of(row.not_before, np.minimum(token + 1, len(self.batch) - 1))
        if row.after_words:
            fits &= self.is_one_of(row.after_words, np.maximum(matches.first[which] - 1, 0))
        return fits

    def marker_is_placed(self, row: Pattern, matches: Matches, which: Ints, s2: Ints) -> BoolArray:
        """Return whether each marker is where the row requires it, relative to S2's head."""
        batch, first = self.batch, matches.lead[which]
        # Where the marker stands: `edge` is before S2's head and its subject, object and verb.
        placed = np.ones(len(which), dtype=bool)
        if row.place == "initial":
            placed = self.opening[first] < batch.offsets[batch.row[first]]
        elif row.place == "edge":
            placed = (first < s2) & (first < batch.leftmost_child("core")[s2])
        elif row.place == "after_governor":
            placed = first > batch.head[matches.token[which]]
        elif row.place != "any":
            placed = (first < s2) == (row.place == "before")
        if row.uninverted:
            # In "so do I", S2's verb comes between marker and subject: "so" is a pro-form, no
            # marker. In a question the verb may come first.
            first = matches.first[which]
            verb = np.minimum(first + matches.length[which], len(batch) - 1)
            auxiliary = batch.labelled("auxiliary")[verb]
            auxiliary &= (batch.head[verb] == s2) | (batch.head[verb] == first)
            subject = batch.leftmost_child("subject")[s2]
            turned = (subject > verb) & (subject < len(batch)) & ~self.asks[batch.row[first]]
            placed &= ~(((verb == s2) | auxiliary) & turned)
        return placed

    def s2(self, row: Pattern, token: Ints) -> Ints:
        """Return the head of S2 for each marker (its head token), -1 if there is none."""
        batch, head = self.batch, self.batch.head[token]
        if row.s2 == "self":
            return token
        if row.s2 == "complement":
            return batch.child_beside(token, token, batch.labelled_as(row.s2_deprels), after=True)
        if row.s2 == "right_conjunct":
            return batch.child_beside(token, head, batch.labelled("conjunct"), after=True)
        if row.s2 == "edge_clause":
            # From the head up through the subject, object or adverbial that it is in, as long as
            # these precede the predicate: the clause whose first phrase the marker modifies.
            top = batch.ascend(head, batch.labelled("dependent") & (batch.head > batch.tokens))
            return np.where((top != head) & (top > token), top, -1)
        return head

    def s2_meets_conditions(self, row: Pattern, s2: Ints) -> BoolArray:
        """Return whether each head of S2 meets the row's conditions on S2."""
        batch = self.batch
        fits = batch.has(s2, row.s2_needs, row.s2_lacks)
        if row.s2_deprels:
            fits &= self.labelled_as(row.s2_deprels, s2)
        if row.s2_words:
            fits &= self.is_one_of(row.s2_words, s2)
        if row.compared:
            # In "as tall as he is" the clause depends on "tall", which "as" modifies, or in some
            # parses on "as" itself or on the head of "tall".
            comparatives = self.is_one_of(row.compared, batch.tokens) & ~batch.labelled(
                "subordinator"
            )
            modified = batch.with_child(comparatives & (batch.head > batch.tokens))
            compares = comparatives | modified | batch.with_child(modified)
            fits &= compares[batch.head[s2]] & (batch.head[s2] >= 0)
        return fits

    def s1(self, row: Pattern, token: Ints, s2: Ints) -> Ints:
        """Return the head of each S1, -1 if there is none, `PREVIOUS` for the previous sentence.

        `token` has the head tokens of the markers, `s2` the heads of S2. `row.s1` says where S1
        stands in the tree; some rows then climb from there to a clause above.
        """
        batch, head = self.batch, self.batch.head
        # S1 is the previous sentence, or a sister or child of S2.
        if row.s1 == "previous":
            return np.where(self.row_linked[batch.row[s2]], PREVIOUS, -1).astype(np.int32)
        if row.s1 == "sibling":
            reported = batch.labelled("reported_clause")
            before = batch.child_beside(s2, head[s2], reported, after=False)
            return np.where(reported[s2], before, -1)
        if row.s1 == "chained":
            chained = batch.labelled_as(row.s1_deprels)
            return batch.child_beside(token, s2, chained, after=False)
        if row.s1 == "child":
            first = batch.leftmost(batch.labelled_as(row.s1_deprels))[s2]
            return np.where(first < len(batch), first, -1).astype(np.int32)
        # S1 is above S2: first the word that S2 (or the marker) depends on ...
        if row.s1 == "conjunct":
            s1 = self.with_subject(batch.previous_conjunct()[s2], s2)
            if self.whole_clauses:
                s1 = self.complement_alike(s1, s2)
        elif row.s1 == "marker_head":
            s1 = self.with_subject(head[token], s2)
        else:
            s1 = head[s2]
        if row.alike:
            # Conjuncts are alike: if S2 is finite, the finite clause above.
            finite = batch.tagged("finite")
            above = batch.ascend(s1, ~finite)
            return np.where((s1 >= 0) & finite[s2] & finite[above], above, s1)
        # ... then up through words with the row's labels `climb`, or up to a clause.
        through = batch.labelled_as(row.climb)
        if row.s1 not in ("clause", "sentence"):
            s1 = batch.ascend(s1, through)
            if row.s1 != "parent" or not self.whole_clauses:
                return s1
            # A clause that is joined without a conjunction continues the clause right before it:
            # S1's last conjunct before S2 that is a clause with its own subject.
            last = batch.child_beside(s2, s1, self.full_conjunct, after=False)
            return np.where(last > s1, last, s1)
        if row.s1 == "clause" and not self.whole_clauses:
            return batch.ascend(s1, through | self.no_clause)
        s1 = batch.ascend(s1, through | self.no_sentence)
        return self.with_subject(s1, s2) if self.whole_clauses else s1

    def complement_alike(self, s1: Ints, s2: Ints) -> Ints:
        """Return S1's head, or a clause with "that" inside S1 if only S2 has a "that".

        In "she learnt that he had left and that the house was sold" a parser may attach the second
        clause to the verb above both ("learnt"); then S1 is the last clause with "that" before it.
        """
        has_that, last_that = self.complement, self.complement_before[s2]
        unlike = (s1 >= 0) & has_that[s2] & ~has_that[s1] & (last_that > s1)
        ancestor = last_that
        for _ in range(GOVERNORS):
            climbs = (ancestor >= 0) & (ancestor != s1)
            ancestor = np.where(climbs, self.batch.head[ancestor], ancestor)
        return np.where(unlike & (ancestor == s1), last_that, s1)

    def with_subject(self, s1: Ints, s2: Ints) -> Ints:
        """Return S1's head, or the earlier conjunct whose subject S1 shares if S2 has its own.

        In "he coughed, spat and swore, but we ignored him" S1 is the whole clause; "swore" alone
        would lack the shared subject. Imperatives share no subject, nor do verbs that need none
        (`pro_drop`).
        """
        if self.pro_drop:
            return s1
        subject, statement = self.batch.tagged("subject"), self.batch.tagged("statement")
        top = s1.copy()
        sharing = np.flatnonzero((s1 >= 0) & subject[s2] & statement[s1])
        while len(sharing := sharing[~subject[top[sharing]]]):
            top[sharing] = self.batch.previous_conjunct()[top[sharing]]
        return top

    def s1_meets_conditions(self, row: Pattern, first: Ints, s1: Ints, s2: Ints) -> BoolArray:
        """Return whether each head of S1 meets the row's conditions (`first`: marker's token)."""
        if row.s1 == "previous":
            return s1 == PREVIOUS
        fits = (s1 >= 0) & self.batch.has(s1, row.s1_needs, row.s1_lacks)
        fits &= ~self.labelled_as(row.s1_not, s1)
        if row.s1_deprels:
            fits &= self.labelled_as(row.s1_deprels, s1)
        if row.apart:  # not two verbs with one object, as in "peel and chop the onions"
            finite, complement = self.batch.tagged("finite"), self.batch.tagged("complement")
            events = finite[s1] & finite[s2] & complement[s2]
            fits &= events | (self.content_before[first] != s1)
        return fits


def _last_before(marked: BoolArray) -> Ints:
    """Return for each token the last marked token before it, -1 if there is none."""
    # The last marked token up to and with each token, then moved by one token
    running = np.maximum.accumulate(np.where(marked, np.arange(len(marked), dtype=np.int32), -1))
    return np.concatenate([np.array([-1], dtype=running.dtype), running[:-1]])
