"""Shared by parsers of single sentences: which sentences to parse, and from which tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from corpora.document import Document
from corpora.errors import InputError
from extract.pairs import Reject
from extract.parse import ParsedDocument, by_words
from extract.prefilter import Prefilter


class Sentence(NamedTuple):
    """A sentence to parse: its number in the document, and its span."""

    number: int
    start: int
    end: int


class GoldTokens(NamedTuple):
    """The tokens of one sentence as a treebank has them."""

    forms: list[str]
    starts: list[int]
    ends: list[int]


@dataclass(kw_only=True)
class SentenceParser:
    """Parses the document's sentences one by one, in chunks of documents.

    `prefilter` selects the sentences to parse (default: all). `gold_tokens` keeps the
    tokens of the source. A sentence of more than `max_tokens` tokens or `max_chars` characters is
    skipped and reported to `on_skip`: time and memory grow with the longest sentence of a batch.
    """

    prefilter: Prefilter | None = None
    gold_tokens: bool = False
    words_per_chunk: int = 20_000
    max_tokens: int = 500
    max_chars: int = 5000
    on_skip: Callable[[Reject], object] | None = None

    def parse(self, documents: Iterable[Document]) -> Iterator[ParsedDocument]:
        """The parse of the chosen sentences of every document, in order."""
        for chunk in by_words(documents, self.words_per_chunk):
            yield from self.parse_chunk(chunk)

    def parse_chunk(self, documents: list[Document]) -> list[ParsedDocument]:
        raise NotImplementedError

    def sentences(self, document: Document) -> Iterator[Sentence]:
        """The sentences to parse: all except sentences of too many characters."""
        layer = document.sentences
        if layer is None:
            raise ValueError(f"document {document.id!r} has no sentence layer; split it first")
        numbers = self.prefilter.choose(document) if self.prefilter else range(len(layer))
        for number in map(int, numbers):
            sentence = Sentence(number, *layer[number])
            if sentence.end - sentence.start <= self.max_chars:
                yield sentence
            else:
                self.skip(document, sentence)

    def skip(self, document: Document, sentence: Sentence) -> None:
        """Report a sentence that is too long."""
        if self.on_skip is not None:
            span = sentence.start, sentence.end
            self.on_skip(Reject("sentence_too_long", "", span, document.id, sentence.number))

    def gold(self, document: Document, sentence: Sentence) -> GoldTokens:
        """The gold tokens of a sentence; `InputError` for a document without them."""
        tokens = document.tokens
        if tokens is None:
            raise InputError(
                f"document {document.id!r} has no gold tokens",
                hint="leave out --gold-tokens, or use a conllu: source",
            )
        a, b = tokens.offsets[sentence.number : sentence.number + 2]
        return GoldTokens(tokens.form[a:b], tokens.start[a:b], tokens.end[a:b])
