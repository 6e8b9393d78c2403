"""Which order is right? Sentence position and binary sentence ordering (DiscoEval, 3.2 and 3.3)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
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

    name, version = "sp", 7
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
            labels = balanced(size, self.LENGTH, random).tolist()
            values = {"split": split, "labels": labels}
            taken.write(writer, taken.engine.batches(_MOVED, values))


_MOVED = """
select doc, licence, label,
    sentences[label + 1:label + 1] || sentences[:label] || sentences[label + 2:] as sentences
from (
    select *, row_number() over (order by priority, doc, number) as place,
        ($labels::bigint[])[place] as label
    from chosen where split = $split
)
where place <= len($labels) order by place
"""
"""In each row the sentence at its label is moved to the front, the others keep their order."""


def balanced(size: int, classes: int, random: np.random.Generator) -> NDArray[np.int64]:
    """`size` labels in random order, each class as often as any other, or once more."""
    return random.permutation(np.arange(size) % classes)


class Bso(Consecutive):
    """Binary sentence ordering: two consecutive sentences, as written and swapped."""

    name, version = "bso", 7
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
            values = {"split": split, "size": size}
            taken.write(writer, taken.engine.batches(_BOTH_ORDERS, values))


_BOTH_ORDERS = """
select doc, licence, label, sentences[2 - label] as sentence1, sentences[1 + label] as sentence2
from (select * from chosen where split = $split order by priority, doc, number limit $size)
    cross join (values (1), (0)) as both_orders(label)
order by priority, doc, number, label desc
"""
