"""Training examples drawn from the token store: nothing but sentence numbers lies on the disk.

What is drawn depends on the seed, the split, the paragraph's document and the epoch alone: not on
the dataset's order, the batch, the number of workers or the run's interruptions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch.utils.data import Dataset

from corpora.errors import ConfigError, InputError
from corpora.rng import stream
from zoo.conpono.masking import KEPT, Masking
from zoo.conpono.segments import Geometry
from zoo.conpono.texts import Encoded, Template
from zoo.conpono.tokens import TokenStore

Encoder = Literal["full", "isolated", "uni"]
TRIES = 100
"""Draws for each random candidate before the corpus is said to repeat itself."""


@dataclass(frozen=True)
class Example:
    """The sequences of one example, end to end, after masking.

    `ids`, `words` labels `mlm` `[tokens]`; `lengths`, `seconds` `[sequences]` (where type 1
    begins in each); `labels [2K]` or, for the ordering baseline, `[pairs]`; `cut` counts the
    sequences whose texts were too long.
    """

    ids: np.ndarray
    mlm: np.ndarray
    lengths: np.ndarray
    seconds: np.ndarray
    labels: np.ndarray
    cut: int


@dataclass
class Examples(Dataset[Example]):
    """One example a paragraph that is long enough; `pool` is where random text is drawn from."""

    store: TokenStore
    pool: TokenStore
    template: Template
    masking: Masking
    geometry: Geometry
    candidates: int = 32
    seed: int = 0
    split: str = "train"
    rows: np.ndarray | None = None
    """Of the store's examples these only (None: all)."""

    def __len__(self) -> int:
        return len(self.store.examples if self.rows is None else self.rows)

    def __getitem__(self, item: int | tuple[int, int]) -> Example:
        """The example of a row, or of `(row, epoch)`; a row alone is of epoch 0."""
        row, epoch = item if isinstance(item, tuple) else (item, 0)
        row = row if self.rows is None else int(self.rows[row])
        paragraph = int(self.store.examples[row])
        document = self.store.document_of(paragraph)
        number = paragraph - int(self.store.documents[document])
        name = f"{int(self.store.keys[document]):016x}/{number}"
        return self.draw(paragraph, document, stream(self.seed, self.stage, name, epoch))

    @property
    def stage(self) -> str:
        return f"zoo.conpono.{self.split}"

    @abstractmethod
    def draw(self, paragraph: int, document: int, random: np.random.Generator) -> Example:
        """One example around a paragraph of a document."""

    def finish(
        self, sequences: Sequence[Encoded], labels: np.ndarray, random: np.random.Generator
    ) -> Example:
        """Mask the sequences and lay them end to end."""
        ids = np.concatenate([sequence.ids for sequence in sequences])
        words = np.concatenate([sequence.words for sequence in sequences])
        masked, mlm = self.masking.draw(ids, words, random)
        lengths = np.array([len(sequence.ids) for sequence in sequences], np.int64)
        seconds = np.array([sequence.second for sequence in sequences], np.int64)
        cut = sum(sequence.cut for sequence in sequences)
        return Example(masked, mlm, lengths, seconds, labels, cut)


