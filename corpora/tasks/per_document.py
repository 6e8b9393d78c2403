"""Datasets with a row a document: sentences, and columns that run along them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from corpora.document import Document
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.target import Divided, Target, split_candidates

DOCUMENTS_PER_BATCH = 64
ROWS_PER_GROUP = 256


def build(
    documents: Iterable[Document],
    settings: Divided,
    target: Target,
    *,
    schema: pa.Schema,
    card: Card,
    kept: Callable[[Document, DatasetFolder], tuple[list[str], str] | None],
    rows: Callable[[pa.RecordBatch, str], pa.RecordBatch],
    said: Callable[[DatasetFolder], None] = lambda dataset: None,
) -> dict[str, Any]:
    """Collect what is `kept` of each document, split, and write its row; returns the manifest.

    `kept` gives the sentences and a note of its own (a candidate's id is free), nothing for a
    document that it leaves out; `rows` makes rows of candidates of a split; `said` adds to the
    card at the end.
    """
    with target.dataset(card) as dataset, target.pool() as pool:
        for document in documents:
            found = kept(document, dataset)
            pool.add(document, [found[0]] if found else [], [found[1]] if found else [])
        for split, chosen in split_candidates(pool, settings, dataset):
            writer = dataset.writer(
                "default", split, schema, texts=("sentences",), rows_per_group=ROWS_PER_GROUP
            )
            for batch in pool.read(chosen, DOCUMENTS_PER_BATCH):
                dataset.count_licences(batch["licence"])
                writer.append(rows(batch, split))
        said(dataset)
        return dataset.finish("default")
