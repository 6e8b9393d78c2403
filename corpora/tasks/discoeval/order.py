"""Which order is right? Sentence position and binary sentence ordering (DiscoEval, 3.2 and 3.3)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from corpora.rng import stream
from corpora.schemas import BSO, SP
from corpora.splits import SPLITS
from corpora.store.folder import DatasetFolder
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside
from corpora.tasks.discoeval.common import Consecutive


class Sp(Consecutive):
    """Sentence position: five sentences, one of them moved to the front."""

    name, version = "sp", 6
    paper = "Chen, Chu and Gimpel 2019, section 3.2"
    gives = {"default": SP}
    LENGTH = 5
    card = card_beside(__file__, "sp")

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """Equal numbers of each label in a split."""
        target = taken.target
        for split in SPLITS:
            writer = dataset.writer("default", split, SP, texts=("sentences",))
            size = taken.limited(split, getattr(self, split), "rows")
            random = stream(target.seed, target.stage.name, f"labels of {split}")
            labels = balanced(size, self.LENGTH, random)
            start = 0
            for batch in taken.of_split(split, limit=size):
                dataset.count_licences(batch["licence"])
                some = labels[start : start + batch.num_rows]
                start += batch.num_rows
                columns = [batch["doc"], pa.array(some), _moved(batch["sentences"], some)]
                writer.append(pa.RecordBatch.from_arrays(columns, schema=SP))


def balanced(size: int, classes: int, random: np.random.Generator) -> NDArray[np.int64]:
    """`size` labels in random order, each class as often as any other, or once more."""
    return random.permutation(np.arange(size) % classes)


def _moved(sentences: pa.ListArray, labels: NDArray[np.int64]) -> pa.ListArray:
    """In each row the sentence at its label is moved to the front, the others keep their order."""
    positions = np.arange(Sp.LENGTH)
    # Sorting by "is not the moved one" is stable, so the other four stay in order.
    order = np.argsort(positions[None, :] != labels[:, None], axis=1, kind="stable")
    index = (np.arange(labels.size) * Sp.LENGTH)[:, None] + order
    offsets = pa.array(np.arange(labels.size + 1, dtype=np.int32) * Sp.LENGTH)
    return pa.ListArray.from_arrays(offsets, sentences.flatten().take(pa.array(index.ravel())))


class Bso(Consecutive):
    """Binary sentence ordering: two consecutive sentences, as written and swapped."""

    name, version = "bso", 6
    paper = "Chen, Chu and Gimpel 2019, section 3.3"
    gives = {"default": BSO}
    LENGTH = 2
    card = card_beside(__file__, "bso")

    min_words: Annotated[int, Field(ge=1)] = 5
    one_speaker: bool = True
    lead_sentences: Annotated[int, Field(ge=0)] = 5
    """Sentences of the lead (5, as in the released files: any two neighbours); 0: as many as one
    row needs."""

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """The sizes count pairs; each gives two rows."""
        for split in SPLITS:
            writer = dataset.writer("default", split, BSO, texts=("sentence1", "sentence2"))
            size = taken.limited(split, getattr(self, split), "pairs")
            for batch in taken.of_split(split, limit=size):
                dataset.count_licences(batch["licence"], rows_each=2)
                writer.append(_both_orders(batch))


def _both_orders(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each pair twice: as written with label 1, swapped with label 0."""
    row = np.repeat(np.arange(batch.num_rows), 2)
    swapped = np.tile([0, 1], batch.num_rows)
    sentences = batch["sentences"].flatten()
    columns = [
        batch["doc"].take(pa.array(row)),
        pa.array(1 - swapped),
        sentences.take(pa.array(2 * row + swapped)),
        sentences.take(pa.array(2 * row + 1 - swapped)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=BSO)
