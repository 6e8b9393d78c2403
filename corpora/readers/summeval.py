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
from corpora.readers.layouts import Record, as_document, filled
from corpora.readers.source import OnBad, Refused, Source, check_id, rows_of

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
    document, system = (check_id(filled(record, name)) for name in ("id", "model_id"))
    text, annotations = filled(record, "decoded"), record.get("expert_annotations")
    if not isinstance(annotations, list) or not annotations:
        raise Refused("no ratings: 'expert_annotations' is no list of ratings")
    ratings: list[Any] = [
        one.get(RATING) if isinstance(one, Mapping) else None for one in annotations
    ]
    if not all(isinstance(rating, int | float) and 1 <= rating <= 5 for rating in ratings):
        raise Refused(f"no ratings: {RATING!r} is not from 1 to 5 for each expert")
    yield Summary(document, system, text, tuple(map(float, ratings)), where)
