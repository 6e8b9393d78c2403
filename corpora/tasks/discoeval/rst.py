"""Rhetorical relations (DiscoEval, section 3.1): which relation joins two subtrees?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated

import pyarrow as pa
from pydantic import Field

from corpora.document import Document
from corpora.rng import stable_id
from corpora.schemas import rst as rst_schema
from corpora.splits.division import Division
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Candidate, Reject, Target
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside, texts_beside
from corpora.tasks.relations import Treebank, annotation_layer

FOLDERS = {"TRAINING": "train", "TEST": "test"}
"""RST-DT's own folders, as they stand in the ids of its documents."""

WITHOUT_CLASS = "relation_without_class"

CLASSES: dict[str, str] = texts_beside(__file__)["classes"]
"""The 18 classes of Carlson et al. 2001, each with its relations of RST-DT and GUM."""

_CLASS_OF = {relation: name for name, text in CLASSES.items() for relation in text.split()}
_SUFFIXES = ("-e", "-s", "-n", "-mn")
"""RST-DT's endings: `-e` embedded; `-s`, `-n`, `-mn` the satellite's, nucleus's or a multinuclear
relation."""


class Rst(Treebank):
    """Rhetorical structure relations: which one joins two subtrees?"""

    name, version = "rst", 1
    paper = "Chen, Chu and Gimpel 2019, section 3.1"
    card = card_beside(__file__, "rst")
    gives = {"default": rst_schema([])}
    texts, order, rows_per_group = ("left", "right"), "doc, number", 2_048
    columns = pa.schema(
        [
            ("label", pa.string()),
            ("relation", pa.string()),
            ("left", pa.list_(pa.string())),
            ("right", pa.list_(pa.string())),
        ]
    )

    validation_documents: Annotated[int, Field(ge=0)] = 35
    """Documents of RST-DT's folder `TRAINING` for validation, at most a fifth of it; `TEST` is test
    (the source is the folder above both)."""

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield label, relation and the units of both subtrees, for each inner node of the tree.

        Raises `ConfigError` for a document without a tree.
        """
        tree = annotation_layer(document, document.rst, "rst")
        spans = zip(tree.start, tree.end, strict=True)
        texts = [" ".join(document.text[a:b].split()) for a, b in spans]
        nodes = zip(tree.nuclearity, tree.relation, tree.left, tree.right, strict=True)
        for nuclearity, relation, left, right in nodes:
            name = class_of(relation)
            if not name:
                reject(f"{WITHOUT_CLASS} {relation}")
                continue
            left_units, right_units = (
                [texts[i] for i in tree.edus(node)] for node in (left, right)
            )
            yield Candidate((f"{nuclearity}-{name}", relation, left_units, right_units))

    def prescribed(
        self, documents: Mapping[str, tuple[str, int]], target: Target
    ) -> Division | None:
        """Return the splits of the table or, without a table, the splits of RST-DT's folders."""
        splits = {name: _split_of_folder(name) for name in documents}
        if self.table or not documents or not all(splits.values()):
            return super().prescribed(documents, target)
        training = [name for name, split in splits.items() if split == "train"]
        stage = f"{target.seed}/{target.stage.name}"
        training.sort(key=lambda name: (stable_id(f"{stage}/{name}"), name))
        number = min(self.validation_documents, len(training) // 5)
        splits |= dict.fromkeys(training[:number], "validation")
        reason = f"RST-DT's folders, {number} documents of TRAINING for validation"
        return Division.of(splits, reason)

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write all nodes, document by document; the labels are those that occur in the data."""
        for reason in sorted(r for r in dataset.rejects if r.startswith(f"{WITHOUT_CLASS} ")):
            number, relation = dataset.rejects.pop(reason), reason.partition(" ")[2]
            dataset.reject(WITHOUT_CLASS, number)
            dataset.note(f"The relation `{relation}` has no class: {number:,} nodes left out.")
        labels = candidates.engine.rows("select distinct label from candidate order by label")
        names = [label for (label,) in labels]
        self.write_labelled(names, rst_schema(names), candidates, dataset)


def _split_of_folder(name: str) -> str:
    """Return the split of RST-DT's folder in a document's id, or "" if it has none."""
    parts = PurePosixPath(name).parts[:-1]
    return next((FOLDERS[part.upper()] for part in parts if part.upper() in FOLDERS), "")


def class_of(relation: str) -> str:
    """Return the class of an annotated relation, with or without suffixes; "" if it is unknown."""
    # rstWeb writes `joint_m` for the multinuclear, `joint_r` for the satellite's use of a name.
    name = relation.strip().lower().removesuffix("_m").removesuffix("_r").replace("_", "-")
    while name not in _CLASS_OF:
        suffix = next((end for end in _SUFFIXES if name.endswith(end)), "")
        if not suffix:
            return ""
        name = name.removesuffix(suffix)
    return _CLASS_OF[name]
