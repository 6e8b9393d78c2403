"""One division of documents into splits, for all datasets that are made of them.

A model that was trained on one dataset is judged on another; drawn anew for each, the second's
test split would hold documents of the first's training split. So a build divides its documents
once, and hands the division to every builder (docs/decisions/032-one-division.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.atomic import replacing
from corpora.errors import InputError
from corpora.rng import stable_id
from corpora.splits import SPLITS, Shares, assign

FILE = "division.parquet"
SCHEMA = pa.schema(
    [
        pa.field("doc", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
    ]
)
STAGE = "division"
"""The name in the draw: the same for every division, so that equal groups are drawn alike."""


def divide(
    sizes: Iterable[tuple[str, str, int]], shares: Shares, folder: Path, *, seed: int
) -> dict[str, Any]:
    """Divide documents (id, group, characters) and write `folder/division.parquet`.

    By group or by document as `corpora.splits.assign` decides, weighed by characters. A document
    that comes more than once, as text and annotated, counts once, with its first group. Returns
    counts for the manifest.
    """
    documents: dict[str, tuple[str, int]] = {}
    for name, group, size in sizes:
        documents.setdefault(name, (group, size))
    assignment = assign(documents, shares, seed=seed, stage=STAGE)
    names = sorted(documents)
    columns = [
        pa.array(column, pa.string())
        for column in (
            names,
            [documents[name][0] for name in names],
            [assignment.split[name] for name in names],
        )
    ]
    with replacing(folder / FILE) as partial:
        pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), partial, compression="zstd")
    found = Counter(assignment.split.values())
    return {"documents": {split: found[split] for split in SPLITS}, **assignment.to_dict()}


class Division:
    """The split of every document of a build: about 9 bytes of memory each."""

    def __init__(self, split: Mapping[str, str]) -> None:
        keys = np.fromiter(map(stable_id, split), np.uint64, len(split))
        codes = np.fromiter(map(SPLITS.index, split.values()), np.int8, len(split))
        order = np.argsort(keys, kind="stable")
        self._keys, self._codes = keys[order], codes[order]

    @classmethod
    def read(cls, folders: Sequence[Path]) -> Division:
        """The divisions that `divide` wrote into `folders`, as one."""
        found: dict[str, str] = {}
        for folder in folders:
            table = pq.read_table(folder / FILE, columns=["doc", "split"])
            found.update(zip(table["doc"].to_pylist(), table["split"].to_pylist(), strict=True))
        return cls(found)

    def split_of(self, document: str) -> str:
        """The split of a document, or of the whole that it is part `#NUMBER` of.

        Raises `InputError` for a document that was not divided.
        """
        for name in (document, document.rpartition("#")[0]):
            key = np.uint64(stable_id(name))
            at = int(np.searchsorted(self._keys, key))
            if at < len(self._keys) and self._keys[at] == key:
                return SPLITS[self._codes[at]]
        raise InputError(
            f"the document {document!r} is in no split",
            hint="the documents were divided before they changed: remove the folder of the stage "
            "`division` and run again",
        )
