"""What DiscoEval's learning criteria are trained on (Chen, Chu, Gimpel 2019, section 4)."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.schemas import CRITERIA
from corpora.splits import Shares
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks import per_document
from corpora.tasks.discoeval.common import CITATION
from corpora.tasks.target import Target

VERSION = 3
DEEPEST = 7
"""Wikipedia has up to seven levels; deeper headings of other sources count as this one."""

CARD = Card(
    title="Sentences in their place",
    summary=(
        "Documents as sentences, each with its neighbours, nesting level, position in its "
        "paragraph, its paragraph's position, and the titles over it: what the learning criteria "
        "NSP, NL, SPP and SDT of DiscoEval predict."
    ),
    method=(
        "Chen, Chu and Gimpel 2019, section 4. A row is a document; the other columns run along "
        "`sentences`. The neighbours of sentence `i` are `sentences[i - 1]` and "
        "`sentences[i + 1]`. Positions are given as they are, counted from 0, and as the released "
        "code's relative bins: of `bins` equal parts of the paragraph (or of the document's "
        "paragraphs) the one in which it falls, `floor(bins * position / number)`."
    ),
    fields={
        "doc": "id of the document",
        "group": "the book or file it is from",
        "title": "title of the document",
        "sentences": "its sentences in order",
        "section": "for each sentence the number of its section: `headings[section[i]]`",
        "level": "its nesting level: 1 for the lead, 2 for a section, ... 7",
        "headings": "the headings of the sections; empty for the lead",
        "paragraph": "the number of its paragraph in the document",
        "sentence_position": "its number in the paragraph",
        "sentence_bin": "its relative position in the paragraph",
        "paragraph_bin": "the relative position of its paragraph in the document",
    },
    citation=CITATION,
    limits=(
        "Sentences are split by a program.",
        "Sources without sections have level 1 and no heading throughout, those without titles an "
        "empty title.",
    ),
    tags=("discoeval", "pretraining"),
    task_categories=("feature-extraction",),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """`min_sentences` of a document; `bins` of relative positions (20 in the released code).

    `train`, `validation`, `test`: shares of the documents.
    """

    min_sentences: int = 3
    bins: int = 20
    train: float = 0.98
    validation: float = 0.01
    test: float = 0.01

    def __post_init__(self) -> None:
        if self.min_sentences < 1 or not 1 <= self.bins <= 127:
            raise ConfigError(
                f"min_sentences = {self.min_sentences}, bins = {self.bins}",
                hint="min_sentences is 1 or more, bins 1 to 127",
            )
        Shares(self.train, self.validation, self.test)


def build(documents: Iterable[Document], settings: Settings, target: Target) -> dict[str, Any]:
    """Build the dataset from documents with a sentence layer; returns the manifest."""
    levels: Counter[int] = Counter()

    def kept(document: Document, dataset: DatasetFolder) -> tuple[list[str], str] | None:
        sentences, places = located(document, settings.bins)
        enough = len(sentences) >= settings.min_sentences
        dataset.reject("too_few_sentences", not enough)
        return (sentences, json.dumps(places)) if enough else None

    def rows(batch: pa.RecordBatch, split: str) -> pa.RecordBatch:
        made = _rows(batch)
        levels.update(made["level"].flatten().to_pylist())
        return made

    def said(dataset: DatasetFolder) -> None:
        dataset.details["levels"] = {str(level): n for level, n in sorted(levels.items())}

    return per_document.build(
        documents,
        settings,
        target,
        schema=CRITERIA,
        card=CARD,
        kept=kept,
        rows=rows,
        said=said,
    )


def located(document: Document, bins: int) -> tuple[list[str], dict[str, Any]]:
    """The sentences of a document, and the columns that say where each is.

    Empty ones are left out, and titles and headings that are in the text: SDT predicts them.
    """
    texts, spans = document.sentence_texts(), document.sentences
    if spans is None or document.paragraphs is None:
        return [], {}
    sections = document.sections
    inside = [sections.at(start) if sections else 0 for start in spans.start]
    kept = [
        (text, start, number)
        for text, start, number in zip(texts, spans.start, inside, strict=True)
        if text and number is not None
    ]
    paragraph = _numbered([bisect_right(document.paragraphs.start, start) for _, start, _ in kept])
    sizes = Counter(paragraph)
    position = [0] * len(kept)
    for i in range(1, len(kept)):
        position[i] = position[i - 1] + 1 if paragraph[i] == paragraph[i - 1] else 0
    headings, depth, section = [""], [1], [0] * len(kept)
    if sections:
        headings, depth = list(sections.heading), [min(n, DEEPEST) for n in sections.level]
        section = [number for _, _, number in kept]
    return [text for text, _, _ in kept], {
        "title": document.title,
        "section": section,
        "level": [depth[s] for s in section],
        "headings": headings,
        "paragraph": paragraph,
        "sentence_position": position,
        "sentence_bin": [bins * p // sizes[of] for p, of in zip(position, paragraph, strict=True)],
        "paragraph_bin": [bins * of // max(1, len(sizes)) for of in paragraph],
    }


def _numbered(keys: list[int]) -> list[int]:
    """Numbers from 0 on without a gap, for keys in rising order."""
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return [number[key] for key in keys]


def _rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    places = [json.loads(text) for text in batch["id"].to_pylist()]
    columns = [
        batch[field.name]
        if field.name in ("doc", "group", "sentences")
        else pa.array([place[field.name] for place in places], field.type)
        for field in CRITERIA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CRITERIA)
