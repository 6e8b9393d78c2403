"""Rows on their way into Parquet: regrouped, described, written the same way every time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

CLASS_NAMES = b"discorpora:class_names"
ROWS_IN_CACHE = 512


class RowGroups:
    """Collects record batches and hands them on as tables of exactly `size` rows."""

    def __init__(self, schema: pa.Schema, size: int) -> None:
        self.schema, self.size = schema, size
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """Take `batch`; yield the groups that are full now."""
        while batch.num_rows:
            room = self.size - self._rows
            piece, batch = batch.slice(0, room), batch.slice(room)
            self._batches.append(piece)
            self._rows += piece.num_rows
            if self._rows == self.size:
                yield from self.rest()

    def rest(self) -> Iterator[pa.Table]:
        """Yield what is left, if anything."""
        if self._rows:
            # One chunk a column: the encoder's pages, and so the bytes, depend on nothing else.
            yield pa.Table.from_batches(self._batches, self.schema).combine_chunks()
            self._batches, self._rows = [], 0


def open_parquet(
    path: Path,
    schema: pa.Schema,
    metadata: Mapping[str, str] | None = None,
    *,
    texts: Sequence[str] = (),
) -> pq.ParquetWriter:
    """A Parquet writer with this project's settings; the schema names its Hub features.

    `texts`: columns whose values hardly repeat. They are written without a dictionary, which
    would be given up at its size limit anyway, and without a least and a greatest value.
    """
    kept = {**(schema.metadata or {}), **hub_metadata(schema)}
    kept.update({key.encode(): value.encode() for key, value in (metadata or {}).items()})
    others = [path for field in schema if field.name not in texts for path in _leaves(field)]
    return pq.ParquetWriter(
        path,
        schema.with_metadata(kept),
        compression="zstd",
        compression_level=3,
        use_dictionary=others if texts else True,
        write_statistics=others if texts else True,
    )


def _leaves(field: pa.Field) -> list[str]:
    """The columns of a field as Parquet names them."""
    if pa.types.is_struct(field.type):
        return [f"{field.name}.{leaf}" for child in field.type for leaf in _leaves(child)]
    if pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type):
        inner = pa.field("element", field.type.value_type)
        return [f"{field.name}.list.{leaf}" for leaf in _leaves(inner)]
    return [field.name]


def class_label(name: str, names: Iterable[str]) -> pa.Field:
    """An integer field whose values are positions in `names` (a `ClassLabel` for the Hub)."""
    stored = json.dumps(list(names), ensure_ascii=False)
    return pa.field(name, pa.int64(), nullable=False, metadata={CLASS_NAMES: stored})


def class_names(field: pa.Field) -> list[str] | None:
    """The label names of a field made by `class_label`, or None for any other field."""
    stored = (field.metadata or {}).get(CLASS_NAMES)
    return None if stored is None else list(json.loads(stored))


def hub_features(schema: pa.Schema) -> dict[str, Any]:
    """The columns of `schema` as `datasets.Features.to_dict` writes them."""
    return {field.name: _hub_feature(field) for field in schema}


def hub_metadata(schema: pa.Schema) -> dict[bytes, bytes]:
    """The Parquet metadata from which `datasets` takes the features, label names included."""
    return {b"huggingface": json.dumps({"info": {"features": hub_features(schema)}}).encode()}


def _hub_feature(field: pa.Field) -> dict[str, Any]:
    names = class_names(field)
    if names is not None:
        return {"names": names, "_type": "ClassLabel"}
    return _hub_type(field.type)


def _hub_type(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_fixed_size_list(kind):
        return {"feature": _hub_type(kind.value_type), "length": kind.list_size, "_type": "List"}
    if pa.types.is_list(kind):
        return {"feature": _hub_type(kind.value_type), "_type": "List"}
    name = {"float": "float32", "double": "float64"}.get(str(kind), str(kind))
    return {"dtype": name, "_type": "Value"}


def batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Dictionaries as one record batch; a missing field is a `KeyError`, not a null."""
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for start in range(0, len(rows), ROWS_IN_CACHE):  # each is visited once a column
        some = rows[start : start + ROWS_IN_CACHE]
        for name, values in columns.items():
            values.extend(map(itemgetter(name), some))
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
