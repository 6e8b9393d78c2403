"""Writing rows to Parquet, with the Hub's features in the schema; equal rows give equal bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import InputError, unreadable
from corpora.store.atomic import replacing, sha256

PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "write_page_checksum": True,
}
"""The settings of all Parquet files."""
CLASS_NAMES = b"discorpora:class_names"
ROWS_AT_ONCE = 512
"""Dictionaries that become one record batch."""

EXAMPLES, AMONG = 4, 64
"""The examples of a split, and the first rows among which they are chosen."""
LONGEST_TEXT = 160
LONGEST_LIST = 6


def class_label(name: str, names: Iterable[str]) -> pa.Field:
    """Return an integer field whose values are indices of `names` (a `ClassLabel` for the Hub)."""
    stored = json.dumps(list(names), ensure_ascii=False)
    return pa.field(name, pa.int64(), nullable=False, metadata={CLASS_NAMES: stored})


def hub_features(schema: pa.Schema) -> dict[str, Any]:
    """Return the columns of `schema` as `datasets.Features.to_dict` writes them."""
    features = {}
    for field in schema:
        features[field.name] = _hub_type(field.type)
        if names := (field.metadata or {}).get(CLASS_NAMES):
            features[field.name] = {"names": json.loads(names), "_type": "ClassLabel"}
    return features


def _hub_type(kind: pa.DataType) -> dict[str, Any]:
    """Return an Arrow type as `datasets.Features.to_dict` writes it."""
    if pa.types.is_fixed_size_list(kind):
        return {"feature": _hub_type(kind.value_type), "length": kind.list_size, "_type": "List"}
    if pa.types.is_list(kind):
        return {"feature": _hub_type(kind.value_type), "_type": "List"}
    name = {"float": "float32", "double": "float64"}.get(str(kind), str(kind))
    return {"dtype": name, "_type": "Value"}


def open_parquet(
    path: Path,
    schema: pa.Schema,
    metadata: Mapping[str, str] | None = None,
    *,
    texts: Sequence[str] = (),
) -> pq.ParquetWriter:
    """Open a Parquet writer with the settings `PARQUET`; the Hub's features are in the schema.

    `texts` are columns whose values hardly repeat: they are written without a dictionary, which
    would soon reach its size limit, and without a minimum and maximum.
    """
    repeating = []
    for field in schema:
        column, kind = field.name, field.type
        while pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
            column, kind = f"{column}.list.element", kind.value_type  # as Parquet names it
        if field.name not in texts:
            repeating.append(column)
    features = json.dumps({"info": {"features": hub_features(schema)}})
    all_metadata = {**(schema.metadata or {}), b"huggingface": features, **(metadata or {})}
    return pq.ParquetWriter(
        path,
        schema.with_metadata(all_metadata),
        **PARQUET,
        use_dictionary=repeating if texts else True,
        write_statistics=repeating if texts else True,
    )


def regrouped(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `batches` as batches of exactly `size` rows, except for the last."""
    group: list[pa.RecordBatch] = []
    rows_to_fill = size
    for batch in batches:
        while batch.num_rows:
            group.append(batch.slice(0, rows_to_fill))
            rows_to_fill -= group[-1].num_rows
            batch = batch.slice(group[-1].num_rows)
            if not rows_to_fill:
                # One chunk a column: the encoder's pages, and so the bytes, depend on nothing else.
                yield pa.concat_batches(group)
                group, rows_to_fill = [], size
    if group:
        yield pa.concat_batches(group)


