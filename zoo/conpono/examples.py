"""Training examples sampled from the token store, and the blocks of a batch.

A sample depends only on the seed, the split, the paragraph's document and the epoch: not on the
dataset's order, the batch, the number of workers or interruptions.

An example has 33 sequences of different lengths. All sequences of a batch are sorted by length and
divided into blocks of at most `block_tokens` ids, one sequence in each row; no row of a block is
shorter than 90 % of its longest, so at most a tenth of a block is padding.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch.utils.data import Dataset

from corpora.errors import ConfigError, InputError
from corpora.rng import stream
from zoo.conpono.segments import KEPT, Encoded, Geometry, Masking, Template
from zoo.conpono.tokens import TokenStore

Encoder = Literal["full", "isolated", "uni"]
TRIES = 100
"""Attempts for each random candidate before the corpus counts as repetitive."""


@dataclass(frozen=True)
class Example:
    """The sequences of one example, end to end, after masking.

    `ids`, `words` labels `mlm` `[tokens]`; `lengths`, `seconds` `[sequences]` (the start of type 1
    in each); `labels [2K]` or, for the ordering baseline, `[pairs]`; `cut` counts the sequences
    whose texts were too long.
    """

    ids: np.ndarray
    mlm: np.ndarray
    lengths: np.ndarray
    seconds: np.ndarray
    labels: np.ndarray
    cut: int


@dataclass
class Examples(Dataset[Example]):
    """One example for each paragraph that is long enough; random text comes from `pool`."""

    store: TokenStore
    pool: TokenStore
    template: Template
    masking: Masking
    geometry: Geometry
    candidates: int = 32
    seed: int = 0
    split: str = "train"
    rows: np.ndarray | None = None
    """Indices of the store's examples to use (None: all)."""

    def __len__(self) -> int:
        return len(self.store.examples if self.rows is None else self.rows)

    def __getitem__(self, item: int | tuple[int, int]) -> Example:
        """The example of a row (in epoch 0), or of `(row, epoch)`."""
        row, epoch = item if isinstance(item, tuple) else (item, 0)
        row = row if self.rows is None else int(self.rows[row])
        paragraph = int(self.store.examples[row])
        document = self.store.document_of(paragraph)
        number = paragraph - int(self.store.documents[document])
        name = f"{int(self.store.keys[document]):016x}/{number}"
        random = stream(self.seed, f"zoo.conpono.{self.split}", name, epoch)
        return self.draw(paragraph, document, random)

    @abstractmethod
    def draw(self, paragraph: int, document: int, random: np.random.Generator) -> Example:
        """One example around a paragraph of a document."""

    def finish(
        self, sequences: Sequence[Encoded], labels: np.ndarray, random: np.random.Generator
    ) -> Example:
        """Mask the sequences and join them end to end."""
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

    Candidates are numbered: first the targets by distance, then random segments of other documents
    up to `candidates`. `labels[i]` is the candidate at distance `distances[i]`, -100 without a
    target there. Sequence 0 is the anchor alone (not for the uni-encoder).
    """

    encoder: Encoder = "full"
    targets: int = 4

    def __post_init__(self) -> None:
        if self.candidates <= self.targets:
            raise ConfigError(
                f"candidates = {self.candidates} with targets = {self.targets}",
                hint="candidates are the targets and some random segments: increase candidates",
            )
        own = self.pool is self.store
        largest = int(np.diff(self.store.segments[self.store.documents]).max()) if own else 0
        free = int(self.pool.segments[-1]) - largest
        if free < self.candidates:
            raise ConfigError(
                f"{free} segments are outside the largest document, candidates = {self.candidates}",
                where=self.split,
                hint="add documents to the dataset, or lower candidates",
            )

    def draw(self, paragraph: int, document: int, random: np.random.Generator) -> Example:
        store, pool, geometry = self.store, self.pool, self.geometry
        first, end = store.paragraphs[paragraph].tolist()
        start, distances = geometry.draw(end - first, self.targets, random)
        anchor = store.ids(first + start, geometry.anchor)
        labels = np.full(2 * geometry.k, KEPT, np.int64)
        segments: dict[bytes, np.ndarray] = {}
        for k in distances:
            target = store.ids(first + geometry.target_start(start, k), geometry.target)
            if target.tobytes() not in segments:  # a refrain: one of the equal targets is enough
                labels[geometry.distances.index(k)] = len(segments)
                segments[target.tobytes()] = target

        # Random segments of other documents, none equal to another candidate
        own = store.segments[store.documents[document : document + 2]].tolist()
        skipped, after = own if pool is store else (0, 0)
        free = int(pool.segments[-1]) - (after - skipped)
        for number in random.integers(0, free, TRIES * self.candidates).tolist():
            if len(segments) == self.candidates:
                break
            number += (after - skipped) * (number >= skipped)
            text = pool.ids(pool.starting(pool.segments, number), geometry.target)
            segments.setdefault(text.tobytes(), text)
        if len(segments) < self.candidates:
            raise InputError(
                f"only {len(segments)} distinct candidates in {TRIES * self.candidates} samples",
                where=self.split,
                hint="the corpus repeats itself: remove duplicates, or lower candidates",
            )

        # The sequences as encoder input (section 2.1)
        single, pair = self.template.single, self.template.pair
        if self.encoder == "isolated":
            sequences = [single(text) for text in (anchor, *segments.values())]
        else:
            alone = [] if self.encoder == "uni" else [single(anchor)]
            sequences = [*alone, *(pair(anchor, text) for text in segments.values())]
        return self.finish(sequences, labels, random)


@dataclass
class Orderings(Examples):
    """The baseline of binary sentence ordering: contiguous spans, half of them swapped.

    The number of pairs is that of CONPONO's candidates: the first is from the example's paragraph,
    the others from windows anywhere. Whether the longer span comes first is random, so that lengths
    do not reveal the order. `labels [pairs]` are 1 for swapped spans.
    """

    def draw(self, paragraph: int, document: int, random: np.random.Generator) -> Example:
        first, end = self.store.paragraphs[paragraph].tolist()
        starts = [first + int(random.integers(end - first - self.geometry.window + 1))]
        numbers = random.integers(0, int(self.store.windows[-1]), self.candidates - 1)
        starts += [self.store.starting(self.store.windows, number) for number in numbers.tolist()]
        labels = random.integers(0, 2, self.candidates)
        anchor_first = random.integers(0, 2, self.candidates)
        pairs = []
        for start, long, swap in zip(starts, anchor_first, labels, strict=True):
            size = self.geometry.anchor if long else self.geometry.target
            one = self.store.ids(start, size)
            two = self.store.ids(start + size, self.geometry.window - size)
            pairs.append(self.template.pair(*((two, one) if swap else (one, two))))
        return self.finish(pairs, labels.astype(np.int64), random)


@dataclass(frozen=True)
class Collator:
    """Divides the sequences of a batch into blocks.

    `shortest` is the minimum length of a row, as a share of its block's longest.
    """

    pad_id: int
    block_tokens: int = 16384
    shortest: float = 0.9

    def __call__(self, examples: Sequence[Example]) -> dict[str, Any]:
        """`labels [batch, ...]`, `blocks`, and `order [batch * sequences]`.

        `order` restores the examples' order from the concatenated vectors of the blocks.
        `real_tokens` and `slots` count ids and positions, padding included.
        """
        joined = {
            name: np.concatenate([getattr(example, name) for example in examples])
            for name in ("ids", "mlm", "lengths", "seconds")
        }
        lengths = joined["lengths"]
        plan = list(self._plan(lengths))
        placed = [sequence for rows in plan for sequence in rows]
        blocks = [self._block(rows, **joined, ends=np.cumsum(lengths)) for rows in plan]
        return {
            "labels": torch.from_numpy(np.stack([example.labels for example in examples])),
            "blocks": blocks,
            "order": torch.from_numpy(np.argsort(placed)),
            "real_tokens": int(lengths.sum()),
            "slots": sum(block["input_ids"].numel() for block in blocks),
        }

    def _plan(self, lengths: np.ndarray) -> Iterator[list[int]]:
        """The sequences of each block, one in each row."""
        order = np.argsort(-lengths, kind="stable")
        while len(order):
            longest = int(lengths[order[0]])
            like = int(np.searchsorted(-lengths[order], -self.shortest * longest, side="right"))
            size = max(1, min(like, self.block_tokens // longest))
            yield order[:size].tolist()
            order = order[size:]

    def _block(
        self,
        rows: Sequence[int],
        ids: np.ndarray,
        mlm: np.ndarray,
        lengths: np.ndarray,
        seconds: np.ndarray,
        ends: np.ndarray,
    ) -> dict[str, Any]:
        """One block of the model's input, of sequences end to end: see `ConponoModel.encode`."""
        places = np.arange(int(lengths[rows].max()))
        real = places < lengths[rows, None]
        inputs = np.full(real.shape, self.pad_id, np.int64)
        labels = np.full_like(inputs, KEPT)
        for number, sequence in enumerate(rows):
            size, end = int(lengths[sequence]), int(ends[sequence])
            inputs[number, :size] = ids[end - size : end]
            labels[number, :size] = mlm[end - size : end]
        masked = np.flatnonzero(labels.ravel() != KEPT)
        types = (real & (places >= seconds[rows, None])).astype(np.int64)
        return {
            "input_ids": torch.from_numpy(inputs),
            "token_type_ids": torch.from_numpy(types),
            "real": None if real.all() else torch.from_numpy(real),
            "masked": torch.from_numpy(masked),
            "mlm_labels": torch.from_numpy(labels.ravel()[masked]),
        }
