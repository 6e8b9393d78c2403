"""Whether a model is judged on documents that it was trained on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

from corpora.rng import stable_id

Part = tuple[Path, str]
"""A dataset folder and the name of a configuration, "" for all of them."""

COLUMNS = ("doc", "document")
_NUMBER = re.compile(r"#\d+$")


def rows_seen(trained: Iterable[Part], judged: Iterable[Part], split: str) -> dict[str, int]:
    """How many rows of `split` of `judged` there are, and how many are of documents in `trained`.

    `trained` is what models learned from: its split `train`. A row is of the document that its
    column `doc` or `document` names, or of which it names part `#NUMBER`; where a configuration
    has neither column its rows are of none. Memory: the keys of the documents of `trained`.
    """
    known = {key for part in trained for key in _keys(part, "train")}
    rows = [key in known for part in judged for key in _keys(part, split)]
    return {"rows": len(rows), "rows_seen": sum(rows)}


def _keys(part: Part, split: str) -> Iterator[int]:
    """The document of each row; 0 where a row has none."""
    folder, config = part
    for path in sorted(folder.glob(f"{config or '*'}/{split}-*.parquet")):
        with pq.ParquetFile(path) as file:
            column = next((name for name in COLUMNS if name in file.schema_arrow.names), None)
            if column is None:
                yield from (0 for _ in range(file.metadata.num_rows))
                continue
            last, key = "", 0
            for batch in file.iter_batches(columns=[column]):
                for name in batch[0].to_pylist():
                    if name != last:  # the rows of a document often stand together
                        last, key = name, stable_id(_NUMBER.sub("", name))
                    yield key
