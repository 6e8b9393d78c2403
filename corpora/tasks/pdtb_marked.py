"""Marked or not: is a relation explicit or implicit? (DisSent, section 6 and A.3)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pyarrow as pa

from corpora.document import Document, Relation
from corpora.schemas import PDTB_MARKED
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Reject, Row
from corpora.tasks.candidates import Candidates
from corpora.tasks.relations import PDTB_CITATION, Relations

CARD = Card(
    title="Marked or unmarked relations",
    summary=(
        "Two arguments of an annotated discourse relation, without the connective: was the "
        "relation marked by one? From PDTB or GDTB, after DisSent."
    ),
    method=(
        "Nie, Bennett and Goodman 2019, section 6 and appendix A.3: sections 2-22 of the Wall "
        "Street Journal for training, 0-1 for validation, 23-24 for test. Documents of other "
        "sources are split by a given table or by shares. Unlike the paper's, marked and unmarked "
        "rows are as many, and alike: in each split, equal numbers are drawn of those whose "
        "arguments have nearly the same numbers of words (within a factor of 2) and agree in "
        "whether a capital follows the first letter. Each argument begins with a capital and has "
        "no mark at its end, so that neither tells whether it was a whole sentence. An implicit "
        "relation between arguments that an explicit one joins too is left out. "
        '`arguments = "annotated"` gives all relations as they are annotated, as in the paper.'
    ),
    fields={
        "doc": "id of the document",
        "label": "`marked` (1, an explicit relation) or `unmarked` (0, an implicit one)",
        "arg1": "text of the first argument; the parts of a discontinuous one are joined",
        "arg2": "text of the second argument, without the connective",
    },
    citation=f"""@inproceedings{{nie-etal-2019-dissent,
  title = {{{{D}}is{{S}}ent: Learning Sentence Representations from Explicit Discourse Relations}},
  author = {{Nie, Allen and Bennett, Erin and Goodman, Noah}},
  booktitle = {{Proceedings of ACL}},
  pages = {{4497--4510}},
  year = {{2019}}
}}
{PDTB_CITATION}""",
    limits=(
        "The Penn Discourse Treebank may not be passed on: publishing a dataset made from it is "
        "refused.",
        "Marked relations are more often within one sentence: their arguments are more often "
        "clauses that cannot stand alone.",
    ),
    tags=("dissent", "discourse-relations", "pdtb"),
)


class PdtbMarked(Relations):
    """Marked or unmarked relations: did a connective stand between two arguments?"""

    name, version = "pdtb_marked", 2
    paper = "Nie, Bennett and Goodman 2019, section 6 and appendix A.3"
    card = CARD
    gives = {"default": PDTB_MARKED}
    kinds = ("Explicit", "Implicit")
    columns = pa.schema([("label", pa.string()), ("arg1", pa.string()), ("arg2", pa.string())])
    equal = ("label", "arg1", "arg2")

    sections: Literal["discoeval", "dissent"] = "dissent"
    """Of the Wall Street Journal: `discoeval` (2-14, 15-18, 19-23) or `dissent` (2-22, 0-1,
    23-24)."""

    arguments: Literal["matched", "annotated"] = "matched"
    """`matched`: as many marked as unmarked rows of like lengths, each argument with a capital
    first letter and no mark at its end; `annotated`: all, as annotated (the paper's)."""

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """The arguments of explicit and implicit relations, these where no connective stands."""
        explicit = [r for r in document.relations or () if r.kind == "Explicit"]
        for relation, one, two in self.relations(document, reject):
            if relation.kind == "Implicit" and any(joins(r, relation) for r in explicit):
                reject("implicit_beside_explicit")
                continue
            if self.arguments == "matched":
                one, two = bare(one), bare(two)
            if one and two:
                yield Row(("marked" if relation.kind == "Explicit" else "unmarked", one, two))
            else:
                reject("argument_empty")

    def select(self, taken: Candidates) -> None:
        """Split the documents, then match the labels of each split."""
        super().select(taken)
        if self.arguments == "matched":
            before = int(taken.engine.value("select count(*) from kept"))
            taken.engine.run(_MATCHED)
            after = int(taken.engine.value("select count(*) from kept"))
            taken.dataset.reject("unmatched", before - after)

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """All that are kept."""
        self.write_labelled(("unmarked", "marked"), PDTB_MARKED, taken, dataset)


def joins(one: Relation, other: Relation) -> bool:
    """Whether both arguments of two relations overlap."""
    return all(
        any(a < d and c < b for a, b in left for c, d in right)
        for left, right in (
            (one.arg1_spans, other.arg1_spans),
            (one.arg2_spans, other.arg2_spans),
        )
    )


def bare(argument: str) -> str:
    """The argument with a capital first letter and no marks at its ends.

    Arguments of implicit relations are mostly sentences and those of explicit ones clauses; their
    ends alone would tell them apart.
    """
    text = argument.strip(" ,;:.!?…-–—")
    first = next((i for i, character in enumerate(text) if character.isalnum()), 0)
    return text[:first] + text[first : first + 1].upper() + text[first + 1 :]


_MATCHED = r"""
create or replace table kept as
with measured as (
    select kept.*, label, [
        floor(log2(len(string_split(argument, ' ')))) for argument in [arg1, arg2]
    ] as lengths, [
        regexp_matches(argument, '.\p{Lu}') for argument in [arg1, arg2]
    ] as names
    from kept join candidate using (part, doc, number)
), ranked as (
    select *,
        row_number() over (
            partition by split, lengths, names, label order by priority, doc, number
        ) as place,
        count(*) filter (label = 'marked') over alike as marked,
        count(*) filter (label = 'unmarked') over alike as unmarked
    from measured
    window alike as (partition by split, lengths, names)
)
select part, doc, number, priority, split from ranked where place <= least(marked, unmarked)
"""
"""Coarsened exact matching (Iacus, King and Porro 2012)."""
