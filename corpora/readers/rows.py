"""`jsonl:`, `parquet:`, `hub:`, `sample:` (the embedded corpus): rows with a field mapping.

The rows of JSON Lines, CSV and Parquet for all readers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from corpora.document import Document
from corpora.errors import BadRecord, InputError, check_choice, expand_home, unreadable
from corpora.outside import parse_json
from corpora.readers.fields import Record
from corpora.readers.files import LINE_LIMIT, Refused, expect, good_record, read_lines
from corpora.readers.guarded import DAMAGED, PAGE_LIMIT, largest_pages
from corpora.readers.records import PlacedRecord, RecordReader
from corpora.readers.source import Source

JSON_LINES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
SAMPLE = Path(__file__).resolve().parent.parent / "sample"

csv.field_size_limit(LINE_LIMIT)  # the library's own is 128 KiB
CHECK = "check name, config, split, revision, network, and HF_TOKEN if it is gated"
_ERRNO = re.compile(r"\[Errno -?\d+\] ")  # of messages such as [Errno -2] Name not known
_BATCH_BYTES = 8 << 20
_BATCH_ROWS = 512


class JsonLines(RecordReader):
    """JSON Lines with a field mapping."""

    name = "jsonl"
    suffixes = JSON_LINES

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        return self.documents(json_rows(path), source, stem)


class Sample(JsonLines):
    """The embedded sample: prose written for this project."""

    name = "sample"
    own_licence = "CC-BY-4.0"

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """Return the files of the sample, or the one called `target` (without suffix)."""
        files = {path.stem: path for path in sorted(SAMPLE.glob("*.jsonl"))}
        return [files[check_choice("sample", target, files)]] if target else list(files.values())


class ParquetFiles(RecordReader):
    """Parquet with a field mapping."""

    name = "parquet"
    suffixes = (".parquet",)

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        return self.documents(parquet_rows(path), source, stem)


PARQUET_BRANCH = "refs/convert/parquet"
"""The Hub's own copy of a dataset as Parquet: it has no README, a folder is a configuration."""


class Hub(RecordReader):
    """A dataset of the Hugging Face Hub."""

    name = "hub"

    config: str | None = None
    """The dataset's configuration."""
    split: str = "train"
    """The split to read."""
    revision: str | None = None
    """The commit or branch to read."""

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """Return the files of a local folder, or an empty list for a dataset of the Hub.

        Raises `InputError` for an empty target.
        """
        if not target:
            raise InputError("hub: needs a dataset", hint="write hub:ORG/NAME")
        return sorted(path for path in expand_home(target).rglob("*") if path.is_file())

    def read(self, source: Source) -> Iterator[Document]:
        """Yield the documents of one split; its rows are read like the records of `jsonl:`.

        Raises as `records` does.
        """
        stem = source.target.rstrip("/").rpartition("/")[2]
        if source.files:  # a folder of this machine, whatever it is called
            stem = source.name.removeprefix("hub:")
        rows = self.records(source.target, self.config, self.split)
        yield from self.documents(rows, source, stem)

    def records(self, target: str, config: str | None, split: str) -> Iterator[PlacedRecord]:
        """Yield the rows of one split of a configuration, streamed.

        Raises `InputError` if the dataset, its configuration or split does not exist, or without
        network.
        """
        import datasets
        from huggingface_hub import is_offline_mode

        where, number = f"hub:{target}[{split}]", 0
        folder = expand_home(target)
        on_hub = not folder.is_dir()
        name = target if on_hub else str(folder)
        if on_hub:
            self._ask_hub(target, where)
        options = {"split": split, "revision": self.revision, "streaming": True}
        if self.revision == PARQUET_BRANCH:
            config, options["data_dir"] = None, config
        try:
            for path in folder.rglob("*.parquet"):
                largest_pages(path)
            for number, row in enumerate(datasets.load_dataset(name, config, **options), 1):
                yield f"{where}:{number}", row
        except Exception as error:  # the library raises whatever lies below: network, Arrow, ...
            place = f"{where}:{number + 1}" if number else where
            if on_hub and is_offline_mode():
                raise self._unreachable("HF_HUB_OFFLINE is set", target, place) from error
            raise unreadable(error, place, CHECK) from error

    def _ask_hub(self, name: str, where: str) -> None:
        """Ask the Hub once for the dataset; `InputError` if it lacks it or cannot be reached.
        Without a network `load_dataset` would repeat its requests for half a minute."""
        from huggingface_hub import HfApi, is_offline_mode
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        if is_offline_mode():  # what is in the cache needs no network
            return
        try:
            HfApi().dataset_info(name, revision=self.revision, timeout=10)
        except (HfHubHTTPError, HFValidationError) as error:
            raise unreadable(error, where, CHECK) from error
        except Exception as error:  # of the HTTP library, which differs between versions
            raise self._unreachable(str(error), name, where) from error

    def _unreachable(self, why: str, name: str, where: str) -> InputError:
        """Return the error for a Hub that cannot be reached; it says how to get the dataset."""
        revision = f" --revision {self.revision}" if self.revision else ""
        return InputError(
            f"the Hub cannot be reached: {_ERRNO.sub('', why)}",
            where=where,
            hint="connect to the network, or fetch it on another machine and give the folder: "
            f"hf download --repo-type dataset {name}{revision} --local-dir FOLDER, then hub:FOLDER",
        )


