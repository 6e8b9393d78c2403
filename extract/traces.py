"""Find traces of a larger construction, without which a clause would change its meaning.

A side may be a whole clause and still say something else when it stands alone: "it was long before
he came" is not "it was long", "nobody could say if it was dry" does not state a condition. The
trace is a word beside the marker, a verb above the clause, or the form of the clause itself. Words
that modify the marker ("long before", "just then") are muted; a match with another trace is
rejected. The pattern file has the lists of words (`standalone`) and the `checks` of each row.
"""

from __future__ import annotations

import numpy as np

from extract.clauses import MUTED, S1, S2, Block, SideCodes
from extract.parse import BoolArray, Ints
from extract.trees import Batch

MAX_DISTANCE = 4
"""Maximum number of words from a verb of asking to the marker: "asked the old man if"."""
MAX_COMPLEMENTS = 3
"""Maximum depth of nested complements: "as he **kept** **saying** she **would**"."""


class Traces:
    """Finds traces of larger constructions around the clauses of a batch.

    `is_word` flags the tokens that are words, `inverted` the heads whose auxiliary is before the
    subject.
    """

    def __init__(self, batch: Batch, is_word: BoolArray, inverted: BoolArray) -> None:
        self.batch, self.is_word, self.inverted = batch, is_word, inverted
        self.denied = batch.with_child(batch.listed("denying"))
        self.cases_up_to = np.cumsum(batch.labelled("case"))
        """The number of prepositions up to each token of the batch."""
        self.rows_checking = {
            name: np.array([name in row.checks for row in batch.patterns.table.patterns])
            for name in ("alone", "asked", "dated", "later", "measured", "reported")
        }

    def behind(self, marked: BoolArray) -> BoolArray:
        """Mark the tokens right behind a marked one in their sentence."""
        row, behind = self.batch.row, np.zeros(len(marked), dtype=bool)
        behind[1:] = marked[:-1] & (row[1:] == row[:-1])
        return behind

    def mute_modifiers(self, block: Block, side: SideCodes, asserted: BoolArray) -> None:
        """Mute (in `side`) the words that modify the marker, wherever the parser attached them.

        `asserted` flags the matches whose marker states S2 as a fact.
        """
        batch, matches, shift = self.batch, block.matches, block.shift
        # The token before each marker (for the batch's first token: itself), the marker's position
        before, at = np.maximum(matches.first - 1, 0), matches.first + shift
        focusing = batch.listed("focusing")
        s1_before = (matches.s1 >= 0) & (matches.s1 < matches.first)
        # A word that focuses the subordinate clause: "he left precisely [because it rained]".
        focused = block.subordinate & focusing[before]
        # "It had set long [before they came]". But with a denied verb, "long" belongs to S1 ("he
        # did not wait long").
        event = s1_before & ~self.denied[matches.s1] & ~batch.having("copula")[matches.s1]
        event &= batch.labelled("modifier")[before]
        measured = (
            event & self.rows_checking["measured"][matches.row] & batch.listed("measuring")[before]
        )
        muted = at[focused | measured] - 1
        muted = muted[side[muted] == S1]
        # "He rang an hour [after we left]"; an hour before may be the duration of S1.
        phrase = event & self.rows_checking["later"][matches.row] & batch.listed("period")[before]
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
        # "If [only] he came" is a wish; in "if only two men come" the word belongs to the number.
        behind = np.minimum(matches.first + matches.length, len(batch) - 1)
        wished = block.subordinate & ~asserted & batch.listed("exclusive")[behind]
        wished &= ~batch.tagged("numeral")[np.minimum(behind + 1, len(batch) - 1)]
        wish = (behind + shift)[wished]
        side[np.concatenate([muted, opening[stressed], wish[side[wish] == S2]])] += MUTED

    def construction(self, block: Block, s1_last: Ints, last: Ints) -> BoolArray:
        """Return whether each marker belongs to another construction than that of its row.

        `s1_last` and `last` are the last words of S1 and S2.
        """
        batch, matches = self.batch, block.matches
        first, s2, s1 = matches.first, matches.s2, matches.s1
        before = np.maximum(first - 1, 0)
        has_before = first > batch.offsets[batch.row[first]]
        governor = batch.head[s2]
        # "If" for "whether": S2 is what somebody asks or does not know.
        near = batch.listed("inquiring")[governor] & (governor >= 0)
        near &= (governor < first) & (first - governor <= MAX_DISTANCE) & self.is_word[before]
        near &= self.cases_up_to[governor] == self.cases_up_to[first]  # "I would ask it of you if"
        deciding = has_before & batch.listed("deciding")[before]
        deciding &= ~batch.rows_with(batch.listed("asking"))[batch.row[first]]
        or_not = batch.listed("denying") & self.behind(batch.tagged("coordinating"))
        whether = near | deciding | or_not[last]
        rejected = self.rows_checking["asked"][matches.row] & whether
        # Right behind a noun of time the clause says which time is meant; in "those moods when life
        # is dull" behind any noun.
        dated = batch.listed("dating") | (self.behind(batch.listed("demonstrating")) & self.is_word)
        rejected |= self.rows_checking["dated"][matches.row] & has_before & dated[before]
        # "It was long before he came": S1 is only a measure of time.
        measure = (batch.listed("period") | batch.listed("measuring"))[s1]
        measure &= batch.having("copula")[s1] & ~batch.having("case")[s1]
        measure &= (s1 >= 0) & (s1 < first) & (s1_last == s1)
        rejected |= self.rows_checking["measured"][matches.row] & measure
        # "While at sea, he wrote", "because it rained they stayed": the sentence is no subordinate
        # clause alone; the tree has lost where its main clause begins. (But "because, you see,".)
        comma = batch.listed("comma")
        subject = np.minimum(batch.leftmost_child("subject")[s2], len(batch) - 1)
        behind = np.minimum(first + matches.length, len(batch) - 1)
        fronted = ~comma[behind] & (np.cumsum(comma)[subject] > np.cumsum(comma)[behind])
        not_alone = fronted | self._unintroduced()[batch.row[s2]]
        rejected |= self.rows_checking["alone"][matches.row] & not_alone
        likened = has_before & batch.listed("likening")[before]
        reported = self._as_is_object(first, s2, last) | likened
        return rejected | (self.rows_checking["reported"][matches.row] & reported)

    def _unintroduced(self) -> BoolArray:
        """Mark the sentences [rows] with a further clause that no word or break introduces.

        It has a verb and a subject, and is attached as if it depended on the clause before.
        """
        batch = self.batch
        clause = (
            (batch.tagged("finite") | batch.tagged("ambiguous"))
            & batch.having("subject")
            & (batch.head >= 0)
        )
        clause &= batch.head < batch.tokens
        kinds = ("dependent_clause", "adverbial_clause", "main_clause")
        clause &= np.logical_or.reduce([batch.labelled(kind) for kind in kinds])
        clause &= ~batch.having("subordinator") & ~batch.with_child(batch.tagged("interrogative"))
        clause &= ~batch.with_child(batch.tagged("coordinating"))
        clause &= ~batch.with_child(batch.listed("clause_break"))
        return batch.rows_with(clause)

    def _as_is_object(self, first: Ints, s2: Ints, last: Ints) -> BoolArray:
        """Return whether the marker "as" (`first`) is the object or predicate of a verb in S2.

        The verb is the innermost one ("as he **kept saying**"), in the active voice, and has no
        object. A person or particle behind it is no object ("as he had **told us**", "as he
        **pointed out**"), and an auxiliary at the end stands for a verb ("as it must").
        """
        batch = self.batch
        object_of = batch.leftmost_child("object")
        # The innermost verb: from S2 down through objects that are clauses
        verb = s2.copy()
        for _ in range(MAX_COMPLEMENTS):
            below = object_of[verb]
            inner = np.minimum(below, len(batch) - 1)
            verb = np.where((below < len(batch)) & batch.tagged("clause")[inner], inner, verb)
        active = batch.with_child(batch.labelled("acting_subject")) | ~batch.tagged("subject")
        says = batch.listed("reporting")[verb] & (object_of[verb] == len(batch)) & active[verb]
        one_word_behind = (last == verb + 1) & ~batch.tagged("noun")[last]
        addresses = batch.listed("addressing")[verb] & one_word_behind
        elliptic = (batch.tagged("operator") | batch.listed("being"))[last]
        elliptic &= (last == verb) | (batch.head[last] == verb)
        # "Tired as he was, he went on": the predicate of S2 is in front of "as".
        above = batch.head[s2]
        fronted = batch.listed("being") & (batch.labelled("copula") | batch.tagged("clause"))
        fronted = (fronted | batch.with_child(fronted))[s2] & (above >= 0)
        fronted &= (above == first - 1) & (batch.head[above] > above)
        fronted &= ~batch.has(above, ["subject"]) & batch.labelled("adverbial_clause")[above]
        return says | addresses | elliptic | fronted

    def lost_words(
        self, block: Block, side: SideCodes, asserted: BoolArray, ends: tuple[Ints, Ints]
    ) -> tuple[BoolArray, BoolArray]:
        """Return two flags for each match: S1, or S2, lost a word that changes its sense.

        `asserted` flags the matches whose S2 is stated as a fact; `ends` has the first and the last
        word of S2.
        """
        batch, matches, token = self.batch, block.matches, block.token
        first, s1, s2 = matches.first, matches.s1, matches.s2
        final, exclusive = len(batch) - 1, batch.listed("exclusive")
        denied = block.subordinate & (s1 >= 0) & (s1 < first) & self.denied[s1]
        # "He did not stay just because it rained", "... not because it rained, but because ...":
        # what is denied is the reason.
        s1_lost = denied & (exclusive & self.behind(self.is_word))[np.maximum(first - 1, 0)]
        # The word behind S2 (and its punctuation mark), and the word after that one
        after = np.minimum(ends[1] + 1, final)
        after = np.minimum(after + ~self.is_word[after], final)
        again = np.minimum(after + 1, final)
        same_marker = (batch.word[again] == batch.word[first]) & (batch.row[again] == batch.row[s2])
        s1_lost |= denied & batch.listed("opposing")[after] & same_marker
        # "Not only did he sing" announces "but", "also".
        opposing, modifier = batch.listed("opposing"), batch.labelled("modifier")
        only = exclusive & modifier & self.behind(batch.listed("denying") & modifier)
        places = np.flatnonzero(only[token])
        places = places[(side[places] == S1) & opposing[matches.lead][block.match[places]]]
        if len(places):
            of_s1 = (side == S1) | (side == S1 + MUTED)
            last_opposing = block.end_words(opposing[token] & of_s1)[1][block.match[places]]
            s1_lost |= block.matches_at(places[last_opposing < token[places]])
        # "If it had not been for him" means "without him".
        excepting = batch.listed("excepting") & self.behind(batch.tagged("operator"))
        places = np.flatnonzero(excepting[token])
        excepted = block.matches_at(places[side[places] == S2]) & self.denied[s2]
        excepted &= block.subordinate & ~asserted
        # "When anyone calls" is about every call; alone it needs "can" or a negation.
        anyone = block.subordinate & batch.listed("hypothetical")[ends[0]] & ~self.denied[s2]
        anyone &= ~batch.with_child(batch.tagged("modal"))[s2]
        return s1_lost, excepted | anyone

    def ends_open(self, last: Ints) -> BoolArray:
        """Return whether `last` is a conjunction, or "which" behind a comma or preposition."""
        batch = self.batch
        argument = batch.labelled("object") | batch.labelled("subject")
        conjunction = batch.tagged("conjunction") & ~argument
        opens = ~self.is_word | (batch.labelled("case") & (batch.head == batch.tokens + 1))
        relative = batch.tagged("interrogative") & batch.listed("relative")
        return (conjunction | (relative & self.behind(opens)))[last]

    def lost_fronting(self, block: Block, side: BoolArray, head: Ints, first: Ints) -> BoolArray:
        """Return whether each side lost the clause that explains its inverted subject.

        "Only [when it cleared] did they see it" becomes "only did they see it". `side` flags the
        side's positions; `head` and `first` are its head and its first word in each match.
        """
        batch, lost = self.batch, np.zeros(len(head), dtype=bool)
        for i in np.flatnonzero(self.inverted[head] & batch.listed("exclusive")[first]):
            places = np.flatnonzero(side & block.words & (block.match == i))
            second = block.token[places[1:2]]
            lost[i] = (batch.labelled("auxiliary")[second] & (batch.head[second] == head[i])).any()
        return lost
