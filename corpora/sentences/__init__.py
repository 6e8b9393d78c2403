"""Sentence splitting: one splitter behind a name, never across a paragraph.

`rules` was chosen by F1 and speed on the gold sentences of treebank paragraphs
(`tests/bench/bench_sentences.py`, `docs/reference/sources.md`).
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from corpora.document import Document, Spans
from corpora.errors import check_choice
from corpora.sentences.rules import GENERIC, INVISIBLE, LANGUAGES, UNSEEN, Rules

_CJK_END = re.compile(r"(?<![。！？!?…])[。！？!?…]++[”’」』）)》\"]*+\s*+")
_LINE_END = re.compile(r"\n")
_OUTER = re.compile(rf"(?<!\S)[{INVISIBLE}]+|[{INVISIBLE}]+(?!\S)")


def split(text: str, paragraphs: Spans, splitter: str = "rules", language: str = "en") -> Spans:
    """Return the sentence spans of `text`: within paragraphs, in order, without outer white space.

    Invisible characters (zero-width, marks of direction) beside white space count as white space.
    `rules` knows the stops of the script and the word lists of the language; with `lines` every
    line of a paragraph is a sentence. `language` is an ISO 639-1 code. A bare date with its stop at
    the start of a diary entry (`16th.`, `“4 May.`) is not a sentence: it is left out, or joined to
    the next sentence if it opens a quotation. Raises `ConfigError` for an unknown splitter.
    """
    if UNSEEN.search(text):
        text = _OUTER.sub(lambda match: " " * len(match[0]), text)
    code = language.partition("-")[0].lower()
    words = LANGUAGES.get(code, GENERIC)
    stop = _LINE_END if known_splitter(splitter) == "lines" else _CJK_END
    rules = None if stop is _LINE_END or code in ("zh", "ja") else Rules(text, words)
    sentences = Spans()
    for start, end in paragraphs:
        if rules:
            ends = rules.boundaries(start, end)
        else:
            ends = [match.end() for match in stop.finditer(text, start, end)]
        for sentence_end in (*ends, end):
            sentence = text[start:sentence_end].strip()
            if rules and len(sentence) < _LONGEST_DATE and _is_date(sentence, words.calendar):
                if sentence[0] not in _QUOTES:
                    start = sentence_end
                continue
            if sentence:
                first = start + text[start:sentence_end].index(sentence[0])
                sentences.add(first, first + len(sentence))
            start = sentence_end
    return sentences


def known_splitter(name: str) -> str:
    """Return the name of a splitter; raise `ConfigError` for an unknown one."""
    return check_choice("splitter", name, SPLITTERS)


SplitterName = Annotated[str, AfterValidator(known_splitter)]


def split_document(document: Document, splitter: str = "rules") -> Document:
    """Return the document with its sentence layer.

    The splitter `source` keeps the source's sentences (gold, or one in each line), and splits by
    rules if it has none.
    """
    if splitter == "source" and document.sentences is not None:
        return document
    paragraphs = document.paragraphs if document.paragraphs is not None else Spans()
    return document.with_sentences(split(document.text, paragraphs, splitter, document.language))


def _is_date(text: str, calendar: frozenset[str]) -> bool:
    """Whether `text` is only a day of a month, with optional year, week day or feast."""
    match = _DATE.fullmatch(text) if calendar else None
    if match is None:
        return False
    words = match[1].lower().replace(".", " ").replace(",", " ").split()
    names = [word for word in words if not word[0].isdigit()]
    ordinals = [word for word in words if word[0].isdigit() and not word.isdigit()]
    return set(names) <= calendar and len(ordinals or names) > 0


_QUOTES = "\"“'‘"
_LONGEST_DATE = 64
"""In characters; a longer text is not tried."""
_DATE = re.compile(
    r"[_*\"“'‘]*((?:[A-Z][a-z]{2,8}[., ]++){0,2}\d{1,2}(?:st|nd|rd|th)?\b"
    r"(?:[., ]++[A-Z][a-z]{2,8})?(?:[., ]++\d{4})?)[ ,]*(?:\([^()]{1,30}\))?[_*]*[.…]++[_*—–-]*"
)
"""A date and its stop: `Tuesday, 16th May 1816.`, `4 May (Ascension Day).`"""
SPLITTERS = ("rules", "lines", "source")
