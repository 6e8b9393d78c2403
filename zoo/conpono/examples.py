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
from zoo.conpono.segments import NO_LABEL, Encoded, Geometry, Masking, Template
from zoo.conpono.tokens import TokenStore

CPU = torch.device("cpu")
TRIES = 100
"""Attempts for each random candidate before the corpus counts as repetitive."""


@dataclass(frozen=True)
class AnchorExample:
    """The sequences of one example, one after the other, with masked words.

    `ids` and `mlm` `[tokens]` are the token ids, and the masked words' labels; `lengths` and
    `seconds` `[sequences]` the tokens of each sequence, and where its second text begins. `labels`
    are `[2K]` or, for the ordering baseline, `[pairs]`. `cut` counts the sequences whose texts were
    too long.
    """

    ids: np.ndarray
    mlm: np.ndarray
    lengths: np.ndarray
    seconds: np.ndarray
    labels: np.ndarray
    cut: int


@dataclass
class Examples(Dataset[AnchorExample]):
    """One example for each paragraph of `store` that is long enough; random text is from `pool`."""

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

    def __getitem__(self, item: int | tuple[int, int]) -> AnchorExample:
        """Sample the example of a row in epoch 0, or of `(row, epoch)`."""
        row, epoch = item if isinstance(item, tuple) else (item, 0)
        paragraph = int(self.store.examples[row if self.rows is None else self.rows[row]])
        documents = self.store.documents
        document = int(np.searchsorted(documents, paragraph, side="right")) - 1
        name = f"{int(self.store.keys[document]):016x}/{paragraph - int(documents[document])}"
        random = stream(self.seed, f"zoo.conpono.{self.split}", name, epoch)
        sequences, labels = self.draw(paragraph, document, random)
        texts, words, seconds, cut = zip(*sequences, strict=True)
        ids, mlm = self.masking.draw(np.concatenate(texts), np.concatenate(words), random)
        lengths = np.array([len(text) for text in texts], np.int64)
        return AnchorExample(ids, mlm, lengths, np.array(seconds, np.int64), labels, sum(cut))

    @abstractmethod
    def draw(
        self, paragraph: int, document: int, random: np.random.Generator
    ) -> tuple[list[Encoded], np.ndarray]:
        """Sample an example from a paragraph of a document; return its sequences and its labels.

        `paragraph` and `document` are indices into the store. The labels are those of
        `AnchorExample`: `[2K]` or, for the ordering baseline, `[pairs]`.
        """


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
        """Sample an anchor and targets from the paragraph, and segments of other documents.

        Returns the sequences, and the labels `[2K]`: the number of the target at each distance.
        """
        # The anchor and its targets, from this paragraph
        store, pool, geometry = self.store, self.pool, self.geometry
        first, end = store.paragraphs[paragraph].tolist()
        start, distances = geometry.draw(end - first, self.targets, random)
        anchor = store.ids(first + start, geometry.anchor)
        labels = np.full(2 * geometry.k, NO_LABEL, np.int64)
        segments: dict[bytes, np.ndarray] = {}
        for k in distances:
            target = store.ids(first + geometry.target_start(start, k), geometry.target)
            if target.tobytes() not in segments:  # a refrain: one of the equal targets is enough
                labels[geometry.distances.index(k)] = len(segments)
                segments[target.tobytes()] = target

        # Random segments of other documents, none equal to another candidate
        bounds = store.segments[store.documents[document : document + 2]].tolist()
        skip_start, skip_end = bounds if pool is store else (0, 0)
        others = int(pool.segments[-1]) - (skip_end - skip_start)
        for number in random.integers(0, others, TRIES * self.candidates).tolist():
            if len(segments) == self.candidates:
                break
            if number >= skip_start:  # skips the segments of this document
                number += skip_end - skip_start
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
        anchor_alone = [] if self.encoder == "uni" else [single(anchor)]
        if self.encoder == "isolated":
            return [*anchor_alone, *map(single, segments.values())], labels
        return [*anchor_alone, *(pair(anchor, text) for text in segments.values())], labels


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
        """Sample one window from the paragraph, and `candidates - 1` from all windows of the store.

        Each window is cut into two texts of the sizes of an anchor and a target, in either order of
        sizes. Returns the pairs of texts, and their labels `[pairs]`: 1 if the texts are swapped.
        """
        first, end = self.store.paragraphs[paragraph].tolist()
        starts = [first + int(random.integers(end - first - self.geometry.window + 1))]
        numbers = random.integers(0, int(self.store.windows[-1]), self.candidates - 1)
        starts += [self.store.starting(self.store.windows, number) for number in numbers.tolist()]
        labels = random.integers(0, 2, self.candidates)
        anchor_first = random.integers(0, 2, self.candidates)
        pairs = []
        for start, is_anchor_first, swap in zip(starts, anchor_first, labels, strict=True):
            size = self.geometry.anchor if is_anchor_first else self.geometry.target
            first_text = self.store.ids(start, size)
            second_text = self.store.ids(start + size, self.geometry.window - size)
            if swap:
                first_text, second_text = second_text, first_text
            pairs.append(self.template.pair(first_text, second_text))
        return pairs, labels.astype(np.int64)


