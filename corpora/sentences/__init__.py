"""Sentence splitting: one splitter behind a name, never across a paragraph.

`rules` was chosen by F1 and speed on the gold sentences of treebank paragraphs
(`tests/bench/bench_sentences.py`, `docs/reference/sources.md`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated

from pydantic import AfterValidator

from corpora.document import Document, Spans
from corpora.errors import chosen
from corpora.sentences.abbreviations import GENERIC, LANGUAGES
from corpora.sentences.rules import Rules

Splitter = Callable[[str, Spans, str], Spans]

_CJK_END = re.compile(r"(?<![。！？!?…])[。！？!?…]++[”’」』）)》\"]*+\s*+")
_LINE_END = re.compile(r"\n")


def split(text: str, paragraphs: Spans, splitter: str = "rules", language: str = "en") -> Spans:
    """The sentence spans of `text`: within paragraphs, in order, without outer white space.

    `splitter` is a name of `SPLITTERS`; `language` an ISO 639-1 code. Raises `ConfigError` for
    an unknown splitter.
    """
    return SPLITTERS[known_splitter(splitter)](text, paragraphs, language)


def known_splitter(name: str) -> str:
    """The name of a splitter; raises `ConfigError` for an unknown one."""
    return chosen("splitter", name, SPLITTERS)


SplitterName = Annotated[str, AfterValidator(known_splitter)]


def split_document(document: Document, splitter: str = "rules") -> Document:
    """The document with its sentence layer.

    `source` keeps the source's sentences (gold, or one in each line) and splits by rules if it has
    none.
    """
    if splitter == "source" and document.sentences is not None:
        return document
    paragraphs = document.paragraphs if document.paragraphs is not None else Spans()
    return document.with_sentences(split(document.text, paragraphs, splitter, document.language))


def by_rules(text: str, paragraphs: Spans, language: str) -> Spans:
    """Sentences by the stops of the script and the word lists of the language."""
    code = language.partition("-")[0].lower()
    if code in ("zh", "ja"):
        return _cut(text, paragraphs, partial(_ends, _CJK_END, text))
    words = LANGUAGES.get(code, GENERIC)
    return _cut(text, paragraphs, Rules(text, words).boundaries, words.calendar)


def by_lines(text: str, paragraphs: Spans, language: str) -> Spans:
    """Every line of a paragraph is a sentence."""
    return _cut(text, paragraphs, partial(_ends, _LINE_END, text))


def _ends(pattern: re.Pattern[str], text: str, start: int, end: int) -> list[int]:
    return [match.end() for match in pattern.finditer(text, start, end)]


def _cut(
    text: str,
    paragraphs: Spans,
    ends: Callable[[int, int], list[int]],
    calendar: frozenset[str] = frozenset(),
) -> Spans:
    """The parts of each paragraph up to its `ends`, without outer white space.

    A bare date with its stop at the start of a diary entry (`16th.`, `“4 May.`) is not a sentence:
    it is left out, or joined to the next sentence if it opens a quotation.
    """
    sentences = Spans()
    for start, end in paragraphs:
        for place in (*ends(start, end), end):
            bare = text[start:place].strip()
            if calendar and len(bare) < _LONGEST_DATE and _is_date(bare, calendar):
                if bare[0] not in _QUOTES:
                    start = place
                continue
            if bare:
                first = start + text[start:place].index(bare[0])
                sentences.add(first, first + len(bare))
            start = place
    return sentences


def _is_date(text: str, calendar: frozenset[str]) -> bool:
    """Whether `text` is only a day of a month, with optional year, week day or feast."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    words = match[1].lower().replace(".", " ").replace(",", " ").split()
    names = [word for word in words if not word[0].isdigit()]
    ordinals = [word for word in words if word[0].isdigit() and not word.isdigit()]
    return set(names) <= calendar and len(ordinals or names) > 0


_QUOTES = "\"“'‘"
_LONGEST_DATE = 64
_DATE = re.compile(
    r"[_*\"“'‘]*((?:[A-Z][a-z]{2,8}[., ]++){0,2}\d{1,2}(?:st|nd|rd|th)?\b"
    r"(?:[., ]++[A-Z][a-z]{2,8})?(?:[., ]++\d{4})?)[ ,]*(?:\([^()]{1,30}\))?[_*]*[.…]++[_*—–-]*"
)


SPLITTERS: dict[str, Splitter] = {"rules": by_rules, "lines": by_lines, "source": by_rules}
