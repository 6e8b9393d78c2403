"""Whether a model is judged on documents that it was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpora.errors import InputError
from corpora.rng import stable_id
from corpora.splits.division import Division
from corpora.splits.stratification import Ints
from corpora.store.atomic import is_complete
from corpora.store.rows import readable

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

    def key(name: str) -> int:
        whole, _, number = name.rpartition("#")
        known = (document for document in (name, whole if number.isdigit() else "") if document)
        return next((stable_id(document) for document in known if document in division), 0)

    def documents(parts: Iterable[Part], split: str) -> Iterator[tuple[list[int], Ints]]:
        """Batch by batch: documents by their keys (0 for none), each row's place among them."""
        for folder, config in parts:
            if not is_complete(folder):
                raise InputError("is no finished dataset", where=str(folder), hint="build it again")
            for path in sorted(folder.glob(f"{config or '*'}/{split}-*.parquet")):
                with readable(path) as file:
                    column = next((c for c in COLUMNS if c in file.schema_arrow.names), None)
                    if column is None:
                        yield [0], np.zeros(file.metadata.num_rows, np.int64)
                        continue
                    for batch in file.iter_batches(columns=[column]):
                        names = pa.array(batch[0]).dictionary_encode()
                        yield [*map(key, names.dictionary.to_pylist())], names.indices.to_numpy()

    known = {key for keys, _ in documents(trained, "train") for key in keys} - {0}
    rows = seen = 0
    for keys, places in documents(judged, "test"):
        rows += len(places)
        seen += int(np.array([key in known for key in keys], bool)[places].sum())
    return {"rows": rows, "rows_seen": seen}
