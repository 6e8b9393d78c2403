"""Parsing with stanza (the extra `stanza`): slower than the other parsers, good on a GPU.

stanza tokenises each sentence of the document separately (`ssplit` off) and parses in batches of
similar length.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from corpora.document import Document
from corpora.errors import ConfigError, require
from extract.parse import NAMES, Ints, ParsedDocument, StringTable
from extract.parsers.base import GoldTokens, Sentence, SentenceParser
from extract.seen import parser_text

PROCESSORS = "tokenize,mwt,pos,lemma,depparse"
Word = tuple[int, int, int, str, str, str, str, str]
"""Start, end, head (its index in the document's parse, -1 for a root), and the `NAMES`."""


@dataclass(kw_only=True)
class StanzaParser(SentenceParser):
    """The stanza pipeline of a language, from models on this machine.

    `dir` is stanza's resources folder (its own default if None); nothing is downloaded.
    `batch_tokens` bounds a batch of the dependency parser: 400 is best on a CPU, 5,000 on a GPU
    (used with `use_gpu`). For `max_tokens`, gold tokens count, or words between white space:
    stanza's own tokens come too late. `pipeline` goes to `stanza.Pipeline`.
    """

    scheme = "ud"

    language: str = field(kw_only=False)
    use_gpu: bool | None = None
    batch_tokens: int | None = None
    dir: str | None = None
    pipeline: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = f"stanza:{self.language}"
        self.strings = StringTable()

    def parse_chunk(self, documents: list[Document]) -> list[ParsedDocument]:
        """Return the parse of the selected sentences of each document."""
        jobs = [list(self._jobs(document)) for document in documents]
        inputs = [content for of_document in jobs for _, content in of_document]
        parsed: Iterator[Any] = iter(())
        if inputs and self.gold_tokens:
            forms = [gold.forms for gold in inputs if isinstance(gold, GoldTokens)]
            parsed = ([sentence] for sentence in self.nlp(forms).sentences)
        elif inputs:
            # One sentence each, unless stanza's tokenizer split a text anyway.
            parsed = (doc.sentences for doc in self.nlp.bulk_process(inputs))
        return [
            self._collect(document, job, list(itertools.islice(parsed, len(job))))
            for document, job in zip(documents, jobs, strict=True)
        ]

    def _jobs(self, document: Document) -> Iterator[tuple[Sentence, str | GoldTokens]]:
        """The sentences to parse, each with its text or its gold tokens."""
        for sentence in self.sentences(document):
            text = document.text[sentence.start : sentence.end]
            gold = self.gold(document, sentence) if self.gold_tokens else None
            if len(gold.forms if gold else text.split()) > self.max_tokens:
                self.skip(document, sentence)
            else:
                yield sentence, gold or parser_text(text)[0].replace("\n", " ")

    def _collect(
        self,
        document: Document,
        jobs: Sequence[tuple[Sentence, str | GoldTokens]],
        results: Sequence[Any],
    ) -> ParsedDocument:
        """Return the columns of a document from stanza's results for its sentences `jobs`."""
        words: list[Word] = []
        offsets = [0]
        for (sentence, gold), result in zip(jobs, results, strict=True):
            tokens = gold if isinstance(gold, GoldTokens) else None
            places = sentence.start + parser_text(document.text[sentence.start : sentence.end])[1]
            words.extend(_words(result, len(words), places, tokens))
            offsets.append(len(words))
        columns = list(zip(*words, strict=True)) or [()] * (3 + len(NAMES))
        start, end, head = (np.array(column, dtype=np.int32) for column in columns[:3])
        return ParsedDocument(
            doc=document.id,
            strings=self.strings,
            sentence=np.array([sentence.number for sentence, _ in jobs], dtype=np.int32),
            offsets=np.array(offsets, dtype=np.int32),
            start=start,
            end=end,
            head=head,
            **dict(zip(NAMES, map(self.strings.codes, columns[3:]), strict=True)),
        )

    @cached_property
    def nlp(self) -> Any:
        """The loaded pipeline; ConfigError if stanza or the models are missing."""
        stanza = require("stanza", "stanza", "to parse with it")
        import torch

        gpu = torch.cuda.is_available() if self.use_gpu is None else self.use_gpu
        settings: dict[str, Any] = {
            "processors": PROCESSORS,
            "tokenize_pretokenized": self.gold_tokens,
            "tokenize_no_ssplit": True,
            "use_gpu": gpu,
            "depparse_batch_size": self.batch_tokens or (5000 if gpu else 400),
            "verbose": False,
            "download_method": None,
            **({"dir": self.dir} if self.dir else {}),
            **self.pipeline,
        }
        try:
            return stanza.Pipeline(self.language, **settings)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"stanza has no models for {self.language!r} here: {error}",
                hint=f"download them with: python -c 'import stanza; "
                f'stanza.download("{self.language}")\'',
            ) from error


def _words(
    sentences: Sequence[Any], base: int, places: Sequence[int] | Ints, gold: GoldTokens | None
) -> Iterator[Word]:
    """The words of one sentence, with heads in the document's numbering.

    `base` words precede it, `places` are those of the characters that the parser saw. Words of a
    multiword token share its span.
    """
    spans = zip(gold.starts, gold.ends, strict=True) if gold else itertools.repeat(None)
    for sentence in sentences:
        first = base
        for token in sentence.tokens:
            for word in token.words:
                span = next(spans) or (places[token.start_char], places[token.end_char])
                head = first + word.head - 1 if word.head else -1
                tags = (word.upos or "", word.xpos or "", word.feats or "", word.deprel or "")
                yield *span, head, word.text, *tags
                base += 1
