"""From examples to the blocks of ids that the encoder gets, with hardly any padding.

An example has 33 sequences of unlike lengths. All sequences of a batch are laid into blocks of at
most `block_tokens` ids, in one of two ways:

- `buckets`: sorted by length, one sequence a row; no row of a block is shorter than 90 % of its
  longest, so that at most a tenth of the places is padding, whatever the batch.
- `packed`: several sequences a row of fixed width, first fit, longest first; each attends to
  itself alone. Every row has the same width; a batch's last block may have fewer rows.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from zoo.conpono.examples import Example
from zoo.conpono.masking import KEPT

Layout = Literal["buckets", "packed"]
Row = list[int]
"""The numbers of the sequences in one row, from left to right."""


@dataclass(frozen=True)
class Collator:
    """Lays the sequences of a batch's examples into blocks.

    `width` is the width of a packed row, at least the longest sequence; `shortest` is the least
    length of a bucket's row, as a share of the longest; `first_position` is the number of a
    sequence's first position (RoBERTa and its kin do not begin at 0).
    """

    pad_id: int
    layout: Layout = "buckets"
    block_tokens: int = 16384
    width: int = 512
    shortest: float = 0.9
    first_position: int = 0

    def __call__(self, examples: Sequence[Example]) -> dict[str, Any]:
        """`labels [batch, ...]`, `blocks`, and `order [batch * sequences]`.

        `order` puts the vectors of the blocks, one after the other, back into the examples'
        order. `real_tokens` and `slots` count ids and places for ids.
        """
        lengths = np.concatenate([example.lengths for example in examples])
        plan = list(self._blocks(lengths))
        placed = [sequence for rows in plan for row in rows for sequence in row]
        flat = _Flat.of(examples, lengths)
        blocks = [self._block(rows, flat) for rows in plan]
        return {
            "labels": torch.from_numpy(np.stack([example.labels for example in examples])),
            "blocks": blocks,
            "order": torch.from_numpy(np.argsort(placed)),
            "real_tokens": int(lengths.sum()),
            "slots": sum(block["input_ids"].numel() for block in blocks),
        }

    def _blocks(self, lengths: np.ndarray) -> Iterator[list[Row]]:
        if self.layout == "packed":
            rows = pack(lengths, self.width)
            size = max(1, self.block_tokens // self.width)
            for start in range(0, len(rows), size):
                yield rows[start : start + size]
            return
        order = np.argsort(-lengths, kind="stable")
        while len(order):
            longest = int(lengths[order[0]])
            like = int(np.searchsorted(-lengths[order], -self.shortest * longest, side="right"))
            size = max(1, min(like, self.block_tokens // longest))
            yield [[sequence] for sequence in order[:size].tolist()]
            order = order[size:]

    def _block(self, rows: Sequence[Row], flat: _Flat) -> dict[str, Any]:
        """One block of the model's input: see `ConponoModel.encode` for its parts."""
        packed = self.layout == "packed"
        shape = self._shape(rows, flat.lengths)
        ids = np.full(shape, self.pad_id, np.int64)
        types, positions, segments = (np.zeros(shape, np.int64) for _ in range(3))
        labels = np.full(shape, KEPT, np.int64)
        starts = []
        for number, row in enumerate(rows):
            at = 0
            for segment, sequence in enumerate(row, 1):
                size, source = flat.lengths[sequence], flat.spans[sequence]
                place = (number, slice(at, at + size))
                ids[place], labels[place] = flat.ids[source], flat.mlm[source]
                types[number, at + flat.seconds[sequence] : at + size] = 1
                positions[place] = np.arange(size) + self.first_position
                segments[place] = segment
                starts.append(number * shape[1] + at)
                at += size
        masked = np.flatnonzero(labels.ravel() != KEPT)
        return {
            "input_ids": torch.from_numpy(ids),
            "token_type_ids": torch.from_numpy(types),
            "position_ids": torch.from_numpy(positions) if packed else None,
            "segments": torch.from_numpy(segments) if packed or not segments.all() else None,
            "starts": torch.tensor(starts),
            "masked": torch.from_numpy(masked),
            "mlm_labels": torch.from_numpy(labels.ravel()[masked]),
        }

    def _shape(self, rows: Sequence[Row], lengths: np.ndarray) -> tuple[int, int]:
        if self.layout == "packed":
            return len(rows), self.width
        return len(rows), int(max(lengths[row[0]] for row in rows))


@dataclass(frozen=True)
class _Flat:
    """The examples' arrays end to end; `spans` are the sequences' places in them."""

    ids: np.ndarray
    mlm: np.ndarray
    lengths: np.ndarray
    seconds: np.ndarray
    spans: list[slice]

    @classmethod
    def of(cls, examples: Sequence[Example], lengths: np.ndarray) -> _Flat:
        ends = np.cumsum(lengths).tolist()
        spans = [slice(end - size, end) for end, size in zip(ends, lengths.tolist(), strict=True)]
        return cls(
            np.concatenate([example.ids for example in examples]),
            np.concatenate([example.mlm for example in examples]),
            lengths,
            np.concatenate([example.seconds for example in examples]),
            spans,
        )


def pack(lengths: np.ndarray, width: int) -> list[Row]:
    """Rows of at most `width` ids: each sequence, longest first, into the row it fills best."""
    rows: list[Row] = []
    free: list[tuple[int, int]] = []  # (ids left, row), sorted
    for sequence in np.argsort(-lengths, kind="stable").tolist():
        size = int(lengths[sequence])
        found = next((i for i, (left, _) in enumerate(free) if left >= size), None)
        left, row = (width, len(rows)) if found is None else free.pop(found)
        if found is None:
            rows.append([])
        rows[row].append(sequence)
        insort(free, (left - size, row))
    return rows


def attention_mask(segments: Tensor, packed: bool) -> Tensor:
    """Who may attend to whom, from `segments [rows, tokens]` (0 is padding).

    `[rows, tokens]` with one sequence a row; `[rows, 1, tokens, tokens]` for packed rows, whose
    padding attends to padding, so that no row of the softmax is empty.
    """
    if not packed:
        return (segments > 0).long()
    return segments[:, None, :, None] == segments[:, None, None, :]


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask of truth values as eager attention adds it to its scores."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)
