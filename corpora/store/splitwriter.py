"""One split of a dataset as Parquet shards, with what the manifest says about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import InputError
from corpora.store.atomic import replacing, sha256
from corpora.store.rows import (
    RowGroups,
    batch_of,
    class_names,
    hub_features,
    open_parquet,
)

EXAMPLES = 2
LONGEST_TEXT = 160
LONGEST_LIST = 6


class SplitWriter:
    """Streams rows to `<folder>/<split>-00000-of-0000N.parquet`.

    A split without rows has no file: `datasets` refuses a split of none. N is known at the end,
    so shards carry a working name until `close`. Shards and row groups have fixed numbers of
    rows: the bytes depend on the rows alone. `texts` names string columns (or lists of strings)
    whose values hardly repeat.
    """

    def __init__(
        self,
        folder: Path,
        split: str,
        schema: pa.Schema,
        *,
        texts: Sequence[str] = (),
        rows_per_shard: int = 1_048_576,
        rows_per_group: int = 16_384,
    ) -> None:
        self.folder, self.split, self.schema, self.texts = folder, split, schema, tuple(texts)
        self.rows = 0
        self.features = hub_features(schema)
        self.examples: list[dict[str, Any]] = []
        self._rows_per_group = rows_per_group
        self._groups_per_shard = max(1, rows_per_shard // rows_per_group)
        self._groups = RowGroups(schema, rows_per_group)
        self._labels = {f.name: names for f in schema if (names := class_names(f)) is not None}
        self._label_counts = {
            name: np.zeros(len(names), np.int64) for name, names in self._labels.items()
        }
        self._shards: list[Path] = []
        self._shard_rows: list[int] = []
        self._shard_groups = 0
        self._open: pq.ParquetWriter | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def append(self, batch: pa.RecordBatch) -> None:
        """Add the rows of one record batch."""
        self.rows += batch.num_rows
        self._count(batch)
        for group in self._groups.add(batch):
            self._write(group)

    def extend(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows given as dictionaries."""
        iterator = iter(rows)
        while some := list(islice(iterator, self._rows_per_group)):
            self.append(batch_of(some, self.schema))

    def close(self) -> dict[str, Any]:
        """Finish the files under their final names; returns the split's entry in the manifest."""
        for group in self._groups.rest():
            self._write(group)
        self._close_shard()
        final = [self.folder / self._final_name(i) for i in range(len(self._shards))]
        for working, path in zip(self._shards, final, strict=True):
            with replacing(path) as partial:
                working.replace(partial)
        return {
            "rows": self.rows,
            "bytes": sum(map(_uncompressed, final)),
            "labels": self._label_table(),
            "shards": [_shard(path, n) for path, n in zip(final, self._shard_rows, strict=True)],
            "examples": self.examples,
        }

    def abandon(self) -> None:
        """Close the open file after an error; what was written stays in the partial folder."""
        if self._open is not None:
            with suppress(OSError):
                self._open.close()
            self._open = None

    def _write(self, group: pa.Table) -> None:
        if self._open is None or self._shard_groups == self._groups_per_shard:
            self._close_shard()
            self._next_shard()
        assert self._open is not None
        self._open.write_table(group, row_group_size=self._rows_per_group)
        self._shard_groups += 1
        self._shard_rows[-1] += group.num_rows

    def _next_shard(self) -> None:
        path = self.folder / f".{self.split}-{len(self._shards):05d}.writing"
        self._open = open_parquet(path, self.schema, texts=self.texts)
        self._shards.append(path)
        self._shard_rows.append(0)
        self._shard_groups = 0

    def _close_shard(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _final_name(self, index: int) -> str:
        return f"{self.split}-{index:05d}-of-{len(self._shards):05d}.parquet"

    def _count(self, batch: pa.RecordBatch) -> None:
        if len(self.examples) < EXAMPLES:
            rows = batch.slice(0, EXAMPLES - len(self.examples)).to_pylist()
            self.examples += [{k: _shortened(v) for k, v in row.items()} for row in rows]
        for name, counts in self._label_counts.items():
            labels = batch[name].to_numpy()
            unknown = labels[~((labels >= 0) & (labels < counts.size))]
            if unknown.size:
                raise InputError(
                    f"label {unknown[0]} is none of the {counts.size} classes of {name!r}",
                    where=str(self.folder / self.split),
                    hint="give the number of a class of the schema, from 0",
                )
            counts += np.bincount(labels, minlength=counts.size)

    def _label_table(self) -> dict[str, dict[str, int]]:
        return {
            name: dict(zip(names, self._label_counts[name].tolist(), strict=True))
            for name, names in self._labels.items()
        }


def _uncompressed(path: Path) -> int:
    """The bytes of a file's columns before compression; unlike Arrow's, they never vary."""
    found = pq.read_metadata(path)
    return sum(found.row_group(i).total_byte_size for i in range(found.num_row_groups))


def _shard(path: Path, rows: int) -> dict[str, Any]:
    file = f"{path.parent.name}/{path.name}"
    return {"file": file, "rows": rows, "bytes": path.stat().st_size, "sha256": sha256(path)}


def _shortened(value: Any) -> Any:
    """An example as the card shows it: long texts and lists are cut."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else value[: LONGEST_TEXT - 1] + "…"
    if isinstance(value, list):
        head = [_shortened(item) for item in value[:LONGEST_LIST]]
        return head if len(value) <= LONGEST_LIST else [*head, f"… ({len(value)} in all)"]
    return value