def json_rows(path: Path) -> Iterator[PlacedRecord]:
    """Yield each line that is not blank as a JSON object or a `BadRecord`, with its `file:line`.

    Raises `InputError` for a file that is one JSON list.
    """
    for number, line in enumerate(read_lines(path), 1):
        if isinstance(line, str) and (not line or line.isspace()):
            continue
        where = f"{path}:{number}"
        if number == 1 and isinstance(line, str) and line.lstrip().startswith("["):
            hint = "write one object a line: jq -c '.[]' FILE > FILE.jsonl"
            raise InputError("a JSON list, expected JSON Lines", where=where, hint=hint)
        try:
            record = json_value(good_record(line))
            expect(isinstance(record, dict), "not an object: another JSON value")
            yield where, record
        except Refused as refusal:
            yield where, refusal.record(where, line)


def json_value(text: str) -> Any:
    """Return the value of a JSON text; `Refused` if it is invalid, or nested too deep."""
    try:
        return parse_json(text)
    except InputError as error:
        raise Refused(error.message) from None


def table_rows(
    path: Path,
    columns: Sequence[str],
    *,
    encoding: str = "utf-8",
    hint: str = "",
    quoted: bool = True,
    header: Sequence[str] = (),
) -> Iterator[tuple[str, dict[str, str] | BadRecord]]:
    """Yield the rows of a CSV or TSV file (whose header has tabs), each with its `file:line`.

    A record is one line: a quote that is not closed on its line invalidates only that record.
    Without `quoted`, fields are separated by tabs and a quote is text. Blank lines are left out.
    `header` is for a file without one. Raises `InputError` with `hint` if the header lacks one of
    `columns`.
    """
    delimiter = "," if quoted else "\t"
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    for number, line in enumerate(read_lines(path, encoding), 1):
        where = f"{path}:{number}"
        if isinstance(line, str) and not line.strip():
            continue
        # Split the line into fields.
        try:
            text = good_record(line)
            if not header and "\t" in text:
                delimiter = "\t"
            (cells,) = csv.reader([text], delimiter=delimiter, quoting=quoting, strict=True)
            is_complete = not header or len(cells) == len(header)
            expect(
                is_complete, f"wrong number of fields: {len(cells)}, the header has {len(header)}"
            )
        except (csv.Error, Refused) as error:
            refusal = error if isinstance(error, Refused) else Refused(f"not CSV: {error}")
            if not header:
                message = f"no column names in the header: {refusal}"
                raise InputError(message, where=where, hint=hint) from None
            yield where, refusal.record(where, line)
            continue
        if header:
            yield where, dict(zip(header, cells, strict=True))
            continue
        # The first line is the header.
        header = [cell.strip() for cell in cells]
        if missing := [column for column in columns if column not in header]:
            raise InputError(
                f"no column {', '.join(missing)} in the header {text[:100]!r}",
                where=where,
                hint=hint or f"the first line must name the columns {', '.join(columns)}",
            )


def parquet_rows(path: Path) -> Iterator[PlacedRecord]:
    """Yield each row as a record or a `BadRecord`, with its `file:row` (rows count from 1).

    Memory holds a few MiB of rows. Raises `InputError` for an incomplete or invalid Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            # Small batches, by the sizes that the file states.
            groups = map(file.metadata.row_group, range(file.num_row_groups))
            mean = max((g.total_byte_size // max(1, g.num_rows) for g in groups), default=0)
            # A cell may be the whole dictionary of its column.
            _, dictionary = largest_pages(path)
            rows = min(_BATCH_ROWS, _BATCH_BYTES // max(1, mean), PAGE_LIMIT // max(1, dictionary))
            for batch in file.iter_batches(max(1, rows), use_threads=False):
                for index in range(batch.num_rows):
                    number += 1
                    where = f"{path}:{number}"
                    yield where, _record_of_row(batch.slice(index, 1), where)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:  # a name may be no UTF-8
        raise unreadable(error, path, DAMAGED) from error


def _record_of_row(row: Any, where: str) -> Record | BadRecord:
    """Return the record of an Arrow batch of one row, or why it is bad."""
    import pyarrow as pa

    if row.nbytes > LINE_LIMIT:
        return BadRecord(where, f"record too long: more than {LINE_LIMIT >> 20} MiB")
    try:
        record: Record = row.to_pylist()[0]
        return record
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x}"
        return BadRecord(where, f"not UTF-8: {byte} in a string column")
    except (ValueError, OverflowError, pa.ArrowException) as error:
        return BadRecord(where, f"wrong type: {str(error)[:150]}")
