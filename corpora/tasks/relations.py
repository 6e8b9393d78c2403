"""Annotated relations: what the datasets from PDTB, GDTB and rhetorical trees share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

import pyarrow as pa

from corpora.document import Document, Relation, Span
from corpora.errors import ConfigError
from corpora.splits import SPLITS, Assignment
from corpora.splits.prescribed import prescribed
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Part, Prescribed, Reject, Target
from corpora.tasks.candidates import Candidates

PDTB_CITATION = """@inproceedings{prasad-etal-2008-penn,
  title = {The {P}enn {D}iscourse {T}reebank 2.0},
  author = {Prasad, Rashmi and Dinesh, Nikhil and Lee, Alan and Miltsakaki, Eleni and
            Robaldo, Livio and Joshi, Aravind and Webber, Bonnie},
  booktitle = {Proceedings of LREC},
  year = {2008}
}"""


ROWS_PER_BATCH = 256


class Treebank(Prescribed):
    """Annotated documents that a table, or the treebank itself, may divide.

    A candidate has the columns of a row, and its label by name.
    """

    texts: ClassVar[tuple[str, ...]] = ("arg1", "arg2")
    """The columns whose overlap between splits is counted."""
    order: ClassVar[str] = "concat(doc, '#', number)"
    """Of the rows in a split."""
    rows_per_group: ClassVar[int] = 0

    train: Part = 0.8
    validation: Part = 0.1
    test: Part = 0.1

    def write_labelled(
        self, names: Sequence[str], schema: pa.Schema, taken: Candidates, dataset: DatasetFolder
    ) -> None:
        """Write the candidates that have one of the labels `names`, a document's together."""
        query = f"{_LABELLED} order by {self.order}"
        for split in SPLITS:
            writer = dataset.writer(
                "default", split, schema, texts=self.texts, rows_per_group=self.rows_per_group
            )
            values = {"split": split, "names": names}
            taken.write(writer, taken.engine.batches(query, values, ROWS_PER_BATCH))


_LABELLED = """
select candidate.* replace (list_position($names, label) - 1 as label)
from kept join candidate using (part, doc, number)
where split = $split and list_contains($names, label)
"""


class Relations(Treebank):
    """Pairs of arguments; the label comes from the relation between them."""

    kinds: ClassVar[tuple[str, ...]]
    """The kinds of relations that are taken."""

    sections: Literal["discoeval", "dissent", "lin", "ji"] = "discoeval"
    """Of the Wall Street Journal: `discoeval` (2-14, 15-18, 19-23), `dissent` (2-22, 0-1, 23-24),
    `lin` (2-21, 22, 23; Lin et al. 2009) or `ji` (2-20, 0-1, 21-22; Ji and Eisenstein 2015)."""

    def prescribed(
        self, documents: Mapping[str, tuple[str, int]], target: Target
    ) -> Assignment | None:
        """As the table says, or the sections of the Wall Street Journal."""
        return prescribed(documents, self.sections, self.table)

    def relations(self, document: Document, reject: Reject) -> Iterator[tuple[Relation, str, str]]:
        """The relations with the texts of both arguments, the connective removed.

        Raises `ConfigError` for a document without a layer of relations.
        """
        if document.relations is None:
            raise ConfigError(
                f"document {document.id!r} has no gold relations",
                where=document.source,
                hint="this dataset is made from sources of the kind pdtb:",
            )
        for relation in document.relations:
            if relation.kind not in self.kinds:
                reject(f"relation_{relation.kind.lower()}")
                continue
            one, two = (
                text_of(document.text, spans, relation.connective_spans)
                for spans in (relation.arg1_spans, relation.arg2_spans)
            )
            if one and two:
                yield relation, one, two
            else:
                reject("argument_empty")


def text_of(text: str, spans: Iterable[Span], connective: Iterable[Span]) -> str:
    """The text under `spans` without that under `connective`, white space folded.

    Of a connective between two commas both go: they set it off, and would tell that it was there.
    """
    pieces = []
    removed = sorted(connective)
    for start, end in spans:
        for a, b in removed:
            if a < end and b > start:
                pieces.append(text[start : max(start, a)])
                start = min(end, b)
        pieces.append(text[start:end])
    folded = " ".join(" ".join(pieces).split())
    if len(pieces) > 1:
        for pattern, left in _SEAMS:
            folded = pattern.sub(left, folded)
    return folded.lstrip(",;: ")


_SEAMS = (
    (re.compile(r"(?: ?,){2,}"), ""),
    (re.compile(r" ?,(?= ?[.;:!?])"), ""),
    (re.compile(r"(?<=[;:(]) ?,"), ""),
)
"""The commas that a connective between commas leaves behind, and by what they are replaced."""
