"""Traces of a construction that a clause was part of: what else the mode `standalone` looks for.

A side may be a whole clause and still say something else when it stands alone: "it was long before
he came" is not "it was long", "nobody could say if it was dry" does not state a condition. The
trace is a word beside the marker, a verb above the clause, or the form of the clause itself. Words
that modify the marker ("long before", "just then") go with it; other traces refuse the match.
The words are lists of the pattern file (`standalone`); a row's `checks` name what its marker needs.
"""

from __future__ import annotations

import numpy as np

from extract.clauses import MUTED, S1, S2, Block, SideCodes
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

    def behind(self, marked: BoolArray) -> BoolArray:
        """The tokens right behind a marked one in their sentence."""
        row, behind = self.batch.row, np.zeros(len(marked), dtype=bool)
        behind[1:] = marked[:-1] & (row[1:] == row[:-1])
        return behind

    def mute_modifiers(self, block: Block, side: SideCodes, asserted: BoolArray) -> None:
        """Mute the words that modify the marker, wherever the parser attached them.

        `asserted` says of each match whether its marker states S2.
        """
        batch, matches, shift = self.batch, block.matches, block.shift
        before, at = np.maximum(matches.first - 1, 0), matches.first + shift
        focusing, inside = (
            batch.listed("focusing"),
            (matches.s1 >= 0) & (matches.s1 < matches.first),
        )
        # What focuses the subordinate clause: "he left precisely [because it rained]".
        focused = block.subordinate & focusing[before]
        # "It had set long [before they came]": with a verb of S1 that is denied, "long" says how
        # long that took ("he did not wait long").
        event = inside & ~self.denied[matches.s1] & ~batch.having("copula")[matches.s1]
        event &= batch.labelled("modifier")[before]
        measured = event & self.checked["measured"][matches.row] & batch.listed("measuring")[before]
        muted = at[focused | measured] - 1
        muted = muted[side[muted] == S1]
        # "He rang an hour [after we left]". An hour before the event may be how long S1 took.
        phrase = event & self.checked["later"][matches.row] & batch.listed("period")[before]
        for i in np.flatnonzero(phrase & ~batch.having("case")[before]):
            noun = begin = int(before[i])
            while noun in (batch.head[begin - 1], batch.head[batch.head[begin - 1]]):
                begin -= 1
            stretch = np.arange(begin, noun + 1) + shift[i]
            if (side[stretch] == S1).all() and not batch.tagged("preposition")[begin - 1]:
                muted = np.append(muted, stretch)
        # "Just [then] he came": the adverb is modified, not the clause.
        opening = block.first_words(side == S2)
        match, stress = block.match[opening], block.token[opening]
        adverbial = ~block.subordinate & batch.labelled("modifier")[matches.lead]
        stressed = adverbial[match] & focusing[stress] & (stress + 1 == matches.lead[match])
        # "If [only] he came" wishes; "if only two men come" counts.
        behind = np.minimum(matches.first + matches.length, len(batch) - 1)
        wished = block.subordinate & ~asserted & batch.listed("exclusive")[behind]
        wished &= ~batch.tagged("numeral")[np.minimum(behind + 1, len(batch) - 1)]
        wish = (behind + shift)[wished]
        side[np.concatenate([muted, opening[stressed], wish[side[wish] == S2]])] += MUTED

    def construction(self, block: Block, s1_last: Ints, last: Ints) -> BoolArray:
        """Whether the marker belongs to another construction than the row's.

        `s1_last` and `last` are the last words of S1 and S2.
        """
        batch, matches = self.batch, block.matches
        first, s2, s1 = matches.first, matches.s2, matches.s1
        before = np.maximum(first - 1, 0)
        beside = first > batch.offsets[batch.row[first]]
        governor = batch.head[s2]
        # "If" for "whether": the clause is what is asked, or not known.
        near = batch.listed("inquiring")[governor] & (governor >= 0)
        near &= (governor < first) & (first - governor <= NEAR) & self.words[before]
        near &= self.cases[governor] == self.cases[first]  # "I would ask it of you if"
        deciding = beside & batch.listed("deciding")[before]
        deciding &= ~batch.rows_with(batch.listed("asking"))[batch.row[first]]
        or_not = batch.listed("denying") & self.behind(batch.tagged("coordinating"))
        whether = near | deciding | or_not[last]
        refused = self.checked["asked"][matches.row] & whether
        # Right behind a noun of time the clause says which time is meant; in "those moods when life
        # is dull" behind any noun.
        dated = batch.listed("dating") | (self.behind(batch.listed("demonstrating")) & self.words)
        refused |= self.checked["dated"][matches.row] & beside & dated[before]
        # "It was long before he came": S1 has nothing but the measure.
        measure = (batch.listed("period") | batch.listed("measuring"))[s1]
        measure &= batch.having("copula")[s1] & ~batch.having("case")[s1]
        measure &= (s1 >= 0) & (s1 < first) & (s1_last == s1)
        refused |= self.checked["measured"][matches.row] & measure
        reported = self._reported(first, s2, last) | (beside & batch.listed("likening")[before])
        return refused | (self.checked["reported"][matches.row] & reported)

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

    def lost(
        self, block: Block, side: SideCodes, asserted: BoolArray, ends: tuple[Ints, Ints]
    ) -> tuple[BoolArray, BoolArray]:
        """Whether S1 or S2 lost a word that changes its sense.

        `asserted`: S2 is stated; `ends`: the first and last words of S2.
        """
        batch, matches, token = self.batch, block.matches, block.token
        first, s1, s2 = matches.first, matches.s1, matches.s2
        final, exclusive = len(batch) - 1, batch.listed("exclusive")
        supposed = block.subordinate & ~asserted
        denied = block.subordinate & (s1 >= 0) & (s1 < first) & self.denied[s1]
        # "He did not stay just because it rained", "... not because it rained, but because ...":
        # what is denied is the reason.
        s1_lost = denied & (exclusive & self.behind(self.words))[np.maximum(first - 1, 0)]
        after = np.minimum(ends[1] + 1, final)
        after = np.minimum(after + ~self.words[after], final)
        again = np.minimum(after + 1, final)
        contrasted = denied & batch.listed("opposing")[after]
        s1_lost |= (
            contrasted
            & (batch.word[again] == batch.word[first])
            & (batch.row[again] == batch.row[s2])
        )
        # "Not only did he sing" announces "but", "also".
        opposing, modifier = batch.listed("opposing"), batch.labelled("modifier")
        only = exclusive & modifier & self.behind(batch.listed("denying") & modifier)
        places = np.flatnonzero(only[token])
        places = places[(side[places] == S1) & opposing[matches.lead][block.match[places]]]
        if len(places):
            of_s1 = (side == S1) | (side == S1 + MUTED)
            halves = block.end_words(opposing[token] & of_s1)[1][block.match[places]]
            s1_lost |= block.matches_at(places[halves < token[places]])
        # "If it had not been for him": without him.
        excepting = batch.listed("excepting") & self.behind(batch.tagged("operator"))
        places = np.flatnonzero(excepting[token])
        excepted = block.matches_at(places[side[places] == S2]) & self.denied[s2]
        # "When anyone calls" is about every call; alone it needs "can" or a negation.
        anyone = block.subordinate & batch.listed("hypothetical")[ends[0]] & ~self.denied[s2]
        anyone &= ~batch.with_child(batch.tagged("modal"))[s2]
        return s1_lost, (supposed & excepted) | anyone

    def cut(self, last: Ints) -> BoolArray:
        """Whether a side ends in a conjunction, or in "which" behind a comma or preposition."""
        batch = self.batch
        ends = batch.tagged("conjunction") & ~batch.labelled("object") & ~batch.labelled("subject")
        opens = ~self.words | (batch.labelled("case") & (batch.head == batch.tokens + 1))
        relative = batch.tagged("interrogative") & batch.listed("relative")
        return (ends | (relative & self.behind(opens)))[last]

    def turned(self, block: Block, side: BoolArray, head: Ints, first: Ints) -> BoolArray:
        """Whether a side has lost what turned its subject and auxiliary around.

        "Only [when it cleared] did they see it" is left as "only did they see it". `first` is the
        first word of the side.
        """
        batch, lost = self.batch, np.zeros(len(head), dtype=bool)
        for i in np.flatnonzero(self.inverted[head] & batch.listed("exclusive")[first]):
            places = np.flatnonzero(side & block.words & (block.match == i))
            second = block.token[places[1:2]]
            lost[i] = (batch.labelled("auxiliary")[second] & (batch.head[second] == head[i])).any()
        return lost
