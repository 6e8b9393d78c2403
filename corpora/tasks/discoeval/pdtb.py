"""Discourse relations by sense (DiscoEval, section 3.1): PDTB-E and PDTB-I."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.schemas import pdtb as pdtb_schema
from corpora.splits import SPLITS
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.discoeval.common import CITATION, one_of
from corpora.tasks.pool import Pool, Rows
from corpora.tasks.relations import PDTB_CITATION, Splitting, relations_of, sense_at, split_rows
from corpora.tasks.target import Target

VERSION = 1
KINDS = {"Explicit": "PDTB-E", "Implicit": "PDTB-I"}
"""The datasets: kinds of relations, and what DiscoEval calls its task of each."""

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


@dataclass(frozen=True, slots=True)
class Settings(Splitting):
    """Which senses are labels (see `Splitting` for the splits).

    `level`: of the senses, 2 in the paper. `senses`: of a relation with several, the `first` one
    or `all`, a row each. `min_count`: classes with fewer rows in all splits together are left
    out. `classes`: only so many of the most frequent classes; 0 for all (DisSent, section 6: 11,
    with `sections = "dissent"`).
    """

    level: int = 2
    senses: Literal["first", "all"] = "first"
    min_count: int = 10
    classes: int = 0

    def __post_init__(self) -> None:
        Splitting.__post_init__(self)
        one_of("senses", self.senses, ("first", "all"))
        if not 1 <= self.level <= 3 or self.min_count < 0 or self.classes < 0:
            raise ConfigError(
                f"level = {self.level}, min_count = {self.min_count}, classes = {self.classes}",
                hint="level is 1, 2 or 3, the others 0 or more",
            )


def card_of(kind: str) -> Card:
    """The card of the dataset of one of `KINDS`."""
    return Card(
        title=f"{kind} discourse relations",
        summary=(
            f"The two arguments of annotated {kind.lower()} discourse relations and their sense: "
            f"{KINDS[kind]} of DiscoEval, from PDTB or GDTB."
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


def build(
    documents: Iterable[Document], settings: Settings, target: Target, *, kind: str
) -> dict[str, Any]:
    """Build the dataset of all relations of a kind from documents with gold relations."""
    with target.dataset(card_of(kind)) as dataset, target.pool() as pool:
        labels: list[str] = []
        for document in documents:
            found = list(_rows_of(document, kind, settings, dataset))
            pool.add(document, [row for _, row in found])
            labels += [label for label, _ in found]
        split, rows = split_rows(pool, settings, dataset)
        names = _classes([labels[row] for row in rows.tolist()], settings)
        kept = rows[[labels[row] in names for row in rows.tolist()]]
        dataset.reject("class_too_rare", rows.size - kept.size)
        for part in SPLITS:
            own = [row for row in kept.tolist() if split[pool.document_of(row)] == part]
            _write(part, np.array(own, np.int64), names, labels, pool, dataset)
        return dataset.finish("default")


def _rows_of(
    document: Document, kind: str, settings: Settings, dataset: DatasetFolder
) -> Iterable[tuple[str, list[str]]]:
    """Label and columns of each relation; relations without a sense so fine are counted."""
    for relation, one, two in relations_of(document, (kind,), dataset):
        senses = relation.senses[:1] if settings.senses == "first" else relation.senses
        fine = {sense_at(sense, settings.level): sense for sense in reversed(senses)}
        if not any(fine):
            dataset.reject("sense_too_coarse")
        for label, sense in fine.items():
            if label:
                yield label, [one, two, relation.connective, sense]


def _classes(labels: list[str], settings: Settings) -> list[str]:
    """The label names: frequent enough, in alphabetical order."""
    counts = sorted(Counter(labels).items(), key=lambda item: (-item[1], item[0]))
    frequent = [name for name, number in counts if number >= settings.min_count]
    return sorted(frequent[: settings.classes] if settings.classes else frequent)


def _write(
    split: str, rows: Rows, names: list[str], labels: list[str], pool: Pool, dataset: DatasetFolder
) -> None:
    schema = pdtb_schema(names)
    writer = dataset.writer("default", split, schema, texts=("arg1", "arg2"))
    rows = np.array(sorted(rows.tolist(), key=pool.place), np.int64)
    start = 0
    for batch in pool.read(rows):
        dataset.count_licences(batch["licence"])
        some = rows[start : start + batch.num_rows].tolist()
        start += batch.num_rows
        parts = batch["sentences"].flatten()
        one, two, connective, sense = (
            parts.take(pa.array(np.arange(k, 4 * batch.num_rows, 4))) for k in range(4)
        )
        label = pa.array([names.index(labels[row]) for row in some], pa.int64())
        columns = [batch["doc"], label, one, two, connective, sense]
        writer.append(pa.RecordBatch.from_arrays(columns, schema=schema))
