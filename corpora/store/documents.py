"""Documents as Parquet shards, with all layers.

The bytes depend on the documents only: fixed compression, row groups cut by the number and the
size of documents. Memory holds one row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpora.document import Document
from corpora.errors import InputError
from corpora.store.atomic import replacing
from corpora.store.document_columns import (
    DOCUMENTS,
    SPLIT,
    document_batch,
    documents_of,
)

__all__ = ["DOCUMENTS", "DocumentSizes", "documents_in", "iter_documents", "write_documents"]

Folders = Path | Sequence[Path]

DOCS_PER_SHARD = 256
_DOCS_PER_GROUP = 64
_CHARS_PER_GROUP = 8 << 20
PARQUET: dict[str, Any] = {"compression": "zstd", "compression_level": 3}


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
                writer.write_table(pa.Table.from_batches([document_batch(group)]))
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


def iter_documents(folder: Folders) -> Iterator[Document]:
    """The documents of one folder or several, in the order in which they were written.

    Their sentences are the splitter's where `corpora.sentences.shards` made the folder, else the
    source's own. Raises `InputError` for a folder without shards and for a shard that cannot be
    read.
    """
    for one in [folder] if isinstance(folder, Path) else folder:
        for shard in shards_of(one):
            yield from documents_in(shard)


def documents_in(shard: Path) -> Iterator[Document]:
    """The documents of one shard."""
    for batch in row_groups(shard):
        yield from documents_of(batch)


class DocumentSizes:
    """Id, group and number of characters of each document of a folder, read without its layers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        for shard in shards_of(self.folder):
            for batch in row_groups(shard, ["id", "group", "text"]):
                lengths = pc.utf8_length(batch["text"])
                columns = (column.to_pylist() for column in (batch["id"], batch["group"], lengths))
                yield from zip(*columns, strict=True)


def shards_of(folder: Path) -> list[Path]:
    """The shards of a folder; raises `InputError` if there is none."""
    paths = sorted(folder.glob("documents-*.parquet"))
    if not paths:
        raise InputError(
            "no documents-*.parquet in it", where=str(folder), hint="run the stage that writes it"
        )
    return paths


def row_groups(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The row groups of a shard, with the columns that are asked for (all without a list)."""
    try:
        with pq.ParquetFile(path) as file:
            if not (file.schema_arrow.equals(DOCUMENTS) or file.schema_arrow.equals(SPLIT)):
                raise InputError(
                    "holds other columns than expected",
                    where=str(path),
                    hint="it is of another version: remove the folder and run again",
                )
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns, use_threads=False).combine_chunks()
                yield from table.to_batches()
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"cannot be read: {error}", where=str(path), hint="remove the folder and run again"
        ) from error
