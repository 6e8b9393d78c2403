"""Sentence position and binary sentence ordering (DiscoEval, sections 3.2 and 3.3).

Both take windows of consecutive sentences, and so does discourse coherence (`dc.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, model_validator

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.prose import Quotes, count_words, lead, passages_of, prose
from corpora.rng import stream
from corpora.schemas import BSO, SP
from corpora.splits import SPLITS
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Builder, Candidate, Reject, Size
from corpora.tasks.candidates import Candidates, text_key
from corpora.tasks.cards import card_beside


class Sized(Builder):
    """A builder with bounds on the words of a sentence, and on the rows of each split."""

    ascending = (("min_words", "max_words"),)

    min_words: Annotated[int, Field(ge=1)] = 2
    """Minimum words of a sentence; a shorter one ends a window."""
    max_words: int = 100
    """Maximum words of a sentence; a longer one ends a window."""
    train: Size = 10_000
    validation: Size = 4_000
    test: Size = 4_000


class Consecutive(Sized):
    """A builder from windows of consecutive sentences; an unusable sentence ends a window."""

    LENGTH: ClassVar[int]
    """The sentences of a row."""
    columns = pa.schema(
        [pa.field("sentences", pa.list_(pa.string()), nullable=False), ("quoted", pa.int32())]
    )
    """`quoted`: how many sentences got quotation marks."""
    equal = ("sentences",)

    take: Literal["lead", "windows"] = "windows"
    """`windows`: windows of all sentences, without overlap; `lead`: windows of the first sentences
    of the lead section, or of the text before the first heading (introductions, abstracts,
    stories)."""
    within: Literal["paragraph", "section", "document"] = "section"
    """What a window may not cross: `paragraph`, `section` or `document`."""
    one_speaker: bool = False
    """A window ends at another speaker (a paragraph of speech after a paragraph of speech), since
    the order of two speakers can seldom be told."""
    lead_sentences: Annotated[int, Field(ge=0)] = 0
    """Sentences of the lead; 0: as many as one row needs."""
    mean_words: Annotated[float, Field(ge=0)] = 10
    """Minimum words a sentence, averaged over a row (`too_few_words`): replies and exclamations
    alone cannot be judged."""
    quotes: Quotes = "balance"
    """`balance`: each sentence gets paired quotation marks, since unpaired ones show where a
    sentence stood; `keep`: as written."""

    @model_validator(mode="after")
    def _check_lead_fits_a_row(self) -> Self:
        """Raise `ConfigError` if the lead has fewer sentences than a row needs."""
        if 0 < self.lead_sentences < self.LENGTH:
            raise ConfigError(
                f"lead_sentences = {self.lead_sentences}",
                hint=f"{self.LENGTH} or more, the sentences of a row, or 0 for that",
            )
        return self

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield windows of `LENGTH` consecutive sentences, without overlap.

        The second value of a candidate is the number of its sentences that got quotation marks. The
        first window begins at a random sentence, by a hash of the sentences: the beginning of a
        paragraph or section would tell a window's first sentence from its others. A window with two
        equal sentences is left out, since it reads the same in several orders.
        """
        length = self.LENGTH
        texts, originals = prose(document, self.quotes), set(prose(document))
        if self.take == "lead":
            passages = iter([lead(document, texts)[: self.lead_sentences or length]])
        else:
            passages = passages_of(document, texts, self.within, one_speaker=self.one_speaker)
        for passage in passages:
            if len(passage) < length:
                reject("unit_too_short")
            for reason, group in groupby(passage, self._why_unusable):
                sentences = list(group)
                if reason:
                    for _ in sentences:
                        reject(reason)
                    continue
                starts = len(sentences) - length + 1
                if starts < 1:
                    continue
                first = text_key(sentences) % min(length, starts)
                for start in range(first, starts, length):
                    window = sentences[start : start + length]
                    if len(set(window)) < length:
                        reject("equal_sentences")
                    elif count_words(window) < self.mean_words * length:
                        reject("too_few_words")
                    else:
                        yield Candidate((window, sum(text not in originals for text in window)))

    def _why_unusable(self, text: str) -> str:
        """Return the reason why a sentence cannot be used, or "" if it can."""
        number = count_words([text])
        if number < self.min_words:
            return "sentence_too_short" if number else "no_sentence"
        return "sentence_too_long" if number > self.max_words else ""

    def select(self, candidates: Candidates) -> None:
        super().select(candidates)
        candidates.note_quoted()


class Sp(Consecutive):
    """Sentence position: five sentences, one of them moved to the front."""

    name, version = "sp", 9
    paper = "Chen, Chu and Gimpel 2019, section 3.2"
    gives = {"default": SP}
    LENGTH = 5
    card = card_beside(__file__, "sp")

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write the rows of each split, with equal numbers of each label."""
        target = candidates.target
        for split in SPLITS:
            writer = dataset.writer("default", split, SP, texts=("sentences",))
            size = candidates.number_to_use(split, getattr(self, split), "rows")
            random = stream(target.seed, target.stage.name, f"labels of {split}")
            labels = balanced_labels(size, self.LENGTH, random).tolist()
            values = {"split": split, "labels": labels}
            candidates.write(writer, candidates.engine.batches(_MOVED, values))


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
"""Moves the sentence at the label of each row to the front; the others keep their order."""


def balanced_labels(size: int, classes: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return `size` labels in random order; the numbers of two classes differ by 1 at most."""
    return random.permutation(np.arange(size) % classes)


class Bso(Consecutive):
    """Binary sentence ordering: two consecutive sentences, as written and swapped."""

    name, version = "bso", 9
    paper = "Chen, Chu and Gimpel 2019, section 3.3"
    gives = {"default": BSO}
    LENGTH = 2
    card = card_beside(__file__, "bso")

    min_words: Annotated[int, Field(ge=1)] = 5
    one_speaker: bool = True
    lead_sentences: Annotated[int, Field(ge=0)] = 5
    """Sentences of the lead (5, as in the released files: any two neighbours); 0: as many as one
    row needs."""

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write two rows for each pair of sentences: as written and swapped; sizes count pairs."""
        for split in SPLITS:
            writer = dataset.writer("default", split, BSO, texts=("sentence1", "sentence2"))
            size = candidates.number_to_use(split, getattr(self, split), "pairs")
            values = {"split": split, "size": size}
            candidates.write(writer, candidates.engine.batches(_BOTH_ORDERS, values))


_BOTH_ORDERS = """
select doc, licence, label, sentences[2 - label] as sentence1, sentences[1 + label] as sentence2
from (select * from chosen where split = $split order by priority, doc, number limit $size)
    cross join (values (1), (0)) as both_orders(label)
order by priority, doc, number, label desc
"""
