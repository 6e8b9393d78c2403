"""Documents as Parquet shards, with all layers: a layer is a struct of list columns, null where a
document does not have it.

The bytes depend on the documents only: fixed compression, row groups cut by the number and the
size of documents. Memory holds one row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpora.document import Document, Relation, RstTree, Sections, Spans, Tokens, Turns
from corpora.errors import InputError
from corpora.store.atomic import replacing
from corpora.store.rows import PARQUET, readable

Folders = Path | Sequence[Path]

DOCS_PER_SHARD = 256
_DOCS_PER_GROUP = 64
_CHARS_PER_GROUP = 8 << 20

_TEXTS = ("id", "group", "source", "licence", "language", "title", "url", "author", "split", "text")
_LAYERS: dict[str, type] = {
    "sections": Sections,
    "paragraphs": Spans,
    "sentences": Spans,
    "turns": Turns,
    "tokens": Tokens,
    "rst": RstTree,
}
_STRINGS = pa.list_(pa.string())
_TYPES = {
    "str": pa.string(),
    "list[int]": pa.list_(pa.int32()),
    "list[str]": _STRINGS,
    "tuple[str, ...]": _STRINGS,
    "tuple[Span, ...]": pa.list_(pa.list_(pa.int32(), 2)),
}
"""Arrow's types of the columns of layers and relations."""


def _struct(record: type) -> pa.DataType:
    """Return the Arrow struct of a dataclass of columns."""
    return pa.struct([(field.name, _TYPES[str(field.type)]) for field in fields(record)])


DOCUMENTS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in _TEXTS),
        pa.field("categories", _STRINGS, nullable=False),
        *(pa.field(name, _struct(layer)) for name, layer in _LAYERS.items()),
        pa.field("relations", pa.list_(_struct(Relation))),
    ]
)
SPLIT_SENTENCES = "split_sentences"
SPLIT = DOCUMENTS.append(pa.field(SPLIT_SENTENCES, _struct(Spans)))
"""The schema of documents after a splitter: its sentences stand beside those of the source, and its
name in the schema's metadata."""


def write_documents(
    documents: Iterable[Document], folder: Path, *, docs_per_shard: int = DOCS_PER_SHARD
) -> int:
    """Write documents to `folder/documents-00000.parquet` and so on; return their number.

    Each shard appears by a rename. Existing shards are kept, and as many `documents` skipped, so
    that a broken run continues.
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
            group, size = list[Document](), 0
            for document in rows:
                count, size = count + 1, size + len(document.text)
                group.append(document)
                if len(group) == _DOCS_PER_GROUP or size > _CHARS_PER_GROUP:
                    writer.write_batch(document_batch(group))
                    group, size = [], 0
            if group:
                writer.write_batch(document_batch(group))
    return count


def document_batch(documents: Sequence[Document]) -> pa.RecordBatch:
    """Return documents as a record batch of the schema `DOCUMENTS`, one row a document."""
    columns: list[pa.Array] = []
    for field in DOCUMENTS:
        values = [getattr(document, field.name) for document in documents]
        if field.name in _LAYERS:
            values = [*map(layer_columns, values)]
        elif field.name == "relations":
            values = [None if row is None else [*map(layer_columns, row)] for row in values]
        columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENTS)


def layer_columns(layer: Any) -> dict[str, Any] | None:
    """Return the columns of a layer as a dictionary for Arrow; None for None."""
    return None if layer is None else {f.name: getattr(layer, f.name) for f in fields(layer)}


def iter_documents(folder: Folders) -> Iterator[Document]:
    """Yield the documents of one folder or several, in the order in which they were written.

    Their sentences are the splitter's if `corpora.sentences.shards` made the folder, else the
    source's. Raises `InputError` for a folder without shards and for a shard that cannot be read.
    """
    for shard in shards_of(folder):
        yield from documents_in(shard)


def documents_in(shard: Path) -> Iterator[Document]:
    """Yield the documents of one shard."""
    for batch in row_groups(shard):
        yield from documents_of(batch)


def settled_splits(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the id of each document of a folder, and the split that its source sets or ""."""
    for shard in shards_of(folder):
        for batch in row_groups(shard, ["id", "split"]):
            yield from zip(batch["id"].to_pylist(), batch["split"].to_pylist(), strict=True)


class DocumentSizes:
    """Yields id, group and number of characters of each document of a folder, without layers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        for shard in shards_of(self.folder):
            for batch in row_groups(shard, ["id", "group", "text"]):
                columns = batch["id"], batch["group"], pc.utf8_length(batch["text"])
                yield from zip(*(column.to_pylist() for column in columns), strict=True)


def shards_of(folders: Folders, stem: str = "documents") -> list[Path]:
    """Return the shards `STEM-NUMBER.parquet` of the folders, in the order of their numbers.

    Raises `InputError` for a folder without any.
    """
    paths: list[Path] = []
    for folder in [folders] if isinstance(folders, Path) else folders:
        # Numbers have at least five digits: 100000 comes after 99999.
        files = folder.glob(f"{stem}-*.parquet")
        if not (shards := sorted(files, key=lambda path: (len(path.name), path.name))):
            raise InputError(
                f"no {stem}-*.parquet in it", where=str(folder), hint="run the stage that writes it"
            )
        paths += shards
    return paths


def row_groups(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the row groups of a shard, with these columns, by default all."""
    with readable(path) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns, use_threads=False).combine_chunks()
            yield from table.to_batches()


def documents_of(batch: pa.RecordBatch) -> Iterator[Document]:
    """Yield the documents of a record batch; the inverse of `document_batch`.

    Sentences are the splitter's if the batch has them.
    """
    for row in batch.to_pylist():
        row["sentences"] = row.pop(SPLIT_SENTENCES, None) or row["sentences"]
        for name, layer in _LAYERS.items():
            row[name] = None if row[name] is None else layer(**row[name])
        if row["relations"] is not None:
            row["relations"] = [Relation(**_with_tuples(columns)) for columns in row["relations"]]
        yield Document(**{**row, "categories": tuple(row["categories"])})


def _with_tuples(value: Any) -> Any:
    """Return a value with all lists in it as tuples."""
    if isinstance(value, dict):
        return {name: _with_tuples(item) for name, item in value.items()}
    return tuple(_with_tuples(item) for item in value) if isinstance(value, list) else value
