"""Whether a model is judged on documents that it was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from corpora.errors import InputError
from corpora.rng import stable_id
from corpora.splits.division import Division
from corpora.store.atomic import is_complete
from corpora.store.rows import readable

Part = tuple[Path, str]
"""A dataset folder and the name of a configuration, "" for all of them."""

COLUMNS = ("doc", "document")
"""Columns that may name the document of a row."""


def rows_seen(
    trained: Iterable[Part], judged: Iterable[Part], division: Division
) -> dict[str, int]:
    """Return the number of test rows of `judged` (`rows`), and of those seen in training.

    A row counts as seen (`rows_seen`) if its document has training rows in `trained`. The column
    `doc` or `document` of a row names its document, or a part of it as `DOCUMENT#NUMBER`; rows of
    documents that are not in `division` are not seen. Memory holds the keys of the documents of
    `trained`. Raises `InputError` for a folder that is not a complete dataset.
    """

    def key(name: str) -> int:
        """Return the key of the document that a row names, 0 if it is not in the division."""
        document, _, number = name.rpartition("#")
        names = filter(None, (name, document if number.isdigit() else ""))
        return next((stable_id(name) for name in names if name in division), 0)

    def documents(parts: Iterable[Part], split: str) -> Iterator[tuple[int, int]]:
        """Yield (key, number of rows) of each document in each file; the key is 0 for none."""
        for folder, config in parts:
            if not is_complete(folder):
                raise InputError("is no finished dataset", where=str(folder), hint="build it again")
            for path in sorted(folder.glob(f"{config or '*'}/{split}-*.parquet")):
                with readable(path) as file:
                    column = next((c for c in COLUMNS if c in file.schema_arrow.names), None)
                    if column is None:
                        yield 0, file.metadata.num_rows
                        continue
                    for value in file.read([column])[column].value_counts().to_pylist():
                        yield key(value["values"]), value["counts"]

    trained_keys = {key for key, _ in documents(trained, "train")} - {0}
    counts = list(documents(judged, "test"))
    seen_count = sum(number for key, number in counts if key in trained_keys)
    return {"rows": sum(number for _, number in counts), "rows_seen": seen_count}
