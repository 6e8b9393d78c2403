"""Sentence ends in scripts with upper and lower case: the words on both sides of each stop decide.

The work is linear in the text: patterns use possessive quantifiers, and lookarounds are bounded.
The file needs only Python: the folder of the shipped scorer has a copy.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Language:
    """The word lists of a language, with abbreviations in lower case and without their last stop.

    - `titles` precede a name; like `inner` abbreviations, they never end a sentence.
    - `numbered` abbreviations do not end a sentence before a number.
    - `ending` abbreviations (`etc.`, `Inc.`), and those with inner stops (`U.S.`), end a sentence
      if a word of `starters` follows.
    - `openers` are words that, in lower case, never follow an abbreviation.
    - `legal` abbreviations are parts of citations of law, and do not end a sentence before another
      part (`Fed. R. Civ. P. 56`).
    - `reporting` verbs follow a quotation whose `?` or `!` does not end the sentence.
    - `cries` are names with an exclamation mark.
    - `proper` abbreviations are also words (`Sun.`, `Rep.`): they count only with a capital.
    - `calendar`: names of months and days of the week, in lower case.
    """

    titles: frozenset[str] = frozenset()
    inner: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()
    ending: frozenset[str] = frozenset()
    starters: frozenset[str] = frozenset()
    reporting: frozenset[str] = frozenset()
    cries: frozenset[str] = frozenset()
    proper: frozenset[str] = frozenset()
    openers: frozenset[str] = frozenset()
    legal: frozenset[str] = frozenset()
    calendar: frozenset[str] = frozenset()

    @classmethod
    def of(cls, lists: Mapping[str, str]) -> Language:
        """Return the language with these lists of words, each a string with spaces between."""
        return cls(**{name: frozenset(words.split()) for name, words in lists.items()})

    @cached_property
    def abbreviations(self) -> frozenset[str]:
        """All abbreviations, whether they may end a sentence or not."""
        return self.titles | self.inner | self.numbered | self.ending


_STOPS = re.compile(r"(?<![.!?…])([.!?…]++)([\"”’»)\]'*_]*+)(\s*+)")
"""Stops, the quotation marks and brackets that they close, and white space."""
_LATE_CLOSER = re.compile(r"[\"”’»)\]]{1,2}(?:\s++|$)")
NUMBERS = r"\d{1,3}(?:[,–-]\s?\d{1,3})*"
CITATION = rf"\[(?:\^?{NUMBERS}|[a-z]|note \d{{1,2}}|[a-z ]{{3,30}}(?:needed|\?))\]"
CITATIONS = re.compile(rf"(?:{CITATION}\s*+)++")
BRACKETED = rf"(?:{CITATION}|\[[A-Z]\])"
"""The mark of a note, if no space is before it ("[A] man" is a man)."""
RAISED = "[⁰¹²³⁴-⁹]+(?:[,–-][⁰¹²³⁴-⁹]+)*"
NOTE = f"(?:{BRACKETED}|{RAISED})"
_NOTES = re.compile(rf"(?:{NOTE}\s*+)++")
_NUMBERS = re.compile(rf"{NUMBERS}\s++(?=[A-Z\"“‘])")
"""Numbers that were raised in print: behind a lower-case word and its stop (`showed.3 They`)."""
INVISIBLE = "\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
"""Soft hyphens, zero-width spaces, marks of direction: for a class in a regular expression."""
UNSEEN = re.compile(f"[{INVISIBLE}]+")
_OUTER = re.compile(rf"(?<!\S)[{INVISIBLE}]+|[{INVISIBLE}]+(?!\S)")
_EMOTICON = re.compile(
    r"(?:>?[:;=8xX][-'o^]?[)(\]\[DPpO/\\*3|]++|\([:;=]|\^_*+\^|<3|[xXoO][._][xXoO]|-_+-)"
    r"(?=\s|$)\s*+"
)
_LIST_MARK = re.compile(r"[\"“(\[*#]*+(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})")
"""A list mark at the start of a sentence, without its stop: `12`, `(b`, `iv`."""
_LONGEST_LIST_MARK = 8
_LATE_LIST_MARK = re.compile(r"[:;,]\s[\"“(\[*#]?(?:\d{1,2}|[A-Za-z])")
"""A list mark in running text: `; 2`."""
_WORD = re.compile(r"[^\W\d_]++(?:['’][^\W\d_]++)?")
_ADDRESS = re.compile(r"https?://|www\.")
_CASUAL = re.compile(r"(?:^|[\s(])(?:i|im|ive|dont|cant|u|ur)(?=\s)")
_SMALL_I = re.compile(
    r"(?<!\S)(?:im|ive"
    r"|i (?!(?:and|are|as|at|by|for|from|in|is|of|on|or|the|to|with)\b)[a-z]++)(?=\s)"
)
_INSERTED = re.compile(r"\([^()\n]{1,60}\)(?:[,;]|\s[a-z])")
_SHORT = 4
_UNSTOPPED = re.compile(rf"(?<![^\W_])[a-z]{{1,{_SHORT}}}(?![\w.])")
_MEASURE = re.compile(r"\d\s+\w+\.\s+$")
"""`5 in. wide` is no end of a sentence."""
_CITED_LAW = re.compile(
    r"§|\(?\d|[IVXLC]{2,}\b|[IVX],(?=\s(?:§|sec|cl|art|ch))|Code\b|([A-Z][a-z]{0,6})\."
)
"""The next part of a citation of law: a number, or a word (maybe one of `legal`, or an initial)."""
_JOINTS = re.compile(r"[-–—/]")
_OPENING = "\"'“‘«([*_¿¡"
_OPENERS = "\"'“‘«([*_¿¡-–—"
_LOOK_BACK, _LOOK_AHEAD = 32, 48  # how many characters around a stop are searched for words
_LONGEST_ITEM = 500  # maximum characters of an item of a numbered list in running text

_MARKS = (
    # An address on the web, unless the sentence goes on: `see www.x.org for more`.
    (
        ("://", "www."),
        r"(?<!\S)(?:https?://|www\.)\S++\s++(?=[A-Za-z])"
        r"(?!(?:and|or|for|has|is|are|was|to|in|on|at|by|with|from|of|if|that|which)\s)",
        False,
    ),
    # A bullet.
    (("•", "◦", "▪", "●", "‣"), r"(?<!\S)(?=[•◦▪●‣]\s)", False),
    # A ruled line.
    (("-----", "=====", "*****"), r"(?<!\S)[-=*~#]{5,}+(?:\s++|$)", True),
    # The sign-off of a letter: `Thanks, Ann`.
    (
        ("anks", "egards", "incerely", "est,", "heers", "ordially", "hank you"),
        r"(?:(?<=[.!?]\s)|(?<=\n\n))(?:(?:Many|Best|Kind|Warm) )?(?:[Tt]hanks|[Rr]egards|Best"
        r"|Sincerely|Cordially|Cheers|Thank [Yy]ou)(?: again)?[,-]{1,2}\s+(?=[A-Z])",
        False,
    ),
    # The date line of a forwarded mail: `Ann Bell 04/13/2001 10:22 AM`.
    (
        ("/",),
        r"(?<!\S)(?<! on )(?<! at )\d{1,2}/\d{1,2}/\d{2,4}\s\d{1,2}:\d{2}(?::\d{2})?"
        r"(?:\s[AP]M)?(?:\s++|$)",
        True,
    ),
)
"""Sentence ends without a stop: strings of which a text with the pattern has one, the pattern, and
whether its match is a sentence itself."""
_COMPILED_MARKS = [(hints, re.compile(pattern), alone) for hints, pattern, alone in _MARKS]


_QUOTES = "\"“'‘"
_LONGEST_DATE = 64
"""In characters; a longer text is not tried."""
_DATE = re.compile(
    r"[_*\"“'‘]*((?:[A-Z][a-z]{2,8}[., ]++){0,2}\d{1,2}(?:st|nd|rd|th)?\b"
    r"(?:[., ]++[A-Z][a-z]{2,8})?(?:[., ]++\d{4})?)[ ,]*(?:\([^()]{1,30}\))?[_*]*[.…]++[_*—–-]*"
)
"""A date and its stop: `Tuesday, 16th May 1816.`, `4 May (Ascension Day).`"""


def sentence_spans(
    text: str,
    paragraphs: Iterable[tuple[int, int]],
    words: Language,
    stop: re.Pattern[str] | None = None,
) -> Iterator[list[tuple[int, int]]]:
    """Yield for each of the `paragraphs` (spans of `text`) the spans of its sentences.

    With `stop` a sentence ends at its matches, and the rules are not used.
    `corpora.sentences.split` says more.
    """
    if UNSEEN.search(text):
        text = _OUTER.sub(lambda match: " " * len(match[0]), text)
    rules = None if stop else Rules(text, words)
    for start, end in paragraphs:
        sentences: list[tuple[int, int]] = []
        if rules:
            ends = rules.boundaries(start, end)
        else:
            assert stop is not None
            ends = [match.end() for match in stop.finditer(text, start, end)]
        for sentence_end in (*ends, end):
            sentence = text[start:sentence_end].strip()
            if rules and len(sentence) < _LONGEST_DATE and _is_date(sentence, words.calendar):
                if sentence[0] not in _QUOTES:
                    start = sentence_end
                continue
            if sentence:
                first = start + text[start:sentence_end].index(sentence[0])
                sentences.append((first, first + len(sentence)))
            start = sentence_end
        yield sentences


def _is_date(text: str, calendar: frozenset[str]) -> bool:
    """Whether `text` is only a day of a month, with optional year, week day or feast."""
    match = _DATE.fullmatch(text) if calendar else None
    if match is None:
        return False
    words = match[1].lower().replace(".", " ").replace(",", " ").split()
    names = [word for word in words if not word[0].isdigit()]
    ordinals = [word for word in words if word[0].isdigit() and not word.isdigit()]
    return set(names) <= calendar and len(ordinals or names) > 0


class Rules:
    """The rules of one language, which find the sentence ends of one text."""

    def __init__(self, text: str, words: Language) -> None:
        """Find the sentence ends of `text` that have no stop."""
        self.text, self.words = text, words
        self.small_begins = False
        """Whether a sentence of the paragraph so far begins with a small letter."""
        self.marks: list[int] = []  # sentence starts without a stop before them
        for hints, pattern, alone in _COMPILED_MARKS:
            if any(hint in text for hint in hints):
                for match in pattern.finditer(text):
                    self.marks.extend(match.span() if alone else (match.end(),))
        self.marks.sort()

    def boundaries(self, start: int, end: int) -> list[int]:
        """Return the starts of all sentences but the first in the paragraph `[start, end)`."""
        places: list[int] = []
        begin = skip = start
        opening = _WORD.search(self.text, start, min(end, start + _LOOK_BACK))
        self.small_begins = opening is not None and opening[0].islower()
        for match in _STOPS.finditer(self.text, start, end):
            if match.start() < skip or match.end() >= end:
                continue
            if place := self._next_sentence(match, begin, end):
                places.append(place)
                begin = skip = place
                self.small_begins |= self.text[place : place + 1].islower()
        if self.marks:
            inside = self.marks[bisect_right(self.marks, start) : bisect_left(self.marks, end)]
            places = sorted({*places, *inside})
        return places

    @cached_property
    def writes_no_capitals(self) -> bool:
        """Whether the writer uses no capitals: `i dont know`."""
        return _CASUAL.search(self.text) is not None

    def _next_sentence(self, match: re.Match[str], begin: int, end: int) -> int:
        """Return the start of the next sentence if the current one ends at the matched stops, else
        0. `begin` is the start of the current sentence, `end` the end of the paragraph."""
        stops, closers, gap = match.groups()
        text, after = self.text, match.end()
        if not gap:
            # Wikipedia has no space before its marks: `They used piles.[1] The lock still stands.`
            note_marks = _NOTES.match(text, after, end)
            last_word = self._word_before(begin, match.start())
            if not note_marks and last_word.islower() and last_word not in self.words.abbreviations:
                note_marks = _NUMBERS.match(text, after, end)
            if not note_marks or not text[note_marks.end() - 1].isspace():
                return after if self._ends_without_space(closers, match.start(), after) else 0
            after = note_marks.end()
            if after == end or text[after].islower():
                return 0
        last_word = self._word_before(begin, match.start())
        is_plain_stop = stops == "." and not closers
        if is_plain_stop and self._stays_open(last_word, begin, match.start(), after):
            return 0
        if last_word.lower() in self.words.cries and stops == "!":
            return 0
        for trailer in (_LATE_CLOSER, CITATIONS, _EMOTICON):
            if trailing := trailer.match(text, after, end):
                return trailing.end() if trailing.end() < end else 0
        first = text[after]
        if first in ".!?…,;" or (closers and first in "-–—"):
            return 0
        if first in _OPENERS and after + 1 < end and not text[after + 1].isspace():
            opened, first = first, text[after + 1]
            if opened == "(" and not closers:
                # `for Viva Maria! (1965), and` goes on behind the bracket.
                return 0 if _INSERTED.match(text, after, end) else after
        if first.islower():
            return after if self._lower_case_begins(stops, closers, last_word, begin, after) else 0
        if closers and stops != ".":
            # A reporting clause may follow a quotation: `"Why?" Mr. Bell asked.`
            following = text[after : after + _LOOK_AHEAD].split()[1:4]
            if any(word.rstrip(".,;:").lower() in self.words.reporting for word in following):
                return 0
        return after

    def _ends_without_space(self, closers: str, at: int, after: int) -> bool:
        """Whether a sentence ends at stops without white space behind them: `karma...But it is`.
        The stops begin at `at`, the next word at `after`; `closers` are the quotation marks and
        brackets between them."""
        if closers or not self.text[max(0, at - 2) : at].islower():
            return False
        word = _WORD.match(self.text, after, after + _LOOK_AHEAD)
        if not word or not self.text[word.end() : word.end() + 1].isspace():
            return False
        return word[0][0].isupper() and (word[0][1:].islower() or word[0] == "I")

    def _word_before(self, begin: int, at: int) -> str:
        """Return the word that ends at `at`, without opening punctuation; "" after white space.

        A title joined by a dash, a hyphen or a slash (`at once—Mr.`, `Lieut.-Col.`) is a separate
        word.
        """
        piece = self.text[max(begin, at - _LOOK_BACK) : at]
        if not piece or piece[-1].isspace():
            return ""
        joined = piece.split()[-1]
        last = _JOINTS.split(joined)[-1].lstrip(_OPENING)
        return last if last.lower() in self.words.titles else joined.lstrip(_OPENING)

    def _stays_open(self, last_word: str, begin: int, at: int, after: int) -> bool:
        """Whether the stop at `at` is that of an abbreviation, an initial or a list mark. The word
        before it is `last_word`; the sentence starts at `begin`, the next word at `after`."""
        text, words = self.text, self.words
        if not last_word or last_word[-1] in ")]":
            return False
        if at - begin <= _LONGEST_LIST_MARK and _LIST_MARK.fullmatch(text, begin, at):
            return True
        if len(last_word) == 1 or last_word.isdigit():
            # A list mark after a colon: `the following: 1. Be ready`.
            starts = (max(0, at - width) for width in (3, 4, 5))
            mark = next((m for s in starts if (m := _LATE_LIST_MARK.fullmatch(text, s, at))), None)
            continues_list = (
                not last_word.isdecimal()
                or last_word == "1"
                or f"{int(last_word) - 1}." in text[max(begin, at - _LONGEST_ITEM) : at]
            )
            # Behind a comma, a number that continues no list is an age: `said Ann Bell, 54. “Go!”`
            if mark and (mark[0][0] != "," or continues_list):
                return True
        if len(last_word) == 1 and last_word.isupper():
            return not self._begins_sentence(after)
        word, first = last_word.lower(), text[after]
        is_common_word = word in words.proper and last_word[0].islower()
        if word in words.legal and not is_common_word and (part := _CITED_LAW.match(text, after)):
            name = (part[1] or "").lower()
            if not name or name in words.legal or (len(name) == 1 and word not in words.proper):
                return True
        if word not in words.abbreviations or is_common_word:
            # `u.s` is an abbreviation, `example.org` an address.
            short = "." in word and all(len(part) < 3 for part in word.split("."))
            return short and not self._begins_sentence(after)
        if word in words.inner or first.islower():
            return True
        if word in words.numbered and (first.isdigit() or first in "(#["):
            return True
        if word in ("b", "d"):  # `(b. March 1990)`
            month = _WORD.match(text, after, after + _LOOK_AHEAD)
            return month is not None and month[0].lower() in words.calendar
        # A name follows a title, but `St.` may also end the name of a street.
        if word in words.titles and word != "st":
            return True
        return (word in words.titles or word in words.ending) and not self._begins_sentence(after)

    def _begins_sentence(self, after: int) -> bool:
        """Whether the word at `after`, behind an abbreviation, probably begins a sentence."""
        first = self.text[after]
        if first in '"“‘¿¡':
            return True
        word = _WORD.match(self.text, after, after + _LOOK_AHEAD)
        if word is None or not first.isupper():
            return False
        behind = self.text[word.end() : word.end() + 3]  # `J. R. Moss`, `Pub. L. No. 94`
        initial = behind[:1] == "." and (len(word[0]) == 1 or behind[1:].strip().isdigit())
        # The word before may be the pronoun: `"So do I. Take mine."`
        after_i = self.text[max(0, after - 5) : after].split()[-1:] == ["I."]
        return not initial and (word[0].lower() in self.words.starters or after_i)

    def _lower_case_begins(
        self, stops: str, closers: str, last_word: str, begin: int, after: int
    ) -> bool:
        """Whether a sentence ends at `stops` although the next word, at `after`, is in lower case.
        `last_word` is the word before the stops, `begin` the start of the sentence."""
        if _ADDRESS.match(self.text, after):
            return True
        if closers:
            return False
        if stops == ".":
            return self._plain_stop_ends(last_word, begin, after)
        only_dots = set(stops) <= set(".…")
        return not only_dots and (self.text[begin].islower() or self.writes_no_capitals)

    def _plain_stop_ends(self, last_word: str, begin: int, after: int) -> bool:
        """Whether a sentence ends at a stop that a word in lower case follows.

        Most of these stops are of an abbreviation that no list has (`The neg. result held`). So the
        sentence ends only where no abbreviation stands (before `he`, `please`; behind `it`), or in
        a paragraph with other sentences that begin with a small letter. Even there a short word
        counts as an abbreviation if the text never has it without a stop. `last_word` is the word
        before the stop, `begin` the start of the sentence, `after` that of the next word.
        """
        words = self.words
        match = _WORD.match(self.text, after, after + _LOOK_AHEAD)
        next_word = match[0].lower() if match else ""
        if len(last_word) < 2:
            return False
        # A next word that begins sentences, or a last word that ends them
        if next_word in words.openers:
            return last_word.isalpha() or last_word[-1].isdigit()
        if not (last_word.isalpha() and last_word.islower()):
            return False
        if last_word in words.starters and not _MEASURE.search(
            self.text, max(begin, after - _LOOK_BACK), after
        ):
            return True
        is_short = len(last_word) <= _SHORT and next_word not in words.starters
        is_abbreviation = is_short and last_word not in self.unstopped
        return (self.small_begins or self.writes_small) and not is_abbreviation

    @cached_property
    def writes_small(self) -> bool:
        """Whether the writer says `i` with a verb: not the letter `i` of a formula."""
        return _SMALL_I.search(self.text) is not None

    @cached_property
    def unstopped(self) -> frozenset[str]:
        """The short words that the text has without a stop."""
        return frozenset(_UNSTOPPED.findall(self.text))