@dataclass(frozen=True)
class Collator:
    """Divides the sequences of a batch into blocks.

    `shortest` is the minimum length of a row, as a share of its block's longest.
    """

    pad_id: int
    block_tokens: int = 16384
    shortest: float = 0.9

    def __call__(self, examples: Sequence[AnchorExample]) -> dict[str, Any]:
        """Make a batch: the input of `ConponoModel.forward`, and the number of `real_tokens`.

        Returns arrays, since making and receiving a tensor takes a worker process longer:

        - `labels [batch, ...]`;
        - `slots [places]`, those of all blocks: 4 times the token id, plus 2 in a second text, plus
          1 at a real token;
        - `words [2, masked]`: the places of masked words in their blocks, and their labels;
        - `plan [blocks, 4]`: rows, tokens of a row, masked words, and whether there is padding;
        - `order [batch * sequences]`, which puts the blocks' vectors in the examples' order.
        """
        ids, mlm, lengths, seconds = (
            np.concatenate([getattr(example, name) for example in examples])
            for name in ("ids", "mlm", "lengths", "seconds")
        )
        begins = np.cumsum(lengths) - lengths
        slots, words, plan = [], [], []
        by_length = remaining = np.argsort(-lengths, kind="stable")
        while len(remaining):
            # The next block has the longest sequences that remain, of similar length.
            longest = int(lengths[remaining[0]])
            shortest = self.shortest * longest
            similar = int(np.searchsorted(-lengths[remaining], -shortest, side="right"))
            size = max(1, min(similar, self.block_tokens // longest))
            rows, remaining = np.split(remaining, [size])
            # `sources [rows, longest]` has the place of each token in `ids` (0 at padding).
            places = np.arange(longest)
            real = places < lengths[rows, None]
            sources = np.where(real, begins[rows, None] + places, 0)
            types = real & (places >= seconds[rows, None])
            slots.append((4 * np.where(real, ids[sources], self.pad_id) + 2 * types + real).ravel())
            labels = np.where(real, mlm[sources], NO_LABEL).ravel()
            masked = np.flatnonzero(labels != NO_LABEL)
            words.append(np.stack([masked, labels[masked]]))
            plan.append((*real.shape, len(masked), not real.all()))
        return {
            "labels": np.stack([example.labels for example in examples]),
            "slots": np.concatenate(slots).astype(np.int32),
            "words": np.concatenate(words, 1).astype(np.int32),
            "plan": np.array(plan),
            "order": np.argsort(by_length).astype(np.int32),  # the inverse permutation
            "real_tokens": int(lengths.sum()),
        }


def as_tensors(batch: Mapping[str, Any], device: torch.device = CPU) -> dict[str, Any]:
    """Return a batch of `Collator` with tensors on the device for all arrays but the plan.

    They are copied to a GPU from pinned memory, so that the process need not wait.
    """
    tensors = {
        name: torch.from_numpy(value)
        for name, value in batch.items()
        if isinstance(value, np.ndarray) and name != "plan"
    }
    if device.type != "cpu":
        tensors = {k: v.pin_memory().to(device, non_blocking=True) for k, v in tensors.items()}
    return {**batch, **tensors}