def record_batches(
    rows: Iterable[Mapping[str, Any]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield dictionaries as record batches of `ROWS_AT_ONCE`; `KeyError` for a missing column."""
    rest = iter(rows)
    while chunk := list(islice(rest, ROWS_AT_ONCE)):
        arrays = [pa.array(map(itemgetter(field.name), chunk), field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def write_parquet(
    path: Path,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    metadata: Mapping[str, str] | None = None,
    *,
    rows_per_group: int = 16384,
) -> int:
    """Write record batches as one Parquet file, and return the number of rows.

    `path` appears by one rename. Each row group has `rows_per_group` rows, so that the bytes depend
    on the rows and not on the batches.
    """
    rows = 0
    with replacing(path) as partial, open_parquet(partial, schema, metadata) as writer:
        for group in regrouped(batches, rows_per_group):
            rows += group.num_rows
            writer.write_batch(group, rows_per_group)
    return rows


def parquet_batches(path: Path, **options: Any) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a Parquet file; `options` are those of `ParquetFile.iter_batches`.

    Raises `InputError` as `readable` does.
    """
    with readable(path) as file:
        yield from file.iter_batches(**options)


@contextmanager
def readable(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; raises `InputError` if it is lost, damaged, or no Parquet file."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise unreadable(error, path, "see: discorpora verify") from error


class SplitWriter:
    """Streams rows to `<folder>/<split>-00000-of-0000N.parquet`.

    A split without rows has no file, since `datasets` refuses an empty split. N is known at the
    end, so shards have a temporary name until `close`. Shards and row groups have fixed numbers of
    rows: the bytes depend on the rows alone. `texts` and `long` name string columns (or lists of
    strings) whose values hardly repeat; the overlap between splits is counted for `texts` only.
    `schema` is that of the rows; `rows_per_shard` and `rows_per_group` are maximum numbers.
    """

    def __init__(
        self,
        folder: Path,
        split: str,
        schema: pa.Schema,
        *,
        texts: Sequence[str] = (),
        long: Sequence[str] = (),
        rows_per_shard: int = 1_048_576,
        rows_per_group: int = 16_384,
    ) -> None:
        self.folder, self.split, self.schema = folder, split, schema
        self.files = folder / f"{split}-*.parquet"
        self.texts, self.long = tuple(texts), tuple(long)
        self.rows = 0
        self.features = hub_features(schema)
        self._labels = {
            name: (feature["names"], np.zeros(len(feature["names"]), np.int64))
            for name, feature in self.features.items()
            if "names" in feature
        }
        self._rows_per_group = rows_per_group
        self._groups_per_shard = max(1, rows_per_shard // rows_per_group)
        self._waiting: list[pa.RecordBatch] = []  # fewer rows than a group
        self._groups_written = 0
        self._shards: list[Path] = []
        self._open: pq.ParquetWriter | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def append(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a record batch; raises `InputError` for a label without a class."""
        self.rows += batch.num_rows
        for name, (names, counts) in self._labels.items():
            labels = batch[name].to_numpy()
            unknown = labels[(labels < 0) | (labels >= len(names))]
            if unknown.size:
                raise InputError(
                    f"label {unknown[0]} is none of the {len(names)} classes of {name!r}",
                    where=str(self.folder / self.split),
                    hint="give the number of a class of the schema, from 0",
                )
            counts += np.bincount(labels, minlength=len(names))
        self._waiting.append(batch)
        if sum(each.num_rows for each in self._waiting) >= self._rows_per_group:
            self._write_groups()

    def extend(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows given as dictionaries; raises `KeyError` for a missing column."""
        for batch in record_batches(rows, self.schema):
            self.append(batch)

    def _write_groups(self, *, rest: bool = False) -> None:
        """Write the full row groups, and with `rest` also the last, smaller one."""
        groups, self._waiting = regrouped(self._waiting, self._rows_per_group), []
        for group in groups:
            if group.num_rows < self._rows_per_group and not rest:
                self._waiting = [group]
                return
            if self._open is None or self._groups_written % self._groups_per_shard == 0:
                self.stop()
                self._shards.append(self.folder / f".{self.split}-{len(self._shards):05d}.writing")
                texts = self.texts + self.long
                self._open = open_parquet(self._shards[-1], self.schema, texts=texts)
            self._open.write_batch(group, self._rows_per_group)
            self._groups_written += 1

    def stop(self) -> None:
        """Close the open file, if any."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def close(self) -> dict[str, Any]:
        """Give the files their final names, and return the split's entry in the manifest."""
        self._write_groups(rest=True)
        self.stop()
        size, shards, examples = 0, [], []
        for number, temporary in enumerate(self._shards):
            path = self.folder / f"{self.split}-{number:05d}-of-{len(self._shards):05d}.parquet"
            temporary.replace(path)
            with pq.ParquetFile(path) as file:
                metadata, groups = file.metadata, range(file.metadata.num_row_groups)
                if not number:
                    rows = next(file.iter_batches(AMONG)).to_pylist()
                    examples = _choose_examples(rows, [*self._labels, self.schema.names[0]])
            # Bytes of the columns before compression; unlike Arrow's, they never vary.
            size += sum(metadata.row_group(i).total_byte_size for i in groups)
            shard = {"file": f"{self.folder.name}/{path.name}", "rows": metadata.num_rows}
            shards.append({**shard, "bytes": path.stat().st_size, "sha256": sha256(path)})
        labels = {
            name: dict(zip(names, counts.tolist(), strict=True))
            for name, (names, counts) in self._labels.items()
        }
        return {
            "rows": self.rows,
            "bytes": size,
            "labels": labels,
            "shards": shards,
            "examples": [{k: _shorten(v) for k, v in row.items()} for row in examples],
        }


def _choose_examples(rows: list[dict[str, Any]], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return `EXAMPLES` rows for the card: those with most values that no earlier row has in
    `columns`."""
    earlier_values: set[tuple[str, str]] = set()

    def count_new_values(row: dict[str, Any]) -> int:
        """Return the number of values that no row before has, and record them."""
        values = {(column, str(row[column])) for column in columns}
        number = len(values - earlier_values)
        earlier_values.update(values)
        return number

    return sorted(rows, key=count_new_values, reverse=True)[:EXAMPLES]


def _shorten(value: Any) -> Any:
    """Return a value of an example with long texts and lists cut, for the card."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return value[: LONGEST_TEXT - 1] + "…"
    if isinstance(value, list):
        head = [_shorten(item) for item in value[:LONGEST_LIST]]
        return head if len(value) <= LONGEST_LIST else [*head, f"… ({len(value)} in all)"]
    return value
