"""Paragraphs for CONPONO (Iter, Guu, Lansing, Jurafsky 2020, section 2.3).

Anchors, targets and candidates are drawn by the collator; here are sentences and bounds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

import pyarrow as pa

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.schemas import CONPONO
from corpora.splits import SPLITS, Shares
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks import per_document
from corpora.tasks.target import Target

VERSION = 3

CARD = Card(
    title="Paragraphs for CONPONO",
    summary=(
        "Documents as sentences with the bounds of their paragraphs, long enough to draw an anchor "
        "of four sentences and a target of three some sentences away."
    ),
    method=(
        "Iter et al. 2020, section 2.3, with the rules of the released code as settings: "
        "`merge_above` joins consecutive paragraphs until there are more than so many sentences "
        "(10 for books, whose lines are short), `min_sentences` drops paragraphs of fewer (8 for "
        "Wikipedia). Paragraphs are never joined over a section's end. Every sentence stands "
        "once: anchors, targets and candidates are drawn when a model is trained."
    ),
    fields={
        "doc": "id of the document",
        "group": "the book or file it is from",
        "sentences": "the sentences of its paragraphs that were kept",
        "bounds": "paragraph `k` is `sentences[bounds[k]:bounds[k + 1]]`",
    },
    citation="""@inproceedings{iter-etal-2020-pretraining,
  title = {Pretraining with Contrastive Sentence Objectives Improves Discourse Performance of
           Language Models},
  author = {Iter, Dan and Guu, Kelvin and Lansing, Larry and Jurafsky, Dan},
  booktitle = {Proceedings of ACL},
  pages = {4859--4870},
  year = {2020}
}""",
    limits=(
        "Sentences are split by a program.",
        "Paragraphs that follow each other in `bounds` need not do so in the document: those in "
        "between may have been dropped.",
    ),
    tags=("conpono", "pretraining"),
    task_categories=("feature-extraction",),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a paragraph is, and the shares of the documents.

    `merge_above`: consecutive paragraphs are joined until there are more than so many sentences
    (the paper's books: 10); 0 leaves them as they are. `min_sentences`: shorter paragraphs are
    dropped (the paper's Wikipedia: 8; 1 drops none).
    """

    merge_above: int = 0
    min_sentences: int = 8
    train: float = 0.98
    validation: float = 0.01
    test: float = 0.01

    def __post_init__(self) -> None:
        if self.merge_above < 0 or self.min_sentences < 1:
            raise ConfigError(
                f"merge_above = {self.merge_above}, min_sentences = {self.min_sentences}",
                hint="merge_above is 0 or more, min_sentences 1 or more",
            )
        Shares(self.train, self.validation, self.test)


def build(documents: Iterable[Document], settings: Settings, target: Target) -> dict[str, Any]:
    """Build the dataset from documents with a sentence layer; returns the manifest."""
    counts = dict.fromkeys(SPLITS, 0)

    def kept(document: Document, dataset: DatasetFolder) -> tuple[list[str], str] | None:
        found = list(paragraphs(document, settings, dataset))
        sentences = [sentence for paragraph in found for sentence in paragraph]
        bounds = " ".join(map(str, accumulate(map(len, found), initial=0)))
        return (sentences, bounds) if found else None

    def rows(batch: pa.RecordBatch, split: str) -> pa.RecordBatch:
        made = _rows(batch)
        counts[split] += len(made["bounds"].flatten()) - made.num_rows
        return made

    def said(dataset: DatasetFolder) -> None:
        dataset.details["paragraphs"] = counts
        dataset.note(f"Paragraphs: {', '.join(f'{n:,} {split}' for split, n in counts.items())}.")

    return per_document.build(
        documents,
        settings,
        target,
        schema=CONPONO,
        card=CARD,
        kept=kept,
        rows=rows,
        said=said,
    )


def paragraphs(
    document: Document, settings: Settings, dataset: DatasetFolder
) -> Iterator[list[str]]:
    """The paragraphs of a document as lists of sentences, joined and dropped by the settings."""
    for section in _sections(document):
        for paragraph in _merged(section, settings.merge_above):
            if len(paragraph) >= settings.min_sentences:
                yield paragraph
            else:
                dataset.reject("paragraph_too_short")


def _sections(document: Document) -> Iterator[list[list[str]]]:
    """The sentences of each paragraph, section by section, without headings in the text."""
    texts, sentences = document.sentence_texts(), document.sentences
    if sentences is None or document.paragraphs is None:
        return
    sections = document.sections
    keys = [
        (
            sections.at(start) if sections else 0,
            bisect_right(document.paragraphs.start, start),
        )
        for start in sentences.start
    ]
    rows = [
        (key, text) for key, text in zip(keys, texts, strict=True) if text and key[0] is not None
    ]
    for _, inside in groupby(rows, key=lambda row: row[0][0]):
        yield [[t for _, t in block] for _, block in groupby(inside, key=lambda row: row[0])]


def _merged(blocks: Sequence[list[str]], above: int) -> Iterator[list[str]]:
    """Consecutive paragraphs joined until they have more than `above` sentences."""
    collected: list[str] = []
    for block in blocks:
        collected += block
        if len(collected) > above:
            yield collected
            collected = []
    if collected:
        yield collected


def _rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    bounds = [list(map(int, text.split())) for text in batch["id"].to_pylist()]
    columns = [
        batch["doc"],
        batch["group"],
        batch["sentences"],
        pa.array(bounds, pa.list_(pa.int32())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CONPONO)
