"""Sentence section prediction (DiscoEval, section 3.5): is a sentence from the abstract?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import pyarrow as pa
from pydantic import Field

from corpora.document import Document
from corpora.schemas import SSP
from corpora.splits import SPLITS
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Reject, Row
from corpora.tasks.candidates import Candidates
from corpora.tasks.discoeval.common import CITATION, Sized
from corpora.tasks.discoeval.papers import ABSTRACT, MIDDLE, prose, sections_of

CARD = Card(
    title="Sentence section prediction",
    summary=(
        "Single sentences of papers: is one from the abstract, or from a section in the middle? "
        "The sentence section prediction task (SSP) of DiscoEval, on texts of your own."
    ),
    method=(
        "DiscoEval, section 3.5. Sentences of abstracts, and of sections that are neither "
        "introduction nor conclusion nor what stands after it (nor subsections of these). "
        "Equations and fragments are left out: too few words, no capital at the beginning, no "
        "full stop at the end, signs of formulas, or too few plain words. Both labels are equally "
        "frequent in a split, and both come from the same papers: one without an abstract or "
        "without a section in the middle is left out."
    ),
    fields={
        "doc": "id of the paper",
        "label": "`abstract` (1) or `body` (0)",
        "section": "the heading over the sentence",
        "sentence": "one sentence",
    },
    citation=CITATION,
    limits=(
        "Sentences are split by a program; text from PDF files has bad ones that no rule sees.",
        "What a section is for is read from its heading, by English words.",
        "Sentences that point to figures, tables and references stay in, as in the released files: "
        "they are easy.",
    ),
    tags=("discoeval", "sentence-section"),
)


class Ssp(Sized):
    """Sentence section prediction: is a sentence from the abstract, or from the body?

    Half of the rows of a split are from abstracts.
    """

    name, version = "ssp", 3
    paper = "Chen, Chu and Gimpel 2019, section 3.5"
    card = CARD
    gives = {"default": SSP}
    columns = pa.schema([SSP.field("section"), SSP.field("sentence")])
    equal = ("sentence",)
    one_split = True

    min_words: Annotated[int, Field(ge=1)] = 10
    """A sentence of fewer words (at white space) is left out."""
    plain: Annotated[float, Field(ge=0, le=1)] = 0.7
    """The share of the words that must be plain (letters only but for punctuation around)."""

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """The usable sentences of a paper in two parts, if it has some of both."""
        rows: dict[str, list[Row]] = {ABSTRACT: [], MIDDLE: []}
        for kind, heading, text in sections_of(document):
            if kind not in rows:
                continue
            reason = prose(text, self.min_words, self.max_words, self.plain)
            if reason:
                reject(reason)
            else:
                part = "abstract" if kind == ABSTRACT else "body"
                rows[kind].append(Row((heading, text), part))
        if not rows[ABSTRACT]:
            reject("paper_without_abstract")
        elif not rows[MIDDLE]:
            reject("paper_without_body")
        else:
            yield from rows[ABSTRACT] + rows[MIDDLE]

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """As many rows of one label as of the other, alternating, in each split."""
        dataset.reject("exact_duplicate", int(taken.engine.value(_IN_BOTH)))
        taken.engine.run(_DROP_IN_BOTH)
        for split in SPLITS:
            size = self.sizes[split] // 2
            one, two = (taken.count(split, part=part) for part in ("abstract", "body"))
            half = min(size, one, two)
            if half < size:
                dataset.note(
                    f"{split}: {2 * size:,} rows were asked for; the corpus gives {one:,} "
                    f"sentences of abstracts and {two:,} of bodies."
                )
            dataset.reject("not_needed", one + two - 2 * half)
            writer = dataset.writer("default", split, SSP, texts=("sentence",))
            for batches in zip(
                taken.of_split(split, part="abstract", limit=half),
                taken.of_split(split, part="body", limit=half),
                strict=True,
            ):
                both = pa.concat_batches(batches)
                both = both.take(pa.array(np.arange(both.num_rows).reshape(2, -1).T.ravel()))
                dataset.count_licences(both["licence"])
                label = pa.array(np.tile([1, 0], both.num_rows // 2))
                columns = [both["doc"], label, both["section"], both["sentence"]]
                writer.append(pa.RecordBatch.from_arrays(columns, schema=SSP))


_BODY_IN_ABSTRACT = """
kept where part = 'body' and (doc, number) in (
    select (doc, number) from candidate
    where part = 'body' and key in (select key from candidate where part = 'abstract')
)
"""
_IN_BOTH = f"select count(*) from {_BODY_IN_ABSTRACT}"
_DROP_IN_BOTH = f"delete from {_BODY_IN_ABSTRACT}"
"""A sentence that stands in an abstract and in a body counts as one of the abstract."""
