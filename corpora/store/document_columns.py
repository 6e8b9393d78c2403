"""Documents as Arrow record batches, and back.

A layer is a struct of list columns, null where a document does not have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from itertools import pairwise
from typing import Any

import pyarrow as pa

from corpora.document import Document, Relation, RstTree, Sections, Spans, Tokens, Turns

_LABELS = ("id", "group", "source", "licence", "language", "title", "url", "text")
_LAYERS: dict[str, type] = {
    "sections": Sections,
    "paragraphs": Spans,
    "sentences": Spans,
    "turns": Turns,
    "tokens": Tokens,
    "rst": RstTree,
}


def _layer_type(layer: type) -> pa.DataType:
    kinds = {"list[int]": pa.int32(), "list[str]": pa.string()}
    return pa.struct([pa.field(f.name, pa.list_(kinds[str(f.type)])) for f in fields(layer)])


_SPAN_LIST = pa.list_(pa.list_(pa.int32(), 2))
_RELATION = pa.struct(
    {
        "kind": pa.string(),
        "connective": pa.string(),
        "connective_spans": _SPAN_LIST,
        "arg1_spans": _SPAN_LIST,
        "arg2_spans": _SPAN_LIST,
        "senses": pa.list_(pa.string()),
        "where": pa.string(),
    }
)
DOCUMENTS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in _LABELS),
        pa.field("categories", pa.list_(pa.string()), nullable=False),
        *(pa.field(name, _layer_type(layer)) for name, layer in _LAYERS.items()),
        pa.field("relations", pa.list_(_RELATION)),
    ]
)
SPLIT_SENTENCES = "split_sentences"
SPLIT = DOCUMENTS.append(pa.field(SPLIT_SENTENCES, _layer_type(Spans)))
"""The schema of documents that a splitter has been over: its sentences stand beside the source's
own, and its name in the schema's metadata."""


def document_batch(documents: Sequence[Document]) -> pa.RecordBatch:
    """A record batch of the schema `DOCUMENTS`, one row a document."""
    columns = [pa.array([getattr(d, name) for d in documents], pa.string()) for name in _LABELS]
    columns.append(pa.array([list(d.categories) for d in documents], pa.list_(pa.string())))
    for name in _LAYERS:
        columns.append(layer_column([getattr(d, name) for d in documents], name))
    relations = [
        None if d.relations is None else [asdict(relation) for relation in d.relations]
        for d in documents
    ]
    columns.append(pa.array(relations, pa.list_(_RELATION)))
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENTS)


def documents_of(batch: pa.RecordBatch) -> Iterator[Document]:
    """The documents of a record batch, the inverse of `document_batch`.

    Sentences are the splitter's where the batch has them.
    """
    columns: dict[str, list[Any]] = {n: batch.column(n).to_pylist() for n in _LABELS}
    columns["categories"] = [tuple(row) for row in batch.column("categories").to_pylist()]
    for name, layer in _LAYERS.items():
        columns[name] = _layers(batch.column(name), layer)
    if SPLIT_SENTENCES in batch.schema.names:
        columns["sentences"] = _layers(batch.column(SPLIT_SENTENCES), Spans)
    columns["relations"] = [_relations(rows) for rows in batch.column("relations").to_pylist()]
    for row in zip(*columns.values(), strict=True):
        yield Document(**dict(zip(columns, row, strict=True)))


def layer_column(rows: list[Any], name: str) -> pa.StructArray:
    """The column of a layer, null where a document does not have it."""
    kind = SPLIT.field(name).type
    missing = pa.array([row is None for row in rows])
    children = [
        pa.array([None if row is None else getattr(row, f.name) for row in rows], f.type)
        for f in kind
    ]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=missing)


def _layers(column: pa.StructArray, layer: type) -> list[Any]:
    """A struct column as objects of `layer`, `None` where the struct is null."""
    valid = column.is_valid().to_pylist()
    if not any(valid):
        return [None] * len(valid)
    parts = zip(*(_unlisted(column.field(f.name)) for f in fields(layer)), strict=True)
    return [layer(*part) if ok else None for ok, part in zip(valid, parts, strict=True)]


def _unlisted(column: pa.ListArray) -> list[list[Any]]:
    """A list column as Python lists; faster than `to_pylist`, which makes scalars first."""
    values = column.values
    integers = pa.types.is_integer(values.type)
    flat = values.to_numpy().tolist() if integers else values.to_pylist()
    return [flat[start:end] for start, end in pairwise(column.offsets.to_pylist())]


def _relations(rows: list[dict[str, Any]] | None) -> list[Relation] | None:
    if rows is None:
        return None
    return [Relation(**{name: _frozen(value) for name, value in row.items()}) for row in rows]


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
