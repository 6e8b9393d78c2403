"""`summeval:` summaries with the coherence ratings of experts (SummEval, Fabbri et al. 2021).

The released `model_annotations.aligned.jsonl`: a summary a line, with `id` (the article's),
`model_id`, `decoded` (the summary) and `expert_annotations`, a list of ratings from 1 to 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.errors import BadRecord, InputError
from corpora.readers import jsonl
from corpora.readers.fields import typed
from corpora.readers.layouts import as_document
from corpora.readers.source import OnBad, Refused, Source, check_id, check_unicode
from corpora.readers.whole import CANONICAL

SUFFIXES = jsonl.SUFFIXES
OPTIONS: frozenset[str] = frozenset()
LICENCE = "unknown"
RATING = "coherence"


@dataclass(frozen=True, slots=True)
class Summary:
    """A system's summary of an article; `ratings` of its coherence, one an expert, 1 to 5."""

    document: str
    system: str
    text: str
    ratings: tuple[float, ...]
    where: str


def read_summaries(path: Path, on_bad: OnBad | None = None) -> Iterator[Summary]:
    """The summaries of a file, in its order.

    A record of another form, or without ratings, goes to `on_bad`; without it the first one
    raises `InputError`.
    """
    for where, record in jsonl.records(path):
        try:
            if isinstance(record, BadRecord):
                raise Refused(record.reason)
            yield _summary(record, where)
        except Refused as refusal:
            if on_bad is None:
                raise InputError(str(refusal), where=where) from None
            value = record.value if isinstance(record, BadRecord) else str(record)[:200]
            on_bad(BadRecord(where, str(refusal), value))


def _summary(record: Mapping[str, Any], where: str) -> Summary:
    for field in ("id", "model_id", "decoded"):
        if not isinstance(record.get(field), str):
            found = typed(record[field]) if field in record else "not there"
            raise Refused(f"wrong type: field {field!r} is {found}, expected a string")
    text = record["decoded"].strip()
    if not text:
        raise Refused("no text: 'decoded' is empty")
    check_unicode(text)
    names = check_id(record["id"]), check_id(record["model_id"])
    return Summary(*names, text, _ratings(record.get("expert_annotations")), where)


def _ratings(annotations: Any) -> tuple[float, ...]:
    if not isinstance(annotations, list) or not annotations:
        raise Refused("no ratings: 'expert_annotations' is no list of ratings")
    ratings = []
    for annotation in annotations:
        value = annotation.get(RATING) if isinstance(annotation, Mapping) else None
        if not isinstance(value, int | float) or not 1 <= value <= 5:
            raise Refused(f"no ratings: {RATING!r} is not from 1 to 5 for each expert")
        ratings.append(float(value))
    return tuple(ratings)


def read(source: Source) -> Iterator[Document]:
    """The summaries, a document each, in the group of their article."""

    def on_bad(record: BadRecord) -> None:
        source.refuse(record.where, record.reason, record.value)

    for path in source.files:
        for summary in read_summaries(path, on_bad):
            record = {"group": summary.document, "text": summary.text}
            name = f"{summary.document}/{summary.system}"
            try:
                yield as_document(record, CANONICAL, source, name)
            except Refused as refusal:
                source.refuse(summary.where, str(refusal))
