"""Parse with spaCy: the embedded pipeline or any installed one.

Each sentence of the document is parsed as one `Doc` with preset sentence starts, so that the parser
cannot split or join sentences; token columns are read as arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document
from corpora.errors import ConfigError, unreadable
from corpora.progress import track
from extract import embedded
from extract.parse import NAMES, STRINGS_LIMIT, ParsedDocument, StringTable
from extract.parsers.base import SentenceParser
from extract.seen import parser_text

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

CLEAR_MARK = "dobj"


Hashes = NDArray[np.uint64]
COLUMNS: list[int | str] = ["ORTH", "POS", "TAG", "MORPH", "DEP", "HEAD"]


class Job(NamedTuple):
    """A sentence to parse: its number, its bare `Doc`, and its tokens' starts and ends."""

    number: int
    doc: Doc
    starts: Any
    ends: Any
    marked: bool
    """Whether it may contain a marker; else it is parsed as the sentence before one."""


@dataclass(kw_only=True)
class SpacyParser(SentenceParser):
    """Parses with the spaCy pipeline called `pipeline`, or with the embedded one (None).

    With `check`, the second embedded parser also parses the sentences that may contain a marker.
    """

    pipeline: str | None = field(default=None, kw_only=False)
    batch_size: int = 256
    check: bool = False

    def __post_init__(self) -> None:
        self.name = f"spacy:{self.pipeline}" if self.pipeline else "embedded"
        self.strings = StringTable()

    @cached_property
    def nlp(self) -> Language:
        """The loaded pipeline; with `check`, its strings include the labels of the second one."""
        nlp = _load_pipeline(self.pipeline)
        for name in self.second.vocab.strings if self.check else ():
            nlp.vocab.strings.add(name)
        return nlp

    @cached_property
    def second(self) -> Language:
        """The pipeline that checks the first; it reads a sentence from its last word."""
        return _load_second()

    @property
    def scheme(self) -> str:
        """The scheme of the labels: `clear` for spaCy's English pipelines, else `ud`."""
        if self.pipeline is None:
            return "ud"
        if "parser" not in self.nlp.pipe_names:
            raise ConfigError(f"the pipeline {self.pipeline!r} has no parser")
        parser: Any = self.nlp.get_pipe("parser")
        return "clear" if CLEAR_MARK in parser.labels else "ud"

    def parse_chunk(self, documents: list[Document]) -> list[ParsedDocument]:
        """Return the parse of the selected sentences of each document."""
        from threadpoolctl import threadpool_limits

        # One thread for matrix products: these are small, and several processes gain more.
        with self.nlp.memory_zone(), threadpool_limits(1, user_api="blas"):
            if len(self.strings) > STRINGS_LIMIT:
                self.strings = StringTable()
            jobs = [list(self._jobs(document)) for document in documents]  # of each document
            unparsed = (job.doc for document_jobs in jobs for job in document_jobs)
            parsed = self.nlp.pipe(unparsed, batch_size=self.batch_size)
            docs = track(parsed, "parsing: sentences", total=sum(map(len, jobs)))
            trees: list[list[Hashes]] = [
                [_array(doc) for doc in itertools.islice(docs, len(j))] for j in jobs
            ]
            parses = list(map(self._collect, documents, jobs, trees))
            if self.check:
                second_trees = self._second_trees(jobs, trees)
                columns = zip(parses, documents, jobs, second_trees, strict=True)
                for parse, document, document_jobs, second in columns:
                    parse.second = self._collect(document, document_jobs, second)
            return parses

    def _second_trees(
        self, jobs: list[list[Job]], trees: list[list[Hashes]]
    ) -> Iterator[list[Hashes]]:
        """Yield each document's trees by the second parser, or by the first without a marker."""
        with self.second.memory_zone():
            marked = (job.doc for document_jobs in jobs for job in document_jobs if job.marked)
            second = parse_reversed(self.second, marked, self.batch_size)
            for document_jobs, first_trees in zip(jobs, trees, strict=True):
                jobs_with_trees = zip(document_jobs, first_trees, strict=True)
                yield [next(second) if job.marked else first for job, first in jobs_with_trees]

    def _jobs(self, document: Document) -> Iterator[Job]:
        """Yield the sentences to parse, each as one spaCy `Doc` of its tokens."""
        from spacy.tokens import Doc

        for sentence in self.sentences(document):
            text, places = parser_text(document.text[sentence.start : sentence.end])
            if self.gold_tokens:
                gold = self.gold(document, sentence)
                starts, ends = np.array(gold.starts), np.array(gold.ends)
                spaces = [*(ends[:-1] < starts[1:]).tolist(), False]
                doc = Doc(self.nlp.vocab, words=gold.forms, spaces=spaces[: len(gold.forms)])
            else:
                doc = self.nlp.make_doc(text)
                array = doc.to_array(["SPACY", "LENGTH", "IS_SPACE"]).astype(np.int64)
                ends = np.cumsum(array[:, 0] + array[:, 1]) - array[:, 0]
                starts = sentence.start + places[ends - array[:, 1]]
                ends = sentence.start + places[ends]
                if array[:, 2].any():
                    keep = np.flatnonzero(array[:, 2] == 0)
                    doc = Doc(self.nlp.vocab, words=[doc[int(i)].text for i in keep])
                    starts, ends = starts[keep], ends[keep]
            if len(doc) > self.max_tokens:
                self.skip(document, sentence)
            elif len(doc):
                doc = _one_sentence(doc)
                marked = self.prefilter is None or self.prefilter.may_mark(text)
                yield Job(sentence.number, doc, starts, ends, marked)

    def _collect(
        self, document: Document, jobs: Sequence[Job], trees: Sequence[Hashes]
    ) -> ParsedDocument:
        """Return the parse of one document from the trees of its sentences.

        `trees` has for each sentence an array [tokens, `COLUMNS`]: hashes of strings, but in the
        last column the place of the head relative to the token.
        """
        sizes = np.array(list(map(len, trees)), dtype=np.int32)
        array = np.concatenate([np.zeros((0, len(COLUMNS)), dtype=np.uint64), *trees])
        relative = array[:, -1].astype(np.int64)
        head = np.where(relative == 0, -1, np.arange(len(array)) + relative)
        names = dict(zip(NAMES, self._intern(array[:, :-1]).T, strict=True))
        return ParsedDocument(
            doc=document.id,
            strings=self.strings,
            sentence=np.array([job.number for job in jobs], dtype=np.int32),
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
            start=_concatenated(job.starts for job in jobs),
            end=_concatenated(job.ends for job in jobs),
            head=head.astype(np.int32),
            **names,
        )

    def _intern(self, hashes: Hashes) -> NDArray[np.int32]:
        """Return the codes in `strings` of spaCy's string hashes."""
        unique, inverse = np.unique(hashes, return_inverse=True)
        codes = self.strings.codes(map(self.nlp.vocab.strings.__getitem__, unique.tolist()))
        return codes[inverse].reshape(hashes.shape)


