"""The first stage: a source becomes documents on disk, bad records are counted and kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.errors import BadRecord, InputError, amount
from corpora.progress import track
from corpora.readers import open_reader, parse_spec, read_documents
from corpora.readers.source import Source, without_folder
from corpora.store.documents import write_documents

VERSION = 7
"""Increased when the output of `ingest` for the same source changes."""


def ingest(
    spec: str, options: Mapping[str, Any], folder: Path, *, max_bad_share: float = 0.0
) -> dict[str, Any]:
    """Read the source `spec` into Parquet shards in `folder`; return counts for its manifest.

    Bad records go to `rejects/records.jsonl` with place and reason. Raises `InputError` if more
    than `max_bad_share` of the records are bad, or none is good.
    """
    rejects = folder / "rejects" / "records.jsonl"
    rejects.unlink(missing_ok=True)
    reasons, licences = Counter[str](), Counter[str]()
    sizes = {"paragraphs": 0, "words": 0}

    def on_bad(record: BadRecord) -> None:
        """Count a bad record by its reason, and append it to the file of rejects."""
        where = without_folder(source.target, record.where)
        reason = without_folder(source.target, record.reason)
        reasons[reason.partition(":")[0]] += 1
        line = {"where": where, "reason": reason, "value": record.value[:200]}
        rejects.parent.mkdir(exist_ok=True)
        with rejects.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def count_sizes(documents: Iterator[Document]) -> Iterator[Document]:
        """Yield the documents; count their paragraphs, words and licences."""
        for document in documents:
            sizes["paragraphs"] += len(document.paragraphs or ())
            sizes["words"] += len(document.text.split())
            licences[document.licence] += 1
            yield document

    # Read and write the documents.
    reader, source = open_reader(spec, options, on_bad=on_bad)
    documents = track(read_documents(reader, source), f"reading {spec}")
    count = write_documents(count_sizes(documents), folder)
    check_bad_share(spec, source, max_bad_share)
    return {
        "documents": count,
        **sizes,
        "licences": dict(sorted(licences.items())),
        "bad_records": source.bad,
        "bad_reasons": dict(sorted(reasons.items())),
        "no_documents": dict(sorted((+source.skipped).items())),
    }


def check_bad_share(
    spec: str, source: Source, max_bad_share: float, unit: str = "document"
) -> None:
    """Raise `InputError` if `source`, after it was read, has no good record or too many bad ones.

    `max_bad_share` is the largest allowed share of bad records. For the message, `spec` names the
    source, and `unit` a good record.
    """
    good, bad, first_bad = source.good, source.bad, source.first_bad
    example = f"; the first one: {first_bad.where}: {first_bad.reason}" if first_bad else ""
    if not good:
        raise InputError(f"no {unit} could be read{example}", where=spec)
    share = bad / (good + bad)
    if share > max_bad_share:
        hint = "fix the source, or increase max_bad_share (extract: --max-bad-share)"
        fields = parse_spec(spec)[0].model_fields
        if first_bad and first_bad.reason.startswith("not UTF-8") and "encoding" in fields:
            hint += '; of a source in another encoding: options = { encoding = "latin-1" }'
        raise InputError(
            f"{amount(bad, 'bad record')} beside {amount(good, f'good {unit}')}, a share of"
            f" {share:.3g} where {max_bad_share} is allowed{example}",
            where=spec,
            hint=hint,
        )
