"""Rhetorical relations (DiscoEval, section 3.1): which one joins two subtrees?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.rng import stable_id
from corpora.schemas import rst as rst_schema
from corpora.splits import SPLITS, Assignment, Shares
from corpora.splits.prescribed import prescribed
from corpora.splits.table import table_hash
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, used
from corpora.tasks.discoeval.common import CITATION
from corpora.tasks.discoeval.rst_relations import class_of
from corpora.tasks.pool import Pool, Rows
from corpora.tasks.target import Target

VERSION = 1
FOLDERS = {"TRAINING": "train", "TEST": "test"}
"""RST-DT's own folders, as they stand in the ids of its documents."""

NODES_PER_BATCH = 256
ROWS_PER_GROUP = 2_048

CARD = Card(
    title="Rhetorical structure relations",
    summary=(
        "Nodes of rhetorical structure trees: the elementary discourse units of the left and of "
        "the right subtree, and the relation that joins them. RST-DT of DiscoEval, or from "
        "rs3/rs4 files such as GUM's."
    ),
    method=(
        "DiscoEval, section 3.1. Trees are binary, several nuclei branching to the right; the "
        "label is the nuclearity (`NS`, `SN`, `NN`) with one of the 18 classes of Carlson et al. "
        "2001, to which a table maps the relations of RST-DT and of GUM. RST-DT's folder `TEST` "
        "is the test split, 35 documents of `TRAINING`, drawn at random, are validation; others "
        "are split by a given table or by shares."
    ),
    fields={
        "doc": "id of the document",
        "label": "nuclearity and class, such as `NS-Elaboration`",
        "relation": "the relation as the annotators named it",
        "left": "the units of the left subtree, in order",
        "right": "the units of the right subtree, in order",
    },
    citation=f"""{CITATION}
@inproceedings{{carlson-etal-2001-building,
  title = {{Building a Discourse-Tagged Corpus in the Framework of {{R}}hetorical {{S}}tructure
           {{T}}heory}},
  author = {{Carlson, Lynn and Marcu, Daniel and Okurowsky, Mary Ellen}},
  booktitle = {{Proceedings of the Second SIGdial Workshop on Discourse and Dialogue}},
  year = {{2001}}
}}""",
    limits=(
        "RST-DT may not be passed on: publishing a dataset made from it is refused.",
        "Which 35 documents the paper took for validation is not known.",
        "GUM's relations are not RST-DT's: the table is a reading of their definitions.",
    ),
    tags=("discoeval", "rst", "discourse-relations"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Which documents are in which split.

    `validation_documents`: how many of RST-DT's training documents are for validation, but at
    most a fifth of them. `table`: a file of lines
    `SPLIT<TAB>DOCUMENT` instead. Documents of other sources are assigned by the shares `train`,
    `validation`, `test`. `table_sha256` is no setting: it follows from the table.
    """

    validation_documents: int = 35
    table: str = ""
    train: float = 0.8
    validation: float = 0.1
    test: float = 0.1
    table_sha256: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "table_sha256", table_hash(self.table))
        if self.validation_documents < 0:
            raise ConfigError(
                f"validation_documents = {self.validation_documents}", hint="0 or more"
            )
        Shares(self.train, self.validation, self.test)


def build(documents: Iterable[Document], settings: Settings, target: Target) -> dict[str, Any]:
    """Build the dataset from documents with a tree (`rst:`); returns the manifest.

    Raises `ConfigError` for a document without one.
    """
    with target.dataset(CARD) as dataset, target.pool() as pool:
        labels: list[str] = []
        unknown: Counter[str] = Counter()
        for document in documents:
            nodes = list(nodes_of(document, unknown))
            ids = [f"{len(left)} {relation}" for _, relation, left, _ in nodes]
            pool.add(document, [left + right for *_, left, right in nodes], ids)
            labels += [label for label, *_ in nodes]
        for relation, number in sorted(unknown.items()):
            dataset.reject("relation_without_class", number)
            dataset.note(f"The relation `{relation}` has no class: {number:,} nodes left out.")
        assignment = _assign(pool, settings)
        dataset.languages = pool.languages
        dataset.details |= {"split": assignment.to_dict(), "settings": used(settings, target.seed)}
        names = sorted(set(labels))
        rows: dict[str, list[int]] = {split: [] for split in ("", *SPLITS)}
        for row in range(len(pool)):
            rows[assignment.split.get(pool.document_of(row), "")].append(row)
        dataset.reject("document_in_no_split", len(rows[""]))
        for split in SPLITS:
            ordered = sorted(rows[split], key=lambda row: (pool.document_of(row), row))
            _write(split, np.array(ordered, np.int64), names, labels, pool, dataset)
        return dataset.finish("default")


def nodes_of(
    document: Document, unknown: Counter[str]
) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Label, relation, and the units of both subtrees, for each inner node of a document."""
    tree = document.rst
    if tree is None:
        raise ConfigError(
            f"document {document.id!r} has no tree",
            where=document.source,
            hint="this dataset is made from sources of the kind rst:",
        )
    spans = zip(tree.start, tree.end, strict=True)
    texts = [" ".join(document.text[a:b].split()) for a, b in spans]
    rows = zip(tree.nuclearity, tree.relation, tree.left, tree.right, strict=True)
    for nuclearity, relation, left, right in rows:
        name = class_of(relation)
        if not name:
            unknown[relation] += 1
            continue
        one, two = ([texts[i] for i in tree.edus(node)] for node in (left, right))
        yield f"{nuclearity}-{name}", relation, one, two


def _assign(pool: Pool, settings: Settings) -> Assignment:
    documents = pool.documents
    folders = {name: _folder(name) for name in documents}
    if settings.table or not documents or not all(folders.values()):
        # The splits of RST-DT are not sections of the Wall Street Journal.
        shares = Shares(settings.train, settings.validation, settings.test)
        return prescribed(documents, "", settings.table) or pool.assign(shares)
    training = [name for name, split in folders.items() if split == "train"]
    training.sort(key=lambda name: (stable_id(f"{pool.seed}/{pool.stage}/{name}"), name))
    number = min(settings.validation_documents, len(training) // 5)
    split = {**folders, **dict.fromkeys(training[:number], "validation")}
    weights = Counter(dict.fromkeys(SPLITS, 0))
    for name, part in split.items():
        weights[part] += documents[name][1]
    reason = f"RST-DT's folders, {number} documents of TRAINING for validation"
    return Assignment("document", split, dict(weights), reason)


def _folder(name: str) -> str:
    parts = PurePosixPath(name).parts[:-1]
    return next((FOLDERS[part.upper()] for part in parts if part.upper() in FOLDERS), "")


def _write(
    split: str, rows: Rows, names: list[str], labels: list[str], pool: Pool, dataset: DatasetFolder
) -> None:
    schema = rst_schema(names)
    writer = dataset.writer(
        "default", split, schema, texts=("left", "right"), rows_per_group=ROWS_PER_GROUP
    )
    start = 0
    for batch in pool.read(rows, NODES_PER_BATCH):
        dataset.count_licences(batch["licence"])
        some = rows[start : start + batch.num_rows].tolist()
        start += batch.num_rows
        sizes, relations = zip(*(id.split(" ", 1) for id in batch["id"].to_pylist()), strict=True)
        units = batch["sentences"].to_pylist()
        columns = [
            batch["doc"],
            pa.array([names.index(labels[row]) for row in some], pa.int64()),
            pa.array(relations, pa.string()),
            pa.array([u[: int(n)] for u, n in zip(units, sizes, strict=True)], schema[3].type),
            pa.array([u[int(n) :] for u, n in zip(units, sizes, strict=True)], schema[4].type),
        ]
        writer.append(pa.RecordBatch.from_arrays(columns, schema=schema))
