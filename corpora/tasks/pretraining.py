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
from corpora.tasks.builder import Builder, Candidate, Part, Reject
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside
from corpora.tasks.permutations import codes_by_occurrence

DOCUMENTS_PER_BATCH = 64
ROWS_PER_GROUP = 256

DEEPEST = 7
"""Wikipedia has up to seven levels; deeper headings of other sources count as this one."""


def sentence_places(document: Document) -> list[tuple[str, int, int]]:
    """Return (sentence, number of its section, number of its paragraph) for each sentence.

    The section is 0 in a document without sections. Empty sentences, and titles and headings in
    the text, are left out.
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
    released code's books: 10); 0 disables it."""
    min_sentences: Annotated[int, Field(ge=1)] = 8
    """Minimum sentences of a paragraph; shorter ones are dropped (the released code: 8)."""
    train: Part = 0.98
    validation: Part = 0.01
    test: Part = 0.01

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield one candidate: the document's paragraphs, joined and dropped by the settings."""
        long_paragraphs: list[list[str]] = []
        for _, section in groupby(sentence_places(document), itemgetter(1)):
            paragraphs = [[row[0] for row in rows] for _, rows in groupby(section, itemgetter(2))]
            for paragraph in _merge_paragraphs(paragraphs, self.merge_above):
                if len(paragraph) >= self.min_sentences:
                    long_paragraphs.append(paragraph)
                else:
                    reject("paragraph_too_short")
        if long_paragraphs:
            sentences = [sentence for paragraph in long_paragraphs for sentence in paragraph]
            yield Candidate((sentences, list(accumulate(map(len, long_paragraphs), initial=0))))

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write all documents; a note tells the number of paragraphs of each split."""
        candidates.write_splits(CONPONO, ("sentences",), ROWS_PER_GROUP, size=DOCUMENTS_PER_BATCH)
        query = "select split, sum(len(bounds) - 1)::bigint from chosen group by split"
        counts = dict.fromkeys(SPLITS, 0) | dict(candidates.engine.rows(query))
        dataset.details["paragraphs"] = counts
        dataset.note(f"Paragraphs: {', '.join(f'{n:,} {split}' for split, n in counts.items())}.")


def _merge_paragraphs(paragraphs: Sequence[list[str]], above: int) -> Iterator[list[str]]:
    """Yield consecutive paragraphs, joined until they have more than `above` sentences."""
    joined: list[str] = []
    for paragraph in paragraphs:
        joined += paragraph
        if len(joined) > above:
            yield joined
            joined = []
    if joined:
        yield joined


class Criteria(Builder):
    """Sentences and their places, which the criteria NSP, NL, SPP and SDT of DiscoEval predict."""

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

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield one candidate: the document's sentences, and the place of each."""
        columns = criteria_columns(document, self.bins)
        if len(columns["sentences"]) < self.min_sentences:
            reject("too_few_sentences")
        else:
            yield Candidate(tuple(columns[name] for name in self.columns.names))

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write all documents; the manifest tells the number of sentences of each nesting level."""
        candidates.write_splits(CRITERIA, ("sentences",), ROWS_PER_GROUP, size=DOCUMENTS_PER_BATCH)
        query = "select unnest(level) as level from chosen"
        counts = candidates.engine.rows(
            f"select level, count(*) from ({query}) group by 1 order by 1"
        )
        dataset.details["levels"] = {str(level): number for level, number in counts}


def criteria_columns(document: Document, bins: int) -> dict[str, Any]:
    """Return a document as a row of `CRITERIA`, with `bins` bins of relative positions."""
    # The section and the paragraph of each sentence, and its position in the paragraph
    rows, sections = sentence_places(document), document.sections
    section = [number for _, number, _ in rows]
    paragraph = codes_by_occurrence(number for *_, number in rows)
    sizes, position = Counter[int](), []
    for number in paragraph:
        position.append(sizes[number])
        sizes[number] += 1
    levels = [min(level, DEEPEST) for level in sections.level] if sections else [1]
    return {
        "title": document.title,
        "sentences": [text for text, _, _ in rows],
        "section": section,
        "level": [levels[s] for s in section],
        "headings": list(sections.heading) if sections else [""],
        "paragraph": paragraph,
        "sentence_position": position,
        "sentence_bin": [bins * i // sizes[n] for i, n in zip(position, paragraph, strict=True)],
        "paragraph_bin": [bins * n // max(1, len(sizes)) for n in paragraph],
    }
