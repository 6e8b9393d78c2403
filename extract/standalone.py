"""Decide whether S1 and S2 can stand alone: what the mode `standalone` requires beyond a pattern.

DisSent wants "sentence-like text fragments that can be interpreted as grammatically complete
sentences in isolation" (Nie, Bennett and Goodman 2019, section 2). A side is rejected if it

- loses the word that makes it something other than a statement ("if", "I doubt that ..."),
- is separated from its marker by words that belong to neither side,
- is a fragment of a relative or interrogative clause, or ends in the middle of a phrase,
- has another speaker than the other side, or is narration beside speech. Where a quotation is
  broken by its tag ("“Yes,” he said, “but ...”"), the tag is left out of the text.

Each check reads trees, tags and quotation marks, for all matches of a block at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from corpora.document import PARAGRAPH_BREAK, Span
from corpora.sentences.rules import CITATIONS, NOTE, NUMBERS
from extract.clauses import MAX_DOUBLINGS, MUTED, REFUSALS, S1, S2, Block, SideCodes
from extract.match import PREVIOUS, Matches
from extract.parse import BoolArray, Ints
from extract.seen import SPEAKER
from extract.text import ELIDED
from extract.traces import Traces
from extract.trees import Batch

QUOTE_OR_PARAGRAPH = re.compile(rf'[“”«»"]|‘(?!{ELIDED})|\n\n', re.IGNORECASE)
_WITHIN = rf"(?:[^‘\n]|‘(?={ELIDED})|\n(?!\n))*?"
SINGLE_QUOTATION = re.compile(rf"‘{_WITHIN}[^\w\s]’(?!\w)|‘{_WITHIN}’(?!\w)")
"""A quotation in single marks; a `’` behind a letter may be an apostrophe, so it ends behind a
stop or comma if it can ("‘the boys’ boat leaks,’ he said")."""
OPENING_QUOTE = re.compile(r"[\s—–-]*[“‘«\"']")
SENTENCE_END = re.compile(rf"[.!?…。！？][\"'”’»)\]_*]*(\s*{CITATIONS.pattern}|{NOTE}|{NUMBERS})?$")
INNER_SENTENCE_END = re.compile(r"[.!?…]\s")
BRACKETED_SENTENCE = re.compile(r"(?:\(.*\)|\[[^]]*\])\W*", re.DOTALL)
"""A sentence in brackets; "[He] saw [her]" is not."""
NEW_SPEAKER = re.compile(rf"(?<=\n\n)[—–―-]|{SPEAKER.pattern}|[•◦▪●‣→☐☑]")
"""A paragraph that begins with a dash, a speaker's name, or a bullet: another speaker or item."""
MARKUP_START = re.compile("|".join(map(re.escape, [*"<>&[]{}=`|\\âÃ:□■∎", "'''"])))
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
"""Markup in a text that was converted badly; a side with markup is rejected."""
PAGE_HEADER = re.compile(r"\n\n(?<=[\w,;-]\n\n)[^a-z\n]{1,60}\n\n(?=[a-z])")
"""The head or number of a page within a sentence."""
LONGEST_SUBJECT = 8
"""Maximum number of words of a copied subject."""
MAX_CONJUNCTS = 20
GOVERNORS = 3
"""Verbs of saying or thinking that are checked above a clause."""


