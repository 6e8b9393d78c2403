"""From sentences to sequences: positions of anchors and targets, special tokens, masked words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from corpora.errors import ConfigError
from zoo.texts import PROBE

NO_LABEL = -100
"""The label of a token that is not predicted, and of a distance without a target."""


@dataclass(frozen=True)
class Geometry:
    """Sentences of an anchor and of a target, and K, the largest distance `|k|` (section 2.3)."""

    anchor: int = 4
    target: int = 3
    k: int = 2

    @property
    def window(self) -> int:
        """The number of sentences of an anchor with an adjacent target, the shortest paragraph."""
        return self.anchor + self.target

    @property
    def distances(self) -> list[int]:
        """The distances `-K .. -1, 1 .. K`, in the order of W_k, of labels and of accuracies."""
        return [*range(-self.k, 0), *range(1, self.k + 1)]

    def target_start(self, anchor_start: int, k: int) -> int:
        """Return the first sentence of the target at distance `k` from the anchor.

        k = 1 begins directly after the anchor, k = -1 ends directly before it. The paper's example:
        the anchor s7..s10 has the target s1..s3 at k = -4, "because s3 is 4 positions behind s7".
        """
        if k > 0:
            return anchor_start + self.anchor - 1 + k
        return anchor_start + k - self.target + 1

    def targets(self, anchor_start: int, sentences: int) -> list[int]:
        """Return the distances whose target is inside a paragraph of `sentences` sentences."""
        starts = {k: self.target_start(anchor_start, k) for k in self.distances}
        last_start = sentences - self.target
        return [k for k, start in starts.items() if 0 <= start <= last_start]

    def anchors(self, sentences: int) -> np.ndarray:
        """Return the possible starts of an anchor in a paragraph, `[anchors]`. An anchor needs a
        target at k = 1 or k = -1 inside the paragraph."""
        starts = np.arange(max(sentences - self.anchor + 1, 0))
        return starts[(starts + self.window <= sentences) | (starts >= self.target)]

    def draw(
        self, sentences: int, targets: int, random: np.random.Generator
    ) -> tuple[int, list[int]]:
        """Sample an anchor: its first sentence, and the distances of its targets in order.

        At most `targets` of its targets are sampled (the paper: 4 of 8); near a paragraph's ends
        there may be fewer. Anchors are equally likely.
        """
        start = int(random.choice(self.anchors(sentences)))
        possible = self.targets(start, sentences)
        chosen = random.permutation(len(possible))[:targets]
        return start, [possible[i] for i in sorted(chosen)]


def cut_pair(anchor: int, target: int, budget: int) -> tuple[int, int]:
    """Return the lengths to which an anchor and a target are cut, so that both fit in `budget`.

    All numbers are tokens. The longer one loses its last token until both fit, as in BERT.
    """
    anchor_length = min(anchor, max(budget - budget // 2, budget - target))
    return anchor_length, min(target, budget - anchor_length)


class Encoded(NamedTuple):
    """A text or a pair of texts as token ids with special tokens."""

    ids: np.ndarray
    words: np.ndarray
    """False at special tokens."""
    second: int
    """Where the second text begins."""
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
        """Read the special tokens of a tokenizer from the encoding of a short pair."""
        pair = tokenizer(*PROBE)
        ids, sides = np.asarray(pair["input_ids"], np.int64), pair.sequence_ids()
        first, second = sides.index(0), sides.index(1)
        middle, end = ids[first + sides.count(0) : second], ids[second + sides.count(1) :]
        return cls(ids[:first], middle, end, max_tokens)

    def single(self, text: np.ndarray) -> Encoded:
        """Encode one text, cut at its end if it is too long."""
        cut_text = text[: self.max_tokens - len(self.start) - len(self.end)]
        return self._sequence([self.start, cut_text, self.end], len(cut_text) < len(text))

    def pair(self, first: np.ndarray, second: np.ndarray) -> Encoded:
        """Encode two texts; if they are too long together, the longer one is cut at its end."""
        budget = self.max_tokens - len(self.start) - len(self.middle) - len(self.end)
        first_size, second_size = cut_pair(len(first), len(second), budget)
        parts = [self.start, first[:first_size], self.middle, second[:second_size], self.end]
        return self._sequence(parts, first_size + second_size < len(first) + len(second))

    def _sequence(self, parts: Sequence[np.ndarray], cut: bool) -> Encoded:
        """Join `parts`, in which special tokens and texts alternate; `cut`: whether one was cut."""
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
        """Make the masking of a tokenizer. Raises `ConfigError` if it has no mask token."""
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
        """Return `ids [tokens]` with a random sample of words masked, and the labels `[tokens]`.
        `maskable [tokens]` is False at special tokens. A label is the masked word's id, else
        -100."""
        labels = np.full(ids.shape, NO_LABEL, np.int64)
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