def _concatenated(parts: Iterable[Any]) -> NDArray[np.int32]:
    return np.concatenate([np.empty(0, dtype=np.int32), *parts]).astype(np.int32)


def parse_reversed(nlp: Language, docs: Iterable[Doc], batch_size: int) -> Iterator[Hashes]:
    """Parse the tokens of each `Doc`, one sentence, from the last to the first.

    Yields an array [tokens, `COLUMNS`] for each, in the order of the text. `nlp` was trained on
    sentences in this order (`python -m zoo.parser.train --reverse`).
    """
    from spacy.tokens import Doc

    turned = (_one_sentence(Doc(nlp.vocab, words=[t.text for t in doc][::-1])) for doc in docs)
    for doc in nlp.pipe(turned, batch_size=batch_size):
        array = _array(doc)[::-1].copy()
        array[:, -1] = -array[:, -1]  # a head before a word is now behind it
        yield array


def _array(doc: Doc) -> Hashes:
    """Return the `COLUMNS` of a `Doc` [tokens, columns]."""
    return np.asarray(doc.to_array(COLUMNS), dtype=np.uint64)


def _one_sentence(doc: Doc) -> Doc:
    """Mark the first token of `doc` as the start of a sentence, and no other."""
    begins: Any = np.full((len(doc), 1), -1, dtype=np.int64).astype(np.uint64)
    begins[0] = 1
    doc.from_array(["SENT_START"], begins)
    return doc


@cache
def _load_second() -> Language:
    """Return the second embedded pipeline, loaded once in each process."""
    return embedded.load(embedded.SECOND)


@cache
def _load_pipeline(pipeline: str | None) -> Language:
    """Return a pipeline (None: the embedded one), loaded once in each process."""
    if pipeline is None:
        return embedded.load()
    import spacy

    try:
        return spacy.load(pipeline, exclude=["ner", "lemmatizer", "senter"])
    except (OSError, ValueError, ImportError) as error:
        hint = f"install it with: python -m spacy download {pipeline}"
        if Path(pipeline).is_dir():
            hint = "name the folder of a whole pipeline that the installed version of spaCy loads"
        raise unreadable(error, f"the spaCy pipeline {pipeline!r}", hint) from None
