"""Datasets with a row a document: sentences, and columns that run along them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from corpora.candidates import Candidates
from corpora.card import Card
from corpora.division import Division
from corpora.document import Document
from corpora.splits import SPLITS, Shares
from corpora.store import DatasetFolder, Stage, used

DOCUMENTS_PER_BATCH = 64
ROWS_PER_GROUP = 256


class Settings(Protocol):
    """A builder's settings: the shares of the documents among others."""

    @property
    def train(self) -> float: ...
    @property
    def validation(self) -> float: ...
    @property
    def test(self) -> float: ...


def build(
    documents: Iterable[Document],
    folder: Path,
    settings: Settings,
    *,
    schema: pa.Schema,
    card: Card,
    kept: Callable[[Document, DatasetFolder], tuple[list[str], str] | None],
    rows: Callable[[pa.RecordBatch, str], pa.RecordBatch],
    seed: int,
    stage: Stage,
    division: Division | None = None,
    said: Callable[[DatasetFolder], None] = lambda dataset: None,
) -> dict[str, Any]:
    """Collect what is `kept` of each document, split, and write its row; returns the manifest.

    `kept` gives the sentences and a note of its own (a candidate's id is free), nothing for a
    document that it leaves out; `rows` makes rows of candidates of a split; `said` adds to the
    card at the end.
    """
    with (
        DatasetFolder(folder, stage.dataset_name, stage, card) as dataset,
        Candidates(
            folder / ".candidates.jsonl", seed=seed, stage=stage.name, division=division
        ) as pool,
    ):
        for document in documents:
            found = kept(document, dataset)
            pool.add(document, [found[0]] if found else [], [found[1]] if found else [])
        assignment = pool.assign(Shares(settings.train, settings.validation, settings.test))
        distinct = pool.distinct()
        dataset.reject("exact_duplicate", len(pool) - distinct.size)
        dataset.languages = pool.languages
        dataset.details |= {"split": assignment.to_dict(), "settings": used(settings, seed)}
        for split in SPLITS:
            writer = dataset.writer(
                "default", split, schema, texts=("sentences",), rows_per_group=ROWS_PER_GROUP
            )
            chosen = pool.of_split(split, assignment, distinct)
            for batch in pool.read(chosen, DOCUMENTS_PER_BATCH):
                dataset.count_licences(batch["licence"])
                writer.append(rows(batch, split))
        said(dataset)
        return dataset.finish("default")
