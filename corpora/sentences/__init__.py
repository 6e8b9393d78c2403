"""Sentence splitting: one splitter behind a name, never across a paragraph.

`rules` was chosen by F1 and speed on the gold sentences of treebank paragraphs
(`tests/bench/bench_sentences.py`, `docs/sources.md`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from corpora.document import Document, Spans
from corpora.errors import ConfigError, nearest
from corpora.sentences.abbreviations import GENERIC, LANGUAGES
from corpora.sentences.rules import Rules

Splitter = Callable[[str, Spans, str], Spans]

_CJK_END = re.compile(r"(?<![。！？!?…])[。！？!?…]++[”’」』）)》\"]*+\s*+")


def split(text: str, paragraphs: Spans, splitter: str = "rules", language: str = "en") -> Spans:
    """The sentence spans of `text`: inside paragraphs, in order, without white space around.

    `splitter` is a name of `SPLITTERS`; `language` an ISO 639-1 code. Raises `ConfigError` for
    an unknown splitter.
    """
    if splitter not in SPLITTERS:
        raise ConfigError(
            f"unknown splitter {splitter!r}",
            where="sentences: splitter",
            hint=f"{nearest(splitter, SPLITTERS)}splitters are {', '.join(sorted(SPLITTERS))}",
        )
    return SPLITTERS[splitter](text, paragraphs, language)


def split_document(document: Document, splitter: str = "rules") -> Document:
    """The document with its sentence layer.

    `source` keeps the layer that the source brought (gold sentences, one sentence a line) and
    splits by rules where it brought none.
    """
    if splitter == "source" and document.sentences is not None:
        return document
    paragraphs = document.paragraphs if document.paragraphs is not None else Spans()
    return document.with_sentences(split(document.text, paragraphs, splitter, document.language))


def by_rules(text: str, paragraphs: Spans, language: str) -> Spans:
    """Sentences by the stops of the script and the word lists of the language."""
    code = language.partition("-")[0].lower()
    sentences = Spans()
    if code in ("zh", "ja"):
        for start, end in paragraphs:
            ends = (match.end() for match in _CJK_END.finditer(text, start, end))
            _cut(text, ends, start, end, sentences)
        return sentences
    rules = Rules(text, LANGUAGES.get(code, GENERIC))
    for start, end in paragraphs:
        _cut(text, rules.boundaries(start, end), start, end, sentences)
    return sentences


def by_lines(text: str, paragraphs: Spans, language: str) -> Spans:
    """Every line of a paragraph is a sentence."""
    sentences = Spans()
    for start, end in paragraphs:
        ends = [match.end() for match in re.compile(r"\n").finditer(text, start, end)]
        _cut(text, ends, start, end, sentences)
    return sentences


def _cut(text: str, places: Iterable[int], start: int, end: int, sentences: Spans) -> None:
    """Add the stretches between `places`, without the white space around them."""
    for place in (*places, end):
        piece = text[start:place]
        bare = piece.strip()
        if bare:
            first = start + piece.index(bare[0])
            sentences.add(first, first + len(bare))
        start = place


SPLITTERS: dict[str, Splitter] = {"rules": by_rules, "lines": by_lines, "source": by_rules}
