"""Gold relations as pairs of texts: what the datasets from PDTB and GDTB share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from corpora.document import Document, Relation, Span
from corpora.errors import ConfigError
from corpora.splits import Shares
from corpora.splits.prescribed import SECTIONS, prescribed
from corpora.splits.table import table_hash
from corpora.store.folder import DatasetFolder, used
from corpora.tasks.discoeval.common import one_of
from corpora.tasks.pool import Pool, Rows

PDTB_CITATION = """@inproceedings{prasad-etal-2008-penn,
  title = {The {P}enn {D}iscourse {T}reebank 2.0},
  author = {Prasad, Rashmi and Dinesh, Nikhil and Lee, Alan and Miltsakaki, Eleni and
            Robaldo, Livio and Joshi, Aravind and Webber, Bonnie},
  booktitle = {Proceedings of LREC},
  year = {2008}
}"""


@dataclass(frozen=True, slots=True)
class Splitting:
    """Which documents are in which split.

    `sections`: of the Wall Street Journal, `discoeval` (2-14, 15-18, 19-23) or `dissent` (2-22,
    0-1, 23-24). `table`: a file of lines `SPLIT<TAB>DOCUMENT` instead. Documents of other
    sources without a table are assigned by the shares `train`, `validation`, `test`.
    `table_sha256` is no setting: it makes settings differ where the table's contents do.
    """

    sections: Literal["discoeval", "dissent"] = "discoeval"
    table: str = ""
    train: float = 0.8
    validation: float = 0.1
    test: float = 0.1
    table_sha256: str = field(init=False, default="")

    def __post_init__(self) -> None:
        one_of("sections", self.sections, tuple(SECTIONS))
        object.__setattr__(self, "table_sha256", table_hash(self.table))
        _ = self.shares  # refused here, not when all documents have been read

    @property
    def shares(self) -> Shares:
        return Shares(self.train, self.validation, self.test)


def split_rows(
    pool: Pool, settings: Splitting, dataset: DatasetFolder
) -> tuple[dict[str, str], Rows]:
    """The split of each document that has one, and the distinct rows of these documents.

    What is left out is counted, the split and the settings stand in the details.
    """
    given = prescribed(pool.documents, settings.sections, settings.table)
    assignment = given or pool.assign(settings.shares)
    dataset.languages = pool.languages
    dataset.details |= {"split": assignment.to_dict(), "settings": used(settings, pool.seed)}
    rows = pool.distinct()
    dataset.reject("exact_duplicate", len(pool) - rows.size)
    inside = [pool.document_of(row) in assignment.split for row in rows.tolist()]
    dataset.reject("document_in_no_split", rows.size - sum(inside))
    return assignment.split, rows[inside]


def relations_of(
    document: Document, kinds: Iterable[str], dataset: DatasetFolder
) -> Iterator[tuple[Relation, str, str]]:
    """The relations of these kinds with the texts of both arguments, the connective removed.

    Raises `ConfigError` for a document without a layer of relations.
    """
    if document.relations is None:
        raise ConfigError(
            f"document {document.id!r} has no gold relations",
            where=document.source,
            hint="this dataset is made from sources of the kind pdtb:",
        )
    wanted = set(kinds)
    for relation in document.relations:
        if relation.kind not in wanted:
            dataset.reject(f"relation_{relation.kind.lower()}")
            continue
        one, two = (
            text_of(document.text, spans, relation.connective_spans)
            for spans in (relation.arg1_spans, relation.arg2_spans)
        )
        if one and two:
            yield relation, one, two
        else:
            dataset.reject("argument_empty")


def text_of(text: str, spans: Iterable[Span], connective: Iterable[Span]) -> str:
    """The text under `spans` without that under `connective`, white space folded."""
    pieces = []
    removed = sorted(connective)
    for start, end in spans:
        for a, b in removed:
            if a < end and b > start:
                pieces.append(text[start : max(start, a)])
                start = min(end, b)
        pieces.append(text[start:end])
    folded = " ".join(" ".join(pieces).split())
    return folded.lstrip(",;: ")


def sense_at(sense: str, level: int) -> str:
    """`Contingency.Cause` of `Contingency.Cause.Reason` at level 2; empty if it is coarser."""
    parts = sense.split(".")
    return ".".join(parts[:level]) if len(parts) >= level else ""