class Speech:
    """The quotations in a text, grouped into speeches that each have one speaker.

    `stretches` has for each quotation its start, its end (behind its closing mark, or where a
    missing mark would stand) and the number of its speech, from 1. All quotations of a paragraph
    are one speech; it goes on in the next paragraph if the last quotation is not closed. Quoted
    words without a comma or colon before them and without a sentence inside are no speech: "he
    called it “home”".
    """

    def __init__(self, text: str) -> None:
        self.stretches: list[tuple[int, int, int]] = []
        last_speech = 0
        speech = 0  # of the paragraph; 0 before its first quotation
        unclosed_speech = 0  # which the paragraph before did not close
        start = -1  # of the open quotation
        single_end = 0  # of the last quotation in single marks
        paragraph_end = text.find("\n\n")
        for mark in QUOTE_OR_PARAGRAPH.finditer(text):
            at, sign = mark.start(), mark[0]
            if at < single_end:
                continue
            if sign == "\n\n":
                unclosed_speech = 0
                if start >= 0:
                    unclosed_speech = speech
                    self.stretches.append((start, at + 1, speech))
                speech, start = 0, -1
                paragraph_end = text.find("\n\n", at + 2)
                continue
            closes = sign in '”»"'
            single = SINGLE_QUOTATION.match(text, at) if sign == "‘" and start < 0 else None
            if sign == "‘" and not single and not text.startswith("\n\n‘", paragraph_end):
                continue  # an apostrophe: neither closed nor opened again by the next paragraph
            opens = sign in "“«‘" or (sign == '"' and not text[at - 1 : at].isalnum())
            if start < 0 and opens:
                if not speech:
                    last_speech += not unclosed_speech
                    speech = unclosed_speech or last_speech
                start, closes = at, single is not None
                if single:
                    single_end, at = single.end(), single.end() - 1
            if start >= 0 and closes and (text[start] == "‘") == (text[at] == "’"):
                before = text[max(start - 2, 0) : start].rstrip(" ")[-1:]
                if not before.isalnum() or INNER_SENTENCE_END.search(text, start, at):
                    self.stretches.append((start, at + 1, speech))
                start = -1
        if start >= 0:
            self.stretches.append((start, len(text) + 1, speech))
        self.starts = np.array([start for start, _, _ in self.stretches], dtype=np.int64)

    def numbers_at(self, positions: Ints) -> Ints:
        """Return the number of the speech at each character position; 0 in narration."""
        if not self.stretches:
            return np.zeros(len(positions), dtype=np.int32)
        ends = np.array([end for _, end, _ in self.stretches])
        numbers = np.array([number for _, _, number in self.stretches], dtype=np.int32)
        nearest = np.searchsorted(self.starts, positions, side="right") - 1
        nearest = np.maximum(nearest, 0)  # a position before all quotations is in none
        inside = (positions >= self.starts[nearest]) & (positions < ends[nearest])
        return np.where(inside, numbers[nearest], 0)

    def spans_within(self, span: Span, number: int) -> list[Span]:
        """Return the parts of `span` in the speech with this number, without quotation marks."""
        inside = [
            (max(start + 1, span[0]), min(end - 1, span[1]))
            for start, end, speech in self._stretches_in(span)
            if speech == number
        ]
        return [(start, end) for start, end in inside if end > start]

    def quotes_all(self, text: str, span: Span) -> bool:
        """Return whether all words of the span are in quotations."""
        at = span[0]
        for start, end, _ in self._stretches_in(span):
            if any(map(str.isalnum, text[at : max(start, at)])):
                return False
            at = max(at, end)
        return not any(map(str.isalnum, text[at : span[1]]))

    def _stretches_in(self, span: Span) -> list[tuple[int, int, int]]:
        """Return the stretches that begin inside the span, and the last one before it."""
        first = int(np.searchsorted(self.starts, span[0], side="right"))
        behind = int(np.searchsorted(self.starts, span[1], side="left"))
        return self.stretches[max(first - 1, 0) : behind]


