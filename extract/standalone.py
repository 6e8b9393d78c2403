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
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from corpora.document import Span
from corpora.sentences.rules import CITATIONS, NOTE, NUMBERS
from extract.clauses import MAX_DOUBLINGS, MUTED, REFUSALS, S1, S2, Block, Marks
from extract.match import PREVIOUS, Matches
from extract.parse import BoolArray, Ints
from extract.seen import SPEAKER
from extract.text import ELIDED
from extract.traces import Traces
from extract.trees import Batch

QUOTATION = re.compile(rf'[“”«»"]|‘(?!{ELIDED})|\n\n', re.IGNORECASE)
_WITHIN = rf"(?:[^‘\n]|‘(?={ELIDED})|\n(?!\n))*?"
SINGLE = re.compile(rf"‘{_WITHIN}[^\w\s]’(?!\w)|‘{_WITHIN}’(?!\w)")
"""A quotation in single marks. It ends behind a stop or comma if it can: a `’` behind a letter may
be an apostrophe ("‘the boys’ boat leaks,’ he said")."""
QUOTED = re.compile(r"[\s—–-]*[“‘«\"']")
ENDED = re.compile(rf"[.!?…。！？][\"'”’»)\]_*]*(\s*{CITATIONS.pattern}|{NOTE}|{NUMBERS})?$")
SENTENCES = re.compile(r"[.!?…]\s")
ASIDE = re.compile(r"(?:\(.*\)|\[[^]]*\])\W*", re.DOTALL)
"""A sentence in brackets; "[He] saw [her]" is not."""
TURN = re.compile(rf"(?<=\n\n)[—–―-]|{SPEAKER.pattern}|[•◦▪●‣→☐☑]")
"""A paragraph that begins with a dash, a speaker's name, or a bullet: another speaker or item."""
SIGN = re.compile("|".join(map(re.escape, [*"<>&[]{}=`|\\âÃ:□■∎", "'''"])))
"""What markup begins with; to look for it first halves the time."""
MARKUP = re.compile(
    r"</?[a-zA-Z][\w-]*(?:\s[^<>\n]{0,300}=[^<>\n]{0,300}|\s)?/?>"  # HTML
    r"|<(?:v(?:\.[\w.-]+)?\s[^<>\n]{1,80}|[a-z]+(?:\.[\w-]+)+|[\d:.]{5,})>"  # WebVTT
    r"|:(?:(?<=\balign:)(?:start|center|middle|end|left|right)|(?<=\bvertical:)(?:rl|lr))\b"
    r"|:(?:(?<=\bposition:)|(?<=\bline:)|(?<=\bsize:))-?\d[\d.]*(?:%|(?=\s))"
    r"|&(?:#\d+|#x[\da-fA-F]+|[a-z]{2,8});"
    r"|\[\[(?<!\w\[\[)|\]\]|\{\{|\}\}|'{3}|={2,}"  # MediaWiki
    r"|\]\((?=\S)|```|\|(?<=\s\|)(?=\s)"  # Markdown
    r"|\\[a-zA-Z]{2,}|>(?<=-->)(?:\s+[\d:.,]+(?:\s+[a-zXY\d]+:\S+)*)?"  # LaTeX; times
    r"|\[(?:Illustration|Sidenote)\b[^\]]{0,600}\]|\[P(?:g|age) \d+\]|\{\d{1,3}\}"  # Gutenberg
    r"|â€|Ã[\x80-\xbf]"  # UTF-8 read as another encoding
    r"|[□■∎]"  # the end of a proof: two sentences run together
)
"""Markup, which no clause has: the text was not converted there."""
PAGE = re.compile(r"\n\n(?<=[\w,;-]\n\n)[^a-z\n]{1,60}\n\n(?=[a-z])")
"""The head or number of a page within a sentence."""
LONGEST_SUBJECT = 8
"""Maximum number of words of a copied subject."""
MAX_CONJUNCTS = 20
GOVERNORS = 3
"""Verbs of saying or thinking that are checked above a clause."""


