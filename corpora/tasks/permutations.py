"""Random orders of sentences for many documents at once, in numpy.

An order is drawn by sorting random 64-bit words, one a sentence. A document gets the first orders
whose texts differ from the original and from one another; two orders of equal sentences may give
the same text. The words come from SplitMix64 (Steele, Lea, Flood 2014), seeded by document: a numpy
generator for each document would take longer than its orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import factorial, log1p, prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpora.rng import Words, mix_bits, stable_id, stream
from corpora.schemas import PERMUTED_ORDERS

LARGEST = 255
"""The maximum sentences of a document: places are bytes."""

WORDS_AT_ONCE = 1 << 16
"""Words that are drawn at a time: they stay in the processor's cache."""

# A word, from its highest byte: kind of the sentence, random bits, text (a byte), place (a byte).
BYTE, TWO_BYTES, EIGHT = np.uint64(0xFF), np.uint64(0xFFFF), np.uint64(8)
KIND, RANDOM = np.uint64(56), np.uint64(0x00FFFFFFFFFF0000)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The increment of SplitMix64: 2^64 divided by the golden ratio."""
WEIGHTS = mix_bits(np.arange(1, LARGEST + 1, dtype=np.uint64) * GOLDEN)
"""A weight for each place; the hash of an order is the weighted sum of its texts' numbers."""


def document_keys(seed: int, stage: str, documents: Sequence[str]) -> Words:
    """Return a random key [documents] that depends only on the seed, the stage and the id."""
    ids = np.fromiter(map(stable_id, documents), np.uint64, len(documents))
    return mix_bits(ids ^ stream(seed, stage).integers(0, 2**64, dtype=np.uint64))


def distinct_orders(sentences: Sequence[str], kinds: Sequence[object] | None = None) -> int:
    """Return the number of different texts that the orders of `sentences` give.

    The original is one of them. With `kinds`, one for each sentence, a sentence takes only the
    places of its kind.
    """
    places = Counter(kinds).values() if kinds else [len(sentences)]
    return prod(map(factorial, places)) // prod(map(factorial, Counter(sentences).values()))


def permutations(
    keys: Words,
    texts: NDArray[np.uint64],
    total: int,
    k: int,
    kinds: NDArray[np.uint64] | None = None,
) -> NDArray[np.uint8]:
    """Return `k` random orders [documents, k, n] of the `n` sentences of each document.

    The orders of a document give `k` different texts, none of them the original. They depend only
    on its key in `keys` [documents]. `texts` [documents, n] has a number for each sentence, equal
    for equal sentences of a document. Each document has `total` distinct orders. With `kinds`
    [documents, n], below 256, a sentence takes only places of its kind. Raises `ValueError` unless
    `total` exceeds `k`.
    """
    n = texts.shape[1]
    if not 1 <= n <= LARGEST or k >= total:
        raise ValueError(f"{n} sentences have no {k} other orders")
    result = np.empty((len(keys), k, n), np.uint8)
    total = min(total, 2**62)
    draws = 3 + int(-total * log1p(-k / total))  # on average these give k different orders
    # Random words are sorted; the low bytes of each are the text and the place of its sentence.
    low_bytes = texts << EIGHT | np.arange(n, dtype=np.uint64)
    if kinds is not None:  # sorted by kind first: then each goes back to a place of its kind
        low_bytes |= kinds << KIND
        # `argsort` twice: the rank of each place among the places in the order of their kinds
        places_of_kinds = np.argsort(np.argsort(kinds, axis=1, kind="stable"), axis=1)
    original = (texts * WEIGHTS[:n]).sum(axis=1)
    # Draw orders of documents until each has `k` different ones.
    todo = np.arange(len(keys))
    while todo.size:
        unfinished = []
        steps = np.arange(1, draws * n + 1, dtype=np.uint64) * GOLDEN
        size = max(1, WORDS_AT_ONCE // steps.size)
        for batch in (todo[start : start + size] for start in range(0, todo.size, size)):
            words = mix_bits(keys[batch, None] + steps).reshape(-1, draws, n)
            words = words & ~TWO_BYTES if kinds is None else words & RANDOM
            words = np.sort(words | low_bytes[batch, None], axis=2)
            if kinds is not None:
                words = np.take_along_axis(words, places_of_kinds[batch, None], axis=2)
            orders = words.astype(np.uint8)
            # Texts are compared by 64 bits: where these are equal by chance an order is lost.
            hashes = ((words >> EIGHT & BYTE) * WEIGHTS[:n]).sum(axis=2)
            is_new = _is_first_in_row(hashes) & (hashes != original[batch, None])
            is_new &= np.cumsum(is_new, axis=1) <= k
            is_complete = np.count_nonzero(is_new, axis=1) == k
            result[batch[is_complete]] = orders[is_complete][is_new[is_complete]].reshape(-1, k, n)
            unfinished.append(batch[~is_complete])
        todo, draws = np.concatenate(unfinished), 2 * draws
    return result


def _is_first_in_row(values: Words) -> NDArray[np.bool_]:
    """Return a mask of the values that have not occurred before in their row."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    first = np.ones(values.shape, bool)
    np.put_along_axis(first, order[:, 1:], ordered[:, 1:] != ordered[:, :-1], axis=1)
    return first


def order_rows(
    keys: Words,
    ids: Sequence[str],
    sentences: Sequence[list[str]],
    rows_of: Callable[[int], tuple[int, int]],
    kind: Callable[[str], object] | None = None,
) -> pa.RecordBatch | None:
    """Return rows of `PERMUTED_ORDERS` for documents, in their order; None if there are none.

    `keys`, `ids` and `sentences` have an entry for each document. `rows_of` takes the number of a
    document's distinct orders and returns its number of rows, and of negatives a row. If `kind` is
    set, a sentence takes only places of its kind.
    """
    kinds = [list(map(kind, texts)) if kind else [] for texts in sentences]
    # Documents with equal numbers of sentences and of orders are permuted by one call.
    by_shape: dict[tuple[int, int], list[int]] = {}
    for position, (texts, of_kind) in enumerate(zip(sentences, kinds, strict=True)):
        shape = len(texts), distinct_orders(texts, of_kind)
        by_shape.setdefault(shape, []).append(position)
    positions, repetitions, negatives = [], [], []
    for (n, total), members in by_shape.items():
        rows, per_row = rows_of(total)
        if rows:
            text_codes = np.array([codes_by_occurrence(sentences[i]) for i in members], np.uint64)
            kind_codes = (
                np.array([codes_by_occurrence(kinds[i]) for i in members], np.uint64)
                if kind
                else None
            )
            orders = permutations(keys[members], text_codes, total, rows * per_row, kind_codes)
            inner = pa.FixedSizeListArray.from_arrays(pa.array(orders.ravel()), n)
            outer = pa.FixedSizeListArray.from_arrays(inner, per_row)
            negatives.append(outer.cast(PERMUTED_ORDERS.field("orders").type))
            positions.append(np.repeat(members, rows))
            repetitions.append(np.tile(np.arange(rows, dtype=np.uint8), len(members)))
    # Put the rows in the order of the documents.
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


def codes_by_occurrence(values: Iterable[object]) -> list[int]:
    """Return a number for each value, from 0 on by first occurrence; equal values share one."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]
