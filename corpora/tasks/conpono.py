"""Paragraphs for CONPONO (Iter, Guu, Lansing, Jurafsky 2020, section 2.3).

Anchors, targets and candidates are drawn by the collator; here are sentences and bounds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import Annotated

import pyarrow as pa
from pydantic import Field

from corpora.document import Document
from corpora.schemas import CONPONO
from corpora.splits import SPLITS
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Builder, Part, Reject, Row
from corpora.tasks.candidates import Candidates

DOCUMENTS_PER_BATCH = 64
ROWS_PER_GROUP = 256

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


class Conpono(Builder):
    """Paragraphs for CONPONO: sentences of documents and the bounds of their paragraphs."""

    name, version = "conpono", 3
    paper = "Iter, Guu, Lansing and Jurafsky 2020, section 2.3"
    card = CARD
    gives = {"default": CONPONO}
    columns = pa.schema([CONPONO.field("sentences"), CONPONO.field("bounds")])
    equal = ("sentences",)

    merge_above: Annotated[int, Field(ge=0)] = 0
    """Consecutive paragraphs are joined until there are more sentences than that (the paper's
    books: 10); 0 leaves them as they are."""
    min_sentences: Annotated[int, Field(ge=1)] = 8
    """Shorter paragraphs are dropped (the paper's Wikipedia: 8; 1 drops none)."""
    train: Part = 0.98
    validation: Part = 0.01
    test: Part = 0.01

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """The document's paragraphs, joined and dropped by the settings, as one row."""
        kept: list[list[str]] = []
        for section in _sections(document):
            for paragraph in _merged(section, self.merge_above):
                if len(paragraph) >= self.min_sentences:
                    kept.append(paragraph)
                else:
                    reject("paragraph_too_short")
        if kept:
            sentences = [sentence for paragraph in kept for sentence in paragraph]
            yield Row((sentences, list(accumulate(map(len, kept), initial=0))))

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """All documents; the paragraphs of each split are counted."""
        for split in SPLITS:
            writer = dataset.writer(
                "default", split, CONPONO, texts=("sentences",), rows_per_group=ROWS_PER_GROUP
            )
            taken.write(writer, taken.of_split(split, size=DOCUMENTS_PER_BATCH))
        counts = dict.fromkeys(SPLITS, 0) | dict(taken.engine.rows(_PARAGRAPHS))
        dataset.details["paragraphs"] = counts
        dataset.note(f"Paragraphs: {', '.join(f'{n:,} {split}' for split, n in counts.items())}.")


_PARAGRAPHS = """
select split, sum(len(bounds) - 1)::bigint
from kept join candidate using (part, doc, number) group by split
"""


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
