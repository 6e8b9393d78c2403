"""Unique random permutations for many documents at once, in numpy.

A permutation of up to 20 sentences is one integer: the digits of its Fisher-Yates swaps in the
factorial number system. Rank 0 is the original order, and two permutations are equal exactly if
their ranks are. So drawing k permutations of a document is drawing k different integers, and
only those that are kept are turned into orders. Above 20 sentences, where n! leaves 64 bits,
orders are drawn and told apart by a 64-bit hash: unequal hashes prove unequal orders, and a
collision costs no more than one good order.

Draws come from SplitMix64 (Steele, Lea, Flood 2014) keyed by document: a counter-based
generator gives all draws of all documents in one array operation, where a numpy generator for
each document would cost more than the permutations (docs/decisions/012).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import factorial, prod, sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from corpora.rng import Words, mixed, stable_id, stream

Orders = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)

LARGEST_RANKED = 20
LARGEST = 255
_DENSE = 3
_BLOCK = 8192
_HALF_WORD = 12  # 12! fits 32 bits, which divide faster
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def document_ids(documents: Sequence[str]) -> Words:
    """The stable ids of documents; hashed once for all stages that permute them."""
    return np.fromiter(map(stable_id, documents), np.uint64, len(documents))


def document_keys(seed: int, stage: str, ids: Words) -> Words:
    """One key a document: the stage's own stream, told apart by the documents' ids."""
    of_stage = stream(seed, stage).integers(0, 2**64, dtype=np.uint64)
    return mixed(ids ^ of_stage)


def distinct_orders(sentences: Sequence[Hashable]) -> int:
    """How many different texts the orders of `sentences` give, the original included."""
    repeated = Counter(sentences).values()
    return factorial(len(sentences)) // prod(map(factorial, repeated))


def permutations(keys: Words, n: int, k: int) -> Orders:
    """`k` different permutations of `n` sentences for each key, never the original.

    Returns orders [documents, k, n]. Raises `ValueError` if there are fewer than k.
    """
    if not 1 <= n <= LARGEST or k > factorial(n) - 1:
        raise ValueError(f"{n} sentences have no {k} other orders")
    if n > LARGEST_RANKED:
        return _drawn_orders(keys, n, k)
    ranks = _distinct(keys, factorial(n) - 1, k) + np.uint64(1)
    return unranked(ranks.ravel(), n).reshape(len(keys), k, n)


def permutations_of_text(key: np.uint64, sentences: Sequence[Hashable], k: int) -> Orders:
    """`k` orders [k, n] of one document with repeated sentences: all *texts* differ.

    Swapping two equal sentences gives the original text, so orders are told apart by what they
    read like. Raises `ValueError` if there are fewer than k.
    """
    n, drawn = len(sentences), 2 * k
    if n > LARGEST or k > distinct_orders(sentences) - 1:
        raise ValueError(f"these {n} sentences have no {k} other orders")
    classes = np.unique([hash(s) for s in sentences], return_inverse=True)[1].astype(np.uint8)
    while True:
        orders = _any_orders(np.array([key]), n, drawn)[0]
        read = np.ascontiguousarray(classes[orders])
        first = np.unique(read.view(f"V{n}").ravel(), return_index=True)[1]
        other = np.sort(first[(read[first] != classes).any(axis=1)])
        if other.size >= k:
            return orders[other[:k]]
        drawn *= 2


def unranked(ranks: Words, n: int) -> Orders:
    """The permutations [ranks, n] with these ranks; 0 is the original order."""
    orders = np.empty((ranks.size, n), np.uint8)
    for start in range(0, ranks.size, _BLOCK):  # a block's arrays stay in the processor's cache
        part = slice(start, start + _BLOCK)
        orders[part] = _unranked(ranks[part], n).T
    return orders


def _unranked(ranks: Words, n: int) -> Orders:
    """The same for few ranks, as columns: a swap works on whole rows, one row a position."""
    orders = np.repeat(np.arange(n, dtype=np.uint8)[:, None], ranks.size, axis=1)
    flat, column = orders.reshape(-1), np.arange(ranks.size)
    word = np.uint32 if n <= _HALF_WORD else np.uint64
    rest: NDArray[Any] = ranks.astype(word)
    for position in range(n - 1, 0, -1):
        base = word(position + 1)
        quotient = rest // base
        other = (position - (rest - quotient * base).astype(np.int64)) * ranks.size + column
        rest = quotient
        chosen = flat.take(other)
        flat[other] = orders[position]
        orders[position] = chosen
    return orders


def _distinct(keys: Words, total: int, k: int) -> Words:
    """The first k different integers below `total` of each key's draws: [keys, k]."""
    if total < _DENSE * k:
        shuffled = np.argsort(_draws(keys, total), axis=1, kind="stable")
        return shuffled[:, :k].astype(np.uint64)
    limit = 2**64 - 2**64 % total  # draws beyond it would make small integers more likely
    accepted = limit / 2**64 * (1 - k / (2 * total))
    drawn = int(k / accepted + 3 * sqrt(k * (1 - accepted))) + 1
    result = np.empty((len(keys), k), np.uint64)
    todo = np.arange(len(keys))
    while todo.size:
        draws = _draws(keys[todo], drawn)
        values = draws % np.uint64(total)
        good = _first_of_each(values)
        if limit < 2**64:
            good &= draws < np.uint64(limit)
        todo = _take_first(result, todo, values, good)
        drawn *= 2
    return result


