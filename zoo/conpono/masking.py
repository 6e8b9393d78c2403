"""Dynamic masking (section 2.3): other words are hidden each time a text is seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedTokenizerBase

from corpora.errors import ConfigError

KEPT = -100
"""The label of a token that is not to be predicted."""


@dataclass(frozen=True)
class Masking:
    """BERT's masking: `rate` of the words; of those 80 % hidden, 10 % random, 10 % as they are.

    A random word is any of the `words` ids of the vocabulary, as in BERT's code.
    """

    rate: float
    mask_id: int
    words: int

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, rate: float) -> Masking:
        """The masking with a tokenizer's mask token. Raises `ConfigError` where it has none."""
        mask_id = tokenizer.mask_token_id
        if rate and mask_id is None:
            raise ConfigError(
                "this backbone's tokenizer has no mask token",
                where="mlm",
                hint="set mlm = false, or choose another backbone",
            )
        return cls(rate, mask_id or 0, len(tokenizer))

    def draw(
        self, ids: np.ndarray, maskable: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """`ids [tokens]` with words hidden, and labels; `maskable` is False at special tokens."""
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
