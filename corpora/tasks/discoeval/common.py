"""What SP, BSO and their kin share: consecutive sentences, sizes, splits, the dataset folder."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, Literal

import pyarrow as pa

from corpora.document import Document, Sections
from corpora.errors import ConfigError
from corpora.splits import Shares
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.pool import Rows
from corpora.tasks.target import Target, split_candidates

CITATION = """@inproceedings{chen-etal-2019-evaluation,
  title = {Evaluation Benchmarks and Learning Criteria for Discourse-Aware Sentence
           Representations},
  author = {Chen, Mingda and Chu, Zewei and Gimpel, Kevin},
  booktitle = {Proceedings of EMNLP-IJCNLP},
  pages = {649--662},
  year = {2019}
}"""

Reject = Callable[[str], None]
RowsOf = Callable[[Iterator[pa.RecordBatch], str, int], Iterator[pa.RecordBatch]]
"""Turns candidates of a split, with their number, into rows of the dataset."""


@dataclass(frozen=True, slots=True)
class Consecutive:
    """Where consecutive sentences are taken from, and how many rows each split gets.

    `take`: `lead`, the first sentences of a document's lead section (of the whole document where
    it has no sections): Wikipedia introductions, abstracts, stories; or `windows`, windows that
    do not overlap, each inside one unit `within` (`paragraph`, `section` or `document`).
    `lead_sentences`: how many sentences the lead gives; 0 for as many as one row needs (`LENGTH`,
    the least that makes one).
    `min_words`, `max_words`: a sentence outside these bounds (words at white space) ends a
    window, or refuses the lead.
    `train`, `validation`, `test`: the most rows that a split gets (the paper's sizes); their
    proportions are also those of the documents. 0 leaves a split out.
    """

    LENGTH: ClassVar[int] = 1

    take: Literal["lead", "windows"] = "windows"
    within: Literal["paragraph", "section", "document"] = "paragraph"
    lead_sentences: int = 0
    min_words: int = 2
    max_words: int = 100
    train: int = 10_000
    validation: int = 4_000
    test: int = 4_000

    def __post_init__(self) -> None:
        one_of("take", self.take, ("lead", "windows"))
        one_of("within", self.within, ("paragraph", "section", "document"))
        if not 1 <= self.min_words <= self.max_words:
            raise ConfigError(
                f"min_words {self.min_words} and max_words {self.max_words} leave no sentence",
                hint="1 <= min_words <= max_words",
            )
        if self.lead_sentences < 0 or 0 < self.lead_sentences < self.LENGTH:
            raise ConfigError(
                f"lead_sentences = {self.lead_sentences}",
                hint=f"{self.LENGTH} or more, as a row has so many, or 0 for that",
            )
        Shares(self.train, self.validation, self.test)

    @property
    def sizes(self) -> dict[str, int]:
        return {"train": self.train, "validation": self.validation, "test": self.test}


def runs(document: Document, settings: Consecutive, reject: Reject) -> list[list[str]]:
    """Runs of `LENGTH` consecutive sentences of `document`; the others are told to `reject`."""
    texts, length = document.sentence_texts(), settings.LENGTH
    if settings.take == "lead":
        first = lead(document, texts)[: settings.lead_sentences or length]
        return list(_windows(first, length, settings, reject, whole=settings.lead_sentences == 0))
    found = units(document, texts, settings.within)
    return [run for unit in found for run in _windows(unit, length, settings, reject)]


def build(
    documents: Iterable[Document],
    settings: Consecutive,
    target: Target,
    schema: pa.Schema,
    card: Card,
    rows_of: RowsOf,
    *,
    unit: str,
    rows_each: int = 1,
    texts: tuple[str, ...],
) -> dict[str, Any]:
    """Collect runs of `LENGTH` sentences, split and choose them, and write `rows_of` them.

    `unit` is what the sizes count, in the plural, and each gives `rows_each` rows; `texts` are the
    columns of text.
    """
    with target.dataset(card) as dataset, target.pool() as pool:
        for document in documents:
            pool.add(document, runs(document, settings, dataset.reject))
        for split, rows in split_candidates(pool, settings, dataset):
            chosen = limited(rows, split, settings.sizes[split], unit, dataset)
            writer = dataset.writer("default", split, schema, texts=texts)
            candidates = _counted(pool.read(chosen), rows_each, dataset)
            for batch in rows_of(candidates, split, chosen.size):
                writer.append(batch)
        return dataset.finish("default")


def _counted(
    candidates: Iterator[pa.RecordBatch], rows_each: int, dataset: DatasetFolder
) -> Iterator[pa.RecordBatch]:
    """The batches as they are; the rows that each candidate gives are counted by licence."""
    for batch in candidates:
        dataset.count_licences(pa.concat_arrays([batch["licence"]] * rows_each))
        yield batch


def limited(rows: Rows, split: str, size: int, unit: str, dataset: DatasetFolder) -> Rows:
    """The first `size` rows; what the corpus lacks or has too much of is said and counted."""
    if rows.size < size:
        dataset.note(f"{split}: {size:,} {unit} were asked for, the corpus gives {rows.size:,}.")
    dataset.reject("not_needed", max(0, rows.size - size))
    return rows[:size]


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


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise `ConfigError` unless the setting `name` has one of these values."""
    if value not in choices:
        raise ConfigError(f"{name} = {value!r}", hint=f"one of {', '.join(choices)}")
