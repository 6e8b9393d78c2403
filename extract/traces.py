"""Traces of a construction that a clause was part of: what else the mode `standalone` looks for.

A side may be a whole clause and still say something else when it stands alone: "it was long before
he came" is not "it was long", "nobody could say if it was dry" does not state a condition. The
trace is a word beside the marker, a verb above the clause, or the form of the clause itself. Words
that modify the marker ("long before", "just then") go with it; other traces refuse the match.
The words are lists of the pattern file (`standalone`); a row's `checks` name what its marker needs.
"""

from __future__ import annotations

import numpy as np

from extract.clauses import MUTED, S1, S2, Block, Marks
from extract.parse import BoolArray, Ints
from extract.trees import Batch

NEAR = 4
"""Words from a verb of asking to the marker, at most: "asked the old man if"."""
DEPTH = 3
"""Complements within complements that are followed: "as he **kept** **saying** she **would**"."""


class Traces:
    """What shows in a batch's trees that a clause was part of a larger construction."""

    def __init__(self, batch: Batch, words: BoolArray, inverted: BoolArray) -> None:
        self.batch, self.words, self.inverted = batch, words, inverted
        self.denied = batch.with_child(batch.listed("denying"))
        self.cases = np.cumsum(batch.labelled("case"))
        """How many prepositions there are up to each token."""
        self.checked = {
            name: np.array([name in row.checks for row in batch.patterns.table.patterns])
            for name in ("asked", "dated", "later", "measured", "reported")
        }

    def mute_modifiers(self, block: Block, side: Marks, asserted: BoolArray) -> None:
        """Mute the words that modify the marker, wherever the parser attached them.

        `asserted` says of each match whether its marker states S2.
        """
        batch, matches, token = self.batch, block.matches, block.token
        first, head = matches.first[block.match], batch.head[token]
        # What focuses the subordinate clause: "he left precisely [because it rained]".
        subordinate = block.subordinate[block.match]
        focusing = batch.listed("focusing")
        muted = (side == S1) & subordinate & focusing[token] & (token + 1 == first)
        # "It had set long [before they came]": with a verb of S1 that is denied, "long" says how
        # long that took ("he did not wait long").
        before = np.maximum(matches.first - 1, 0)
        event = (matches.s1 >= 0) & (matches.s1 < matches.first) & ~self.denied[matches.s1]
        event &= ~batch.having("copula")[matches.s1] & batch.labelled("modifier")[before]
        adverb = event & self.checked["measured"][matches.row] & batch.listed("measuring")[before]
        muted |= (side == S1) & adverb[block.match] & (token + 1 == first)
        # "He rang an hour [after we left]". An hour before the event may be how long S1 took.
        phrase = event & self.checked["later"][matches.row] & batch.listed("period")[before]
        phrase &= ~batch.having("case")[before]
        noun = np.where(phrase, before, -1)[block.match]
        inside = (token == noun) | (head == noun) | ((head >= 0) & (batch.head[head] == noun))
        inside &= (side == S1) & (noun >= 0) & (token <= noun)
        opening = np.maximum(block.ends(inside)[0] - 1, 0)
        muted |= inside & ~batch.tagged("preposition")[opening][block.match]
        # "Just [then] he came": the adverb is modified, not the clause.
        lead = matches.lead[block.match]
        opens = np.zeros(len(token), dtype=bool)
        opens[block.first_words(side == S2)] = True
        adverbial = (~block.subordinate & batch.labelled("modifier")[matches.lead])[block.match]
        muted |= (side == S2) & adverbial & opens & focusing[token] & (token + 1 == lead)
        # "If [only] he came" wishes; "if only two men come" counts.
        behind = matches.first + matches.length
        beyond = np.minimum(behind + 1, len(batch) - 1)
        wished = block.subordinate & ~asserted & ~batch.tagged("numeral")[beyond]
        wished &= batch.listed("exclusive")[np.minimum(behind, len(batch) - 1)]
        muted |= (side == S2) & wished[block.match] & (token == behind[block.match])
        side[muted] += MUTED

    def construction(self, block: Block, s1_last: Ints, last: Ints) -> BoolArray:
        """Whether the marker belongs to another construction than the row's.

        `s1_last` and `last` are the last words of S1 and S2.
        """
        batch, matches = self.batch, block.matches
        first, s2, s1 = matches.first, matches.s2, matches.s1
        before = np.maximum(first - 1, 0)
        beside = batch.row[before] == batch.row[first]
        governor = batch.head[s2]
        # "If" for "whether": the clause is what is asked, or not known.
        near = batch.listed("inquiring")[governor] & (governor >= 0)
        near &= (governor < first) & (first - governor <= NEAR) & self.words[before]
        near &= self.cases[governor] == self.cases[first]  # "I would ask it of you if"
        deciding = beside & batch.listed("deciding")[before]
        deciding &= ~batch.rows_with(batch.listed("asking"))[batch.row[first]]
        whether = near | deciding | self._or_not(last)
        refused = self.checked["asked"][matches.row] & whether
        # Right behind a noun of time the clause says which time is meant.
        # "One of those moods when life is dull": whatever the noun is.
        dated = batch.listed("dating")[before]
        dated |= batch.listed("demonstrating")[np.maximum(before - 1, 0)] & self.words[before]
        refused |= self.checked["dated"][matches.row] & beside & dated
        # "It was long before he came": S1 has nothing but the measure.
        measure = (batch.listed("period") | batch.listed("measuring"))[s1]
        measure &= batch.having("copula")[s1] & ~batch.having("case")[s1]
        measure &= (s1 >= 0) & (s1 < first) & (s1_last == s1)
        refused |= self.checked["measured"][matches.row] & measure
        reported = self._reported(first, s2, last) | (beside & batch.listed("likening")[before])
        return refused | (self.checked["reported"][matches.row] & reported)

    def _or_not(self, last: Ints) -> BoolArray:
        """Whether a side ends in "or not"."""
        batch, before = self.batch, np.maximum(last - 1, 0)
        return batch.listed("denying")[last] & batch.tagged("coordinating")[before]

    def _reported(self, first: Ints, s2: Ints, last: Ints) -> BoolArray:
        """Whether "as" stands for what a verb of S2 says or does: that verb has no other object.

        The verb is the innermost one ("as he **kept saying**"), in the active voice. A person or
        particle behind it is no object ("as he had **told us**", "as he **pointed out**"), and an
        auxiliary at the end stands for a verb ("as it must").
        """
        batch = self.batch
        things = batch.leftmost_child("object")
        verb = s2.copy()
        for _ in range(DEPTH):
            below = things[verb]
            inner = np.minimum(below, len(batch) - 1)
            verb = np.where((below < len(batch)) & batch.tagged("clause")[inner], inner, verb)
        active = batch.with_child(batch.labelled("acting_subject")) | ~batch.tagged("subject")
        says = batch.listed("reporting")[verb] & (things[verb] == len(batch)) & active[verb]
        briefly = (
            batch.listed("addressing")[verb] & (last == verb + 1) & ~batch.tagged("noun")[last]
        )
        stands = (batch.tagged("operator") | batch.listed("being"))[last]
        stands &= (last == verb) | (batch.head[last] == verb)
        # "Tired as he was, he went on": the predicate of S2 is in front of "as".
        above = batch.head[s2]
        fronted = batch.listed("being") & (batch.labelled("copula") | batch.tagged("clause"))
        fronted = (fronted | batch.with_child(fronted))[s2] & (above >= 0)
        fronted &= (above == first - 1) & (batch.head[above] > above)
        fronted &= ~batch.has(above, ["subject"]) & batch.labelled("adverbial_clause")[above]
        return says | briefly | stands | fronted

    def lost(self, block: Block, side: Marks, asserted: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Whether S1 or S2 lost a word that changes its sense; `asserted`: S2 is stated."""
        batch, matches, token = self.batch, block.matches, block.token
        first, s1, s2 = matches.first, matches.s1, matches.s2
        before, final = np.maximum(first - 1, 0), len(batch) - 1
        supposed = block.subordinate & ~asserted
        denied = (s1 >= 0) & (s1 < first) & self.denied[s1]
        # "He did not stay just because it rained", "... not because it rained, but because ...":
        # what is denied is the reason.
        focused = block.subordinate & denied & batch.listed("exclusive")[before]
        focused &= self.words[np.maximum(before - 1, 0)]
        s2_last = block.ends(side == S2)[1]
        after = np.minimum(s2_last + 1, final)
        after = np.minimum(after + ~self.words[after], final)
        again = np.minimum(after + 1, final)
        contrasted = block.subordinate & denied & batch.listed("opposing")[after]
        contrasted &= (batch.word[again] == batch.word[first]) & (batch.row[again] == batch.row[s2])
        # "Not only did he sing" announces "but", "also".
        only = (side == S1) & batch.listed("exclusive")[token] & batch.labelled("modifier")[token]
        only &= (batch.listed("denying") & batch.labelled("modifier"))[np.maximum(token - 1, 0)]
        opposing = batch.listed("opposing")
        halves = block.ends(opposing[token] & ((side == S1) | (side == S1 + MUTED)))[1]
        only &= (halves[block.match] < token) & opposing[matches.lead][block.match]
        s1_lost = focused | contrasted | block.any(only)
        # A singular with "were" is supposed: "if it were open".
        were = np.minimum(batch.leftmost(batch.listed("irrealis"))[s2], final)
        were = np.where(batch.listed("irrealis")[s2], s2, were)
        subject = np.minimum(batch.leftmost_child("subject")[s2], final)
        irreal = batch.listed("irrealis")[were] & ((batch.head[were] == s2) | (were == s2))
        irreal &= (subject < were) & (batch.head[subject] == s2)
        irreal &= batch.tagged("singular")[subject] & ~batch.listed("plural")[subject]
        irreal &= ~batch.having("conjunct")[subject]
        # "If it had not been for him": without him.
        excepting = (side == S2) & batch.listed("excepting")[token] & self.denied[s2][block.match]
        excepting &= batch.tagged("operator")[np.maximum(token - 1, 0)]
        # "When anyone calls" is about every call; alone it needs "can" or a negation.
        opening = block.first_words(side == S2)
        anyone = opening[batch.listed("hypothetical")[token[opening]]]
        modal = batch.with_child(batch.tagged("modal"))
        anyone = block.any(anyone) & block.subordinate & ~modal[s2] & ~self.denied[s2]
        s2_lost = (supposed & (irreal | block.any(excepting))) | anyone
        return s1_lost, s2_lost

    def cut(self, last: Ints) -> BoolArray:
        """Whether a side ends in a conjunction, or in "which" behind a comma or preposition."""
        batch, before = self.batch, np.maximum(last - 1, 0)
        ends = batch.tagged("conjunction") & ~batch.labelled("object") & ~batch.labelled("subject")
        opens = ~self.words | (batch.labelled("case") & (batch.head == batch.tokens + 1))
        relative = batch.tagged("interrogative") & batch.listed("relative")
        return ends[last] | (relative[last] & opens[before])

    def turned(self, block: Block, side: BoolArray, head: Ints) -> BoolArray:
        """Whether a side has lost what turned its subject and auxiliary around.

        "Only [when it cleared] did they see it" is left as "only did they see it".
        """
        batch = self.batch
        places = np.flatnonzero(side & block.words)
        opens = np.flatnonzero(np.diff(block.match[places], prepend=-1) > 0)
        behind = np.minimum(opens + 1, len(places) - 1)
        first, second = block.token[places[opens]], block.token[places[behind]]
        which = block.match[places[opens]]
        auxiliary = batch.labelled("auxiliary")[second] & (batch.head[second] == head[which])
        lost = self.inverted[head[which]] & batch.listed("exclusive")[first] & auxiliary
        return block.any(places[opens[lost]])
