"""Random orders of sentences for many documents at once, in numpy.

An order is drawn by sorting random words, one a sentence. A document gets the first orders drawn
that read unlike the original and unlike one another: where sentences are equal, orders are
compared by their texts. The words come from SplitMix64 (Steele, Lea, Flood 2014) keyed by
document: a numpy generator for each document would cost more than its orders do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import factorial, log1p, prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpora.rng import Words, mixed, stable_id, stream
from corpora.schemas import PERMUTED_ORDERS

LARGEST = 255
"""The most sentences of a document: places are bytes."""

AT_ONCE = 1 << 16
"""Words that are drawn at a time: they stay in the processor's cache."""

BYTE, TWO_BYTES, EIGHT = np.uint64(0xFF), np.uint64(0xFFFF), np.uint64(8)
KIND, RANDOM = np.uint64(56), np.uint64(0x00FFFFFFFFFF0000)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
WEIGHTS = mixed(np.arange(1, LARGEST + 1, dtype=np.uint64) * GOLDEN)


def document_keys(seed: int, stage: str, documents: Sequence[str]) -> Words:
    """One key a document: it depends on the seed, the stage and the document's id alone."""
    ids = np.fromiter(map(stable_id, documents), np.uint64, len(documents))
    return mixed(ids ^ stream(seed, stage).integers(0, 2**64, dtype=np.uint64))


def distinct_orders(sentences: Sequence[str], kinds: Sequence[object] | None = None) -> int:
    """How many different texts the orders of `sentences` give, the original included.

    `kinds`: of each sentence; it takes only the places of its kind.
    """
    free = Counter(kinds).values() if kinds else [len(sentences)]
    return prod(map(factorial, free)) // prod(map(factorial, Counter(sentences).values()))


def permutations(
    keys: Words,
    texts: NDArray[np.uint64],
    total: int,
    k: int,
    kinds: NDArray[np.uint64] | None = None,
) -> NDArray[np.uint8]:
    """`k` orders [documents, k, n] for each key that give `k` texts, none of them the original.

    `texts` [documents, n] has equal numbers for equal sentences of a document, and each document
    has `total` distinct orders. With `kinds` [documents, n], below 256, a sentence takes only
    places of its kind. Raises `ValueError` if the orders are fewer than `k` and the original.
    """
    n = texts.shape[1]
    if not 1 <= n <= LARGEST or k >= total:
        raise ValueError(f"{n} sentences have no {k} other orders")
    result = np.empty((len(keys), k, n), np.uint8)
    share = min(total, 2**62)
    number = 3 + int(-share * log1p(-k / share))  # so many draws give k different ones on average
    both = texts << EIGHT | np.arange(n, dtype=np.uint64)
    if kinds is not None:  # sorted by kind first: then each goes back to a place of its kind
        both |= kinds << KIND
        place = np.argsort(np.argsort(kinds, axis=1, kind="stable"), axis=1)
    original = (texts * WEIGHTS[:n]).sum(axis=1)
    todo = np.arange(len(keys))
    while todo.size:
        short = []
        steps = np.arange(1, number * n + 1, dtype=np.uint64) * GOLDEN
        size = max(1, AT_ONCE // steps.size)
        for some in (todo[start : start + size] for start in range(0, todo.size, size)):
            # A word's last two bytes say which sentence it is of, and how that reads.
            words = mixed(keys[some, None] + steps).reshape(-1, number, n)
            words = words & ~TWO_BYTES if kinds is None else words & RANDOM
            words = np.sort(words | both[some, None], axis=2)
            if kinds is not None:
                words = np.take_along_axis(words, place[some, None], axis=2)
            orders = words.astype(np.uint8)
            # Texts are compared by 64 bits: where these are equal by chance an order is lost.
            hashes = ((words >> EIGHT & BYTE) * WEIGHTS[:n]).sum(axis=2)
            good = _first_of_each(hashes) & (hashes != original[some, None])
            good &= np.cumsum(good, axis=1) <= k
            enough = np.count_nonzero(good, axis=1) == k
            result[some[enough]] = orders[enough][good[enough]].reshape(-1, k, n)
            short.append(some[~enough])
        todo, number = np.concatenate(short), 2 * number
    return result


def _first_of_each(values: Words) -> NDArray[np.bool_]:
    """Where a row's value has not occurred before in that row."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    first = np.ones(values.shape, bool)
    np.put_along_axis(first, order[:, 1:], ordered[:, 1:] != ordered[:, :-1], axis=1)
    return first


def order_rows(
    keys: Words,
    ids: Sequence[str],
    sentences: Sequence[list[str]],
    wanted: Callable[[int], tuple[int, int]],
    kind: Callable[[str], object] | None = None,
) -> pa.RecordBatch | None:
    """The rows of documents, by `PERMUTED_ORDERS`, in the order of the documents; None for none.

    `wanted`: given the number of a document's distinct orders, how many rows it has and how many
    negatives each. `kind`: of a sentence, where it takes only places of its kind.
    """
    kinds = [list(map(kind, texts)) if kind else [] for texts in sentences]
    # Documents of one length with as many orders are permuted by one call.
    by_shape: dict[tuple[int, int], list[int]] = {}
    for position, (own, of_kind) in enumerate(zip(sentences, kinds, strict=True)):
        by_shape.setdefault((len(own), distinct_orders(own, of_kind)), []).append(position)
    positions, repetitions, negatives = [], [], []
    for (n, total), same in by_shape.items():
        rows, each = wanted(total)
        if rows:
            texts = np.array([codes(sentences[i]) for i in same], np.uint64)
            alike = np.array([codes(kinds[i]) for i in same], np.uint64) if kind else None
            orders = permutations(keys[same], texts, total, rows * each, alike)
            inner = pa.FixedSizeListArray.from_arrays(pa.array(orders.ravel()), n)
            outer = pa.FixedSizeListArray.from_arrays(inner, each)
            negatives.append(outer.cast(PERMUTED_ORDERS.field("orders").type))
            positions.append(np.repeat(same, rows))
            repetitions.append(np.tile(np.arange(rows, dtype=np.uint8), len(same)))
    if not negatives:
        return None
    documents = np.concatenate(positions)
    columns = [
        pa.array(ids).take(pa.array(documents)),
        pa.array(np.concatenate(repetitions)),
        pa.concat_arrays(negatives),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=PERMUTED_ORDERS)
    return batch.take(pa.array(np.argsort(documents, kind="stable")))


def codes(values: Iterable[object]) -> list[int]:
    """Numbers from 0 on that are equal where values are."""
    known: dict[object, int] = {}
    return [known.setdefault(value, len(known)) for value in values]
