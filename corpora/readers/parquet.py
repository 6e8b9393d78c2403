"""`parquet:` Parquet files with the field mapping and the layouts of `jsonl:`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.document import Document
from corpora.errors import BadRecord, InputError
from corpora.readers.files import LINE_LIMIT
from corpora.readers.records import Place, RecordReader
from corpora.readers.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_BYTES = 8 << 20
_BATCH_ROWS = 512


class ParquetFiles(RecordReader):
    """Parquet with a field mapping."""

    name = "parquet"
    suffixes = (".parquet",)

    def read(self, source: Source) -> Iterator[Document]:
        for path in source.files:
            yield from self.documents(records(path), source, source.stem(path, self.suffixes))


def records(path: Path) -> Iterator[Place]:
    """Each row as a record or a `BadRecord`, with `file:row` (rows counted from 1).

    Memory holds some MiB of rows. Raises `InputError` for what is no whole Parquet file.
    """
    number = 0
    for batch in _batches(path):
        for row in _rows(batch):
            number += 1
            where = f"{path}:{number}"
            yield where, (BadRecord(where, row) if isinstance(row, str) else row)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            yield from file.iter_batches(_rows_at_once(file.metadata), use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:  # a name may be no UTF-8
        reason = (str(error).splitlines() or [""])[0][:200]
        raise InputError(
            f"cannot be read as Parquet: {reason}",
            where=str(path),
            hint="the file is cut short, damaged, or another format under this name",
        ) from error


def _rows_at_once(metadata: Any) -> int:
    """So many rows that a batch stays small, judged by the sizes that the file states."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    mean = max((g.total_byte_size // max(1, g.num_rows) for g in groups), default=0)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, mean)))


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | str]:
    """The rows of a batch; a string, the reason, for one that cannot be taken."""
    import pyarrow as pa

    for index in range(batch.num_rows):
        row = batch.slice(index, 1)
        if row.nbytes > LINE_LIMIT:
            yield f"record too long: more than {LINE_LIMIT >> 20} MiB"
            continue
        try:
            yield row.to_pylist()[0]
        except UnicodeDecodeError as error:
            yield f"not UTF-8: byte 0x{error.object[error.start]:02x} in a string column"
        except (ValueError, OverflowError, pa.ArrowException) as error:
            yield f"wrong type: {str(error)[:150]}"