@dataclass
class Candidates(Examples):
    """Anchor, targets and random segments (section 2.3).

    Candidates are numbered: first the targets by distance, then random segments of other
    documents up to `candidates`. `labels[i]` is the candidate at distance `distances[i]`, -100
    where that is no target here. Sequence 0 is the anchor alone (not for the uni-encoder).
    """

    encoder: Encoder = "full"
    targets: int = 4

    def __post_init__(self) -> None:
        if self.candidates <= self.targets:
            raise ConfigError(
                f"candidates = {self.candidates} with targets = {self.targets}",
                hint="candidates are the targets and some random segments: give more of them",
            )
        own = self.pool is self.store
        largest = int(np.diff(self.store.segments[self.store.documents]).max()) if own else 0
        free = int(self.pool.segments[-1]) - largest
        if free < self.candidates:
            raise ConfigError(
                f"{free} segments lie outside the largest document, candidates = {self.candidates}",
                where=self.split,
                hint="add documents to the dataset, or lower candidates",
            )

    def draw(self, paragraph: int, document: int, random: np.random.Generator) -> Example:
        first, end = self.store.paragraphs[paragraph].tolist()
        start, distances = self.geometry.draw(end - first, self.targets, random)
        anchor = self.store.ids(first + start, self.geometry.anchor)
        labels = np.full(2 * self.geometry.k, KEPT, np.int64)
        segments: dict[bytes, np.ndarray] = {}
        for k in distances:
            at = first + self.geometry.target_start(start, k)
            target = self.store.ids(at, self.geometry.target)
            if target.tobytes() not in segments:  # a refrain: one of the equal targets is enough
                labels[self.geometry.place(k)] = len(segments)
                segments[target.tobytes()] = target
        self._fill(segments, document, random)
        return self.finish(self._encoded(anchor, list(segments.values())), labels, random)

    def _encoded(self, anchor: np.ndarray, segments: Sequence[np.ndarray]) -> list[Encoded]:
        """The sequences as the encoder takes them (section 2.1)."""
        if self.encoder == "isolated":
            return [self.template.single(text) for text in (anchor, *segments)]
        pairs = [self.template.pair(anchor, text) for text in segments]
        return pairs if self.encoder == "uni" else [self.template.single(anchor), *pairs]

    def _range(self, document: int) -> tuple[int, int]:
        """The pool's segments that a document's own anchor must not get."""
        return self.store.segments_of(document) if self.pool is self.store else (0, 0)

    def _fill(
        self, segments: dict[bytes, np.ndarray], document: int, random: np.random.Generator
    ) -> None:
        """Add random segments of other documents, none equal to another candidate."""
        first, end = self._range(document)
        free = int(self.pool.segments[-1]) - (end - first)
        for number in random.integers(0, free, TRIES * self.candidates).tolist():
            if len(segments) == self.candidates:
                return
            number += (end - first) * (number >= first)
            at = self.pool.starting(self.pool.segments, number)
            text = self.pool.ids(at, self.geometry.target)
            segments.setdefault(text.tobytes(), text)
        raise InputError(
            f"only {len(segments)} distinct candidates among {TRIES * self.candidates} drawn",
            where=self.split,
            hint="the corpus repeats itself: remove duplicates, or lower candidates",
        )


@dataclass
class Orderings(Examples):
    """The baseline of binary sentence ordering: contiguous spans, half of them swapped.

    As many pairs as CONPONO has candidates: the first from the example's own paragraph, the
    others from windows anywhere. The longer span comes first or second by a coin of its own, so
    that lengths do not tell the order. `labels [pairs]` are 1 where the spans are swapped.
    """

    def draw(self, paragraph: int, document: int, random: np.random.Generator) -> Example:
        first, end = self.store.paragraphs[paragraph].tolist()
        starts = [first + int(random.integers(end - first - self.geometry.window + 1))]
        numbers = random.integers(0, int(self.store.windows[-1]), self.candidates - 1)
        starts += [self.store.starting(self.store.windows, number) for number in numbers.tolist()]
        labels = random.integers(0, 2, self.candidates)
        anchor_first = random.integers(0, 2, self.candidates)
        pairs = [
            self._pair(start, self.geometry.anchor if long else self.geometry.target, bool(swap))
            for start, long, swap in zip(starts, anchor_first, labels, strict=True)
        ]
        return self.finish(pairs, labels.astype(np.int64), random)

    def _pair(self, start: int, size: int, swap: bool) -> Encoded:
        one = self.store.ids(start, size)
        two = self.store.ids(start + size, self.geometry.window - size)
        return self.template.pair(two, one) if swap else self.template.pair(one, two)
