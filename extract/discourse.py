"""Explicit discourse relations of English texts: connectives, their senses and their arguments.

DiscourseParser(parser="embedded").parse(documents)
"""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from corpora.document import Document, Relation, Span, Spans
from corpora.errors import ConfigError
from corpora.languages import frequent_words, is_foreign
from corpora.processes import in_order
from corpora.sentences import split
from extract.arguments import arguments
from extract.connectives import LANGUAGE, Connective, connectives
from extract.pairs import Reject
from extract.parse import CHUNK_WORDS, ParsedDocument, Parser, by_words
from extract.parsers import check_language, get_parser, is_checked
from extract.settings import Check


@dataclass(frozen=True, slots=True)
class ExplicitRelation:
    """An explicit connective and its arguments, as spans in code points of `Document.text`.

    `arg1` and `arg2` are in the order of the text, and empty where none was found; `arg2` is the
    clause that the connective is attached to.
    """

    connective: Connective
    arg1: tuple[Span, ...]
    arg2: tuple[Span, ...]

    @property
    def name(self) -> str:
        """The connective as PDTB writes it: `if then`."""
        return self.connective.text.replace(" ... ", " ")

    def to_relation(self) -> Relation:
        """Return the relation without its probabilities, as a reader of gold relations does."""
        spans = self.connective.spans, self.arg1, self.arg2
        return Relation("Explicit", self.name, *spans, (self.connective.sense,))


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A document with its sentences, their parses and its explicit relations, in text order."""

    document: Document
    parse: ParsedDocument
    relations: list[ExplicitRelation]


class DiscourseParser:
    """Finds the explicit discourse relations of documents with one parser.

    `parser`, `gold_sentences`, `gold_tokens`, `check`, `workers` and `parser_settings` are those of
    `extract.extractor.Extractor`; `min_probability` of a connective replaces the model's threshold.
    `counts` has the numbers of documents that are not in the language (`language`), which get no
    relation, and of sentences too long to parse (`sentence_too_long`). Raises `ConfigError` for a
    language other than English, for an unknown parser and for a probability outside 0 to 1.
    """

    def __init__(
        self,
        parser: str | Parser = "embedded",
        language: str = LANGUAGE,
        min_probability: float | None = None,
        gold_sentences: bool = False,
        gold_tokens: bool = False,
        check: Check | None = None,
        workers: int = 1,
        **parser_settings: Any,
    ) -> None:
        if not isinstance(parser, str) and workers > 1:
            raise ConfigError("several workers need a parser by its name, not an object")
        if language != LANGUAGE:
            raise ConfigError(
                f"no model of connectives for the language {language!r}; choose from {LANGUAGE}"
            )
        if min_probability is not None and not 0 <= min_probability <= 1:
            raise ConfigError(f"min_probability is {min_probability:g}, expected 0 to 1")
        name = parser if isinstance(parser, str) else parser.name
        checked = is_checked(name, check)
        self.min_probability = min_probability
        self.gold_sentences = gold_sentences or gold_tokens or name == "gold"
        self.counts: Counter[str] = Counter()
        self.workers = workers
        self._keywords = {
            "parser": parser,
            "min_probability": min_probability,
            "gold_sentences": gold_sentences,
            "gold_tokens": gold_tokens,
            "check": check,
            **parser_settings,
        }
        if not isinstance(parser, str):
            self.parser = parser
            return
        check_language(parser, language)
        if parser != "gold":
            parser_settings |= {"gold_tokens": gold_tokens, "on_skip": self._count}
            if checked:
                parser_settings["check"] = True
        self.parser = get_parser(parser, **parser_settings)

    def parse(self, documents: Iterable[Document]) -> Iterator[ParsedText]:
        """Yield each document with its relations, in constant memory.

        With several `workers`, each process loads the parser and takes chunks of documents; the
        results are the same, in the same order.
        """
        if self.workers > 1:
            keywords = pickle.dumps(self._keywords)
            jobs = ((keywords, chunk) for chunk in by_words(documents, CHUNK_WORDS))
            for parsed, counts in in_order(_parse_chunk, jobs, self.workers):
                self.counts += counts
                yield from parsed
            return
        texts = itertools.tee(map(self._with_sentences, documents), 4)
        parses = itertools.tee(self.parser.parse(texts[0]), 3)
        marks = itertools.tee(self._connectives(texts[1], parses[0]))
        sides = arguments(texts[2], parses[1], marks[0], self.parser.scheme)
        for document, parse, found, of_found in zip(
            texts[3], parses[2], marks[1], sides, strict=True
        ):
            pairs = zip(found, of_found, strict=True)
            relations = [ExplicitRelation(mark, side.arg1, side.arg2) for mark, side in pairs]
            yield ParsedText(document, parse, relations)

    def _connectives(
        self, documents: Iterable[Document], parses: Iterable[ParsedDocument]
    ) -> Iterator[list[Connective]]:
        """Yield the connectives of each document; none for one in another language."""
        first, second = itertools.tee(parses)
        least = self.min_probability
        scheme, trees = self.parser.scheme, "gold" if self.parser.name == "gold" else "parsed"
        found = connectives(documents, first, scheme, min_probability=least, trees=trees)
        for parse, of_document in zip(second, found, strict=True):
            foreign = _is_foreign(parse)
            self.counts["language"] += foreign
            yield [] if foreign else of_document

    def _count(self, reject: Reject) -> None:
        self.counts[reject.reason] += 1

    def _with_sentences(self, document: Document) -> Document:
        """Return the document with its gold sentences if `gold_sentences`, else split by rules."""
        if self.gold_sentences and document.sentences is not None:
            return document
        paragraphs = document.paragraphs or Spans()
        return document.with_sentences(split(document.text, paragraphs, language=LANGUAGE))


@cache
def _parser(keywords: bytes) -> DiscourseParser:
    """Return the parser of a worker process, made once from pickled keywords."""
    return DiscourseParser(**pickle.loads(keywords))


def _parse_chunk(
    keywords: bytes, documents: list[Document]
) -> tuple[list[ParsedText], Counter[str]]:
    """Return some documents with their relations, and what was skipped, in a worker process."""
    parser = _parser(keywords)
    parser.counts.clear()
    return list(parser.parse(documents)), parser.counts


def _is_foreign(parse: ParsedDocument) -> bool:
    """Return whether a parsed document is clearly not in English."""
    frequent = frequent_words()[LANGUAGE]
    forms = [parse.strings.strings[code].lower() for code in parse.form.tolist()]
    words = sum(any(map(str.isalpha, form)) for form in forms)
    return bool(is_foreign(words, sum(form in frequent for form in forms)))
