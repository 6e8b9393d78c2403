"""Sentence position (DiscoEval, section 3.2).

Five consecutive sentences, one of them moved to the front: where did it stand?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpora.document import Document
from corpora.rng import stream
from corpora.schemas import SP
from corpora.store.card import Card
from corpora.tasks.discoeval import common
from corpora.tasks.target import Target

VERSION = 3
LENGTH = 5

CARD = Card(
    title="Sentence position",
    summary=(
        "Five consecutive sentences, one of them moved to the front; the label is the position "
        "(0 to 4) at which it stood. The sentence position task (SP) of DiscoEval, on texts of "
        "your own."
    ),
    method=(
        "DiscoEval, section 3.2. `take = lead` takes the first five sentences of a document's "
        "lead (Wikipedia introductions, abstracts, stories), `windows` all windows of five that "
        "do not overlap inside a paragraph, section or document. Which sentence is moved is "
        "random, with equal numbers of each label in a split."
    ),
    fields={
        "doc": "id of the document",
        "label": "the position, 0 to 4, of the first sentence in the document",
        "sentences": "five sentences: the moved one, then the other four in their order",
    },
    citation=common.CITATION,
    limits=(
        "Sentences are split by a program; a wrong boundary gives a wrong example.",
        "A label can be beyond any reader: not every order of five sentences is the only good one.",
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
        SP,
        CARD,
        partial(_rows, seed=target.seed, stage=target.stage.name),
        unit="rows",
        texts=("sentences",),
    )


def balanced(size: int, classes: int, random: np.random.Generator) -> NDArray[np.int64]:
    """`size` labels in random order, each class as often as any other, or once more."""
    return random.permutation(np.arange(size) % classes)


def _rows(
    candidates: Iterator[pa.RecordBatch], split: str, size: int, *, seed: int, stage: str
) -> Iterator[pa.RecordBatch]:
    labels = balanced(size, LENGTH, stream(seed, stage, f"labels of {split}"))
    start = 0
    for batch in candidates:
        part = labels[start : start + batch.num_rows]
        start += batch.num_rows
        yield pa.RecordBatch.from_arrays(
            [batch["doc"], pa.array(part), _moved(batch["sentences"], part)], schema=SP
        )


def _moved(sentences: pa.ListArray, labels: NDArray[np.int64]) -> pa.ListArray:
    """In each row the sentence at its label is moved to the front, the others keep their order."""
    positions = np.arange(LENGTH)
    # Sorting by "is not the moved one" is stable, so the other four stay in order.
    order = np.argsort(positions[None, :] != labels[:, None], axis=1, kind="stable")
    index = (np.arange(labels.size) * LENGTH)[:, None] + order
    offsets = pa.array(np.arange(labels.size + 1, dtype=np.int32) * LENGTH)
    return pa.ListArray.from_arrays(offsets, sentences.flatten().take(pa.array(index.ravel())))
