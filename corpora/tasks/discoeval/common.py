"""What SP, BSO and their kin share: consecutive sentences, sizes, splits, the dataset folder."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import Annotated, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from corpora.document import Document, Sections
from corpora.errors import ConfigError
from corpora.tasks.builder import Builder, Reject, Row, Size

CITATION = """@inproceedings{chen-etal-2019-evaluation,
  title = {Evaluation Benchmarks and Learning Criteria for Discourse-Aware Sentence
           Representations},
  author = {Chen, Mingda and Chu, Zewei and Gimpel, Kevin},
  booktitle = {Proceedings of EMNLP-IJCNLP},
  pages = {649--662},
  year = {2019}
}"""


class Sized(Builder):
    """How many words a sentence has, and how many rows each split gets."""

    min_words: Annotated[int, Field(ge=1)] = 2
    """A sentence of fewer words (at white space) is left out."""
    max_words: int = 100
    """A sentence of more words is left out."""
    train: Size = 10_000
    validation: Size = 4_000
    test: Size = 4_000

    @model_validator(mode="after")
    def _some_length(self) -> Self:
        if self.min_words > self.max_words:
            raise ConfigError(
                f"min_words {self.min_words} and max_words {self.max_words} leave no sentence",
                hint="1 <= min_words <= max_words",
            )
        return self

    @property
    def sizes(self) -> dict[str, int]:
        return {"train": self.train, "validation": self.validation, "test": self.test}


class Consecutive(Sized):
    """Consecutive sentences; a bad one ends a window, or rejects the lead."""

    LENGTH: ClassVar[int]
    """The sentences of a row."""
    columns = pa.schema([pa.field("sentences", pa.list_(pa.string()), nullable=False)])
    equal = ("sentences",)

    take: Literal["lead", "windows"] = "windows"
    """`lead`: the first sentences of a document's lead section (of the whole document where it has
    no sections), as Wikipedia introductions, abstracts, stories; `windows`: windows that do not
    overlap, each inside one unit `within`."""
    within: Literal["paragraph", "section", "document"] = "paragraph"
    """The unit that a window stays inside."""
    lead_sentences: Annotated[int, Field(ge=0)] = 0
    """How many sentences the lead gives; 0: as many as one row needs."""

    @model_validator(mode="after")
    def _whole_rows(self) -> Self:
        if 0 < self.lead_sentences < self.LENGTH:
            raise ConfigError(
                f"lead_sentences = {self.lead_sentences}",
                hint=f"{self.LENGTH} or more, the sentences of a row, or 0 for that",
            )
        return self

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """Runs of `LENGTH` consecutive sentences."""
        return (Row((run,)) for run in runs(document, self, reject))


def runs(document: Document, settings: Consecutive, reject: Reject) -> list[list[str]]:
    """Runs of `LENGTH` consecutive sentences of `document`; the others are told to `reject`."""
    texts, length = document.sentence_texts(), settings.LENGTH
    if settings.take == "lead":
        first = lead(document, texts)[: settings.lead_sentences or length]
        return list(_windows(first, length, settings, reject, whole=settings.lead_sentences == 0))
    found = units(document, texts, settings.within)
    return [run for unit in found for run in _windows(unit, length, settings, reject)]


def _windows(
    texts: list[str],
    length: int,
    settings: Consecutive,
    reject: Reject,
    *,
    whole: bool = False,
) -> Iterator[list[str]]:
    """Windows of `length` sentences that do not overlap; a bad sentence ends one.

    A window with two equal sentences is left out: it reads alike in more than one order. With
    `whole` the first window must do, or none is given.
    """
    window: list[str] = []
    for text in texts:
        reason = refused(text, settings)
        if reason:
            reject(reason)
            if whole:
                return
            window = []
            continue
        window.append(text)
        if len(window) == length:
            if len(set(window)) == length:
                yield window
            else:
                reject("equal_sentences")
            window = []
    if len(texts) < length:
        reject("unit_too_short")


def refused(text: str, settings: Consecutive) -> str:
    """Why a sentence cannot be used, or nothing."""
    words = text.count(" ") + 1 if text else 0
    if words < settings.min_words:
        return "sentence_too_short"
    return "sentence_too_long" if words > settings.max_words else ""


def lead(document: Document, texts: list[str]) -> list[str]:
    """The sentences of the lead section; of the whole document where it has no sections.

    A title that is a paragraph of the text stands before the lead and is no part of it.
    """
    sections, sentences = document.sections, document.sentences
    if not sections:
        return texts
    if sections.level[0] != 1 or sentences is None:
        return []
    start, end = sections.start[0], sections.end[0]
    return [text for text, a in zip(texts, sentences.start, strict=True) if start <= a < end]


def units(document: Document, texts: list[str], within: str) -> Iterator[list[str]]:
    """The sentences of each paragraph or section, or of the whole document."""
    bounds = document.paragraphs if within == "paragraph" else document.sections
    if within == "document" or not bounds or document.sentences is None:
        yield texts
        return
    at = bounds.at if isinstance(bounds, Sections) else partial(bisect_right, bounds.start)
    unit_of = [at(start) for start in document.sentences.start]
    for number, unit in groupby(zip(unit_of, texts, strict=True), key=lambda pair: pair[0]):
        if number is not None:  # a title, or a heading between two sections
            yield [text for _, text in unit]
