"""DisSent rows as token ids: kept flat, padded only when a batch is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

CHUNK = 10_000


@dataclass
class Pairs(Dataset[tuple[np.ndarray, np.ndarray, int]]):
    """Pairs of sentences. Row `i` is tokens `bounds[2i]:bounds[2i + 1]` (s1), then s2.

    `truncated` counts the sentences that were longer than the limit and lost their end.
    """

    tokens: np.ndarray
    bounds: np.ndarray
    labels: np.ndarray
    pad_id: int
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[np.ndarray, np.ndarray, int]:
        a, b, c = self.bounds[2 * row : 2 * row + 3]
        return self.tokens[a:b], self.tokens[b:c], int(self.labels[row])

    def lengths(self) -> np.ndarray:
        """The tokens of the longer sentence of each row: what a batch is padded to."""
        return np.diff(self.bounds).reshape(-1, 2).max(axis=1)

    def collate(self, rows: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> dict[str, Any]:
        """`input_ids` and `attention_mask` `[batch, 2, tokens]`, `labels [batch]`."""
        width = max(len(sentence) for s1, s2, _ in rows for sentence in (s1, s2))
        ids = np.full((len(rows), 2, width), self.pad_id, np.int64)
        mask = np.zeros_like(ids)
        for row, (s1, s2, _) in enumerate(rows):
            for side, sentence in enumerate((s1, s2)):
                ids[row, side, : len(sentence)] = sentence
                mask[row, side, : len(sentence)] = 1
        labels = torch.tensor([label for *_, label in rows])
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(mask),
            "labels": labels,
        }


def encode(table: pa.Table, tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> Pairs:
    """The rows of a DisSent table as token ids; each sentence cut at `max_tokens`."""
    one, two = table["s1"].to_pylist(), table["s2"].to_pylist()
    labels = table["label"].to_numpy().astype(np.int64)
    return encode_texts(one, two, tokenizer, max_tokens, labels)


def encode_texts(
    one: Sequence[str],
    two: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    labels: np.ndarray | None = None,
) -> Pairs:
    """Pairs of sentences as token ids; each sentence cut at `max_tokens`."""
    pieces, truncated = [np.zeros(0, np.int32)], 0
    lengths: list[int] = []
    for start in range(0, len(one), CHUNK):
        both = zip(one[start : start + CHUNK], two[start : start + CHUNK], strict=True)
        sentences = [text for pair in both for text in pair]
        found = tokenizer(sentences, add_special_tokens=False, verbose=False)["input_ids"]
        truncated += sum(len(ids) > max_tokens for ids in found)
        kept = [ids[:max_tokens] or [tokenizer.unk_token_id] for ids in found]
        lengths += map(len, kept)
        # One array a chunk: an array a sentence would cost more than its tokens.
        pieces.append(np.fromiter(chain.from_iterable(kept), np.int32))
    tokens = np.concatenate(pieces)
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    gold = np.zeros(len(one), np.int64) if labels is None else labels
    return Pairs(tokens, bounds, gold, tokenizer.pad_token_id, truncated)


def texts(table: pa.Table) -> Iterator[str]:
    """Both sentences of every row, for training a tokenizer."""
    for s1, s2 in _chunks(table):
        yield from s1
        yield from s2


def _chunks(table: pa.Table) -> Iterator[tuple[list[str], list[str]]]:
    for batch in table.select(["s1", "s2"]).to_batches(max_chunksize=CHUNK):
        yield batch["s1"].to_pylist(), batch["s2"].to_pylist()
