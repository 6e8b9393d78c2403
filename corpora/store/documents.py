"""Documents as Parquet shards, with all layers: a layer is a struct of list columns, null where a
document does not have it.

The bytes depend on the documents only: fixed compression, row groups cut by the number and the
size of documents. Memory holds one row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpora.document import Document, Relation, RstTree, Sections, Spans, Tokens, Turns
from corpora.errors import InputError
from corpora.store.atomic import replacing
from corpora.store.rows import readable

Folders = Path | Sequence[Path]

DOCS_PER_SHARD = 256
_DOCS_PER_GROUP = 64
_CHARS_PER_GROUP = 8 << 20
PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "write_page_checksum": True,
}

_ABOUT = ("id", "group", "source", "licence", "language", "title", "url", "author", "split")
_LABELS = (*_ABOUT, "text")
_LAYERS: dict[str, type] = {
    "sections": Sections,
    "paragraphs": Spans,
    "sentences": Spans,
    "turns": Turns,
    "tokens": Tokens,
    "rst": RstTree,
}
_STRINGS = pa.list_(pa.string())
_SPAN_LIST = pa.list_(pa.list_(pa.int32(), 2))
_RELATION = pa.struct(
    {
        "kind": pa.string(),
        "connective": pa.string(),
        "connective_spans": _SPAN_LIST,
        "arg1_spans": _SPAN_LIST,
        "arg2_spans": _SPAN_LIST,
        "senses": _STRINGS,
        "where": pa.string(),
    }
)


def _layer_type(layer: type) -> pa.DataType:
    kinds = {"list[int]": pa.list_(pa.int32()), "list[str]": _STRINGS}
    return pa.struct([(field.name, kinds[str(field.type)]) for field in fields(layer)])


DOCUMENTS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in _LABELS),
        pa.field("categories", _STRINGS, nullable=False),
        *(pa.field(name, _layer_type(layer)) for name, layer in _LAYERS.items()),
        pa.field("relations", pa.list_(_RELATION)),
    ]
)
SPLIT_SENTENCES = "split_sentences"
SPLIT = DOCUMENTS.append(pa.field(SPLIT_SENTENCES, _layer_type(Spans)))
"""The schema of documents that a splitter has been over: its sentences stand beside the source's
own, and its name in the schema's metadata."""


def write_documents(
    documents: Iterable[Document], folder: Path, *, docs_per_shard: int = DOCS_PER_SHARD
) -> int:
    """Write documents to `folder/documents-00000.parquet` and on; return how many there are.

    Each shard appears by a rename. Shards that are there are kept (their documents are taken
    from `documents` and dropped), so that a broken run goes on.
    """
    iterator = iter(documents)
    count = shard = 0
    # The first shard is written even without a document: an empty result is not a missing one.
    while (first := next(iterator, None)) is not None or shard == 0:
        rows = chain(() if first is None else (first,), islice(iterator, docs_per_shard - 1))
        path = folder / f"documents-{shard:05d}.parquet"
        shard += 1
        if path.exists():
            count += sum(1 for _ in rows)
            continue
        with replacing(path) as partial, pq.ParquetWriter(partial, DOCUMENTS, **PARQUET) as writer:
            for group in _groups(rows):
                writer.write_batch(document_batch(group))
                count += len(group)
    return count


def _groups(documents: Iterable[Document]) -> Iterator[list[Document]]:
    group: list[Document] = []
    size = 0
    for document in documents:
        group.append(document)
        size += len(document.text)
        if len(group) == _DOCS_PER_GROUP or size > _CHARS_PER_GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def document_batch(documents: Sequence[Document]) -> pa.RecordBatch:
    """A record batch of the schema `DOCUMENTS`, one row a document."""
    columns: list[pa.Array] = []
    for field in DOCUMENTS:
        values = [getattr(document, field.name) for document in documents]
        if field.name in _LAYERS:
            columns.append(layer_column(values, field.name))
            continue
        if field.name == "relations":
            values = [None if row is None else [*map(asdict, row)] for row in values]
        columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENTS)


