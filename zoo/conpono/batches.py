"""From examples to the blocks of ids that the encoder gets, with hardly any padding.

An example has 33 sequences of unlike lengths. All sequences of a batch are laid into blocks of at
most `block_tokens` ids, in one of two ways:

- `buckets`: sorted by length, one sequence a row; no row of a block is shorter than 90 % of its
  longest, so that at most a tenth of the places is padding, whatever the batch.
- `packed`: several sequences a row of fixed width, first fit, longest first; each attends to
  itself alone. Every row has the same width; a batch's last block may have fewer rows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from zoo.conpono.examples import Example
from zoo.conpono.segments import KEPT

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
        joined = {
            name: np.concatenate([getattr(example, name) for example in examples])
            for name in ("ids", "mlm", "lengths", "seconds")
        }
        lengths = joined["lengths"]
        plan = list(self._plan(lengths))
        placed = [sequence for rows in plan for row in rows for sequence in row]
        blocks = [self._block(rows, **joined, ends=np.cumsum(lengths)) for rows in plan]
        return {
            "labels": torch.from_numpy(np.stack([example.labels for example in examples])),
            "blocks": blocks,
            "order": torch.from_numpy(np.argsort(placed)),
            "real_tokens": int(lengths.sum()),
            "slots": sum(block["input_ids"].numel() for block in blocks),
        }

    def _plan(self, lengths: np.ndarray) -> Iterator[list[Row]]:
        """The rows of each block."""
        if self.layout == "packed":
            rows = pack(lengths, self.width)
            size = max(1, self.block_tokens // self.width)
            yield from (rows[start : start + size] for start in range(0, len(rows), size))
            return
        order = np.argsort(-lengths, kind="stable")
        while len(order):
            longest = int(lengths[order[0]])
            like = int(np.searchsorted(-lengths[order], -self.shortest * longest, side="right"))
            size = max(1, min(like, self.block_tokens // longest))
            yield [[sequence] for sequence in order[:size].tolist()]
            order = order[size:]

    def _block(
        self,
        rows: Sequence[Row],
        ids: np.ndarray,
        mlm: np.ndarray,
        lengths: np.ndarray,
        seconds: np.ndarray,
        ends: np.ndarray,
    ) -> dict[str, Any]:
        """One block of the model's input, of sequences end to end: see `ConponoModel.encode`."""
        packed = self.layout == "packed"
        width = self.width if packed else int(max(lengths[row[0]] for row in rows))
        inputs = np.full((len(rows), width), self.pad_id, np.int64)
        labels = np.full_like(inputs, KEPT)
        types, positions, segments = (np.zeros_like(inputs) for _ in range(3))
        starts = []
        for number, row in enumerate(rows):
            at = 0
            for segment, sequence in enumerate(row, 1):
                size, end = int(lengths[sequence]), int(ends[sequence])
                place = (number, slice(at, at + size))
                inputs[place], labels[place] = ids[end - size : end], mlm[end - size : end]
                types[number, at + seconds[sequence] : at + size] = 1
                positions[place] = np.arange(size) + self.first_position
                segments[place] = segment
                starts.append(number * width + at)
                at += size
        masked = np.flatnonzero(labels.ravel() != KEPT)
        return {
            "input_ids": torch.from_numpy(inputs),
            "token_type_ids": torch.from_numpy(types),
            "position_ids": torch.from_numpy(positions) if packed else None,
            "segments": torch.from_numpy(segments) if packed or not segments.all() else None,
            "starts": torch.tensor(starts),
            "masked": torch.from_numpy(masked),
            "mlm_labels": torch.from_numpy(labels.ravel()[masked]),
        }


def pack(lengths: np.ndarray, width: int) -> list[Row]:
    """Rows of at most `width` ids: each sequence, longest first, into the row it fills best."""
    rows: list[Row] = []
    free: list[tuple[int, int]] = []  # (ids left, row), sorted
    for sequence in np.argsort(-lengths, kind="stable").tolist():
        size = int(lengths[sequence])
        best = bisect_left(free, (size, 0))
        if best == len(free):
            rows.append([])
            free.append((width, len(rows) - 1))
        left, row = free.pop(best)
        rows[row].append(sequence)
        insort(free, (left - size, row))
    return rows
