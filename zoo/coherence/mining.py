"""Hard negatives (algorithm 1): rounds of instances, each round's negatives chosen by the model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from corpora.rng import stream
from zoo.coherence.data import Documents, Row
from zoo.coherence.modeling import CoherenceScorer


@dataclass(frozen=True)
class Rounds:
    """The order in which instances are seen: shuffled each epoch, cut into rounds of `size`."""

    count: int
    size: int
    seed: int

    @property
    def in_epoch(self) -> int:
        return -(-self.count // self.size)

    def rows(self, number: int) -> np.ndarray:
        """The row numbers of the round `number`, counted from the start of training."""
        epoch, place = divmod(number, self.in_epoch)
        order = stream(self.seed, "zoo.coherence.rounds", epoch=epoch).permutation(self.count)
        return order[place * self.size : (place + 1) * self.size]


@dataclass
class Miner:
    """Chooses `keep` of each row's negatives: at random in the first round, then the hardest.

    The hardest are those that the model as it stands scores highest. Scoring is inference:
    no gradients, and all orders of a document have equally many tokens, so that batches hold no
    padding to speak of. `seconds` adds up its time.
    """

    documents: Documents
    rows: Sequence[Row]
    keep: int
    seed: int
    batch_tokens: int = 16384
    bf16: bool = False
    seconds: float = field(default=0.0, init=False)
    scored: int = field(default=0, init=False)

    def choose(self, model: CoherenceScorer | None, number: int, rows: np.ndarray) -> list[Row]:
        """The rows of the round `number` with `keep` negatives each; no model: at random."""
        if model is None:
            return [self._at_random(number, row) for row in rows.tolist()]
        began = time.perf_counter()
        chosen = self._hardest(model, rows.tolist())
        self.seconds += time.perf_counter() - began
        return chosen

    def _at_random(self, number: int, row: int) -> Row:
        document, orders = self.rows[row]
        random = stream(self.seed, "zoo.coherence.negatives", str(row), number)
        picked = random.choice(len(orders), self.keep, replace=len(orders) < self.keep)
        return document, [orders[index] for index in picked.tolist()]

    def _hardest(self, model: CoherenceScorer, rows: list[int]) -> list[Row]:
        listed = [self.rows[row] for row in rows]
        texts = [
            self.documents.permuted(document, order)
            for document, orders in listed
            for order in orders
        ]
        scores = np.array(model.score_ids(texts, self.batch_tokens, bf16=self.bf16))
        self.scored += len(texts)
        bounds = np.cumsum([len(orders) for _, orders in listed])[:-1]
        return [
            (document, hardest(orders, part, self.keep))
            for (document, orders), part in zip(listed, np.split(scores, bounds), strict=True)
        ]


def hardest(orders: list[list[int]], scores: np.ndarray, keep: int) -> list[list[int]]:
    """The `keep` orders of the highest scores, highest first; of equal ones the earlier.

    Where there are fewer than `keep`, they are repeated.
    """
    ranked = np.argsort(-scores, kind="stable").tolist()
    return [orders[ranked[i % len(ranked)]] for i in range(keep)]


@dataclass(frozen=True)
class Slices:
    """The text that the momentum encoder reads of a positive document (length invariance).

    A random contiguous slice of at least `shortest` sentences (the paper's footnote 3), or with
    `prefixes` one that begins with the document (the authors' code takes no others).
    """

    documents: Documents
    seed: int
    shortest: int = 4
    prefixes: bool = False

    def bounds(self, document: str, step: int) -> tuple[int, int]:
        """The slice `[start, end)` in sentences, the same for the same step."""
        size = self.documents.size(document)
        shortest = min(self.shortest, size)
        random = stream(self.seed, "zoo.coherence.slices", document, step)
        length = int(random.integers(shortest, size + 1))
        start = 0 if self.prefixes else int(random.integers(size - length + 1))
        return start, start + length

    def text(self, document: str, step: int) -> np.ndarray:
        """The slice as token ids, `[tokens]`."""
        start, end = self.bounds(document, step)
        return self.documents.encoder.assemble(self.documents.sentences[document][start:end])


def batches(
    rows: list[Row], documents: Documents, size: int, seed: int, number: int
) -> Iterator[list[Row]]:
    """The rows of a round in batches of like length, the batches in random order."""
    lengths = [sum(map(len, documents.sentences[document])) for document, _ in rows]
    order = np.argsort(-np.asarray(lengths), kind="stable")
    starts = stream(seed, "zoo.coherence.batches", epoch=number).permutation(
        np.arange(0, len(rows), size)
    )
    for start in starts.tolist():
        yield [rows[index] for index in order[start : start + size].tolist()]
