"""Whether a model is judged on documents that it was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import InputError
from corpora.rng import stable_id
from corpora.splits.division import Division
from corpora.store.atomic import is_complete

Part = tuple[Path, str]
"""A dataset folder and the name of a configuration, "" for all of them."""

COLUMNS = ("doc", "document")


def rows_seen(
    trained: Iterable[Part], judged: Iterable[Part], division: Division
) -> dict[str, int]:
    """How many test rows `judged` has, and how many are of documents in the training of `trained`.

    A row is of the document that its column `doc` or `document` names, or of which it names part
    `#NUMBER`: of a document of `division`, or of none. Memory: the keys of the documents of
    `trained`. Raises `InputError` for a folder that is no whole dataset.
    """
    known: set[int] = set()
    for part in trained:
        for keys, _ in _documents(part, "train", division):
            known.update(keys)
    known.discard(0)
    rows = seen = 0
    for part in judged:
        for keys, codes in _documents(part, "test", division):
            rows += len(codes)
            flags = np.fromiter((key in known for key in keys), bool, len(keys))
            seen += int(flags[codes].sum())
    return {"rows": rows, "rows_seen": seen}


def _documents(
    part: Part, split: str, division: Division
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Batch by batch: documents by their keys (0 for none), and each row's place among them."""
    folder, config = part
    if not is_complete(folder):
        raise InputError("is no finished dataset", where=str(folder), hint="build it again")
    for path in sorted(folder.glob(f"{config or '*'}/{split}-*.parquet")):
        with pq.ParquetFile(path) as file:
            column = next((name for name in COLUMNS if name in file.schema_arrow.names), None)
            if column is None:
                yield [0], np.zeros(file.metadata.num_rows, np.int64)
                continue
            for batch in file.iter_batches(columns=[column]):
                names = pa.array(batch[0]).dictionary_encode()
                keys = [_key(name, division) for name in names.dictionary.to_pylist()]
                yield keys, names.indices.to_numpy()


def _key(name: str, division: Division) -> int:
    """The key of a document, or of the whole that it is part `#NUMBER` of."""
    whole, _, number = name.rpartition("#")
    for document in (name, whole if number.isdigit() else ""):
        if document and document in division:
            return stable_id(document)
    return 0
