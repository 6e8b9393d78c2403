"""The permutations of a batch of documents, as rows of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import factorial

import numpy as np
import pyarrow as pa

from corpora.rng import Words
from corpora.schemas import PERMUTED_ORDERS
from corpora.tasks.permutations import (
    Orders,
    distinct_orders,
    permutations,
    permutations_of_text,
)

Wanted = Callable[[int], tuple[int, int]]
"""How many rows a document has and how many negatives each, by the number of its orders."""


def order_rows(
    keys: Words, ids: Sequence[str], sentences: Sequence[list[str]], wanted: Wanted
) -> pa.RecordBatch | None:
    """The rows of documents, by `PERMUTED_ORDERS`, in the order of the documents; None for none.

    `keys` [documents] are those of `corpora.tasks.permutations.document_keys`.
    """
    found = list(_orders(keys, sentences, wanted))
    return _in_document_order(ids, found) if found else None


def _orders(
    keys: Words, sentences: Sequence[list[str]], wanted: Wanted
) -> Iterator[tuple[list[int], Orders]]:
    """Documents (positions in the batch) and their orders [documents, rows, negatives, n].

    Documents of one length are permuted together, those with equal sentences one by one.
    """
    together: dict[int, list[int]] = {}
    for position, texts in enumerate(sentences):
        n = len(texts)
        if len(set(texts)) == n:
            together.setdefault(n, []).append(position)
            continue
        rows, negatives = wanted(distinct_orders(texts))
        if rows:
            found = permutations_of_text(keys[position], texts, rows * negatives)
            yield [position], found.reshape(1, rows, negatives, n)
    for n, positions in together.items():
        rows, negatives = wanted(factorial(n))
        if rows:
            found = permutations(keys[positions], n, rows * negatives)
            yield positions, found.reshape(len(positions), rows, negatives, n)


def _in_document_order(
    ids: Sequence[str], found: Sequence[tuple[list[int], Orders]]
) -> pa.RecordBatch:
    """The rows of a batch of documents, in the order of the documents."""
    position = np.concatenate([np.repeat(p, orders.shape[1]) for p, orders in found])
    repetition = np.concatenate([np.tile(np.arange(o.shape[1]), len(p)) for p, o in found])
    nested = pa.concat_arrays([_nested(orders) for _, orders in found])
    order = np.argsort(position, kind="stable")
    columns = [
        pa.array(ids).take(pa.array(position[order])),
        pa.array(repetition[order].astype(np.uint8)),
        nested.take(pa.array(order)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PERMUTED_ORDERS)


def _nested(orders: Orders) -> pa.ListArray:
    """Orders [documents, rows, negatives, n] as one list of lists a row."""
    documents, rows, negatives, n = orders.shape
    number = documents * rows * negatives
    inner = np.arange(number + 1, dtype=np.int32) * n
    outer = np.arange(documents * rows + 1, dtype=np.int32) * negatives
    values = pa.ListArray.from_arrays(pa.array(inner), pa.array(orders.ravel()))
    return pa.ListArray.from_arrays(pa.array(outer), values)
