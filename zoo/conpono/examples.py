"""Training examples sampled from the token store, and the blocks of a batch.

A sample depends only on the seed, the split, the paragraph's document and the epoch: not on the
dataset's order, the batch, the number of workers or interruptions.

An example has 33 sequences of different lengths. All sequences of a batch are sorted by length and
divided into blocks of at most `block_tokens` ids, one sequence in each row; no row of a block is
shorter than 90 % of its longest, so at most a tenth of a block is padding.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch.utils.data import Dataset

from corpora.errors import InputError
from corpora.rng import stream
from zoo.conpono.segments import KEPT, Encoded, Geometry, Masking, Template
from zoo.conpono.tokens import TokenStore

CPU = torch.device("cpu")
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
        paragraph = int(self.store.examples[row if self.rows is None else self.rows[row]])
        documents = self.store.documents
        document = int(np.searchsorted(documents, paragraph, side="right")) - 1
        name = f"{int(self.store.keys[document]):016x}/{paragraph - int(documents[document])}"
        random = stream(self.seed, f"zoo.conpono.{self.split}", name, epoch)
        made, labels = self.draw(paragraph, document, random)
        sequences, words, seconds, cut = zip(*made, strict=True)
        ids, mlm = self.masking.draw(np.concatenate(sequences), np.concatenate(words), random)
        lengths = np.array([len(sequence) for sequence in sequences], np.int64)
        return Example(ids, mlm, lengths, np.array(seconds, np.int64), labels, sum(cut))

    @abstractmethod
    def draw(
        self, paragraph: int, document: int, random: np.random.Generator
    ) -> tuple[list[Encoded], np.ndarray]:
        """The sequences of one example around a paragraph of a document, and its labels."""


@dataclass
class Candidates(Examples):
    """Anchor, targets and random segments (section 2.3).

    Candidates are numbered: first the targets by distance, then random segments of other documents
    up to `candidates`. `labels[i]` is the candidate at distance `distances[i]`, -100 without a
    target there. Sequence 0 is the anchor alone (not for the uni-encoder).
    """

    encoder: Literal["full", "isolated", "uni"] = "full"
    targets: int = 4

    def draw(
        self, paragraph: int, document: int, random: np.random.Generator
    ) -> tuple[list[Encoded], np.ndarray]:
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
        own_start, own_end = own if pool is store else (0, 0)
        free = int(pool.segments[-1]) - (own_end - own_start)
        for number in random.integers(0, free, TRIES * self.candidates).tolist():
            if len(segments) == self.candidates:
                break
            if number >= own_start:  # not a segment of this document
                number += own_end - own_start
            text = pool.ids(pool.starting(pool.segments, number), geometry.target)
            segments.setdefault(text.tobytes(), text)
        if len(segments) < self.candidates:
            raise InputError(
                f"only {len(segments)} distinct candidates in {TRIES * self.candidates} samples",
                where=self.split,
                hint="the corpus repeats itself: remove duplicates, or lower candidates",
                field="candidates",
            )

        # The sequences as encoder input (section 2.1)
        single, pair = self.template.single, self.template.pair
        alone = [] if self.encoder == "uni" else [single(anchor)]
        if self.encoder == "isolated":
            return [*alone, *map(single, segments.values())], labels
        return [*alone, *(pair(anchor, text) for text in segments.values())], labels


@dataclass
class Orderings(Examples):
    """The baseline of binary sentence ordering: contiguous spans, half of them swapped.

    The number of pairs is that of CONPONO's candidates: the first is from the example's paragraph,
    the others from windows anywhere. Whether the longer span comes first is random, so that lengths
    do not reveal the order. `labels [pairs]` are 1 for swapped spans.
    """

    def draw(
        self, paragraph: int, document: int, random: np.random.Generator
    ) -> tuple[list[Encoded], np.ndarray]:
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
        return pairs, labels.astype(np.int64)


@dataclass(frozen=True)
class Collator:
    """Divides the sequences of a batch into blocks.

    `shortest` is the minimum length of a row, as a share of its block's longest.
    """

    pad_id: int
    block_tokens: int = 16384
    shortest: float = 0.9

    def __call__(self, examples: Sequence[Example]) -> dict[str, Any]:
        """The input of `ConponoModel.forward`, `labels [batch, ...]`, and `real_tokens`.

        They are arrays: a tensor costs a worker, and the process that gets it, more time than the
        step may wait. `slots [places]` of all blocks: 4 times the id, plus 2 in
        a second text, plus 1 at a real token; `words [2, masked]`: places in their blocks, labels;
        `plan [blocks, 4]`: rows, tokens of a row, masked words, and whether there is padding.
        `order [batch * sequences]` restores the examples' order from the blocks' vectors.
        """
        ids, mlm, lengths, seconds = (
            np.concatenate([getattr(example, name) for example in examples])
            for name in ("ids", "mlm", "lengths", "seconds")
        )
        begins = np.cumsum(lengths) - lengths
        slots, words, plan = [], [], []
        by_length = left = np.argsort(-lengths, kind="stable")
        while len(left):
            longest = int(lengths[left[0]])
            like = int(np.searchsorted(-lengths[left], -self.shortest * longest, side="right"))
            rows, left = np.split(left, [max(1, min(like, self.block_tokens // longest))])
            places = np.arange(longest)
            real = places < lengths[rows, None]
            sources = np.where(real, begins[rows, None] + places, 0)
            types = real & (places >= seconds[rows, None])
            slots.append((4 * np.where(real, ids[sources], self.pad_id) + 2 * types + real).ravel())
            labels = np.where(real, mlm[sources], KEPT).ravel()
            masked = np.flatnonzero(labels != KEPT)
            words.append(np.stack([masked, labels[masked]]))
            plan.append((*real.shape, len(masked), not real.all()))
        return {
            "labels": np.stack([example.labels for example in examples]),
            "slots": np.concatenate(slots).astype(np.int32),
            "words": np.concatenate(words, 1).astype(np.int32),
            "plan": np.array(plan),
            "order": np.argsort(by_length).astype(np.int32),  # the inverse
            "real_tokens": int(lengths.sum()),
        }


def as_tensors(batch: Mapping[str, Any], device: torch.device = CPU) -> dict[str, Any]:
    """What `Collator` made, as `ConponoModel` takes it: arrays as tensors, but for the plan.

    To a GPU they are copied from pinned memory, so that the process need not wait.
    """
    arrays = {k: v for k, v in batch.items() if isinstance(v, np.ndarray) and k != "plan"}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    if device.type != "cpu":
        tensors = {k: v.pin_memory().to(device, non_blocking=True) for k, v in tensors.items()}
    return {**batch, **tensors}
