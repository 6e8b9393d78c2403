"""Discourse relations by sense (DiscoEval, section 3.1): PDTB-E and PDTB-I."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import Field

from corpora.document import Document
from corpora.schemas import pdtb as pdtb_schema
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Reject, Row
from corpora.tasks.candidates import Candidates
from corpora.tasks.discoeval.common import CITATION
from corpora.tasks.relations import PDTB_CITATION, Relations

FIELDS = {
    "doc": "id of the document",
    "label": "the sense of the relation at the chosen level",
    "arg1": "text of the first argument; the parts of a discontinuous one are joined",
    "arg2": "text of the second argument, without the connective",
    "connective": "the connective: annotated in the text (explicit) or by annotators (implicit)",
    "sense": "the sense in full",
}
LIMITS = (
    "The Penn Discourse Treebank may not be passed on: publishing a dataset made from it is "
    "refused.",
    "Arguments are the annotated spans, also where both are in one sentence; they are not whole "
    "sentences.",
)


def card_of(kind: str, task: str) -> Card:
    """The card of the dataset of a kind of relations; DiscoEval calls it `task`."""
    return Card(
        title=f"{kind} discourse relations",
        summary=(
            f"The two arguments of annotated {kind.lower()} discourse relations and their sense: "
            f"{task} of DiscoEval, from PDTB or GDTB."
        ),
        method=(
            "DiscoEval, section 3.1: senses of the second level, sections 2-14, 15-18 and 19-23 of "
            "the Wall Street Journal, classes with fewer than 10 rows left out; each is a "
            "setting. All relations of the kind are taken, those within one sentence included, "
            "and the connective is removed. Documents of other sources are split by a given table "
            "or by shares."
        ),
        fields=FIELDS,
        citation=f"{CITATION}\n{PDTB_CITATION}",
        limits=LIMITS,
        tags=("discoeval", "discourse-relations", "pdtb"),
    )


class Pdtb(Relations):
    """Discourse relations of one kind and their senses."""

    paper = "Chen, Chu and Gimpel 2019, section 3.1"
    gives = {"default": pdtb_schema([])}
    columns = pa.schema(
        [(name, pa.string()) for name in ("label", "arg1", "arg2", "connective", "sense")]
    )
    equal = ("arg1", "arg2", "connective", "sense")

    level: Annotated[int, Field(ge=1, le=3)] = 2
    """Of the senses that are labels: 2 in the paper."""
    senses: Literal["first", "all"] = "first"
    """Of a relation with several senses, the `first` one or `all`, a row each."""
    min_count: Annotated[int, Field(ge=0)] = 10
    """Classes with fewer rows in all splits together are left out."""
    classes: Annotated[int, Field(ge=0)] = 0
    """How many of the most frequent classes; 0 for all (DisSent, section 6: 11, with
    `sections = "dissent"`)."""

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """Arguments and sense of each relation; those without a sense so fine are counted."""
        for relation, one, two in self.relations(document, reject):
            senses = relation.senses[:1] if self.senses == "first" else relation.senses
            fine = {sense_at(sense, self.level): sense for sense in reversed(senses)}
            if not any(fine):
                reject("sense_too_coarse")
            for label, sense in fine.items():
                if label:
                    yield Row((label, one, two, relation.connective, sense))

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """The rows of the frequent classes, whose names are in alphabetical order."""
        counts = taken.engine.rows(_CLASSES)
        frequent = [(name, n) for name, n in counts if n >= self.min_count]
        chosen = dict(frequent[: self.classes] if self.classes else frequent)
        rare = sum(n for name, n in counts if name not in chosen)
        dataset.reject("class_too_rare", rare)
        names = sorted(chosen)
        self.write_labelled(names, pdtb_schema(names), taken, dataset)


_CLASSES = """
select label, count(*) as number from kept join candidate using (part, doc, number)
group by label order by number desc, label
"""


class PdtbExplicit(Pdtb):
    """Explicit discourse relations: the sense of two arguments, from PDTB or GDTB."""

    name, version = "pdtb_explicit", 2
    card = card_of("Explicit", "PDTB-E")
    kinds = ("Explicit",)


class PdtbImplicit(Pdtb):
    """Implicit discourse relations: the sense of two arguments, from PDTB or GDTB."""

    name, version = "pdtb_implicit", 1
    card = card_of("Implicit", "PDTB-I")
    kinds = ("Implicit",)


def sense_at(sense: str, level: int) -> str:
    """`Contingency.Cause` of `Contingency.Cause.Reason` at level 2; empty if it is coarser."""
    parts = sense.split(".")
    return ".".join(parts[:level]) if len(parts) >= level else ""