def layer_column(rows: list[Any], name: str) -> pa.StructArray:
    """The column of a layer, null where a document does not have it."""
    kind = SPLIT.field(name).type
    missing = pa.array([row is None for row in rows])
    children = [
        pa.array([None if row is None else getattr(row, f.name) for row in rows], f.type)
        for f in kind
    ]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=missing)


def iter_documents(folder: Folders) -> Iterator[Document]:
    """The documents of one folder or several, in the order in which they were written.

    Their sentences are the splitter's where `corpora.sentences.shards` made the folder, else the
    source's own. Raises `InputError` for a folder without shards and for a shard that cannot be
    read.
    """
    for shard in shards_of(folder):
        yield from documents_in(shard)


def documents_in(shard: Path) -> Iterator[Document]:
    """The documents of one shard."""
    for batch in row_groups(shard):
        yield from documents_of(batch)


def settled_splits(folder: Path) -> Iterator[tuple[str, str]]:
    """Id of each document of a folder, and the split that its source says, "" for none."""
    for shard in shards_of(folder):
        for batch in row_groups(shard, ["id", "split"]):
            yield from zip(batch["id"].to_pylist(), batch["split"].to_pylist(), strict=True)


class DocumentSizes:
    """Id, group and number of characters of each document of a folder, read without its layers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        for shard in shards_of(self.folder):
            for batch in row_groups(shard, ["id", "group", "text"]):
                columns = batch["id"], batch["group"], pc.utf8_length(batch["text"])
                yield from zip(*(column.to_pylist() for column in columns), strict=True)


def shards_of(folders: Folders, stem: str = "documents") -> list[Path]:
    """The shards `STEM-NUMBER.parquet` of the folders, in the order of their numbers.

    Raises `InputError` for a folder without any.
    """
    paths: list[Path] = []
    for folder in [folders] if isinstance(folders, Path) else folders:
        found = folder.glob(f"{stem}-*.parquet")
        # Numbers have at least five digits: 100000 comes after 99999.
        if not (shards := sorted(found, key=lambda path: (len(path.name), path.name))):
            raise InputError(
                f"no {stem}-*.parquet in it", where=str(folder), hint="run the stage that writes it"
            )
        paths += shards
    return paths


def row_groups(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The row groups of a shard, with the columns that are asked for (all without a list)."""
    with readable(path) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns, use_threads=False).combine_chunks()
            yield from table.to_batches()


def documents_of(batch: pa.RecordBatch) -> Iterator[Document]:
    """The documents of a record batch, the inverse of `document_batch`.

    Sentences are the splitter's where the batch has them.
    """
    columns: dict[str, list[Any]] = {n: batch.column(n).to_pylist() for n in _LABELS}
    columns["categories"] = [tuple(row) for row in batch.column("categories").to_pylist()]
    for name, layer in _LAYERS.items():
        split = name == "sentences" and SPLIT_SENTENCES in batch.schema.names
        columns[name] = _layers(batch.column(SPLIT_SENTENCES if split else name), layer)
    columns["relations"] = [
        None if rows is None else [Relation(**_frozen(row)) for row in rows]
        for rows in batch.column("relations").to_pylist()
    ]
    for row in zip(*columns.values(), strict=True):
        yield Document(**dict(zip(columns, row, strict=True)))


def _layers(column: pa.StructArray, layer: type) -> list[Any]:
    """A struct column as objects of `layer`, `None` where the struct is null."""
    valid = column.is_valid().to_pylist()
    if not any(valid):
        return [None] * len(valid)
    parts = []
    for field in fields(layer):
        lists = column.field(field.name)
        # Faster than `to_pylist` of lists, which makes scalars first.
        integers = pa.types.is_integer(lists.values.type)
        flat = lists.values.to_numpy().tolist() if integers else lists.values.to_pylist()
        parts.append([flat[start:end] for start, end in pairwise(lists.offsets.to_pylist())])
    rows = zip(*parts, strict=True)
    return [layer(*row) if ok else None for ok, row in zip(valid, rows, strict=True)]


def _frozen(value: Any) -> Any:
    """Lists as tuples, within a table as well."""
    if isinstance(value, dict):
        return {name: _frozen(item) for name, item in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
