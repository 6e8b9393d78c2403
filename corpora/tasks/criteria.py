"""What DiscoEval's learning criteria are trained on (Chen, Chu, Gimpel 2019, section 4)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

import pyarrow as pa
from pydantic import Field

from corpora.document import Document
from corpora.schemas import CRITERIA
from corpora.splits import SPLITS
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Builder, Part, Reject, Row
from corpora.tasks.candidates import Candidates
from corpora.tasks.discoeval.common import CITATION

DEEPEST = 7
"""Wikipedia has up to seven levels; deeper headings of other sources count as this one."""

DOCUMENTS_PER_BATCH = 64
ROWS_PER_GROUP = 256

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


class Criteria(Builder):
    """Sentences in their place: what the criteria NSP, NL, SPP and SDT of DiscoEval predict."""

    name, version = "criteria", 3
    paper = "Chen, Chu and Gimpel 2019, section 4"
    card = CARD
    gives = {"default": CRITERIA}
    columns = pa.schema([field for field in CRITERIA if field.name not in ("doc", "group")])
    equal = ("sentences",)

    min_sentences: Annotated[int, Field(ge=1)] = 3
    """A document of fewer sentences is left out."""
    bins: Annotated[int, Field(ge=1, le=127)] = 20
    """The number of relative positions (20 in the released code)."""
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
        for split in SPLITS:
            writer = dataset.writer(
                "default", split, CRITERIA, texts=("sentences",), rows_per_group=ROWS_PER_GROUP
            )
            taken.write(writer, taken.of_split(split, size=DOCUMENTS_PER_BATCH))
        dataset.details["levels"] = {str(level): n for level, n in taken.engine.rows(_LEVELS)}


_LEVELS = """
select level, count(*)
from (select unnest(level) as level from kept join candidate using (part, doc, number))
group by level order by level
"""


def located(document: Document, bins: int) -> dict[str, Any]:
    """The sentences of a document, and where each is: the columns of a row.

    Empty ones are left out, and titles and headings that are in the text: SDT predicts them.
    """
    texts, spans = document.sentence_texts(), document.sentences
    if spans is None or document.paragraphs is None:
        return {"sentences": []}
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
    return {
        "title": document.title,
        "sentences": [text for text, _, _ in kept],
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