class Speech:
    """The quotations of a document: stretches `[start, end)` and whose speech each is.

    A stretch ends behind its closing mark, or where a missing mark would stand.
    Speeches are numbered from 1: the quotations of a paragraph, and those of the next paragraph
    if the last quotation is not closed. Quoted words in the narrator's sentence are not speech:
    “he called it “home””, without a comma or colon before them and with no sentence inside.
    """

    def __init__(self, text: str) -> None:
        self.stretches: list[tuple[int, int, int]] = []
        number = 0  # of the last speech
        speaker = carried = 0  # the paragraph's speech, and the one left open before it
        begin = -1  # of the open quotation
        behind = 0  # the end of the last one in single marks
        end = text.find("\n\n")  # of the paragraph
        for mark in QUOTATION.finditer(text):
            at, sign = mark.start(), mark[0]
            if at < behind:
                continue
            if sign == "\n\n":
                carried = 0
                if begin >= 0:
                    carried = speaker
                    self.stretches.append((begin, at + 1, speaker))
                speaker, begin = 0, -1
                end = text.find("\n\n", at + 2)
                continue
            closes = sign in '”»"'
            single = SINGLE.match(text, at) if sign == "‘" and begin < 0 else None
            if sign == "‘" and not single and not text.startswith("\n\n‘", end):
                continue  # an apostrophe: neither closed nor opened again by the next paragraph
            if begin < 0 and (sign in "“«‘" or (sign == '"' and not text[at - 1 : at].isalnum())):
                if not speaker:
                    number += not carried
                    speaker = carried or number
                begin, closes = at, single is not None
                if single:
                    behind, at = single.end(), single.end() - 1
            if begin >= 0 and closes and (text[begin] == "‘") == (text[at] == "’"):
                before = text[max(begin - 2, 0) : begin].rstrip(" ")[-1:]
                if not before.isalnum() or SENTENCES.search(text, begin, at):
                    self.stretches.append((begin, at + 1, speaker))
                begin = -1
        if begin >= 0:
            self.stretches.append((begin, len(text) + 1, speaker))
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
        """Whether all words of the span are in quotations."""
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
    """Facts about a batch's trees that decide whether clauses stand alone; `judge` applies them.

    `needs` are the properties of a complete clause.
    """

    def __init__(self, batch: Batch, needs: Sequence[str]) -> None:
        self.batch = batch
        head, tokens = batch.head, batch.tokens
        labelled, tagged, listed = batch.labelled, batch.tagged, batch.listed
        self.speeches = [Speech(document.text) for document in batch.documents]
        bounds = np.searchsorted(batch.row_doc[batch.row], np.arange(len(batch.documents) + 1))
        starts = np.split(batch.start, bounds[1:-1])
        parts = [speech.at(start) for speech, start in zip(self.speeches, starts, strict=True)]
        self.speech = np.concatenate(parts)
        ends = np.split(batch.end, bounds[1:-1])
        self.markup = np.zeros(len(batch), dtype=bool)
        """The tokens that overlap markup."""
        for document, begin, start, end in zip(batch.documents, bounds, starts, ends, strict=False):
            text = document.text
            marks = (MARKUP.match(text, sign.start()) for sign in SIGN.finditer(text))
            for mark in chain(filter(None, marks), PAGE.finditer(text)):
                # Of a broken sentence the word before the break too.
                first = np.searchsorted(end, mark.start() - (mark[0][0] == "\n"), side="right")
                last = np.searchsorted(start, mark.end())
                self.markup[begin + first : begin + last] = True
        self.top = np.where(labelled("conjunct") & (head >= 0), head, tokens)
        """The first conjunct of each token's coordination."""
        for _ in range(MAX_DOUBLINGS):  # a malformed tree may have a chain of any length
            self.top = self.top[self.top]
        # After the subject it introduces nothing: "he was to leave".
        opens = (head > tokens) & (tokens < batch.leftmost_child("core")[head])
        subordinator, that = labelled("subordinator") & opens, listed("complementizer")
        adverbial = labelled("adverbial_clause")
        supposed = subordinator & that & adverbial[head]  # "so that he may stay": a wish
        if batch.patterns.table.standalone.asserted:
            supposed |= subordinator & ~listed("asserted")
            # "As though it rained" likens; each of the two words alone states its clause.
            before = np.maximum(tokens - 1, 0)
            supposed |= subordinator & subordinator[before] & ~that & (head[before] == head)
        correlative = listed("correlative") & (head > tokens)
        correlative &= ~subordinator & ~labelled("modifier")
        self.inner = correlative & ~opens
        """Correlatives that a clause keeps: "it was neither deep nor wide"."""
        self.supposed = batch.with_child(supposed | (correlative & opens))
        self.complement = batch.with_child(subordinator & that)
        self.clause_before = batch.leftmost(adverbial & tagged("finite"))
        """The first finite adverbial clause of each token."""
        self.introduced = batch.with_child(subordinator & ~that)
        subject = batch.leftmost_child("subject")
        self.asks = batch.rows_with(listed("asking"))[batch.row]
        self.inverted = (batch.leftmost_child("auxiliary") < subject) & (subject < len(batch))
        interrogative = tagged("interrogative")
        by_subject = interrogative[np.minimum(subject, len(batch) - 1)]
        self.adverbial_statement = adverbial & ~self.inverted & ~by_subject
        """Adverbial clauses without the form of a question."""
        reported = labelled("reported_clause") & (head >= 0)
        self.indirect = reported & (self.speech[head] == self.speech)
        """Reported clauses that are not quotations."""
        self.doubtful = self._doubtful()
        commands = tagged("imperative") & ~self.indirect[self.top]
        complete = batch.has(tokens, needs)
        self.commands = commands & ~complete
        self.whole = complete | commands | self._mistagged_finite()
        self.words = ~labelled("punctuation")
        self.last = np.full(len(batch.row_doc), -1, dtype=np.int32)
        """By sentence, its last word."""
        self.last[batch.row[self.words]] = tokens[self.words]
        self.free = batch.with_child(labelled("dependent_clause")) & ~that
        """Words with a relative clause of their own: "what" in "what I fear is torture"."""
        self.open_end = self._open_ends()
        self.argument = labelled("object") | labelled("subject")
        question_words = interrogative & ~self.free
        fronted = np.flatnonzero(question_words & (tokens < subject[head]) & (head > tokens))
        # "Three of which were dirty": the relative word is in the subject.
        top = self._phrase_top(np.flatnonzero(question_words & ~self.argument & (head >= 0)))
        within = top[labelled("plain_subject")[top] & (head[top] > top)]
        self.question_inside = np.zeros(len(batch), dtype=bool)
        self.question_inside[head[fronted]] = self.question_inside[head[within]] = True
        opening, closing = listed("opening_bracket"), listed("closing_bracket")
        self.brackets = np.append(0, np.cumsum(opening.astype(np.int32) - closing))
        """How many brackets are open in front of each token."""
        self.gap = self._gaps()
        self.traces = Traces(batch, self.words, self.inverted)

    def _mistagged_finite(self) -> BoolArray:
        """Finite forms such as "bent" or "come" that a tagger took for participles or infinitives.

        They stand behind a subject of their own, without an auxiliary or "to", in a main clause, a
        conjunct of one, or a clause that a subordinator introduces.
        """
        batch = self.batch
        subject = batch.labelled("acting_subject") & (batch.head > batch.tokens)
        forms = batch.tagged("ambiguous") & batch.with_child(subject)
        forms &= ~batch.having("auxiliary") & ~batch.with_child(batch.tagged("infinitival"))
        adverbial = batch.labelled("adverbial_clause") & batch.having("subordinator")
        return forms & (batch.labelled("main_clause")[self.top] | adverbial)

    def _gaps(self) -> BoolArray:
        """Finite complements without a subject right behind their verb: "critics say is a camp".

        Their subject is a relative or interrogative word, which another clause has.
        """
        batch, tokens = self.batch, self.batch.tokens
        gap = self.indirect & batch.has(tokens, ["finite"], ["subject"]) & (batch.head >= 0)
        verb = np.minimum(batch.head + 1, len(batch) - 1)
        auxiliary = batch.labelled("auxiliary")[verb] & (batch.head[verb] == tokens)
        gap &= auxiliary | ((verb == tokens) & ~batch.tagged("bare"))
        above = batch.ascend(tokens, batch.labelled("reported_clause"), GOVERNORS)
        return gap & ~batch.labelled("dependent_clause")[above] & ~self.asks

    def _open_ends(self) -> BoolArray:
        """Whether a sentence ends in a mark that lets something follow.

        A colon does so where it announces speech; the statement before a list or reason is whole.
        """
        batch, last = self.batch, self.batch.offsets[1:] - 1
        open_end = batch.listed("open_end")[last]
        tells = self._tells(self.last)
        for row in np.flatnonzero(open_end & batch.listed("colon")[last]).tolist():
            quotes = QUOTED.match(batch.document(last[row]).text, int(batch.end[last[row]]))
            open_end[row] = tells[row] and quotes is not None
        return open_end

    def _doubtful(self) -> BoolArray:
        """Whether a clause is, or is inside, the complement of a verb that denies, doubts or asks.

        Such a verb is negated, `unreal`, or that of a question.
        """
        batch = self.batch
        governs = batch.with_child(batch.listed("denying")) | batch.listed("unreal")
        governs |= self.inverted & self.asks
        doubtful, at = np.zeros(len(batch), dtype=bool), self.top
        for _ in range(GOVERNORS):
            above = batch.head[at]
            under = self.indirect[at]
            doubtful |= under & governs[above]
            at = np.where(under, self.top[above], at)
        return doubtful

    def judge(self, block: Block, side: Marks) -> tuple[Marks, list[BoolArray]]:
        """Mute the words of a side that interrupt its speech or its clause; then judge both sides.

        Returns for each match the reason to refuse it, an index into `REFUSALS` (the last reason
        below, if there are several), and whether S1 and S2 are questions.
        """
        batch, matches, token, listed = block.batch, block.matches, block.token, block.batch.listed
        reason = np.zeros(len(matches), dtype=np.int8)
        speaker = self.speech[matches.lead]

        def refuse(which: BoolArray, why: str) -> None:
            reason[which] = REFUSALS.index(why)

        side[self.inner[token] & (side > S2)] -= MUTED
        # What interrupts the speech that the marker is part of, and its quotation marks.
        spoken = (speaker > 0)[block.match] & ((side == S1) | (side == S2))
        side[spoken & ((self.speech[token] == 0) | listed("quote")[token])] += MUTED
        spoken &= ((side == S1) | (side == S2)) & block.words
        mixed = block.any(spoken & (self.speech[token] != speaker[block.match]))
        self._mute_coordinators(block, side)
        # "Even though he has any" is stated: the last word of a connective says so.
        asserted = listed("asserted")[matches.first + matches.length - 1]
        self.traces.mute_modifiers(block, side, asserted)
        afterwards = self._mute_afterthought(block, side)
        questions = []
        s1_last = block.ends(side == S1)[1]
        for number, head in ((S1, matches.s1), (S2, matches.s2)):
            has_head, top = head >= 0, self.top[head]
            first, last = block.ends(side == number)
            # A "?" or "!" in front of the first word ends what was before it.
            side[(side == number) & listed("terminal")[token] & (token < first[block.match])] += (
                MUTED
            )
            # S2 of a subordinator is introduced by the marker itself.
            unmarked = has_head & ~(block.subordinate & (number == S2))
            asks = self.asks[head] & ~self.indirect[top]
            asks &= ~(unmarked & self.adverbial_statement[top])  # "Remember when he came?"
            opening = block.ends((side == number) & ~batch.labelled("opener")[token])[0]
            fragment = unmarked & batch.labelled("dependent_clause")[top]
            fragment |= has_head & (opening >= 0) & self._breaks_off(head, opening, last, asks)
            fragment |= block.any((side == number) & self.gap[token])
            fragment |= has_head & self._no_command(matches, head, opening)
            fragment |= has_head & ~asks & self.traces.turned(block, side == number, head, opening)
            fragment |= has_head & (last >= 0) & self.traces.cut(last)
            fragment |= unmarked & self.question_inside[head] & ~asks  # "at first when you try"
            # "(It is slow) of late": the bracket in front of the side ends inside it.
            fragment |= has_head & (self.brackets[last + 1] < self.brackets[np.maximum(first, 0)])
            fragment |= has_head & self._broken(block, side, number, first, last)
            # Without the words that introduce or govern it, a clause changes its meaning.
            # A main clause that "that" introduces is a part of what the parse did not find.
            part = self.complement[top] & batch.labelled("main_clause")[top]
            unstated = self.supposed[head] | self.supposed[top] | self.doubtful[head] | part
            sense_changed = unmarked & unstated
            other = top if number == S1 else self.top[matches.s1]
            # One of two conjuncts has a "that" which the other lacks.
            unlike = (head != other) & self.complement[head] & ~self.complement[other]
            fragment |= unmarked & (matches.s1 >= 0) & unlike
            if number == S2:
                sense_changed |= unmarked & self.introduced[head]
                # "But, in a talk we gave, he said ...": the parse lost the clause that follows.
                fragment |= unmarked & (matches.s1 == PREVIOUS) & self.adverbial_statement[head]
            refuse(fragment, f"s{number}_fragment")
            refuse(sense_changed, f"s{number}_lost_word")
            mixed |= has_head & (self.speech[head] != speaker)
            questions.append(has_head & asks & (self._opens(head, first) | self.inverted[head]))
        refuse(afterwards, "s1_fragment")
        between = self._neither(block, side) & ~batch.labelled("opener")[token]
        between &= (token > s1_last[block.match]) & (token < matches.first[block.match])
        refuse(block.any(between) & (matches.s1 >= 0) & (matches.s1 < matches.first), "apart")
        supposed = (side == S2) & listed("hypothetical")[token]
        refuse(block.any(supposed) & block.subordinate & ~asserted, "s2_lost_word")
        before = np.maximum(matches.first - 1, 0)
        denied = block.subordinate & (matches.first > batch.offsets[batch.row[matches.first]])
        denied &= (
            listed("denying")[before] | listed("comparing")[before]
        )  # "not because", "than if"
        refuse(denied, "s1_lost_word")
        s1_lost, s2_lost = self.traces.lost(block, side, asserted, (first, last))  # S2's ends
        refuse(s1_lost, "s1_lost_word")
        refuse(s2_lost, "s2_lost_word")
        refuse(mixed, "speech")
        refuse(self.traces.construction(block, s1_last, last), "construction")
        constructions = np.array([not row.standalone for row in batch.patterns.table.patterns])
        refuse(constructions[matches.row], "construction")
        refuse(block.any(((side == S1) | (side == S2)) & self.markup[token]), "markup")
        return reason, questions

    def _mute_coordinators(self, block: Block, side: Marks) -> None:
        """Mute a coordinator at the start of a side: it joins the side to something else.

        A coordinator behind the side's first word joins parts of the side and stays ("the towers
        and walls came back"). So does a correlative of parts ("neither the king nor I slept").
        """
        batch, matches, token = self.batch, block.matches, block.token
        head = batch.head[token]
        correlative = batch.listed("correlative")[token] & (head > token)
        correlative &= batch.having("conjunct")[head]
        for heads in (matches.s1, matches.s2):
            correlative &= head != heads[block.match]
        coordinating = batch.tagged("coordinating")[token] & ~correlative
        for number in (S1, S2):
            first = block.ends(side == number)[0][block.match]
            inside = (side == number + 2) & coordinating
            side[inside & (first >= 0) & (block.token > first)] = number
            opens = block.first_words(side == number)
            side[opens[coordinating[opens]]] += 2

    def _mute_afterthought(self, block: Block, side: Marks) -> BoolArray:
        """Mute words of S1 behind S2: conjuncts are adjacent, so they belong to neither.

        Returns the matches where they are not an afterthought: no mark or coordinator separates
        them from S2, which may have lost them, or they are the object of S1.
        """
        batch, matches = block.batch, block.matches
        s1_first, s2_last = block.ends(side == S1)[0], block.ends(side == S2)[1]
        after = (side == S1) & (block.token > s2_last[block.match])
        around = (matches.s1 >= 0) & (s1_first < matches.s2) & ~block.subordinate
        behind = after & around[block.match]
        first = block.first_words(behind)
        coordinating = batch.tagged("coordinating")[block.token[first]]
        refused = block.any(first[block.words[first - 1] & ~coordinating])
        places = np.flatnonzero(behind & block.words & self.argument[block.token])
        above = block.head[places] + block.shift[block.match[places]]
        refused |= block.any(places[~behind[above]])
        side[behind] += 2
        # Nor is what a dash or semicolon separates from a subordinate clause inside S1.
        breaks = batch.listed("clause_break")
        inside = (matches.s1 >= 0) & (matches.s1 < matches.s2) & (s1_first < matches.first)
        inside &= block.subordinate & ~breaks[matches.first - 1]  # "— if you please —"
        behind = after & inside[block.match]
        first = block.first_words(behind)
        parted = block.any(first[breaks[block.token[first] - 1]])
        side[behind & parted[block.match]] += 2
        return refused

    def _no_command(self, matches: Matches, head: Ints, first: Ints) -> BoolArray:
        """Whether an imperative begins with a word that is not its verb, without a mark before it.

        In "if you do the walk alone be careful" it may be wrong which clause "alone" belongs to.
        """
        batch, before = self.batch, np.maximum(first - 1, 0)
        verb = (first == head) | (batch.tagged("operator")[first] & (batch.head[first] == head))
        marker = (before >= matches.first) & (before < matches.first + matches.length)
        joined = self.words[before] & (first > batch.offsets[batch.row[first]])
        joined &= ~batch.labelled("opener")[before] & ~marker
        return self.commands[head] & ~verb & joined

    def _phrase_top(self, tokens: Ints) -> Ints:
        """The head of the largest phrase around each token that is in no clause of its own."""
        top, clause = tokens, self.batch.tagged("clause")
        for _ in range(GOVERNORS):
            above = self.batch.head[top]
            top = np.where((above >= 0) & ~self.free[top] & ~clause[above], above, top)
        return top

    def _opens(self, head: Ints, first: Ints) -> BoolArray:
        """Whether the clause of `head` opens with its own interrogative or relative word."""
        batch, interrogative = self.batch, self.batch.tagged("interrogative")
        above, top = batch.head[first], self._phrase_top(first)
        below = (batch.head[top] == head) & ~self.free[top]
        inside = (batch.head[above] == head) & ~self.free[first]
        behind = np.minimum(first + 1, len(batch) - 1)
        whose = batch.listed("possessor")[behind] & (batch.head[behind] == above)
        inside &= batch.labelled("case")[first] & (interrogative[above] | whose)  # "in which"
        return (interrogative[first] & ((top == head) | below)) | inside

    def _breaks_off(self, head: Ints, first: Ints, last: Ints, asks: BoolArray) -> BoolArray:
        """Whether a side begins like a dependent clause, or lacks its end."""
        batch = self.batch
        row, final = batch.row[first], len(batch) - 1
        operator, interrogative = batch.tagged("operator"), batch.tagged("interrogative")
        condition = self.inverted[head] & (batch.head[first] == head) & operator[first]
        dependent = (self._opens(head, first) | condition) & ~asks
        after, beyond = np.minimum(last + 1, final), np.minimum(last + 2, final)
        announces = self.open_end[row] & (last == self.last[row])
        announces |= batch.listed("colon")[after] & (batch.row[after] == row) & (last == head)
        # A quotation follows behind a comma or colon.
        quotes = ~self.words[after] & (self.speech[beyond] > 0) & (self.speech[last] == 0)
        announces |= self._tells(last) & quotes & (batch.row[beyond] == batch.row[last])
        # What "will", "the" or "that" belongs to is lost, or there is nothing but "he will".
        cut = (operator | batch.tagged("opening") | interrogative)[last] & (batch.head[last] > last)
        cut |= operator[last] & (last == head)
        # Before a pronoun or determiner "that" is a conjunction: "that we came", "that the war".
        behind = np.minimum(first + 1, final)
        that = batch.listed("complementizer")[first] & batch.tagged("nominal")[behind]
        that &= batch.row[behind] == row
        # A subject has no preposition: "since" in "since many live there" introduces a clause.
        introduced = batch.labelled("case")[first] & ~self.free[first]
        introduced &= batch.labelled("plain_subject")[batch.head[first]]
        return dependent | cut | announces | introduced | that

    def _tells(self, last: Ints) -> BoolArray:
        """Whether the verb that the last word belongs to lacks an object: "he said to them"."""
        verb = self.batch.tagged("verb")
        at = self.batch.ascend(last, ~verb, GOVERNORS)
        return verb[at] & ~self.batch.tagged("object")[at]

    def _neither(self, block: Block, side: Marks) -> BoolArray:
        """The words that belong neither to a side, the marker, nor the tag of a quotation."""
        neither = (side == 0) & block.words
        neither[block.marker] = False
        speaker = self.speech[block.matches.lead][block.match]
        return neither & ((speaker == 0) | (self.speech[block.token] == speaker))

    def _broken(self, block: Block, side: Marks, number: int, first: Ints, last: Ints) -> BoolArray:
        """Whether a side lacks inner words, or the subject or object of one of its verbs."""
        neither, token, match = self._neither(block, side), block.token, block.match
        broken = block.any(neither & (token > first[match]) & (token < last[match]))
        arguments = np.flatnonzero(neither & self.argument[token] & (block.head >= 0))
        governor = block.head[arguments] + block.shift[match[arguments]]
        broken |= block.any(arguments[side[governor] == number])
        if number == S2:
            # An object behind S2 whose verb stands before S2 and the marker was S2's: the parser
            # attached it to the wrong verb.
            owner = match[arguments]
            beyond = token[arguments] > last[owner]
            beyond &= block.head[arguments] < np.minimum(first[owner], block.matches.first[owner])
            broken |= block.any(arguments[beyond]) & ~block.subordinate
        return broken

    def previous(
        self, matches: Matches, sentences: Mapping[int, Sequence[Span]]
    ) -> dict[int, Sequence[Span]]:
        """The spans, by match, of an S1 in the previous sentence that can stand alone.

        Such an S1 is a complete statement or question of the same speaker.
        """
        batch, spans = self.batch, dict[int, Sequence[Span]]()
        for i, (span,) in sentences.items():
            lead = int(matches.lead[i])
            row, speaker = int(batch.row[lead]), int(self.speech[lead])
            if not batch.row_follows[row] or batch.row_answers[row]:
                continue
            document, speech = batch.document(lead), self.speeches[batch.row_doc[row]]
            text, layer = document.text, document.sentences
            assert layer is not None
            if batch.patterns.subordinates[matches.row[i]] and self.asks[batch.offsets[row] - 1]:
                continue  # "Is he ill? Because he looks pale", or another speaker's answer
            if self.clause_before[matches.s2[i]] < matches.first[i]:
                continue  # "If it rains, then we stay": the marker goes back to the condition
            if TURN.match(text, layer.start[batch.row_sentence[row]]):
                continue
            if (
                MARKUP.search(text, *span)
                or PAGE.search(text, *span)
                or ASIDE.fullmatch(text, *span)
                or not ENDED.search(text[slice(*span)].rstrip())
            ):
                continue
            if not speaker and speech.quotes_all(text, span):
                continue
            pieces = speech.pieces(span, speaker) if speaker else [span]
            if pieces and self._stands(slice(*batch.offsets[row - 1 : row + 1]), speaker):
                spans[i] = pieces
        return spans

    def _stands(self, tokens: slice, speaker: int) -> bool:
        """Whether a sentence has a clause that says or asks something, and is not relative."""
        batch = self.batch
        clause = self.whole[tokens] & (self.speech[tokens] == speaker) & ~self.supposed[tokens]
        main = batch.labelled("main_clause")[tokens]
        if speaker:
            # What is reported within the speech is not what was said: You must "say that it is
            # late."
            main = main | (batch.labelled("reported_clause") & ~self.indirect)[tokens]
        first = tokens.start + int(np.argmax(self.words[tokens]))
        above = int(batch.head[first])
        interrogative = batch.tagged("interrogative")
        # "Which he saw.", "In which he saw it."
        relative = interrogative[first] and (above < 0 or batch.head[above] < 0)
        relative |= batch.labelled("case")[first] and above >= 0 and interrogative[above]
        states = (clause & main & ~self.introduced[tokens]).any()
        return bool(states and (not relative or self.asks[first]))

    def restored(self, matches: Matches) -> dict[int, list[Span]]:
        """The subject and auxiliaries that S2 shares with an earlier conjunct, as spans by match.

        Only in clear cases: one plain noun phrase before its verb, no question, and no negation
        that might also apply to S2 ("he did not come and stay").
        """
        batch = self.batch
        conjunct, subject = batch.labelled("conjunct"), batch.tagged("subject")
        spans: dict[int, list[Span]] = {}
        shares = batch.has(matches.s2, ["statement"], ["subject"]) & (matches.s1 >= 0)
        for i in np.flatnonzero(shares).tolist():
            s2 = int(matches.s2[i])
            owner = int(batch.head[s2])
            for _ in range(MAX_CONJUNCTS):
                if owner < 0 or subject[owner]:
                    break
                owner = int(batch.head[owner]) if conjunct[owner] else -1
            if owner < 0 or self.top[owner] != self.top[matches.s1[i]] or self.inverted[owner]:
                continue
            begin, first = int(batch.offsets[batch.row[owner]]), int(matches.first[i])
            children = begin + np.flatnonzero(batch.head[begin:first] == owner)
            subjects = children[batch.labelled("subject")[children]]
            finite = bool(batch.tagged("finite")[s2])
            auxiliary = batch.labelled("auxiliary")[children]
            auxiliaries = children[:0] if finite else children[auxiliary]
            if len(subjects) != 1 or (not finite and batch.listed("denying")[children].any()):
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

    def _phrase(self, noun: int, verb: int) -> Span | None:
        """The noun phrase of a subject: short, in one piece, and neither "which" nor "there"."""
        batch = self.batch
        begin = int(batch.offsets[batch.row[noun]])
        tokens = [noun]
        for token in (*range(noun - 1, begin - 1, -1), *range(noun + 1, verb)):
            if batch.head[token] in tokens:
                tokens.append(token)
        first, last = min(tokens), max(tokens)
        in_one_piece = last - first + 1 == len(tokens) <= LONGEST_SUBJECT and last < verb
        odd = batch.tagged("clause") | batch.tagged("interrogative") | batch.listed("quote")
        if not in_one_piece or not batch.labelled("plain_subject")[noun] or odd[tokens].any():
            return None
        return int(batch.start[first]), int(batch.end[last])
