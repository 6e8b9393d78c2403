"""The text of a sentence as parsers get it: its words, without labels, note marks and the like."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from numpy.typing import NDArray

from corpora.sentences.rules import BRACKETED, INVISIBLE, NUMBERS, RAISED
from corpora.sentences.words import LANGUAGES

_DASH = r"\s+(?:--?|[–—])\s+(?=[A-Z\"“])"
SPEAKER = re.compile(r"[A-Z][A-Z\d .'’-]{0,30}(?:\s\([^()]{1,20}\))?:\s+(?=[A-Z\"“‘(])")
"""The name of a speaker: in capitals, with a colon, before a sentence."""
LABEL = re.compile(
    SPEAKER.pattern +
    # A bullet; the letter or number of an item, clause, paragraph or answer.
    r"|(?:[•◦▪●‣→☐☑]|o(?=\s+[A-Z])|\(?(?:[a-zA-HJ-Z]|[ivx]{2,4}|\d{1,3})\)|(?:\d{1,3}|[ivx]{2,4})\."
    r"|§+\s?\d+\.?|(?:\d{1,2}\.){1,3}\d{1,2}\.?(?=\s+[A-Z]))\s+(?=\w)"
    # The place of a news report with its agency, or in capitals, before a sentence.
    r"|(?:(?:[A-Z][\w.'’-]*,?\s){1,6}(?:\d{1,2}\s)?)?\([A-Z]\w{1,9}(?:\s[A-Z]\w+)?\)" + _DASH +
    r"|[A-Z]{3,}(?:\s[A-Z]{2,})*(?:,\s[A-Z][a-z]{2,8}\.?\s\d{1,2})?" + _DASH
)  # fmt: skip
"""A label before a sentence; it is not part of the sentence."""
_FLAG = "[\U0001f1e6-\U0001f1ff]"
_LIGATURE = "[ﬀ-ﬆſ]"
_INVISIBLE_TO_PARSER = re.compile(
    rf"^(?:{LABEL.pattern})|[{INVISIBLE}\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|(?<={_FLAG}){_FLAG}"
    rf"|\u200d[\u2600-\u27bf\U0001f300-\U0001faff]|(?<=\S){BRACKETED}"
    rf"|(?:(?<=[^\W\d_]{{3}})|(?<=[^\w\s])){RAISED}"
    rf"|(?<=[a-z]{{2}}[.!?]){NUMBERS}$|(?<=[a-z][.!?][\"”]){NUMBERS}$|{_LIGATURE}"
    r"|(?<=[a-z]{2})\.(?=\s[a-z])"
)
_ABBREVIATED_MODIFIER = re.compile(
    r"\b(?:[Tt]he|[Aa]n?|[Tt]h(?:is|at|ese|ose)|[Ii]ts|[Nn]o|[Ee]ach|[Ee]very)"
    r" ([a-z]{2,5})\.\s([a-z]{2,})\b"
)
"""A noun's modifier cut short: behind a determiner, before another word."""


def parser_text(text: str) -> tuple[str, NDArray[np.int64]]:
    """Return the text of a sentence as a parser gets it, and the place in `text` of each character.

    The last place is that of the end. Left out are labels before the sentence ("(a) It rained",
    "BERLIN — It rained"), marks of notes without a space before them ("rained.[1]"), invisible
    characters, and what changes the sign before it (variation selectors, skin tones, the second
    letter of a flag). A ligature becomes its letters, a long s an s. The stop of an abbreviation
    that parsers do not know is left out between a determiner and its noun ("a neg. result").
    """
    if not _INVISIBLE_TO_PARSER.search(text):
        return text, np.arange(len(text) + 1)
    widths = np.ones(len(text) + 1, dtype=np.int64)

    def replacement(match: re.Match[str]) -> str:
        """Return the text that replaces a match for the parser, and set its width in `widths`."""
        if match[0] == "." and not _ends_abbreviation(text, match.start()):
            return "."
        letters = unicodedata.normalize("NFKC", match[0]) if re.match(_LIGATURE, match[0]) else ""
        widths[match.start() : match.end()] = 0
        widths[match.start()] = len(letters)
        return letters

    return _INVISIBLE_TO_PARSER.sub(replacement, text), np.repeat(np.arange(len(text) + 1), widths)


def _ends_abbreviation(text: str, at: int) -> bool:
    """Return whether the stop at `at` is that of an unknown abbreviation in front of a noun."""
    short = _ABBREVIATED_MODIFIER.search(text, max(0, at - 12))
    if short is None or short.end(1) != at:
        return False
    english = LANGUAGES["en"]
    return short[1] not in english.abbreviations and short[2] not in english.starters
