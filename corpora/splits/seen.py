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

    def documents(parts: Iterable[Part], split: str) -> Iterator[tuple[int, int]]:
        """The key of each document (0 for none) of each file, and its number of rows there."""
        for folder, config in parts:
            if not is_complete(folder):
                raise InputError("is no finished dataset", where=str(folder), hint="build it again")
            for path in sorted(folder.glob(f"{config or '*'}/{split}-*.parquet")):
                with readable(path) as file:
                    column = next((c for c in COLUMNS if c in file.schema_arrow.names), None)
                    if column is None:
                        yield 0, file.metadata.num_rows
                        continue
                    for one in file.read([column])[column].value_counts().to_pylist():
                        yield key(one["values"]), one["counts"]

    known = {key for key, _ in documents(trained, "train")} - {0}
    rows = list(documents(judged, "test"))
    seen = sum(number for key, number in rows if key in known)
    return {"rows": sum(number for _, number in rows), "rows_seen": seen}
