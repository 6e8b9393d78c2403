"""Documents and their sentences as Parquet shards, with all layers.

The bytes depend on the documents only: fixed compression, row groups cut by the number and the
size of documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpora.document import Document, Spans
from corpora.errors import InputError
from corpora.sentences import split_document
from corpora.store.atomic import replacing
from corpora.store.document_columns import (
    DOCUMENTS,
    SENTENCES,
    document_batch,
    documents_of,
    sentence_batch,
    sentences_of,
)

__all__ = [
    "DOCUMENTS",
    "SENTENCES",
    "DocumentSizes",
    "documents_in",
    "iter_documents",
    "iter_with_sentences",
    "write_documents",
    "write_sentences",
]

Folders = Path | Sequence[Path]
ToBatch = Callable[[Sequence[Document]], pa.RecordBatch]

DOCS_PER_SHARD = 256
_DOCS_PER_GROUP = 64
_CHARS_PER_GROUP = 8 << 20


def write_documents(
    documents: Iterable[Document], folder: Path, *, docs_per_shard: int = DOCS_PER_SHARD
) -> int:
    """Write documents to `folder/documents-00000.parquet` and on; return how many there are.

    Each shard appears by a rename. Shards that are there are kept (their documents are taken
    from `documents` and dropped), so that a broken run goes on. Memory holds one row group.
    """
    return _write_shards(documents, folder / "documents", docs_per_shard, DOCUMENTS, document_batch)


def iter_documents(folder: Folders) -> Iterator[Document]:
    """The documents of one folder or several, in the order in which they were written.

    Raises `InputError` for a folder without shards and for a shard that cannot be read.
    """
    for batch in _batches(folder, "documents", DOCUMENTS):
        yield from documents_of(batch)


def documents_in(path: Path) -> Iterator[Document]:
    """The documents of one shard."""
    for batch in _row_groups(path, DOCUMENTS, None):
        yield from documents_of(batch)


class DocumentSizes:
    """Id, group and number of characters of each document of a folder, read without its layers."""

    def __init__(self, folder: Folders) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        for batch in _batches(self.folder, "documents", DOCUMENTS, ["id", "group", "text"]):
            lengths = pc.utf8_length(batch["text"])
            columns = (column.to_pylist() for column in (batch["id"], batch["group"], lengths))
            yield from zip(*columns, strict=True)


def write_sentences(
    documents: Iterable[Document],
    folder: Path,
    splitter: str = "rules",
    *,
    docs_per_shard: int = DOCS_PER_SHARD,
) -> int:
    """Split documents and write `folder/sentences-00000.parquet` and on, a row a document.

    `splitter` is a name of `corpora.sentences.SPLITTERS`. Returns the number of documents;
    shards are made and kept as those of `write_documents`.
    """

    def to_batch(group: Sequence[Document]) -> pa.RecordBatch:
        return sentence_batch([split_document(document, splitter) for document in group])

    return _write_shards(documents, folder / "sentences", docs_per_shard, SENTENCES, to_batch)


def iter_with_sentences(documents: Folders, sentences: Folders) -> Iterator[Document]:
    """The documents with the sentence layer that `write_sentences` stored for them.

    Raises `InputError` if the two were not made from the same documents in the same order.
    """
    for document, row in zip_longest(iter_documents(documents), _sentence_rows(sentences)):
        if document is None or row is None or document.id != row[0]:
            there = repr(document.id) if document else "no document"
            raise InputError(
                f"sentences of {row[0]!r} beside {there}" if row else f"no sentences of {there}",
                where=str(sentences),
                hint="they were made from other documents: remove the folder and run again",
            )
        yield document.with_sentences(row[1])


def count_sentences(folder: Folders) -> int:
    """The number of sentences that `write_sentences` stored."""
    return sum(len(spans) for _, spans in _sentence_rows(folder))


def _sentence_rows(folder: Folders) -> Iterator[tuple[str, Spans]]:
    for batch in _batches(folder, "sentences", SENTENCES):
        yield from sentences_of(batch)


def _write_shards(
    documents: Iterable[Document], stem: Path, per_shard: int, schema: pa.Schema, to_batch: ToBatch
) -> int:
    iterator = iter(documents)
    count = shard = 0
    # The first shard is written even without a document: an empty result is not a missing one.
    while (first := next(iterator, None)) is not None or shard == 0:
        head = () if first is None else (first,)
        rows = chain(head, islice(iterator, per_shard - 1))
        path = stem.with_name(f"{stem.name}-{shard:05d}.parquet")
        if path.exists():
            count += sum(1 for _ in rows)
        else:
            count += _write_shard(rows, path, schema, to_batch)
        shard += 1
    return count


def _write_shard(
    documents: Iterable[Document], path: Path, schema: pa.Schema, to_batch: ToBatch
) -> int:
    count = 0
    with (
        replacing(path) as partial,
        pq.ParquetWriter(partial, schema, compression="zstd", compression_level=3) as writer,
    ):
        for group in _groups(documents):
            writer.write_table(pa.Table.from_batches([to_batch(group)]))
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


def _batches(
    folder: Folders, stem: str, schema: pa.Schema, columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    for one in [folder] if isinstance(folder, Path) else folder:
        paths = sorted(one.glob(f"{stem}-*.parquet"))
        if not paths:
            raise InputError(
                f"no {stem}-*.parquet in it", where=str(one), hint="run the stage that writes it"
            )
        for path in paths:
            yield from _row_groups(path, schema, columns)


def _row_groups(
    path: Path, schema: pa.Schema, columns: list[str] | None
) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(schema):
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
