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
from corpora.readers import jsonl
from corpora.readers.base import Reader
from corpora.readers.layouts import Record, as_document, typed
from corpora.readers.source import OnBad, Refused, Source, check_id, check_unicode, rows_of

RATING = "coherence"


class SummEval(Reader):
    """SummEval's rated summaries."""

    name = "summeval"
    suffixes = jsonl.SUFFIXES
    paper = "Fabbri et al. 2021"

    def read(self, source: Source) -> Iterator[Document]:
        """The summaries, a document each, in the group of their article."""
        for path in source.files:
            for summary in read_summaries(path, source.refuse):
                record = {"group": summary.document, "text": summary.text}
                with source.refusing(summary.where):
                    yield as_document(record, source, f"{summary.document}/{summary.system}")


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
    return rows_of(jsonl.records(path), _summary, on_bad)


def _summary(record: Record, where: str) -> Iterator[Summary]:
    for field in ("id", "model_id", "decoded"):
        if not isinstance(record.get(field), str):
            found = typed(record[field]) if field in record else "not there"
            raise Refused(f"wrong type: field {field!r} is {found}, expected a string")
    text = record["decoded"].strip()
    if not text:
        raise Refused("no text: 'decoded' is empty")
    check_unicode(text)
    names = check_id(record["id"]), check_id(record["model_id"])
    yield Summary(*names, text, _ratings(record.get("expert_annotations")), where)


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
