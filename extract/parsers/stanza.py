"""Parsing with stanza (the extra `stanza`): slower than the others, good on a GPU.

Sentences of the document's own layer are tokenised by stanza one by one (`ssplit` off) and parsed
in batches of like length.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from corpora.document import Document
from corpora.errors import ConfigError, InputError
from extract.pairs import Reject
from extract.parse import IntArray, ParsedDocument, StringTable
from extract.pool import by_words
from extract.prefilter import Prefilter

PROCESSORS = "tokenize,mwt,pos,lemma,depparse"


class StanzaParser:
    """The stanza pipeline of a language, from models that lie on this machine.

    `dir` is stanza's resources folder (its own default if None); nothing is downloaded.
    `batch_tokens` bounds a batch of the dependency parser: 400 is best on a CPU, 5,000 on a GPU
    (taken where `use_gpu`). Sentences of more than `max_chars` characters or `max_tokens`
    tokens (gold ones, or what white space parts: stanza's own come too late) are left out and
    reported to `on_skip`. Other keywords go to `stanza.Pipeline`.
    """

    scheme = "ud"

    def __init__(
        self,
        language: str,
        *,
        prefilter: Prefilter | None = None,
        gold_tokens: bool = False,
        use_gpu: bool | None = None,
        batch_tokens: int | None = None,
        words_per_chunk: int = 20_000,
        max_tokens: int = 500,
        max_chars: int = 5000,
        dir: str | None = None,
        on_skip: Callable[[Reject], None] | None = None,
        **pipeline: Any,
    ) -> None:
        self.name, self.language = f"stanza:{language}", language
        self.prefilter, self.gold_tokens, self.on_skip = prefilter, gold_tokens, on_skip
        self.use_gpu, self.batch_tokens, self.dir = use_gpu, batch_tokens, dir
        self.words_per_chunk, self.pipeline = words_per_chunk, pipeline
        self.max_tokens, self.max_chars = max_tokens, max_chars
        self.strings = StringTable()
        self._nlp: Any = None

    @property
    def nlp(self) -> Any:
        """The loaded pipeline; ConfigError if stanza or the models are missing."""
        if self._nlp is None:
            self._nlp = self._load()
        return self._nlp

    def parse(self, documents: Iterable[Document]) -> Iterator[ParsedDocument]:
        """The parse of the chosen sentences of every document, in order."""
        for chunk in by_words(documents, self.words_per_chunk):
            jobs = [list(self._jobs(document)) for document in chunk]
            inputs = [self._input(d, n) for d, job in zip(chunk, jobs, strict=True) for n in job]
            results = iter(self._run(inputs))
            for document, job in zip(chunk, jobs, strict=True):
                yield self._collect(document, job, list(itertools.islice(results, len(job))))

    def _jobs(self, document: Document) -> Iterator[int]:
        """The numbers of the sentences to parse."""
        layer = document.sentences
        if layer is None:
            raise ValueError(f"document {document.id!r} has no sentence layer; split it first")
        chosen = self.prefilter.choose(document) if self.prefilter else range(len(layer))
        for number in map(int, chosen):
            start, end = layer[number]
            if end - start <= self.max_chars and self._size(document, number) <= self.max_tokens:
                yield number
            elif self.on_skip is not None:
                reject = Reject("sentence_too_long", "", (start, end), document.id, number)
                self.on_skip(reject)

    def _size(self, document: Document, number: int) -> int:
        """How many tokens a sentence has, as far as they are known before it is parsed."""
        if self.gold_tokens and document.tokens is not None:
            a, b = document.tokens.offsets[number : number + 2]
            return b - a
        assert document.sentences is not None
        start, end = document.sentences[number]
        return len(document.text[start:end].split())

    def _input(self, document: Document, number: int) -> str | list[str]:
        """The text of one sentence, or its gold tokens."""
        assert document.sentences is not None
        start, end = document.sentences[number]
        if not self.gold_tokens:
            return document.text[start:end].replace("\n", " ")
        if document.tokens is None:
            raise InputError(
                f"document {document.id!r} has no gold tokens",
                hint="leave out --gold-tokens, or take a conllu: source",
            )
        a, b = document.tokens.offsets[number : number + 2]
        return document.tokens.form[a:b]

    def _run(self, inputs: Sequence[Any]) -> list[Any]:
        """Stanza's sentences for every input: one, unless its tokenizer split a text anyway."""
        if not inputs:
            return []
        if self.gold_tokens:
            return [[sentence] for sentence in self.nlp(list(inputs)).sentences]
        return [result.sentences for result in self.nlp.bulk_process(list(inputs))]

    def _collect(
        self, document: Document, job: Sequence[int], results: Sequence[Any]
    ) -> ParsedDocument:
        assert document.sentences is not None
        rows: list[tuple[int, int, int, str, str, str, str, str]] = []
        offsets = [0]
        for number, result in zip(job, results, strict=True):
            spans = None
            if self.gold_tokens and document.tokens is not None:
                a, b = document.tokens.offsets[number : number + 2]
                tokens = document.tokens
                spans = list(zip(tokens.start[a:b], tokens.end[a:b], strict=True))
            rows.extend(_words(result, len(rows), document.sentences.start[number], spans))
            offsets.append(len(rows))
        columns = list(zip(*rows, strict=True)) or [()] * 8
        names = [self.strings.codes(column) for column in columns[3:]]
        return ParsedDocument(
            doc=document.id,
            strings=self.strings,
            sentence=_ints(job),
            offsets=_ints(offsets),
            start=_ints(columns[0]),
            end=_ints(columns[1]),
            head=_ints(columns[2]),
            form=names[0],
            upos=names[1],
            xpos=names[2],
            feats=names[3],
            deprel=names[4],
        )

    def _load(self) -> Any:
        try:
            import stanza
        except ImportError:
            raise ConfigError(
                "the parser stanza is not installed",
                hint="install it with: pip install 'discorpora[stanza]'",
            ) from None
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
    sentences: Sequence[Any], base: int, start: int, spans: Sequence[tuple[int, int]] | None
) -> Iterator[tuple[int, int, int, str, str, str, str, str]]:
    """The words of one of our sentences, with heads in the document's numbering.

    `base` words stand before it, `start` is where its text begins, `spans` are those of gold
    tokens. Words of a multiword token share its span.
    """
    begin_at = base
    for sentence in sentences:
        first = base
        for token in sentence.tokens:
            for word in token.words:
                if spans is not None:
                    begin, end = spans[base - begin_at]
                else:
                    begin, end = start + token.start_char, start + token.end_char
                head = first + word.head - 1 if word.head else -1
                tags = (word.upos or "", word.xpos or "", word.feats or "", word.deprel or "")
                yield (begin, end, head, word.text, *tags)
                base += 1


def _ints(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int32)
