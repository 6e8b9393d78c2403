"""Binary sentence ordering (DiscoEval, section 3.3): do two sentences stand in their order?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from corpora.document import Document
from corpora.schemas import BSO
from corpora.store.card import Card
from corpora.tasks.discoeval import common
from corpora.tasks.target import Target

VERSION = 3
LENGTH = 2

CARD = Card(
    title="Binary sentence ordering",
    summary=(
        "Two consecutive sentences, once in their order and once swapped. The binary sentence "
        "ordering task (BSO) of DiscoEval, on texts of your own."
    ),
    method=(
        "DiscoEval, section 3.3. Pairs of consecutive sentences that do not overlap; each gives "
        "two rows, one after the other: as written (`original`) and swapped. The sizes count "
        "pairs, as the released files have one line a pair and make the swapped one on reading."
    ),
    fields={
        "doc": "id of the document",
        "label": "`original` (1) or `swapped` (0)",
        "sentence1": "one sentence",
        "sentence2": "the sentence after it, or before it if swapped",
    },
    citation=common.CITATION,
    limits=(
        "Sentences are split by a program; a wrong boundary gives a wrong example.",
        "Some pairs read well in both orders.",
    ),
    tags=("discoeval", "sentence-ordering"),
)


@dataclass(frozen=True, slots=True)
class Settings(common.Consecutive):
    """Where the sentences are taken from (see `Consecutive`)."""

    LENGTH: ClassVar[int] = LENGTH


def build(documents: Iterable[Document], settings: Settings, target: Target) -> dict[str, Any]:
    """Build the dataset from documents with a sentence layer; returns the manifest."""
    return common.build(
        documents,
        settings,
        target,
        BSO,
        CARD,
        _rows,
        unit="pairs",
        rows_each=2,
        texts=("sentence1", "sentence2"),
    )


def _rows(candidates: Iterator[pa.RecordBatch], split: str, size: int) -> Iterator[pa.RecordBatch]:
    """Each pair twice: as written with label 1, swapped with label 0."""
    for batch in candidates:
        number = batch.num_rows
        row = np.repeat(np.arange(number), 2)
        swapped = np.tile([0, 1], number)
        sentences = batch["sentences"].flatten()
        columns = [
            batch["doc"].take(pa.array(row)),
            pa.array(1 - swapped),
            sentences.take(pa.array(2 * row + swapped)),
            sentences.take(pa.array(2 * row + 1 - swapped)),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=BSO)
