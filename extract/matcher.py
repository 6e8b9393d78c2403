"""The matcher: all occurrences of all markers of a batch against all rows, in one pass.

Per row of the table a handful of array operations over the occurrences of its marker; no object
per token, no parse per marker (DisSent, section 4.2 and appendix A.1, made declarative).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from extract.batch import Batch, BoolArray, child_after, leftmost_child, previous_conjunct
from extract.candidates import Candidates
from extract.compiled import CompiledPatterns, Row
from extract.parse import Ints

Test = Callable[[Ints], BoolArray]
PREVIOUS = -2
MAX_DEPTH = 1000
REASONS = (
    "no_pattern",
    "marker_relation",
    "marker_place",
    "s2_head",
    "s1_head",
    "order",
)


@dataclass(slots=True)
class Matches:
    """Per candidate: the row that matched (-1: none), the heads (S1's is `PREVIOUS` for the
    sentence before), and how far the best row came (an index into `REASONS`)."""

    row: Ints
    s2: Ints
    s1: Ints
    stage: Ints

    def take(self, keep: BoolArray | Ints) -> Matches:
        return Matches(self.row[keep], self.s2[keep], self.s1[keep], self.stage[keep])


class Matcher:
    """Tries the rows in the order of the table; the first that holds wins.

    With `whole_clauses`, S1 of a subordinate clause is the nearest clause above that is finite or
    has a subject, whatever the row says: what lies between could not stand alone.
    """

    def __init__(
        self, batch: Batch, patterns: CompiledPatterns, whole_clauses: bool = False
    ) -> None:
        self.batch, self.patterns, self.whole_clauses = batch, patterns, whole_clauses
        self.conjunct_before = previous_conjunct(batch, patterns)
        self.first_core = leftmost_child(batch, patterns.class_labels["core"])
        self.first_subject = leftmost_child(batch, patterns.class_labels["subject"])
        self._asks = np.zeros(len(batch.row_doc), dtype=bool)
        self._asks[batch.row[patterns.asking_of(batch.form)]] = True
        self._content = ~patterns.class_labels["punctuation"][batch.label]
        index = np.arange(len(batch), dtype=np.int32)
        self._content_before = _shifted(np.maximum.accumulate(np.where(self._content, index, -1)))
        skipped = patterns.class_labels["opener"][batch.label]
        self._opening = _shifted(
            np.maximum.accumulate(np.where(self._content & ~skipped, index, -1))
        )
        self._has_previous = batch.row_linked

    def match(self, found: Candidates) -> Matches:
        """The rows and heads of every candidate."""
        n = len(found)
        none, s2, s1 = (np.full(n, -1, dtype=np.int32) for _ in range(3))
        result = Matches(none, s2, s1, np.zeros(n, dtype=np.int32))
        for marker, rows in self.patterns.rows_of.items():
            which = np.flatnonzero(self.patterns.uses[marker][found.sequence])
            for row in rows:
                if len(which) == 0:
                    break
                self._try(row, found, which, result)
                which = which[result.row[which] < 0]
        return result

    def _try(self, row: Row, found: Candidates, which: Ints, result: Matches) -> None:
        """Narrow `which` condition by condition, and note how far each candidate came."""
        batch = self.batch

        def narrow(ok: BoolArray, stage: int) -> BoolArray:
            reached = which[ok]
            result.stage[reached] = np.maximum(result.stage[reached], stage)
            return ok

        result.stage[which] = np.maximum(result.stage[which], 1)
        token = found.token[which]
        ok = narrow(self._marker_fits(row, token), 2)
        which, token = which[ok], token[ok]
        if len(which) == 0:
            return
        s2 = self._s2_head(row, token)
        placed = (s2 >= 0) & self._placed(row, found, which, s2)
        if row.pattern.uninverted:
            placed &= ~self._inverted(found, which, s2)
        ok = narrow(placed, 3)
        which, s2 = which[ok], s2[ok]
        if len(which) == 0:
            return
        ok = _has(batch, s2, row.s2_needs, row.s2_lacks)
        if row.s2_deprels is not None:
            ok &= row.s2_deprels[batch.label[s2]]
        ok = narrow(ok, 4)
        which, s2 = which[ok], s2[ok]
        if len(which) == 0:
            return
        s1 = self._s1_head(row, found.token[which], s2)
        ok = narrow(self._s1_fits(row, found.lead[which], s1, s2), 5)
        which, s2, s1 = which[ok], s2[ok], s1[ok]
        ok = _ordered(row.pattern.order, s1, s2)
        result.row[which[ok]] = row.index
        result.s2[which[ok]], result.s1[which[ok]] = s2[ok], s1[ok]

    def _marker_fits(self, row: Row, token: Ints) -> BoolArray:
        ok = row.deprels[self.batch.label[token]] & _has(self.batch, token, row.tags, 0)
        if row.not_before is not None:
            after = np.minimum(token + 1, len(self.batch) - 1)
            ok &= ~row.not_before[self.batch.word[after]]
        return ok

    def _placed(self, row: Row, found: Candidates, which: Ints, s2: Ints) -> BoolArray:
        """Whether the marker stands where the row wants it, seen from S2's head."""
        place, first = row.pattern.place, found.lead[which]
        if place == "initial":
            opening = self._opening[first]
            return (opening < 0) | (opening < self.batch.offsets[self.batch.row[first]])
        if place == "edge":
            return (first < s2) & (first < self.first_core[np.maximum(s2, 0)])
        if place == "after_governor":
            return first > self.batch.head[found.token[which]]
        if place in ("before", "after"):
            return (first < s2) == (place == "before")
        return np.ones(len(first), dtype=bool)

    def _inverted(self, found: Candidates, which: Ints, s2: Ints) -> BoolArray:
        """Whether S2's verb or auxiliary follows the marker, and its subject comes after it.

        "So do I" says the same of another: "so" is a pro-form. A question is turned round anyway.
        """
        batch = self.batch
        first = found.first[which]
        verb = np.minimum(first + found.length[which], len(batch) - 1)
        auxiliary = self.patterns.class_labels["auxiliary"][batch.label[verb]]
        auxiliary &= (batch.head[verb] == s2) | (batch.head[verb] == first)
        subject = self.first_subject[np.maximum(s2, 0)]
        turned = (subject > verb) & (subject < len(batch)) & ~self._asks[batch.row[first]]
        return ((verb == s2) | auxiliary) & turned

    def _s2_head(self, row: Row, token: Ints) -> Ints:
        if row.pattern.s2 == "self":
            return token
        if row.pattern.s2 == "complement" and row.s2_deprels is not None:
            return child_after(self.batch, token, token, row.s2_deprels)
        head = self.batch.head[token]
        if row.pattern.s2 == "edge_clause":
            return self._edge_clause(token, head)
        if row.pattern.s2 == "right_conjunct":
            conjuncts = self.patterns.class_labels["conjunct"]
            return child_after(self.batch, token, head, conjuncts)
        return head

    def _s1_head(self, row: Row, token: Ints, s2: Ints) -> Ints:
        """S1's head, -1 where there is none, `PREVIOUS` for the sentence before."""
        head, choice = self.batch.head, row.pattern.s1
        if choice == "previous":
            there = self._has_previous[self.batch.row[s2]]
            return np.where(there, PREVIOUS, -1).astype(np.int32)
        if choice == "conjunct":
            s1 = self._with_subject(self.conjunct_before[s2], s2)
        elif choice == "marker_head":
            s1 = self._with_subject(head[token], s2)
        else:
            s1 = head[s2]
        if row.pattern.alike:
            return self._alike(s1, s2)
        if choice in ("clause", "sentence"):
            return self._ascend(s1, self._unfit(row, choice == "sentence" or self.whole_clauses))
        return s1 if row.climb is None else self._ascend(s1, self._labelled(row.climb))

    def _edge_clause(self, token: Ints, head: Ints) -> Ints:
        """The clause whose first phrase the marker hangs on, -1 where it hangs on none.

        From the head up through the subject, object or adverbial that it is in, as long as these
        stand before the predicate.
        """
        dependent = self._labelled(self.patterns.class_labels["dependent"])
        found = self._ascend(head, lambda t: dependent(t) & (self.batch.head[t] > t))
        return np.where((found != head) & (found > token), found, -1)

    def _with_subject(self, s1: Ints, s2: Ints) -> Ints:
        """S1's head, or the conjunct before it whose subject it shares, where S2 has its own.

        A clause joins a clause: in "he coughed, spat and swore, but we ignored him" S1 is all
        that he did; "swore" alone is the last of its predicates, and lacks what they share. An
        imperative shares no subject, nor does a verb that needs none (`pro_drop`).
        """
        if self.patterns.table.pro_drop:
            return s1
        subject = self._having(self.patterns.bits["subject"])
        statement = self._having(self.patterns.bits["statement"])
        found = s1.copy()
        sharing = np.flatnonzero((s1 >= 0) & subject(s2) & statement(s1))
        while len(sharing := sharing[~subject(found[sharing])]):
            found[sharing] = self.conjunct_before[found[sharing]]
        return found

    def _alike(self, s1: Ints, s2: Ints) -> Ints:
        """S1's head, or the finite clause above it where S2 is finite: conjuncts are alike."""
        finite = self._having(self.patterns.bits["finite"])
        above = self._ascend(s1, lambda t: ~finite(t))
        return np.where((s1 >= 0) & finite(s2) & finite(above), above, s1)

    def _unfit(self, row: Row, whole: bool) -> Test:
        """Tells the tokens that head no clause (no `whole` one) or that the row climbs through."""
        bits = self.patterns.bits
        clause = self._having(bits["clause"])
        wanted = self._having(self.patterns.mask(("finite", "subject", "statement")))
        climbed = None if row.climb is None else self._labelled(row.climb)

        def unfit(tokens: Ints) -> BoolArray:
            found = ~clause(tokens)
            if whole:
                found |= ~wanted(tokens)
            return found if climbed is None else found | climbed(tokens)

        return unfit

    def _having(self, bits: int) -> Test:
        """Tells the tokens that have one of the properties."""
        return lambda tokens: (self.batch.traits[tokens] & bits) != 0

    def _labelled(self, labels: BoolArray) -> Test:
        """Tells the tokens that have one of the labels."""
        return lambda tokens: labels[self.batch.label[tokens]]

    def _ascend(self, tokens: Ints, through: Test) -> Ints:
        """Each token's nearest ancestor, or itself, that `through` does not tell to pass."""
        tokens = tokens.copy()
        passing = np.flatnonzero(tokens >= 0)
        for _ in range(MAX_DEPTH):
            passing = passing[through(tokens[passing]) & (self.batch.head[tokens[passing]] >= 0)]
            if len(passing) == 0:
                break
            tokens[passing] = self.batch.head[tokens[passing]]
        return tokens

    def _s1_fits(self, row: Row, first: Ints, s1: Ints, s2: Ints) -> BoolArray:
        if row.pattern.s1 == "previous":
            return s1 == PREVIOUS
        ok = (s1 >= 0) & _has(self.batch, s1, row.s1_needs, row.s1_lacks)
        if row.s1_deprels is not None:
            ok &= row.s1_deprels[self.batch.label[s1]]
        if row.s1_not is not None:
            ok &= ~row.s1_not[self.batch.label[s1]]
        if row.pattern.apart:
            bits = self.patterns.bits
            events = _has(self.batch, s1, bits["finite"], 0)
            events &= _has(self.batch, s2, bits["finite"] | bits["complement"], 0)
            ok &= events | (self._content_before[first] != s1)
        return ok


def _has(batch: Batch, tokens: Ints, needs: int, lacks: int) -> BoolArray:
    """Whether the tokens have all properties of `needs` and none of `lacks`."""
    traits = batch.traits[tokens]
    return ((traits & needs) == needs) & ((traits & lacks) == 0)


def _ordered(order: str, s1: Ints, s2: Ints) -> BoolArray:
    if order == "any":
        return np.ones(len(s1), dtype=bool)
    return (s1 < s2) == (order == "s1_first")


def _shifted(running: Ints) -> Ints:
    """For each token the running value before it."""
    return np.concatenate([np.array([-1], dtype=running.dtype), running[:-1]])