def _drawn_orders(keys: Words, n: int, k: int) -> Orders:
    """As `permutations`, for any n: orders are drawn and compared by hash."""
    result = np.empty((len(keys), k, n), np.uint8)
    todo, drawn = np.arange(len(keys)), k + 1
    while todo.size:
        orders = _any_orders(keys[todo], n, drawn)
        good = _first_of_each(_hashes(orders)) & (orders != np.arange(n)).any(axis=2)
        todo = _take_first(result, todo, orders, good)
        drawn *= 2
    return result


def _any_orders(keys: Words, n: int, number: int) -> Orders:
    """Random orders [keys, number, n], repetitions and the original among them."""
    draws = _draws(keys, number * n).reshape(len(keys), number, n)
    return np.argsort(draws, axis=2, kind="stable").astype(np.uint8)


def _take_first(
    result: NDArray[Scalar], todo: NDArray[np.int64], values: NDArray[Scalar], good: Mask
) -> NDArray[np.int64]:
    """Fill rows `todo` of `result` that have enough good values; returns the rows that have not."""
    k = result.shape[1]
    enough = np.count_nonzero(good, axis=1) >= k
    if good[:, :k].all():
        result[todo] = values[:, :k]
        return todo[:0]
    kept = good[enough]
    kept &= np.cumsum(kept, axis=1) <= k
    result[todo[enough]] = values[enough][kept].reshape(-1, *result.shape[1:])
    return todo[~enough]


def _first_of_each(values: Words) -> Mask:
    """Where a row's value has not occurred before in that row."""
    first = np.ones(values.shape, bool)
    ordered = np.sort(values, axis=1)
    rows = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if rows.size:
        order = np.argsort(values[rows], axis=1, kind="stable")
        ordered = ordered[rows]
        again = np.zeros(order.shape, bool)
        again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
        first[rows[:, None], order] = ~again
    return first


def _hashes(orders: Orders) -> Words:
    """A 64-bit hash of each order [documents, number]."""
    value = np.zeros(orders.shape[:2], np.uint64)
    for position in range(orders.shape[2]):
        value = mixed(value ^ orders[:, :, position])
    return value


def _draws(keys: Words, number: int) -> Words:
    """The first `number` draws of each key: [keys, number]."""
    steps = np.arange(1, number + 1, dtype=np.uint64) * _GOLDEN
    return mixed(keys[:, None] + steps)
