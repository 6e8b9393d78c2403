"""The first stage: a source becomes documents on disk, bad records are counted and kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from corpora.document import Document
from corpora.errors import BadRecord, InputError
from corpora.progress import track
from corpora.readers import open_source
from corpora.store.documents import write_documents

VERSION = 2
"""Raised when what `ingest` stores for the same source changes."""


def ingest(
    spec: str, options: Mapping[str, Any], folder: Path, *, max_bad_share: float = 0.0
) -> dict[str, Any]:
    """Read the source `spec` into Parquet shards in `folder`; return counts for its manifest.

    Records that the reader cannot take go to `rejects/records.jsonl` with place and reason.
    Raises `InputError` when more than `max_bad_share` of the records are bad, or none is good.
    """
    tally = _Tally()
    skipped: Counter[str] = Counter()
    with _Rejects(folder / "rejects" / "records.jsonl") as rejects:
        documents = open_source(spec, options, on_bad=rejects.add, skipped=skipped)
        count = write_documents(tally.watch(track(documents, f"reading {spec}")), folder)
    check_bad_share(spec, count, rejects.count, max_bad_share, rejects.first)
    return {
        "documents": count,
        "paragraphs": tally.paragraphs,
        "words": tally.words,
        "licences": dict(sorted(tally.licences.items())),
        "bad_records": rejects.count,
        "bad_reasons": dict(sorted(rejects.reasons.items())),
        "no_documents": dict(sorted(skipped.items())),
    }


class _Tally:
    """Counts what passes by."""

    def __init__(self) -> None:
        self.paragraphs = self.words = 0
        self.licences: Counter[str] = Counter()

    def watch(self, documents: Iterator[Document]) -> Iterator[Document]:
        for document in documents:
            self.paragraphs += len(document.paragraphs or ())
            self.words += len(document.text.split())
            self.licences[document.licence] += 1
            yield document


class _Rejects:
    """Writes bad records to a file as they come (no file if there is none) and counts them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: IO[str] | None = None
        self.reasons: Counter[str] = Counter()
        self.first: BadRecord | None = None

    def __enter__(self) -> _Rejects:
        self.path.unlink(missing_ok=True)
        return self

    def __exit__(self, *error: object) -> None:
        if self.file:
            self.file.close()

    @property
    def count(self) -> int:
        return sum(self.reasons.values())

    def add(self, record: BadRecord) -> None:
        if self.file is None:
            self.path.parent.mkdir(exist_ok=True)
            self.file = self.path.open("w", encoding="utf-8")
            self.first = record
        self.reasons[record.reason.partition(":")[0]] += 1
        line = {"where": record.where, "reason": record.reason, "value": record.value[:200]}
        self.file.write(json.dumps(line, ensure_ascii=False) + "\n")


def check_bad_share(
    spec: str,
    good: int,
    bad: int,
    max_bad_share: float,
    first: BadRecord | None = None,
    unit: str = "document",
) -> None:
    """Raise `InputError` if nothing of a source is good, or a larger share than allowed is bad.

    `good` counts units, `bad` records; `first` is the bad one that the message shows.
    """
    shown = f"; the first one: {first.where}: {first.reason}" if first else ""
    if not good:
        raise InputError(f"no {unit} could be read{shown}", where=spec)
    share = bad / (good + bad)
    if share > max_bad_share:
        raise InputError(
            f"{bad} bad records beside {good} good {unit}s, a share of"
            f" {share:.3f} where the build file allows {max_bad_share}{shown}",
            where=spec,
            hint="mend the source, or raise max_bad_share in the build file",
        )
