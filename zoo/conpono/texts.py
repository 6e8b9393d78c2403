"""A text or a pair of texts between the backbone's special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedTokenizerBase

from corpora.errors import ConfigError
from zoo.conpono.segments import cut_pair


@dataclass(frozen=True)
class Encoded:
    """Token ids, which of them are words, where the second text's begin, and whether it was cut."""

    ids: np.ndarray
    words: np.ndarray
    second: int
    cut: bool


@dataclass(frozen=True)
class Template:
    """`start A end` for a text, `start A middle B end` for a pair, of `max_tokens` at most."""

    start: np.ndarray
    middle: np.ndarray
    end: np.ndarray
    max_tokens: int

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> Template:
        """The special tokens, read off an example. Raises `ConfigError` for a text without any.

        The vector of a text is that of its first token, so there must be one.
        """
        one, two = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in PROBE)
        pair = tokenizer(*PROBE)["input_ids"]
        at = _find(pair, one, 0)
        then = _find(pair, two, at + len(one))
        parts = pair[:at], pair[at + len(one) : then], pair[then + len(two) :]
        if not parts[0]:
            raise ConfigError(
                "this backbone puts no [CLS] token before a text",
                where="backbone",
                hint="choose an encoder such as BERT or RoBERTa",
            )
        start, middle, end = (np.asarray(part, np.int64) for part in parts)
        return cls(start, middle, end, max_tokens)

    def single(self, text: np.ndarray) -> Encoded:
        """One text, cut at its end where it is too long."""
        one = min(len(text), self.max_tokens - len(self.start) - len(self.end))
        ids = np.concatenate([self.start, text[:one], self.end])
        return _sequence(ids, [(len(self.start), one)], len(ids), one < len(text))

    def pair(self, first: np.ndarray, second: np.ndarray) -> Encoded:
        """Two texts; where they are too long together, the longer one is cut at its end."""
        extra = len(self.start) + len(self.middle) + len(self.end)
        one, two = cut_pair(len(first), len(second), self.max_tokens - extra)
        ids = np.concatenate([self.start, first[:one], self.middle, second[:two], self.end])
        at = len(self.start) + one + len(self.middle)
        cut = one + two < len(first) + len(second)
        return _sequence(ids, [(len(self.start), one), (at, two)], at, cut)


PROBE = ("One", "two")


def _sequence(ids: np.ndarray, texts: Sequence[tuple[int, int]], second: int, cut: bool) -> Encoded:
    words = np.zeros(len(ids), bool)
    for at, size in texts:
        words[at : at + size] = True
    return Encoded(ids.astype(np.int64), words, second, cut)


def _find(ids: list[int], wanted: list[int], start: int) -> int:
    """Where `wanted` stands in `ids`, from `start` on."""
    size = len(wanted)
    return next(i for i in range(start, len(ids)) if ids[i : i + size] == wanted)
