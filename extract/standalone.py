"""Whether S1 and S2 can stand alone: what the mode `standalone` requires beyond a pattern.

DisSent wants "sentence-like text fragments that can be interpreted as grammatically complete
sentences in isolation" (Nie, Bennett and Goodman 2019, section 2). A side is rejected if it

- loses the word that makes it something other than a statement ("if", "I doubt that ..."),
- is separated from its marker by words that belong to neither side,
- is a fragment of a relative or interrogative clause, or ends in the middle of a phrase,
- has another speaker than the other side, or is narration beside speech. Where a quotation is
  broken by its tag ("“Yes,” he said, “but ...”"), the tag is left out of the text.

All are facts about trees, tags and quotation marks, computed for all matches of a block at once.
"""

from __future__ import annotations

import re

import numpy as np

from corpora.document import Document, Span
from corpora.sentences.rules import CITATIONS
from extract.clauses import MAX_DOUBLINGS, Block, Marks
from extract.match import PREVIOUS, Matches
from extract.parse import BoolArray, Ints
from extract.trees import Batch

REASONS = (
    *("previous", "construction", "speech", "apart", "s1_fragment", "s2_fragment"),
    *("s1_lost_word", "s2_lost_word"),
)
QUOTATION = re.compile(r'[“”«»"]|\n\n')
QUOTED = re.compile(r"[\s—–-]*[“‘«\"']")
ENDED = re.compile(rf"[.!?…。！？][\"'”’»)\]]*(\s*{CITATIONS.pattern})?$")
SENTENCES = re.compile(r"[.!?…]\s")
ASIDE = re.compile(r"\(.*\)\W*", re.DOTALL)
LONGEST_SUBJECT = 8
"""Maximum number of words of a copied subject."""
MAX_CONJUNCTS = 20
GOVERNORS = 3
"""Verbs of saying or thinking that are checked above a clause."""


class Speech:
    """The quotations of a document: stretches `[start, end)` and whose speech each is.

    Speeches are numbered from 1: the quotations of a paragraph, and those of the next paragraph
    if the last quotation is not closed. Quoted words in the narrator's own sentence are no speech:
    “he called it “home””, without a comma or colon before them and with no sentence inside.
    """

    def __init__(self, text: str) -> None:
        self.stretches: list[tuple[int, int, int]] = []
        number, speaker, carried, begin = 0, 0, 0, -1
        for mark in QUOTATION.finditer(text):
            at, sign = mark.start(), mark[0]
            if sign == "\n\n":
                carried = speaker if begin >= 0 else 0
                if begin >= 0:
                    self.stretches.append((begin, at, speaker))
                speaker, begin = 0, -1
            elif begin < 0 and (sign in "“«" or (sign == '"' and not text[at - 1 : at].isalnum())):
                if not speaker:
                    number += not carried
                    speaker = carried or number
                begin = at
            elif begin >= 0 and sign in '”»"':
                before = text[max(begin - 2, 0) : begin].rstrip(" ")[-1:]
                if not before.isalnum() or SENTENCES.search(text, begin, at):
                    self.stretches.append((begin, at + 1, speaker))
                begin = -1
        if begin >= 0:
            self.stretches.append((begin, len(text), speaker))
        self.starts = np.array([start for start, _, _ in self.stretches], dtype=np.int64)

    def at(self, places: Ints) -> Ints:
        """The number of the speech at each position; 0 in narration."""
        if not self.stretches:
            return np.zeros(len(places), dtype=np.int32)
        ends = np.array([end for _, end, _ in self.stretches])
        numbers = np.array([number for _, _, number in self.stretches], dtype=np.int32)
        which = np.maximum(np.searchsorted(self.starts, places, side="right") - 1, 0)
        inside = (places >= self.starts[which]) & (places < ends[which])
        return np.where(inside, numbers[which], 0)

    def pieces(self, span: Span, number: int) -> list[Span]:
        """The parts of a span that belong to a speech, without quotation marks."""
        inside = [
            (max(start + 1, span[0]), min(end - 1, span[1]))
            for start, end, owner in self._touching(span)
            if owner == number
        ]
        return [(start, end) for start, end in inside if end > start]

    def quotes_all(self, text: str, span: Span) -> bool:
        """Whether no word of the span is narration."""
        at = span[0]
        for start, end, _ in self._touching(span):
            if any(map(str.isalnum, text[at : max(start, at)])):
                return False
            at = max(at, end)
        return not any(map(str.isalnum, text[at : span[1]]))

    def _touching(self, span: Span) -> list[tuple[int, int, int]]:
        """The stretches that begin inside the span, and the last one before it."""
        first = int(np.searchsorted(self.starts, span[0], side="right"))
        behind = int(np.searchsorted(self.starts, span[1], side="left"))
        return self.stretches[max(first - 1, 0) : behind]


