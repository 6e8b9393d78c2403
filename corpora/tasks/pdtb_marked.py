"""Marked or not: is a relation explicit or implicit? (DisSent, section 6 and A.3)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pyarrow as pa

from corpora.document import Document
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
        "sources are split by a given table or by shares. Labels are not balanced."
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
        "Explicit relations are more often within one sentence: their arguments are shorter, and "
        "begin less often with a capital.",
    ),
    tags=("dissent", "discourse-relations", "pdtb"),
)


class PdtbMarked(Relations):
    """Marked or unmarked relations: did a connective stand between two arguments?"""

    name, version = "pdtb_marked", 1
    paper = "Nie, Bennett and Goodman 2019, section 6 and appendix A.3"
    card = CARD
    gives = {"default": PDTB_MARKED}
    kinds = ("Explicit", "Implicit")
    columns = pa.schema([("label", pa.string()), ("arg1", pa.string()), ("arg2", pa.string())])
    equal = ("label", "arg1", "arg2")

    sections: Literal["discoeval", "dissent"] = "dissent"
    """Of the Wall Street Journal: `discoeval` (2-14, 15-18, 19-23) or `dissent` (2-22, 0-1,
    23-24)."""

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """The arguments of explicit and implicit relations."""
        for relation, one, two in self.relations(document, reject):
            yield Row(("marked" if relation.kind == "Explicit" else "unmarked", one, two))

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """All of them: labels are not balanced."""
        self.write_labelled(("unmarked", "marked"), PDTB_MARKED, taken, dataset)
