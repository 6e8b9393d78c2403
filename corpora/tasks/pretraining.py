"""Documents that models are trained on before a task: sentences, and where each stands.

CONPONO (Iter, Guu, Lansing, Jurafsky 2020, section 2.3) reads paragraphs: anchors, targets and
candidates are drawn by the collator. DiscoEval's learning criteria (Chen, Chu, Gimpel 2019,
section 4) predict a sentence's neighbours, level and position.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Annotated, Any

import pyarrow as pa
from pydantic import Field

from corpora.document import Document
from corpora.schemas import CONPONO, CRITERIA
from corpora.splits import SPLITS
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Builder, Part, Reject, Row
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside

DOCUMENTS_PER_BATCH = 64
ROWS_PER_GROUP = 256

DEEPEST = 7
"""Wikipedia has up to seven levels; deeper headings of other sources count as this one."""


def placed(document: Document) -> list[tuple[str, int, int]]:
    """Each sentence with the numbers of its section (0 without sections) and of its paragraph.

    Empty ones are left out, and titles and headings that are in the text.
    """
    sections, sentences, paragraphs = document.sections, document.sentences, document.paragraphs
    texts = document.sentence_texts()
    assert sentences is not None and paragraphs is not None
    rows = []
    for text, start in zip(texts, sentences.start, strict=True):
        section = sections.at(start) if sections else 0
        if text and section is not None:
            rows.append((text, section, bisect_right(paragraphs.start, start)))
    return rows


class Conpono(Builder):
    """Paragraphs for CONPONO: sentences of documents and the bounds of their paragraphs."""

    name, version = "conpono", 3
    paper = "Iter, Guu, Lansing and Jurafsky 2020, section 2.3"
    card = card_beside(__file__, "conpono")
    gives = {"default": CONPONO}
    columns = pa.schema([CONPONO.field("sentences"), CONPONO.field("bounds")])
    equal = ("sentences",)

    merge_above: Annotated[int, Field(ge=0)] = 0
    """Consecutive paragraphs of a section are joined until they have more sentences than this (the
    paper's books: 10); 0 disables it."""
    min_sentences: Annotated[int, Field(ge=1)] = 8
    """Minimum sentences of a paragraph; shorter ones are dropped (the paper's Wikipedia: 8)."""
    train: Part = 0.98
    validation: Part = 0.01
    test: Part = 0.01

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """The document's paragraphs, joined and dropped by the settings, as one row."""
        kept: list[list[str]] = []
        for _, section in groupby(placed(document), itemgetter(1)):
            paragraphs = [[row[0] for row in rows] for _, rows in groupby(section, itemgetter(2))]
            for paragraph in _merged(paragraphs, self.merge_above):
                if len(paragraph) >= self.min_sentences:
                    kept.append(paragraph)
                else:
                    reject("paragraph_too_short")
        if kept:
            sentences = [sentence for paragraph in kept for sentence in paragraph]
            yield Row((sentences, list(accumulate(map(len, kept), initial=0))))

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """All documents; the paragraphs of each split are counted."""
        taken.write_splits(CONPONO, ("sentences",), ROWS_PER_GROUP, size=DOCUMENTS_PER_BATCH)
        query = "select split, sum(len(bounds) - 1)::bigint from chosen group by split"
        counts = dict.fromkeys(SPLITS, 0) | dict(taken.engine.rows(query))
        dataset.details["paragraphs"] = counts
        dataset.note(f"Paragraphs: {', '.join(f'{n:,} {split}' for split, n in counts.items())}.")


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


class Criteria(Builder):
    """Sentences in their place: what the criteria NSP, NL, SPP and SDT of DiscoEval predict."""

    name, version = "criteria", 3
    paper = "Chen, Chu and Gimpel 2019, section 4"
    card = card_beside(__file__, "criteria")
    gives = {"default": CRITERIA}
    columns = pa.schema([field for field in CRITERIA if field.name not in ("doc", "group")])
    equal = ("sentences",)

    min_sentences: Annotated[int, Field(ge=1)] = 3
    """Minimum sentences of a document."""
    bins: Annotated[int, Field(ge=1, le=127)] = 20
    """Number of bins of relative positions (20 in the released code)."""
    train: Part = 0.98
    validation: Part = 0.01
    test: Part = 0.01

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """One row a document: its sentences, and where each stands."""
        columns = located(document, self.bins)
        if len(columns["sentences"]) < self.min_sentences:
            reject("too_few_sentences")
        else:
            yield Row(tuple(columns[name] for name in self.columns.names))

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """All documents; the sentences of each nesting level are counted."""
        taken.write_splits(CRITERIA, ("sentences",), ROWS_PER_GROUP, size=DOCUMENTS_PER_BATCH)
        query = "select unnest(level) as level from chosen"
        counts = taken.engine.rows(f"select level, count(*) from ({query}) group by 1 order by 1")
        dataset.details["levels"] = {str(level): number for level, number in counts}


def located(document: Document, bins: int) -> dict[str, Any]:
    """The sentences of a document, and where each is: the columns of a row."""
    rows, sections = placed(document), document.sections
    section = [number for _, number, _ in rows]
    number = {key: i for i, key in enumerate(dict.fromkeys(key for *_, key in rows))}
    paragraph = [number[key] for *_, key in rows]
    sizes, position = Counter[int](), []
    for of in paragraph:
        position.append(sizes[of])
        sizes[of] += 1
    levels = [min(level, DEEPEST) for level in sections.level] if sections else [1]
    return {
        "title": document.title,
        "sentences": [text for text, _, _ in rows],
        "section": section,
        "level": [levels[s] for s in section],
        "headings": list(sections.heading) if sections else [""],
        "paragraph": paragraph,
        "sentence_position": position,
        "sentence_bin": [bins * p // sizes[of] for p, of in zip(position, paragraph, strict=True)],
        "paragraph_bin": [bins * of // max(1, len(sizes)) for of in paragraph],
    }
