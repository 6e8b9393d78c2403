"""Pairs of texts as one sequence of token ids, for a model that reads both at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

CHUNK = 10_000

Row = tuple[np.ndarray, np.ndarray | None, int]
"""Token ids of a pair, their segments where there are any, and the label."""


@dataclass
class PairTexts(Dataset[Row]):
    """Row `i` is tokens `bounds[i]:bounds[i + 1]`: both texts with the special tokens.

    `types` holds the segment of each token, where the tokenizer makes segments. `truncated`
    counts the pairs that were longer than the limit and lost the end of their longer text.
    """

    tokens: np.ndarray
    types: np.ndarray | None
    bounds: np.ndarray
    labels: np.ndarray
    pad_id: int
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, row: int) -> Row:
        span = slice(self.bounds[row], self.bounds[row + 1])
        types = None if self.types is None else self.types[span]
        return self.tokens[span], types, int(self.labels[row])

    def lengths(self) -> np.ndarray:
        """Tokens of each row."""
        return np.diff(self.bounds)

    def collate(self, rows: Sequence[Row]) -> dict[str, Any]:
        """`input_ids`, `attention_mask` (and `token_type_ids`) `[batch, tokens]`, `labels`.

        The rows may be of another split: nothing but the padding is taken from this one.
        """
        width = max(len(tokens) for tokens, *_ in rows)
        ids = np.full((len(rows), width), self.pad_id, np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, (tokens, segments, _) in enumerate(rows):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
            if segments is not None:
                types[row, : len(tokens)] = segments
        batch = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        if rows[0][1] is not None:
            batch["token_type_ids"] = torch.from_numpy(types)
        return {**batch, "labels": torch.tensor([label for *_, label in rows])}


def encode_pairs(
    first: Sequence[str],
    second: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    labels: np.ndarray | None = None,
) -> PairTexts:
    """Token ids of the pairs; a pair longer than `max_tokens` loses the end of its longer text."""
    pieces, types, truncated = [np.zeros(0, np.int32)], [np.zeros(0, np.int8)], 0
    lengths: list[int] = []
    segments = "token_type_ids" in tokenizer.model_input_names
    for start in range(0, len(first), CHUNK):
        one, two = list(first[start : start + CHUNK]), list(second[start : start + CHUNK])
        found = tokenizer(one, two, truncation="longest_first", max_length=max_tokens)
        rows = found["input_ids"]
        full = [row for row, ids in enumerate(rows) if len(ids) >= max_tokens]
        truncated += _longer([one[i] for i in full], [two[i] for i in full], tokenizer, max_tokens)
        lengths += map(len, rows)
        pieces.append(np.fromiter(chain.from_iterable(rows), np.int32))
        if segments:
            types.append(np.fromiter(chain.from_iterable(found["token_type_ids"]), np.int8))
    return PairTexts(
        np.concatenate(pieces),
        np.concatenate(types) if segments else None,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.zeros(len(first), np.int64) if labels is None else labels.astype(np.int64),
        tokenizer.pad_token_id,
        truncated,
    )


def _longer(
    one: list[str], two: list[str], tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> int:
    """How many of these pairs have more than `max_tokens` tokens when nothing is cut."""
    if not one:
        return 0
    whole = tokenizer(one, two, truncation=False, verbose=False)["input_ids"]
    return sum(len(ids) > max_tokens for ids in whole)