class Judge:
    """Decides which matches of a batch have two sides that can stand alone as sentences.

    The constructor computes facts about all tokens of the batch, most as flags [tokens]; `judge`
    applies them to matches. `needs` names the properties of a complete clause (`Batch.tagged`).
    """

    def __init__(self, batch: Batch, needs: Sequence[str]) -> None:
        self.batch = batch
        head, tokens = batch.head, batch.tokens
        labelled, tagged, listed = batch.labelled, batch.tagged, batch.listed
        # Speech and markup, by the characters of each document
        self.speeches = [Speech(document.text) for document in batch.documents]
        bounds = np.searchsorted(batch.row_doc[batch.row], np.arange(len(batch.documents) + 1))
        starts = np.split(batch.start, bounds[1:-1])
        by_document = zip(self.speeches, starts, strict=True)
        self.speech = np.concatenate([speech.numbers_at(start) for speech, start in by_document])
        """The number of the speech that each token is in; 0 in narration."""
        ends = np.split(batch.end, bounds[1:-1])
        self.markup = np.zeros(len(batch), dtype=bool)
        """The tokens that overlap markup."""
        for document, begin, start, end in zip(batch.documents, bounds, starts, ends, strict=False):
            text = document.text
            marks = (MARKUP.match(text, sign.start()) for sign in MARKUP_START.finditer(text))
            for mark in chain(filter(None, marks), PAGE_HEADER.finditer(text)):
                # A page break inside a sentence also spoils the word before it.
                first = np.searchsorted(end, mark.start() - (mark[0][0] == "\n"), side="right")
                last = np.searchsorted(start, mark.end())
                self.markup[begin + first : begin + last] = True
        # Conjuncts, and clauses that "if", "that" or a correlative introduces
        self.first_conjunct = np.where(labelled("conjunct") & (head >= 0), head, tokens)
        """The first conjunct of each token's coordination."""
        # Each round doubles the steps that the chain of conjuncts is followed (pointer doubling).
        for _ in range(MAX_DOUBLINGS):  # a malformed tree may have a chain of any length
            self.first_conjunct = self.first_conjunct[self.first_conjunct]
        # Behind the subject a subordinator introduces nothing: "he was to leave".
        opens = (head > tokens) & (tokens < batch.leftmost_child("core")[head])
        subordinator, that = labelled("subordinator") & opens, listed("complementizer")
        adverbial = labelled("adverbial_clause")
        unasserted = subordinator & that & adverbial[head]  # "so that he may stay": a wish
        if batch.patterns.table.standalone.asserted:
            unasserted |= subordinator & ~listed("asserted")
            # "As though it rained" is a comparison; "as" or "though" alone states its clause.
            before = np.maximum(tokens - 1, 0)
            unasserted |= subordinator & subordinator[before] & ~that & (head[before] == head)
        correlative = listed("correlative") & (head > tokens)
        correlative &= ~subordinator & ~labelled("modifier")
        self.inner_correlative = correlative & ~opens
        """Correlatives inside a clause, which stay in its text: "it was neither deep nor wide"."""
        self.unasserted = batch.with_child(unasserted | (correlative & opens))
        """Heads of clauses that are not stated as facts ("if it rains")."""
        self.has_that = batch.with_child(subordinator & that)

        self.first_adverbial = batch.leftmost(adverbial & tagged("finite"))
        """For each token its first finite adverbial clause; `len(batch)` if it has none."""
        self.subordinated = batch.with_child(subordinator & ~that)
        """Heads of clauses that "if", "when", ... introduces."""
        # Questions, reported clauses, commands and whole clauses
        subject = batch.leftmost_child("subject")
        self.in_question = batch.rows_with(listed("asking"))[batch.row]
        """The tokens of sentences with a question mark."""
        self.inverted = (batch.leftmost_child("auxiliary") < subject) & (subject < len(batch))
        interrogative = tagged("interrogative")
        # A clause without a subject has the index `len(batch)`, which is cut to a valid one.
        by_subject = interrogative[np.minimum(subject, len(batch) - 1)]
        self.adverbial_statement = adverbial & ~self.inverted & ~by_subject
        """Adverbial clauses without the form of a question."""
        reported = labelled("reported_clause") & (head >= 0)
        self.indirect_speech = reported & (self.speech[head] == self.speech)
        """Reported clauses that are not quotations."""
        self.doubtful = self._doubtful()
        commands = tagged("imperative") & ~self.indirect_speech[self.first_conjunct]
        complete = batch.has(tokens, needs)
        self.commands = commands & ~complete
        self.whole = complete | commands | self._mistagged_finite()
        """Heads of whole clauses: statements, questions and commands."""
        # Ends of sentences, and question words that open a clause
        self.is_word = ~labelled("punctuation")
        self.last_word = np.full(len(batch.row_doc), -1, dtype=np.int32)
        """The last word of each sentence [rows]."""
        self.last_word[batch.row[self.is_word]] = tokens[self.is_word]
        self.free_relative = batch.with_child(labelled("dependent_clause")) & ~that
        """Words that head a relative clause: "what" in "what I fear is torture"."""
        self.open_ended = self._open_ends()
        self.argument = labelled("object") | labelled("subject")
        question_words = interrogative & ~self.free_relative
        fronted = np.flatnonzero(question_words & (tokens < subject[head]) & (head > tokens))
        # "Three of which were dirty": the relative word is in the subject.
        top = self._phrase_top(np.flatnonzero(question_words & ~self.argument & (head >= 0)))
        within = top[labelled("plain_subject")[top] & (head[top] > top)]
        # By clause head: whether a question word opens the clause or its subject.
        self.has_question_word = np.zeros(len(batch), dtype=bool)
        self.has_question_word[head[fronted]] = self.has_question_word[head[within]] = True
        # Brackets, and traces of words that the sides lack
        opening, closing = listed("opening_bracket"), listed("closing_bracket")
        self.bracket_depth = np.append(0, np.cumsum(opening.astype(np.int32) - closing))
        """The number of open brackets in front of each token [tokens + 1]."""
        self.has_gap = self._gaps()
        self.traces = Traces(batch, self.is_word, self.inverted)

    def _mistagged_finite(self) -> BoolArray:
        """Mark finite verbs ("bent", "come") that a tagger took for participles or infinitives.

        Each has a subject before it, but no auxiliary and no "to"; it heads a main clause, a
        conjunct of one, or an adverbial clause with a subordinator.
        """
        batch = self.batch
        subject = batch.labelled("acting_subject") & (batch.head > batch.tokens)
        forms = batch.tagged("ambiguous") & batch.with_child(subject)
        forms &= ~batch.having("auxiliary") & ~batch.with_child(batch.tagged("infinitival"))
        adverbial = batch.labelled("adverbial_clause") & batch.having("subordinator")
        return forms & (batch.labelled("main_clause")[self.first_conjunct] | adverbial)

    def _gaps(self) -> BoolArray:
        """Mark finite complements without a subject right behind their verb.

        In "which critics say is a camp" the subject of the complement is "which", outside it.
        """
        batch, tokens = self.batch, self.batch.tokens
        gap = self.indirect_speech & batch.has(tokens, ["finite"], ["subject"]) & (batch.head >= 0)
        # The word right behind the governing verb
        verb = np.minimum(batch.head + 1, len(batch) - 1)
        auxiliary = batch.labelled("auxiliary")[verb] & (batch.head[verb] == tokens)
        gap &= auxiliary | ((verb == tokens) & ~batch.tagged("bare"))
        above = batch.ascend(tokens, batch.labelled("reported_clause"), GOVERNORS)
        return gap & ~batch.labelled("dependent_clause")[above] & ~self.in_question

    def _open_ends(self) -> BoolArray:
        """Mark the sentences [rows] that end in a mark such as a comma, so that something follows.

        A colon counts only before speech: a statement before a list or a reason is complete.
        """
        batch, last = self.batch, self.batch.offsets[1:] - 1
        open_end = batch.listed("open_end")[last]
        lacks_object = self._lacks_object(self.last_word)
        for row in np.flatnonzero(open_end & batch.listed("colon")[last]).tolist():
            quotes = OPENING_QUOTE.match(batch.document(last[row]).text, int(batch.end[last[row]]))
            open_end[row] = lacks_object[row] and quotes is not None
        return open_end

    def _doubtful(self) -> BoolArray:
        """Mark the clauses in the complement of a verb that denies, doubts or asks.

        The verb is negated, in the list `unreal`, or that of an inverted question.
        """
        batch = self.batch
        doubting = batch.with_child(batch.listed("denying")) | batch.listed("unreal")
        doubting |= self.inverted & self.in_question
        doubtful, clause = np.zeros(len(batch), dtype=bool), self.first_conjunct
        for _ in range(GOVERNORS):
            governor = batch.head[clause]
            reported = self.indirect_speech[clause]
            doubtful |= reported & doubting[governor]
            clause = np.where(reported, self.first_conjunct[governor], clause)
        return doubtful

    def judge(
        self, block: Block, side: SideCodes
    ) -> tuple[NDArray[np.int8], tuple[BoolArray, BoolArray]]:
        """Decide for each match whether S1 and S2 can stand alone, and whether they are questions.

        `side` has the side code of each position of the block. Words that interrupt a side are
        muted in it: they stay in the side's span, but not in its text. Returns the reason to reject
        each match [matches], an index into `REFUSALS` (0: none; the last one below if there are
        several), and two flags [matches]: S1 and S2 are questions.
        """
        batch, matches, token, listed = block.batch, block.matches, block.token, block.batch.listed
        reason = np.zeros(len(matches), dtype=np.int8)

        def refuse(rejected: BoolArray, why: str) -> None:
            reason[rejected] = REFUSALS.index(why)

        # Mute the words that interrupt a side.
        side[self.inner_correlative[token] & (side > S2)] -= MUTED
        two_speakers = self._mute_narration(block, side)
        self._mute_coordinators(block, side)
        # "Even though he has any" is stated: the last word of a connective says so.
        asserted = listed("asserted")[matches.first + matches.length - 1]
        self.traces.mute_modifiers(block, side, asserted)
        words_behind_s2 = self._mute_afterthought(block, side)

        # Judge each side by itself.
        questions = []
        s1_last = block.end_words(side == S1)[1]
        for number, head in ((S1, matches.s1), (S2, matches.s2)):
            ends = first, last = block.end_words(side == number)
            # A "?" or "!" in front of the first word ends what was before it.
            mark_before = listed("terminal")[token] & (token < first[block.match])
            side[(side == number) & mark_before] += MUTED
            top, unmarked = self.first_conjunct[head], self._unmarked(block, number)
            asks = self.in_question[head] & ~self.indirect_speech[top]
            asks &= ~(unmarked & self.adverbial_statement[top])  # "Remember when he came?"
            refuse(self._fragments(block, side, number, ends, asks), f"s{number}_fragment")
            refuse(self._changed_senses(block, number), f"s{number}_lost_word")
            two_speakers |= (head >= 0) & (self.speech[head] != self.speech[matches.lead])
            inverted = self._opens_with_question_word(head, first) | self.inverted[head]
            questions.append((head >= 0) & asks & inverted)
        refuse(words_behind_s2, "s1_fragment")

        # Judge both sides and the marker together. A later reason replaces an earlier one.
        between = self._neither(block, side) & ~batch.labelled("opener")[token]
        between &= (token > s1_last[block.match]) & (token < matches.first[block.match])
        s1_before = (matches.s1 >= 0) & (matches.s1 < matches.first)
        refuse(block.matches_at(between) & s1_before, "apart")
        hypothetical = block.matches_at((side == S2) & listed("hypothetical")[token])
        refuse(hypothetical & block.subordinate & ~asserted, "s2_lost_word")
        before = np.maximum(matches.first - 1, 0)
        denied = block.subordinate & (matches.first > batch.offsets[batch.row[matches.first]])
        denied &= listed("denying")[before] | listed("comparing")[before]
        refuse(denied, "s1_lost_word")  # "not because", "than if"
        s1_lost, s2_lost = self.traces.lost_words(block, side, asserted, ends)  # the ends of S2
        refuse(s1_lost, "s1_lost_word")
        refuse(s2_lost, "s2_lost_word")
        refuse(two_speakers, "speech")
        refuse(self.traces.construction(block, s1_last, last), "construction")
        recall_only = np.array([not row.standalone for row in batch.patterns.table.patterns])
        refuse(recall_only[matches.row], "construction")
        refuse(block.matches_at(((side == S1) | (side == S2)) & self.markup[token]), "markup")
        return reason, (questions[0], questions[1])

    def _mute_narration(self, block: Block, side: SideCodes) -> BoolArray:
        """Mute what interrupts the speech that the marker is part of, and its quotation marks.

        Returns the matches [flags] with words of another speech than the marker's.
        """
        token, marker_speech = block.token, self.speech[block.matches.lead][block.match]
        spoken = (marker_speech > 0) & ((side == S1) | (side == S2))
        side[spoken & ((self.speech[token] == 0) | block.batch.listed("quote")[token])] += MUTED
        spoken &= ((side == S1) | (side == S2)) & block.words
        return block.matches_at(spoken & (self.speech[token] != marker_speech))

    def _unmarked(self, block: Block, number: int) -> BoolArray:
        """Flag the matches whose side `number` has a head and is not introduced by the marker.

        The marker introduces S2 if it is the subordinator of S2.
        """
        heads = block.matches.s1 if number == S1 else block.matches.s2
        return (heads >= 0) & ~(block.subordinate & (number == S2))

    def _fragments(
        self, block: Block, side: SideCodes, number: int, ends: tuple[Ints, Ints], asks: BoolArray
    ) -> BoolArray:
        """Flag the matches whose side `number` is only a fragment of a sentence.

        `ends` has the first and the last word of the side, `asks` flags the sides in questions.
        """
        batch, matches, token, (first, last) = block.batch, block.matches, block.token, ends
        head = matches.s1 if number == S1 else matches.s2
        has_head, unmarked = head >= 0, self._unmarked(block, number)
        top, s1_top = self.first_conjunct[head], self.first_conjunct[matches.s1]
        on_side = side == number
        opening = block.end_words(on_side & ~batch.labelled("opener")[token])[0]
        fragment = unmarked & batch.labelled("dependent_clause")[top]
        fragment |= has_head & (opening >= 0) & self._breaks_off(head, opening, last, asks)
        fragment |= block.matches_at(on_side & self.has_gap[token])
        fragment |= has_head & self._opens_before_command(matches, head, opening)
        fragment |= has_head & ~asks & self.traces.lost_fronting(block, on_side, head, opening)
        fragment |= has_head & (last >= 0) & self.traces.ends_open(last)
        fragment |= unmarked & self.has_question_word[head] & ~asks  # "at first when you try"
        # "(It is slow) of late": the bracket in front of the side ends inside it.
        depth_before = self.bracket_depth[np.maximum(first, 0)]
        fragment |= has_head & (self.bracket_depth[last + 1] < depth_before)
        fragment |= has_head & self._broken(block, side, number, first, last)
        # One of two conjuncts has a "that" which the other lacks.
        unlike = (head != s1_top) & self.has_that[head] & ~self.has_that[s1_top]
        fragment |= unmarked & (matches.s1 >= 0) & unlike
        if number == S2:
            # "But, in a talk we gave, he said ...": the parse lost the clause that follows.
            fragment |= unmarked & (matches.s1 == PREVIOUS) & self.adverbial_statement[head]
        return fragment

    def _changed_senses(self, block: Block, number: int) -> BoolArray:
        """Flag the matches whose side `number` changes its meaning if it stands alone.

        It loses the words that introduce or govern it. A main clause with "that" is a complement
        whose verb the parse did not find.
        """
        head = block.matches.s1 if number == S1 else block.matches.s2
        top = self.first_conjunct[head]
        complement = self.has_that[top] & block.batch.labelled("main_clause")[top]
        unstated = self.unasserted[head] | self.unasserted[top] | self.doubtful[head]
        subordinated = self.subordinated[head] & (number == S2)
        return self._unmarked(block, number) & (unstated | complement | subordinated)

    def _mute_coordinators(self, block: Block, side: SideCodes) -> None:
        """Mute a coordinator at the start of a side: it joins the side to something else.

        A coordinator behind the side's first word joins parts of the side, so the text keeps it
        ("the towers and walls came back"). The text also keeps a correlative that joins parts of
        the side ("neither the king nor I slept"). In `side`, a word of side `number` (S1 or S2) has
        the code `number` if the side's text keeps the word, `number + MUTED` if it is muted.
        """
        batch, matches, token = self.batch, block.matches, block.token
        head = batch.head[token]
        correlative = batch.listed("correlative")[token] & (head > token)
        correlative &= batch.having("conjunct")[head]
        for heads in (matches.s1, matches.s2):
            correlative &= head != heads[block.match]
        coordinating = batch.tagged("coordinating")[token] & ~correlative
        for number in (S1, S2):
            # Unmute the muted coordinators behind the first word of the side's text.
            first_tokens, _ = block.end_words(side == number)  # -1: no word
            first = first_tokens[block.match]
            muted = (side == number + MUTED) & coordinating
            side[muted & (first >= 0) & (block.token > first)] = number
            # Mute the first word of the side's text if it is a coordinator.
            opening = block.first_words(side == number)
            side[opening[coordinating[opening]]] += MUTED

    def _mute_afterthought(self, block: Block, side: SideCodes) -> BoolArray:
        """Mute words of S1 that stand behind S2: conjuncts are adjacent, so they belong to neither.

        Returns the matches [flags] to reject: no mark or coordinator separates the words from S2,
        so that they may be part of it, or they are an object or subject of S1.
        """
        # Words of a coordinate S1 that stand behind S2
        batch, matches = block.batch, block.matches
        s1_first, s2_last = block.end_words(side == S1)[0], block.end_words(side == S2)[1]
        after = (side == S1) & (block.token > s2_last[block.match])
        coordinate = (matches.s1 >= 0) & (s1_first < matches.s2) & ~block.subordinate
        behind = after & coordinate[block.match]
        first = block.first_words(behind)
        coordinating = batch.tagged("coordinating")[block.token[first]]
        rejected = block.matches_at(first[block.words[first - 1] & ~coordinating])
        words = behind & block.words & (block.head >= 0)
        arguments = np.flatnonzero(words & self.argument[block.token])
        governor = block.head[arguments] + block.shift[block.match[arguments]]
        rejected |= block.matches_at(arguments[~behind[governor]])
        side[behind] += MUTED
        # Also mute what a dash or semicolon separates from a subordinate clause inside S1.
        breaks = batch.listed("clause_break")
        inside = (matches.s1 >= 0) & (matches.s1 < matches.s2) & (s1_first < matches.first)
        inside &= block.subordinate & ~breaks[matches.first - 1]  # "— if you please —"
        behind = after & inside[block.match]
        first = block.first_words(behind)
        separated = block.matches_at(first[breaks[block.token[first] - 1]])
        side[behind & separated[block.match]] += MUTED
        return rejected

    def _opens_before_command(self, matches: Matches, head: Ints, first: Ints) -> BoolArray:
        """Return whether an imperative begins before its verb, with no mark in front of it.

        In "if you do the walk alone be careful" the parser may attach "alone" to the wrong clause.
        """
        batch, before = self.batch, np.maximum(first - 1, 0)
        verb = (first == head) | (batch.tagged("operator")[first] & (batch.head[first] == head))
        marker = (before >= matches.first) & (before < matches.first + matches.length)
        joined = self.is_word[before] & (first > batch.offsets[batch.row[first]])
        joined &= ~batch.labelled("opener")[before] & ~marker
        return self.commands[head] & ~verb & joined

    def _phrase_top(self, tokens: Ints) -> Ints:
        """Return for each token the head of the largest phrase of its clause that it is in."""
        top, clause = tokens, self.batch.tagged("clause")
        for _ in range(GOVERNORS):
            above = self.batch.head[top]
            top = np.where((above >= 0) & ~self.free_relative[top] & ~clause[above], above, top)
        return top

    def _opens_with_question_word(self, head: Ints, first: Ints) -> BoolArray:
        """Return whether `first`, the first word of a clause, is its question or relative word."""
        batch, interrogative = self.batch, self.batch.tagged("interrogative")
        above, top = batch.head[first], self._phrase_top(first)
        top_depends = (batch.head[top] == head) & ~self.free_relative[top]
        prepositional = (batch.head[above] == head) & ~self.free_relative[first]
        behind = np.minimum(first + 1, len(batch) - 1)
        whose = batch.listed("possessor")[behind] & (batch.head[behind] == above)
        prepositional &= batch.labelled("case")[first] & (
            interrogative[above] | whose
        )  # "in which"
        return (interrogative[first] & ((top == head) | top_depends)) | prepositional

    def _breaks_off(self, head: Ints, first: Ints, last: Ints, asks: BoolArray) -> BoolArray:
        """Return whether a side begins like a dependent clause, or lacks its end."""
        batch = self.batch
        row, final = batch.row[first], len(batch) - 1
        operator, interrogative = batch.tagged("operator"), batch.tagged("interrogative")
        condition = self.inverted[head] & (batch.head[first] == head) & operator[first]
        dependent = (self._opens_with_question_word(head, first) | condition) & ~asks
        # The two words behind the side (the last token of the batch, if there are none)
        after, beyond = np.minimum(last + 1, final), np.minimum(last + 2, final)
        # The side announces something that it does not contain.
        announces = self.open_ended[row] & (last == self.last_word[row])
        announces |= batch.listed("colon")[after] & (batch.row[after] == row) & (last == head)
        # A quotation follows behind a comma or colon.
        quotes = ~self.is_word[after] & (self.speech[beyond] > 0) & (self.speech[last] == 0)
        announces |= self._lacks_object(last) & quotes & (batch.row[beyond] == batch.row[last])
        # The side has lost the word behind "will", "the" or "that", or it is only "he will".
        cut = (operator | batch.tagged("opening") | interrogative)[last] & (batch.head[last] > last)
        cut |= operator[last] & (last == head)
        # Before a pronoun or determiner "that" is a conjunction: "that we came", "that the war".
        behind = np.minimum(first + 1, final)
        that = batch.listed("complementizer")[first] & batch.tagged("nominal")[behind]
        that &= batch.row[behind] == row
        # A subject has no preposition: "since" in "since many live there" introduces a clause.
        introduced = batch.labelled("case")[first] & ~self.free_relative[first]
        introduced &= batch.labelled("plain_subject")[batch.head[first]]
        return dependent | cut | announces | introduced | that

    def _lacks_object(self, last: Ints) -> BoolArray:
        """Return whether the verb above each last word has no object: "he said to them"."""
        is_verb = self.batch.tagged("verb")
        verb = self.batch.ascend(last, ~is_verb, GOVERNORS)
        return is_verb[verb] & ~self.batch.tagged("object")[verb]

    def _neither(self, block: Block, side: SideCodes) -> BoolArray:
        """Mark the words that are in neither side nor the marker, nor in a tag ("he said")."""
        neither = (side == 0) & block.words
        neither[block.marker] = False
        marker_speech = self.speech[block.matches.lead][block.match]
        return neither & ((marker_speech == 0) | (self.speech[block.token] == marker_speech))

    def _broken(
        self, block: Block, side: SideCodes, number: int, first: Ints, last: Ints
    ) -> BoolArray:
        """Return whether a side lacks an inner word, or the subject or object of a verb."""
        neither, token, match = self._neither(block, side), block.token, block.match
        broken = block.matches_at(neither & (token > first[match]) & (token < last[match]))
        arguments = np.flatnonzero(neither & self.argument[token] & (block.head >= 0))
        governor = block.head[arguments] + block.shift[match[arguments]]
        broken |= block.matches_at(arguments[side[governor] == number])
        if number == S2:
            # An object behind S2 with a verb before S2 and the marker: it is the object of S2, and
            # the parser attached it to the wrong verb.
            owner = match[arguments]
            misplaced = token[arguments] > last[owner]
            s2_begin = np.minimum(first[owner], block.matches.first[owner])
            misplaced &= block.head[arguments] < s2_begin
            broken |= block.matches_at(arguments[misplaced]) & ~block.subordinate
        return broken

    def previous(
        self, matches: Matches, sentences: Mapping[int, Sequence[Span]]
    ) -> dict[int, Sequence[Span]]:
        """Return the spans of each S1 in the previous sentence that can stand alone, by match.

        `sentences` has that sentence by match. It can stand alone if it is a complete statement or
        question of the marker's speaker; of a broken quotation only the quoted parts are S1.
        """
        batch, spans = self.batch, dict[int, Sequence[Span]]()
        for i, (span,) in sentences.items():
            lead = int(matches.lead[i])
            row, marker_speech = int(batch.row[lead]), int(self.speech[lead])
            if not batch.row_follows[row] or batch.row_answers[row]:
                continue
            document, speeches = batch.document(lead), self.speeches[batch.row_doc[row]]
            text, layer = document.text, document.sentences
            assert layer is not None
            begin = layer.start[batch.row_sentence[row]]
            if self.in_question[batch.offsets[row] - 1]:
                # "Is he ill? Because he looks pale"; in a new paragraph another speaker answers.
                answers = not marker_speech and text[span[1] - 1] == "?"
                answers &= PARAGRAPH_BREAK in text[span[1] : begin]
                if answers or batch.patterns.subordinates[matches.row[i]]:
                    continue
            if self.first_adverbial[matches.s2[i]] < matches.first[i]:
                continue  # "If it rains, then we stay": the marker goes back to the condition
            if NEW_SPEAKER.match(text, begin):
                continue
            if (
                MARKUP.search(text, *span)
                or PAGE_HEADER.search(text, *span)
                or BRACKETED_SENTENCE.fullmatch(text, *span)
                or not SENTENCE_END.search(text[slice(*span)].rstrip())
            ):
                continue
            if not marker_speech and speeches.quotes_all(text, span):
                continue
            parts = speeches.spans_within(span, marker_speech) if marker_speech else [span]
            previous_tokens = slice(*batch.offsets[row - 1 : row + 1])
            if parts and self._has_main_clause(previous_tokens, marker_speech):
                spans[i] = parts
        return spans

    def _has_main_clause(self, tokens: slice, speech: int) -> bool:
        """Return whether the tokens of a sentence have a main clause in a speech (0: narration)."""
        batch = self.batch
        clause = self.whole[tokens] & (self.speech[tokens] == speech) & ~self.unasserted[tokens]
        main = batch.labelled("main_clause")[tokens]
        if speech:
            # A quotation counts as a main clause; a complement inside one does not: You must "say
            # that it is late."
            main = main | (batch.labelled("reported_clause") & ~self.indirect_speech)[tokens]
        first = tokens.start + int(np.argmax(self.is_word[tokens]))
        above = int(batch.head[first])
        interrogative = batch.tagged("interrogative")
        # "Which he saw.", "In which he saw it."
        relative = interrogative[first] and (above < 0 or batch.head[above] < 0)
        relative |= batch.labelled("case")[first] and above >= 0 and interrogative[above]
        states = (clause & main & ~self.subordinated[tokens]).any()
        return bool(states and (not relative or self.in_question[first]))

    def restored(self, matches: Matches) -> dict[int, list[Span]]:
        """Return by match the spans of subject and auxiliaries that S2 shares with a conjunct.

        Only in clear cases: one plain noun phrase before its verb, no question, and no negation
        that might also apply to S2 ("he did not come and stay").
        """
        batch = self.batch
        conjunct, subject = batch.labelled("conjunct"), batch.tagged("subject")
        spans: dict[int, list[Span]] = {}
        shares = batch.has(matches.s2, ["statement"], ["subject"]) & (matches.s1 >= 0)
        for i in np.flatnonzero(shares).tolist():
            s2 = int(matches.s2[i])
            verb = int(batch.head[s2])  # the nearest conjunct above with a subject
            for _ in range(MAX_CONJUNCTS):
                if verb < 0 or subject[verb]:
                    break
                verb = int(batch.head[verb]) if conjunct[verb] else -1
            if verb < 0 or self.inverted[verb]:
                continue
            if self.first_conjunct[verb] != self.first_conjunct[matches.s1[i]]:
                continue
            begin, first = int(batch.offsets[batch.row[verb]]), int(matches.first[i])
            children = begin + np.flatnonzero(batch.head[begin:first] == verb)
            subjects = children[batch.labelled("subject")[children]]
            finite = bool(batch.tagged("finite")[s2])
            auxiliary = batch.labelled("auxiliary")[children]
            auxiliaries = children[:0] if finite else children[auxiliary]
            if len(subjects) != 1 or (not finite and batch.listed("denying")[children].any()):
                continue
            phrase = self._subject_phrase(int(subjects[0]), verb)
            if phrase and (finite or len(auxiliaries)):
                spans[i] = [phrase]
                for token in auxiliaries.tolist():
                    start, end = int(batch.start[token]), int(batch.end[token])
                    if start == spans[i][-1][1]:  # "I'll"
                        start = spans[i].pop()[0]
                    spans[i].append((start, end))
        return spans

    def _subject_phrase(self, noun: int, verb: int) -> Span | None:
        """Return the span of a subject's noun phrase; None if it is not short, plain and whole."""
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
