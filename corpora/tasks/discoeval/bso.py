"""Binary sentence ordering (DiscoEval, section 3.3): do two sentences stand in their order?"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pyarrow as pa
from pydantic import Field

from corpora.schemas import BSO
from corpora.splits import SPLITS
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.candidates import Candidates
from corpora.tasks.discoeval.common import CITATION, Consecutive

CARD = Card(
    title="Binary sentence ordering",
    summary=(
        "Two consecutive sentences, once in their order and once swapped. The binary sentence "
        "ordering task (BSO) of DiscoEval, on texts of your own."
    ),
    method=(
        "DiscoEval, section 3.3. Pairs of consecutive sentences that do not overlap, the first of "
        "which begins anywhere in a section, or among the first sentences of a lead; each gives "
        "two rows, one after the other: as written (`original`) and swapped. Sentences of fewer "
        "than `min_words`, pairs of fewer words than `mean_words` a sentence (`too_few_words`) and "
        "pairs of two speakers are left out. With `quotes = balance` a sentence that is part of a "
        "longer quotation has quotation marks of its own. The sizes count "
        "pairs, as the released files have one line a pair and make the swapped one on reading."
    ),
    fields={
        "doc": "id of the document",
        "label": "`original` (1) or `swapped` (0)",
        "sentence1": "one sentence",
        "sentence2": "the sentence after it, or before it if swapped",
    },
    citation=CITATION,
    limits=(
        "Sentences are split by a program; a wrong boundary gives a wrong example.",
        "Some pairs read well in both orders.",
    ),
    tags=("discoeval", "sentence-ordering"),
)


class Bso(Consecutive):
    """Binary sentence ordering: two consecutive sentences, as written and swapped."""

    name, version = "bso", 5
    paper = "Chen, Chu and Gimpel 2019, section 3.3"
    gives = {"default": BSO}
    LENGTH = 2
    card = CARD

    min_words: Annotated[int, Field(ge=1)] = 5
    one_speaker: bool = True
    lead_sentences: Annotated[int, Field(ge=0)] = 5
    """How many sentences the lead gives (5, as in the released files: any two neighbours of them);
    0: as many as one row needs."""

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """The sizes count pairs; each gives two rows."""
        for split in SPLITS:
            writer = dataset.writer("default", split, BSO, texts=("sentence1", "sentence2"))
            size = taken.limited(split, self.sizes[split], "pairs")
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
