"""From sentences to sequences: positions of anchors and targets, special tokens, masked words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from corpora.errors import ConfigError
from zoo.texts import PROBE

KEPT = -100
"""The label of a token that is not predicted, and of a distance without a target."""


@dataclass(frozen=True)
class Geometry:
    """Sentences of an anchor and of a target, and K, the largest distance `|k|` (section 2.3)."""

    anchor: int = 4
    target: int = 3
    k: int = 2

    @property
    def window(self) -> int:
        """The sentences of an adjacent anchor and target: the shortest usable paragraph."""
        return self.anchor + self.target

    @property
    def distances(self) -> list[int]:
        """`-K .. -1, 1 .. K`: the order of W_k, of labels and of the accuracies."""
        return [*range(-self.k, 0), *range(1, self.k + 1)]

    def target_start(self, anchor_start: int, k: int) -> int:
        """The first sentence of the target `k` away from the anchor at `anchor_start`.

        k = 1 begins directly after the anchor, k = -1 ends directly before it. The paper's example:
        the anchor s7..s10 has the target s1..s3 at k = -4, "because s3 is 4 positions behind s7".
        """
        if k > 0:
            return anchor_start + self.anchor - 1 + k
        return anchor_start + k - self.target + 1

    def targets(self, anchor_start: int, sentences: int) -> list[int]:
        """The distances whose target is inside a paragraph of `sentences` sentences."""
        starts = {k: self.target_start(anchor_start, k) for k in self.distances}
        return [k for k, at in starts.items() if at >= 0 and at + self.target <= sentences]

    def anchors(self, sentences: int) -> np.ndarray:
        """The anchor starts in a paragraph with a target at k = 1 or k = -1."""
        starts = np.arange(max(sentences - self.anchor + 1, 0))
        return starts[(starts + self.window <= sentences) | (starts >= self.target)]

    def draw(
        self, sentences: int, targets: int, random: np.random.Generator
    ) -> tuple[int, list[int]]:
        """An anchor's start and the distances of its targets, in the order of `distances`.

        At most `targets` of the existing ones are sampled (the paper: 4 of 8); near a paragraph's
        ends there may be fewer. Anchors are equally likely.
        """
        start = int(random.choice(self.anchors(sentences)))
        possible = self.targets(start, sentences)
        chosen = random.permutation(len(possible))[:targets]
        return start, [possible[i] for i in sorted(chosen)]


def cut_pair(anchor: int, target: int, budget: int) -> tuple[int, int]:
    """The tokens left of an anchor and a target so that both fit in `budget`: the longer is cut.

    The same as taking a token off the end of the longer one until they fit, as BERT does.
    """
    one = min(anchor, max(budget - budget // 2, budget - target))
    return one, min(target, budget - one)


class Encoded(NamedTuple):
    """Token ids, which of them are words, the start of the second text, and whether it was cut."""

    ids: np.ndarray
    words: np.ndarray
    second: int
    cut: bool


@dataclass(frozen=True)
class Template:
    """`start A end` for a text, `start A middle B end` for a pair, at most `max_tokens`."""

    start: np.ndarray
    middle: np.ndarray
    end: np.ndarray
    max_tokens: int

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> Template:
        """The special tokens, read off an example."""
        pair = tokenizer(*PROBE)
        ids, sides = np.asarray(pair["input_ids"], np.int64), pair.sequence_ids()
        one, two = sides.index(0), sides.index(1)
        middle, end = ids[one + sides.count(0) : two], ids[two + sides.count(1) :]
        return cls(ids[:one], middle, end, max_tokens)

    def single(self, text: np.ndarray) -> Encoded:
        """One text, cut at its end if it is too long."""
        kept = text[: self.max_tokens - len(self.start) - len(self.end)]
        return self._sequence([self.start, kept, self.end], len(kept) < len(text))

    def pair(self, first: np.ndarray, second: np.ndarray) -> Encoded:
        """Two texts; if they are too long together, the longer one is cut at its end."""
        budget = self.max_tokens - len(self.start) - len(self.middle) - len(self.end)
        one, two = cut_pair(len(first), len(second), budget)
        parts = [self.start, first[:one], self.middle, second[:two], self.end]
        return self._sequence(parts, one + two < len(first) + len(second))

    def _sequence(self, parts: Sequence[np.ndarray], cut: bool) -> Encoded:
        """`parts` alternate special tokens and texts."""
        ids = np.concatenate(parts).astype(np.int64)
        sizes = [len(part) for part in parts]
        words = np.repeat(np.arange(len(parts)) % 2 == 1, sizes)
        return Encoded(ids, words, sum(sizes[:3]), cut)


@dataclass(frozen=True)
class Masking:
    """BERT's masking: `rate` of the words; of those 80 % masked, 10 % random, 10 % unchanged.

    A random word is any of the `words` ids of the vocabulary, as in BERT's code. Each time a text
    is used, other words are masked (section 2.3).
    """

    rate: float
    mask_id: int
    words: int

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, rate: float) -> Masking:
        """The masking with a tokenizer's mask token. Raises `ConfigError` if it has none."""
        mask_id = tokenizer.mask_token_id
        if rate and mask_id is None:
            raise ConfigError(
                "this backbone's tokenizer has no mask token",
                hint="set mlm = false, or choose another backbone",
                field="mlm",
            )
        return cls(rate, mask_id or 0, len(tokenizer))

    def draw(
        self, ids: np.ndarray, maskable: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """`ids [tokens]` with masked words, and labels; `maskable` is False at special tokens."""
        labels = np.full(ids.shape, KEPT, np.int64)
        if not self.rate:
            return ids, labels
        chosen = np.flatnonzero(maskable & (random.random(ids.shape) < self.rate))
        labels[chosen] = ids[chosen]
        kind = random.random(chosen.shape)
        masked = ids.copy()
        masked[chosen[kind < 0.8]] = self.mask_id
        swapped = chosen[kind >= 0.9]
        masked[swapped] = random.integers(0, self.words, swapped.shape)
        return masked, labels
