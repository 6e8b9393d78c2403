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
from corpora.sentences.rules import sentence_spans
from corpora.sentences.words import GENERIC, LANGUAGES

_CJK_END = re.compile(r"(?<![。！？!?…])[。！？!?…]++[”’」』）)》\"]*+\s*+")
_LINE_END = re.compile(r"\n")
SPLITTERS = ("rules", "lines", "source")


def split(text: str, paragraphs: Spans, splitter: str = "rules", language: str = "en") -> Spans:
    """Return the sentence spans of `text`: within paragraphs, in order, without outer white space.

    Invisible characters (zero-width, marks of direction) beside white space count as white space.
    `rules` knows the stops of the script and the word lists of the language; with `lines` every
    line of a paragraph is a sentence. `language` is an ISO 639-1 code. A bare date with its stop at
    the start of a diary entry (`16th.`, `“4 May.`) is not a sentence: it is left out, or joined to
    the next sentence if it opens a quotation. Raises `ConfigError` for an unknown splitter.
    """
    code = language.partition("-")[0].lower()
    words = LANGUAGES.get(code, GENERIC)
    if known_splitter(splitter) == "lines":
        stop: re.Pattern[str] | None = _LINE_END
    else:
        stop = _CJK_END if code in ("zh", "ja") else None
    sentences = Spans()
    for spans in sentence_spans(text, paragraphs, words, stop):
        for span in spans:
            sentences.add(*span)
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