class Judge:
    """What the trees of a batch say about clauses that stand alone; `judge` decides for a block."""

    def __init__(self, batch: Batch, need: int) -> None:
        self.batch = batch
        patterns, head, label = batch.patterns, batch.head, batch.label
        classes, listed = patterns.classes, patterns.listed
        self.speeches = [Speech(document.text) for document in batch.documents]
        doc = batch.row_doc[batch.row]
        bounds = np.searchsorted(doc, np.arange(len(batch.documents) + 1))
        self.speech = np.concatenate(
            [
                speech.at(batch.start[a:b])
                for speech, a, b in zip(self.speeches, bounds, bounds[1:], strict=False)
            ]
        )
        tokens = np.arange(len(batch), dtype=np.int32)
        conjunct = classes["conjunct"][label] & (head >= 0)
        self.top = np.where(conjunct, head, tokens)
        """The first conjunct of each token's coordination."""
        for _ in range(MAX_DOUBLINGS):
            self.top = self.top[self.top]
        forms = batch.form
        # After the subject it introduces nothing: "he was to leave".
        opens = (head > tokens) & (tokens < batch.leftmost_child("core")[head])
        subordinator = classes["subordinator"][label] & opens
        that = listed["complementizer"][forms]
        adverbial = classes["adverbial_clause"][label]
        known = bool(patterns.table.standalone.asserted)
        lost = subordinator & ~listed["asserted"][forms] & known
        # "So that he may stay" is wanted, not stated.
        lost |= subordinator & that & adverbial[head]
        correlative = listed["correlative"][forms] & (head > tokens)
        correlative &= ~subordinator & ~patterns.classes["modifier"][label]
        # "It was neither deep nor wide" keeps its "neither".
        self.inner = correlative & ~opens
        lost |= correlative & opens
        self.lost = batch.with_child(lost)
        self.complement = batch.with_child(subordinator & that)
        finite = batch.has(tokens, patterns.bits["finite"])
        self.clause_before = batch.leftmost(adverbial & finite)
        """The first finite adverbial clause of each token."""
        self.introduced = batch.with_child(subordinator & ~that)
        denied = batch.with_child(listed["denying"][forms])
        auxiliary, subject = batch.leftmost_child("auxiliary"), batch.leftmost_child("subject")
        self.interrogative = batch.tagged("interrogative")
        row_asks = np.zeros(len(batch.row_doc), dtype=bool)
        row_asks[batch.row[patterns.asking[forms]]] = True
        self.asks = row_asks[batch.row]
        self.inverted = (auxiliary < subject) & (subject < len(batch))
        by_subject = self.interrogative[np.minimum(subject, len(batch) - 1)]
        self.told_when = adverbial & ~self.inverted & ~by_subject
        """Adverbial clauses without the form of a question."""
        self.reported = classes["reported_clause"][label]
        unreal = listed["unreal"][forms]
        told = self.reported & (head >= 0)
        self.indirect = told & (self.speech[head] == self.speech)
        """Reported clauses that are no quotations."""
        self.doubtful = self._under(denied | unreal | (self.inverted & self.asks))
        commands = batch.has(tokens, patterns.bits["imperative"]) & ~self.indirect[self.top]
        self.commands = commands & ~batch.has(tokens, need)
        self.whole = batch.has(tokens, need) | commands | self._finite_after_all(tokens)
        self.denies, self.compares = listed["denying"][forms], listed["comparing"][forms]
        self.focuses, self.stated = listed["focusing"][forms], listed["asserted"][forms]
        self.hypothetical = listed["hypothetical"][forms]
        self.coordinating = batch.tagged("coordinating")
        self.case, self.subject = classes["case"][label], classes["plain_subject"][label]
        self.dependent = classes["dependent_clause"][label]
        self.argument = (classes["object"] | classes["subject"])[label]
        self.main = classes["main_clause"][label]
        self.words = ~classes["punctuation"][label]
        content = np.flatnonzero(self.words)
        self.last = np.full(len(batch.row_doc), -1, dtype=np.int32)
        self.last[batch.row[content]] = content
        self.colon = patterns.colon[forms]
        self.free = batch.with_child(self.dependent) & ~that
        """Words with a relative clause of their own: "what" in "what I fear is torture"."""
        self.open_end = self._open_ends()
        asked = self.interrogative & ~self.free
        asking = np.flatnonzero(asked & (tokens < subject[head]) & (head > tokens))
        # "Three of which were dirty": the relative word is in the subject.
        within = np.flatnonzero(asked & ~self.argument & (head >= 0))
        top = self._phrase_top(within)
        within = top[self.subject[top] & (head[top] > top)]
        self.asked_inside = np.zeros(len(batch), dtype=bool)
        self.asked_inside[head[asking]] = self.asked_inside[head[within]] = True
        brackets = batch.patterns.opening_bracket[forms].astype(np.int32)
        brackets -= batch.patterns.closing_bracket[forms]
        self.brackets = np.concatenate([[0], np.cumsum(brackets)])
        """How many brackets are open in front of each token."""
        self.gap = self._gaps(tokens)
        self.opener = classes["opener"][label]
        self.operator = batch.tagged("operator")
        self.opening = batch.tagged("opening")
        self.that, self.nominal = listed["complementizer"][forms], batch.tagged("nominal")
        self.quote = patterns.quote[forms]
        self.terminal = patterns.terminal[forms]

    def _finite_after_all(self, tokens: Ints) -> BoolArray:
        """Forms such as "bent" or "come" that a tagger took for a participle or infinitive.

        Right behind their own subject, without an auxiliary or "to", they are finite in a main
        clause, a conjunct of one, and a clause that a subordinator introduces.
        """
        batch = self.batch
        subject = batch.labelled("acting_subject") & (batch.head > tokens)
        forms = batch.tagged("ambiguous") & batch.with_child(subject)
        forms &= ~batch.with_child(batch.labelled("auxiliary") | batch.tagged("infinitival"))
        adverbial = batch.labelled("adverbial_clause") & batch.with_child(
            batch.labelled("subordinator")
        )
        return forms & (batch.labelled("main_clause")[self.top] | adverbial)

    def _gaps(self, tokens: Ints) -> BoolArray:
        """Finite complements without a subject right behind their verb: "critics say is a camp".

        Their subject is a relative or interrogative word, which another clause has.
        """
        batch = self.batch
        gap = self.indirect & batch.has(tokens, batch.patterns.bits["finite"])
        gap &= ~batch.has(tokens, batch.patterns.bits["subject"]) & (batch.head >= 0)
        verb = np.minimum(batch.head + 1, len(batch) - 1)
        auxiliary = batch.labelled("auxiliary")[verb] & (batch.head[verb] == tokens)
        gap &= auxiliary | ((verb == tokens) & ~batch.tagged("bare"))
        above = tokens
        for _ in range(GOVERNORS):
            above = np.where(self.reported[above], batch.head[above], above)
        return gap & ~self.dependent[above] & ~self.asks

    def _open_ends(self) -> BoolArray:
        """Whether a sentence ends in a mark that lets something follow.

        A colon does so where it announces speech; the statement before a list or reason is whole.
        """
        batch = self.batch
        last = batch.offsets[1:] - 1
        open_end = batch.patterns.open_end[batch.form[last]]
        tells = self._tells(self.last)
        for row in np.flatnonzero(open_end & self.colon[last]).tolist():
            text, end = batch.documents[batch.row_doc[row]].text, int(batch.end[last[row]])
            open_end[row] = tells[row] and QUOTED.match(text, end) is not None
        return open_end

    def _under(self, governs: BoolArray) -> BoolArray:
        """Whether a clause is the complement of a verb that `governs`, or of its complement."""
        batch, doubtful = self.batch, np.zeros(len(self.batch), dtype=bool)
        at = self.top
        for _ in range(GOVERNORS):
            above = batch.head[at]
            under = self.reported[at] & (above >= 0) & (self.speech[above] == self.speech[at])
            doubtful |= under & governs[above]
            at = np.where(under, self.top[above], at)
        return doubtful

    def judge(self, block: Block, side: Marks) -> tuple[Marks, Ints, list[BoolArray]]:
        """The sides without what interrupts a quotation, why a match is refused, what asks.

        The reasons are indices into `REASONS`, -1: none; of several, the last one below.
        The last two results are whether S1 and S2 are questions.
        """
        batch, matches = block.batch, block.matches
        side, reason = side.copy(), np.full(len(matches), -1, dtype=np.int8)
        speaker = self.speech[matches.lead]
        side[self.inner[block.token] & (side > 2)] -= 2
        mixed = self._mute_tags(block, side, speaker)
        self._mute_coordinators(block, side)
        self._mute_focus(block, side)
        subordinate = batch.patterns.subordinates[matches.row]
        afterwards = self._mute_afterthought(block, side)
        questions, ends = [], []
        for number, head in ((1, matches.s1), (2, matches.s2)):
            here = head >= 0
            first, last = _ends(block, side == number)
            # A "?" or "!" in front of the first word ends what was before it.
            ended = self.terminal[block.token] & (block.token < first[block.match])
            side[(side == number) & ended] += 2
            # S2 of a subordinator is introduced by the marker itself.
            own = here & ~(subordinate & (number == 2))
            asks = self.asks[head] & ~self.indirect[self.top[head]]
            asks &= ~(own & self.told_when[self.top[head]])  # "Remember when he came?"
            fragment = own & self.dependent[self.top[head]]
            opening = _ends(block, (side == number) & ~self.opener[block.token])[0]
            fragment |= here & (opening >= 0) & self._breaks_off(head, opening, last, asks)
            gaps = (side == number) & self.gap[block.token]
            fragment[block.match[gaps]] = True
            fragment |= here & self._no_command(matches, head, opening)
            fragment |= own & self.asked_inside[head] & ~asks  # "at first when you try"
            # "(It is slow) of late": the bracket in front of the side ends inside it.
            fragment |= here & (self.brackets[last + 1] < self.brackets[np.maximum(first, 0)])
            fragment |= here & self._broken(block, side, number, first, last)
            lost = own & self._loses_sense(head)
            other = self.top[head] if number == 1 else self.top[matches.s1]
            # One of two conjuncts has a "that" which the other lacks.
            unlike = (head != other) & self.complement[head] & ~self.complement[other]
            fragment |= own & (matches.s1 >= 0) & unlike
            if number == 2:
                lost |= own & self.introduced[head]
                # "But, in a talk we gave, he said ...": the parse lost the clause that follows.
                fragment |= own & (matches.s1 == PREVIOUS) & self.told_when[head]
            reason[fragment] = REASONS.index(f"s{number}_fragment")
            reason[lost] = REASONS.index(f"s{number}_lost_word")
            mixed |= here & (self.speech[head] != speaker)
            questions.append(here & asks & (self._opens(head, first) | self.inverted[head]))
            ends.append((first, last))
        (_, s1_last), _ = ends
        reason[afterwards] = REASONS.index("s1_fragment")
        between = self._neither(block, side) & ~batch.patterns.classes["opener"][block.label]
        between &= block.token > s1_last[block.match]
        between &= block.token < matches.first[block.match]
        apart = np.zeros(len(matches), dtype=bool)
        apart[block.match[between]] = True
        apart &= (matches.s1 >= 0) & (matches.s1 < matches.first)
        reason[apart] = REASONS.index("apart")
        # "Even though he has any" is stated: the last word of a connective says so.
        stated = self.stated[matches.first + matches.length - 1]
        supposed = (side == 2) & self.hypothetical[block.token]
        supposed &= (subordinate & ~stated)[block.match]
        reason[block.match[supposed]] = REASONS.index("s2_lost_word")
        before = np.maximum(matches.first - 1, 0)
        lost = subordinate & (batch.row[before] == batch.row[matches.first])
        lost &= self.denies[before] | self.compares[before]  # "not because", "than if"
        reason[lost] = REASONS.index("s1_lost_word")
        reason[mixed] = REASONS.index("speech")
        constructions = np.array([not row.pattern.standalone for row in batch.patterns.rows])
        reason[constructions[matches.row]] = REASONS.index("construction")
        return side, reason, questions

    def _mute_tags(self, block: Block, side: Marks, speaker: Ints) -> BoolArray:
        """Mute what interrupts the speech that a marker is part of, and its quotation marks.

        Returns the matches with a side that has words of another speech.
        """
        speaking, theirs = (speaker > 0)[block.match], self.speech[block.token]
        spoken = speaking & ((side == 1) | (side == 2))
        side[spoken & ((theirs == 0) | self.quote[block.token])] += 2
        spoken &= ((side == 1) | (side == 2)) & block.words
        mixed = np.zeros(len(speaker), dtype=bool)
        mixed[block.match[spoken & (theirs != speaker[block.match])]] = True
        return mixed

    def _mute_afterthought(self, block: Block, side: Marks) -> BoolArray:
        """Mute words of S1 behind S2: conjuncts are adjacent, so they belong to neither.

        Returns the matches where they are no afterthought: where no mark or coordinator separates
        them from S2, which may have lost them, or where they are the object of S1.
        """
        batch, matches = block.batch, block.matches
        (s1_first, _), (_, s2_last) = (_ends(block, side == number) for number in (1, 2))
        around = (matches.s1 >= 0) & (s1_first < matches.s2)
        around &= ~batch.patterns.subordinates[matches.row]
        behind = (side == 1) & around[block.match] & (block.token > s2_last[block.match])
        places = np.flatnonzero(behind & block.words)
        first = places[np.diff(block.match[places], prepend=-1) > 0]
        refused = np.zeros(len(matches), dtype=bool)
        joined = block.words[first - 1] & ~self.coordinating[block.token[first]]
        refused[block.match[first[joined]]] = True
        above = block.head[places] + block.shift[block.match[places]]
        lost = places[self.argument[block.token[places]] & ~behind[above]]
        refused[block.match[lost]] = True
        side[behind] += 2
        # Nor is what a dash or semicolon separates from a subordinate clause inside S1.
        inside = (matches.s1 >= 0) & (matches.s1 < matches.s2) & (s1_first < matches.first)
        inside &= batch.patterns.subordinates[matches.row]
        inside &= ~batch.patterns.clause_break[batch.form[matches.first - 1]]  # "— if you please —"
        behind = (side == 1) & inside[block.match] & (block.token > s2_last[block.match])
        places = np.flatnonzero(behind & block.words)
        first = places[np.diff(block.match[places], prepend=-1) > 0]
        breaks = np.zeros(len(matches), dtype=bool)
        breaks[block.match[first]] = batch.patterns.clause_break[batch.form[block.token[first] - 1]]
        side[behind & breaks[block.match]] += 2
        return refused

    def _mute_focus(self, block: Block, side: Marks) -> None:
        """Mute what focuses the subordinate clause: "he left precisely [because it rained]"."""
        before = block.token + 1 == block.matches.first[block.match]
        subordinate = self.batch.patterns.subordinates[block.matches.row][block.match]
        side[(side == 1) & before & subordinate & self.focuses[block.token]] += 2

    def _mute_coordinators(self, block: Block, side: Marks) -> None:
        """Mute a coordinator at the start of a side: it joins the side to something else.

        Behind a word of the side it joins what the side has ("the towers and walls came back").
        """
        for number in (1, 2):
            first = _ends(block, side == number)[0][block.match]
            inside = (side == number + 2) & self.coordinating[block.token]
            side[inside & (first >= 0) & (block.token > first)] = number
            places = np.flatnonzero((side == number) & block.words)
            opens = places[np.diff(block.match[places], prepend=-1) > 0]
            side[opens[self.coordinating[block.token[opens]]]] += 2

    def _loses_sense(self, head: Ints) -> BoolArray:
        """Whether a clause changes its meaning without the words that introduce or govern it."""
        top = self.top[head]
        # A main clause that "that" introduces is a part of what the parse did not find.
        return (
            self.lost[head]
            | self.lost[top]
            | self.doubtful[head]
            | (self.complement[top] & self.main[top])
        )

    def _no_command(self, matches: Matches, head: Ints, first: Ints) -> BoolArray:
        """Whether an imperative has words before it that no mark separates from the rest.

        In "if you do the walk alone be careful" it may be wrong which clause "alone" belongs to.
        """
        batch, before = self.batch, np.maximum(first - 1, 0)
        follows = self.words[before] & (first > batch.offsets[batch.row[first]])
        marker = (before >= matches.first) & (before < matches.first + matches.length)
        own = (first == head) | (self.operator[first] & (batch.head[first] == head))
        return self.commands[head] & follows & ~self.opener[before] & ~marker & ~own

    def _phrase_top(self, tokens: Ints) -> Ints:
        """The head of the largest phrase around each token that is in no clause of its own."""
        batch, clause = self.batch, self.batch.patterns.bits["clause"]
        top = tokens
        for _ in range(GOVERNORS):
            above = batch.head[top]
            top = np.where((above >= 0) & ~self.free[top] & ~batch.has(above, clause), above, top)
        return top

    def _opens(self, head: Ints, first: Ints) -> BoolArray:
        """Whether the clause of `head` opens with its own interrogative or relative word."""
        batch = self.batch
        above = batch.head[first]
        inside = (batch.head[above] == head) & ~self.free[first]
        top = self._phrase_top(first)
        below = (batch.head[top] == head) & ~self.free[top]
        opens = self.interrogative[first] & ((top == head) | below)
        return opens | (self.case[first] & self.interrogative[above] & inside)  # "in which"

    def _breaks_off(self, head: Ints, first: Ints, last: Ints, asks: BoolArray) -> BoolArray:
        """Whether a side begins like a dependent clause, or lacks its end."""
        batch = self.batch
        condition = self.inverted[head] & (batch.head[first] == head) & self.operator[first]
        dependent = (self._opens(head, first) | condition) & ~asks
        row, after = batch.row[first], np.minimum(last + 1, len(batch) - 1)
        announces = self.open_end[row] & (last == self.last[row])
        announces |= self.colon[after] & (batch.row[after] == row) & (last == head)
        announces |= self._tells(last) & (self.speech[last] == 0) & self._quotes_next(last)
        # What "will", "the" or "that" belongs to is lost, or there is nothing but "he will".
        cut = (self.operator[last] & (last == head)) | (
            (self.operator | self.opening | self.interrogative)[last] & (batch.head[last] > last)
        )
        # Before a pronoun or determiner "that" is no demonstrative: "that we came", "that the war".
        behind = np.minimum(first + 1, len(batch) - 1)
        that = self.that[first] & self.nominal[behind] & (batch.row[behind] == row)
        # A subject has no preposition: "since" in "since many live there" introduces a clause.
        introduced = self.case[first] & self.subject[batch.head[first]] & ~self.free[first]
        return dependent | cut | announces | introduced | that

    def _quotes_next(self, last: Ints) -> BoolArray:
        """Whether a quotation follows in the sentence, behind a comma or colon."""
        batch = self.batch
        after, behind = (np.minimum(last + step, len(batch) - 1) for step in (1, 2))
        return (
            ~self.words[after] & (self.speech[behind] > 0) & (batch.row[behind] == batch.row[last])
        )

    def _tells(self, last: Ints) -> BoolArray:
        """Whether the verb that the last word belongs to lacks an object: "he said to them"."""
        batch = self.batch
        verb, at = batch.tagged("verb"), last
        for _ in range(GOVERNORS):
            at = np.where(verb[at] | (batch.head[at] < 0), at, batch.head[at])
        return verb[at] & ~batch.has(at, batch.patterns.bits["object"])

    def _neither(self, block: Block, side: Marks) -> BoolArray:
        """The words that belong neither to a side, the marker, nor the tag of a quotation."""
        neither = (side == 0) & block.words
        which, markers = block.matches.marker_tokens()
        neither[markers + block.shift[which]] = False
        speaker = self.speech[block.matches.lead][block.match]
        return neither & ((speaker == 0) | (self.speech[block.token] == speaker))

    def _broken(self, block: Block, side: Marks, number: int, first: Ints, last: Ints) -> BoolArray:
        """Whether a side lacks inner words, or the subject or object of one of its verbs."""
        neither = self._neither(block, side)
        inside = neither & (block.token > first[block.match]) & (block.token < last[block.match])
        lost = np.flatnonzero(neither & self.argument[block.token] & (block.head >= 0))
        governor = block.head[lost] + block.shift[block.match[lost]]
        broken = np.zeros(len(block.matches), dtype=bool)
        broken[block.match[inside]] = True
        broken[block.match[lost[side[governor] == number]]] = True
        subordinate = self.batch.patterns.subordinates[block.matches.row]
        if number == 2:
            # No object comes behind two clauses that its verb precedes: it is S2's.
            match = block.match[lost]
            beyond = block.token[lost] > last[match]
            beyond &= block.head[lost] < np.minimum(first[match], block.matches.first[match])
            broken[match[beyond & ~subordinate[match]]] = True
        return broken

    def previous(self, matches: Matches) -> dict[int, list[Span]]:
        """By match, S1 in the previous sentence, as far as it can stand alone."""
        batch, spans = self.batch, {}
        for i in np.flatnonzero(matches.s1 == PREVIOUS).tolist():
            lead = matches.lead[i]
            row = batch.row[lead]
            number = batch.row_doc[row]
            document = batch.documents[number]
            assert document.sentences is not None
            span = document.sentences[int(batch.row_sentence[row]) - 1]
            speaker = int(self.speech[lead])
            if batch.patterns.subordinates[matches.row[i]] and self.asks[batch.offsets[row] - 1]:
                continue  # "Is he ill? Because he looks pale", or another speaker's answer
            if self.clause_before[matches.s2[i]] < matches.first[i]:
                continue  # "If it rains, then we stay": the marker goes back to the condition
            if ASIDE.fullmatch(document.text, *span):
                continue
            if self._stands(document, span, speaker, int(row), self.speeches[number]):
                pieces = [span]
                if speaker:
                    pieces = self.speeches[number].pieces(span, speaker)
                if pieces:
                    spans[i] = pieces
        return spans

    def restored(self, matches: Matches) -> dict[int, list[Span]]:
        """By match, the subject and auxiliaries that S2 shares with an earlier conjunct.

        Only in clear cases: one plain noun phrase before its verb, no question, and no negation
        that might also apply to S2 ("he did not come and stay").
        """
        batch, classes = self.batch, self.batch.patterns.classes
        bits = batch.patterns.bits
        spans: dict[int, list[Span]] = {}
        shares = batch.has(matches.s2, bits["statement"], bits["subject"])
        for i in np.flatnonzero(shares & (matches.s1 >= 0)).tolist():
            s2 = int(matches.s2[i])
            owner = int(batch.head[s2])
            for _ in range(MAX_CONJUNCTS):
                if owner < 0 or batch.traits[owner] & bits["subject"]:
                    break
                owner = int(batch.head[owner]) if classes["conjunct"][batch.label[owner]] else -1
            if owner < 0 or self.top[owner] != self.top[matches.s1[i]] or self.inverted[owner]:
                continue
            children = self._children(owner, int(matches.first[i]))
            subjects = children[classes["subject"][batch.label[children]]]
            finite = bool(batch.traits[s2] & bits["finite"])
            auxiliaries = children[classes["auxiliary"][batch.label[children]] & (not finite)]
            if len(subjects) != 1 or (not finite and self.denies[children].any()):
                continue
            phrase = self._phrase(int(subjects[0]), owner)
            if phrase and (finite or len(auxiliaries)):
                spans[i] = [phrase]
                for token in auxiliaries.tolist():
                    start, end = int(batch.start[token]), int(batch.end[token])
                    if start == spans[i][-1][1]:  # "I'll"
                        start = spans[i].pop()[0]
                    spans[i].append((start, end))
        return spans

    def _children(self, head: int, before: int) -> Ints:
        """The children of a token that precede another one."""
        begin = int(self.batch.offsets[self.batch.row[head]])
        return begin + np.flatnonzero(self.batch.head[begin:before] == head)

    def _phrase(self, noun: int, verb: int) -> Span | None:
        """The noun phrase of a subject: short, in one piece, and neither "which" nor "there"."""
        batch = self.batch
        begin = int(batch.offsets[batch.row[noun]])
        tokens = [noun]
        for token in range(noun - 1, begin - 1, -1):
            if batch.head[token] in tokens:
                tokens.append(token)
        for token in range(noun + 1, verb):
            if batch.head[token] in tokens:
                tokens.append(token)
        first, last = min(tokens), max(tokens)
        clause = batch.patterns.bits["clause"]
        plain = batch.patterns.classes["plain_subject"][batch.label[noun]]
        whole = last - first + 1 == len(tokens) <= LONGEST_SUBJECT and last < verb
        if not plain or not whole or any(batch.traits[t] & clause for t in tokens):
            return None
        if self.interrogative[tokens].any() or self.quote[tokens].any():
            return None
        return int(batch.start[first]), int(batch.end[last])

    def _stands(
        self, document: Document, span: Span, speaker: int, row: int, speech: Speech
    ) -> bool:
        """Whether the previous sentence is a complete statement or question of the same speaker."""
        batch = self.batch
        if not ENDED.search(document.text[span[0] : span[1]].rstrip()):
            return False
        if not speaker and speech.quotes_all(document.text, span):
            return False
        tokens = slice(int(batch.offsets[row - 1]), int(batch.offsets[row]))
        label = batch.label[tokens]
        classes = batch.patterns.classes
        clause = self.whole[tokens] & (self.speech[tokens] == speaker) & ~self.lost[tokens]
        clause &= ~self.introduced[tokens]
        # What is reported within the speech is not what was said: You must "say that it is late."
        reported = self.reported[tokens] & ~self.indirect[tokens]
        clause &= classes["main_clause"][label] | (reported if speaker else False)
        first = tokens.start + int(np.argmax(~classes["punctuation"][label]))
        above = int(batch.head[first])
        relative = self.interrogative[first] and (above < 0 or batch.head[above] < 0)
        relative |= self.case[first] and above >= 0 and self.interrogative[above]
        return bool(clause.any()) and (not relative or bool(self.asks[first]))


def _ends(block: Block, mine: BoolArray) -> tuple[Ints, Ints]:
    """By match, the first and last word of a side; -1 if it has none."""
    places = np.flatnonzero(mine & block.words)
    first, last = np.full((2, len(block.matches)), -1, dtype=np.int32)
    first[block.match[places[::-1]]] = block.token[places[::-1]]
    last[block.match[places]] = block.token[places]
    return first, last
