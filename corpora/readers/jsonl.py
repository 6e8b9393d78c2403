"""`jsonl:` JSON Lines, also gzipped, with a field mapping; and `sample:`, the embedded corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from corpora.document import Document
from corpora.errors import BadRecord, InputError, nearest
from corpora.readers.base import Reader
from corpora.readers.files import read_lines
from corpora.readers.records import Place, RecordReader
from corpora.readers.source import Source

SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
SAMPLE = Path(__file__).resolve().parent.parent / "sample"


class JsonLines(RecordReader):
    """JSON Lines with a field mapping."""

    name = "jsonl"
    suffixes = SUFFIXES

    def read(self, source: Source) -> Iterator[Document]:
        for path in source.files:
            yield from self.documents(records(path), source, source.stem(path, self.suffixes))


class Sample(Reader):
    """The embedded sample: prose written for this project."""

    name = "sample"
    own_licence = "CC-BY-4.0"

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """The files of the sample, or the one that `target` names without its suffix."""
        files = {path.stem: path for path in sorted(SAMPLE.glob("*.jsonl"))}
        if not target:
            return list(files.values())
        if target not in files:
            raise InputError(
                f"no part {target!r} in the sample",
                hint=f"{nearest(target, files)}its parts are {', '.join(files)}; sample: reads all",
            )
        return [files[target]]

    def read(self, source: Source) -> Iterator[Document]:
        yield from JsonLines().read(source)


def records(path: Path) -> Iterator[Place]:
    """Each line that is not blank as a JSON object or a `BadRecord`, with `file:line`."""
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path}:{number}"
        if isinstance(line, BadRecord):
            yield where, line
            continue
        try:
            record = json.loads(line)
        except RecursionError:
            reason = "JSON too deep: nested beyond what can be read"
            yield where, BadRecord(where, reason, line[:80])
            continue
        except ValueError as error:
            if line.strip():
                yield where, BadRecord(where, f"not JSON: {error}"[:200], line[:200])
            continue
        if isinstance(record, dict):
            yield where, record
        else:
            yield where, BadRecord(where, "not an object: another JSON value", line[:200])
