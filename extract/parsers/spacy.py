"""Parsing with spaCy: the embedded pipeline or any installed one.

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
from extract.seen import seen

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

CLEAR_MARK = "dobj"


class Job(NamedTuple):
    """A sentence to parse: its number, its bare `Doc`, and its tokens' starts and ends."""

    number: int
    doc: Doc
    starts: Any
    ends: Any


@dataclass(kw_only=True)
class SpacyParser(SentenceParser):
    """`embedded` (no `pipeline`) or the installed pipeline `pipeline`."""

    pipeline: str | None = field(default=None, kw_only=False)
    batch_size: int = 256

    def __post_init__(self) -> None:
        self.name = f"spacy:{self.pipeline}" if self.pipeline else "embedded"
        self.strings = StringTable()

    @cached_property
    def nlp(self) -> Language:
        """The loaded pipeline."""
        return _loaded(self.pipeline)

    @property
    def scheme(self) -> str:
        """`clear` for pipelines with its labels (spaCy's English ones), else `ud`."""
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
            jobs = [list(self._jobs(document)) for document in documents]
            bare = (job.doc for of_document in jobs for job in of_document)
            docs = track(
                self.nlp.pipe(bare, batch_size=self.batch_size),
                "parsing: sentences",
                total=sum(map(len, jobs)),
            )
            return [
                self._collect(document, job, list(itertools.islice(docs, len(job))))
                for document, job in zip(documents, jobs, strict=True)
            ]

    def _jobs(self, document: Document) -> Iterator[Job]:
        """Yield the sentences to parse, each as one spaCy `Doc` of its tokens."""
        from spacy.tokens import Doc

        for sentence in self.sentences(document):
            if self.gold_tokens:
                gold = self.gold(document, sentence)
                starts, ends = np.array(gold.starts), np.array(gold.ends)
                spaces = [*(ends[:-1] < starts[1:]).tolist(), False]
                doc = Doc(self.nlp.vocab, words=gold.forms, spaces=spaces[: len(gold.forms)])
            else:
                text, places = seen(document.text[sentence.start : sentence.end])
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
                # One sentence: its first token begins one and no other does.
                begins: Any = np.full((len(doc), 1), -1, dtype=np.int64).astype(np.uint64)
                begins[0] = 1
                doc.from_array(["SENT_START"], begins)
                yield Job(sentence.number, doc, starts, ends)

    def _collect(
        self, document: Document, jobs: Sequence[Job], docs: Sequence[Doc]
    ) -> ParsedDocument:
        """The token columns of one document's sentences, end to end."""
        sizes = np.array([len(doc) for doc in docs], dtype=np.int32)
        columns: list[int | str] = ["ORTH", "POS", "TAG", "MORPH", "DEP", "HEAD"]
        empty = np.zeros((0, len(columns)), dtype=np.uint64)
        array = np.concatenate([empty, *(doc.to_array(columns) for doc in docs)])
        relative = array[:, 5].astype(np.int64)
        head = np.where(relative == 0, -1, np.arange(len(array)) + relative)
        names = dict(zip(NAMES, self._intern(array[:, :5]).T, strict=True))
        return ParsedDocument(
            doc=document.id,
            strings=self.strings,
            sentence=np.array([job.number for job in jobs], dtype=np.int32),
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
            start=_joined(job.starts for job in jobs),
            end=_joined(job.ends for job in jobs),
            head=head.astype(np.int32),
            **names,
        )

    def _intern(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The codes of spaCy's string hashes."""
        unique, inverse = np.unique(hashes, return_inverse=True)
        codes = self.strings.codes(map(self.nlp.vocab.strings.__getitem__, unique.tolist()))
        return codes[inverse].reshape(hashes.shape)


def _joined(parts: Iterable[Any]) -> NDArray[np.int32]:
    return np.concatenate([np.empty(0, dtype=np.int32), *parts]).astype(np.int32)


@cache
def _loaded(pipeline: str | None) -> Language:
    """A pipeline (None: the embedded one), loaded once in each process."""
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
