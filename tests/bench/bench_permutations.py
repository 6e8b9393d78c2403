"""Unique permutations a second, beside shuffle-and-set: `python tests/bench/bench_permutations.py`.

Shuffle-and-set is the usual way: shuffle a list, keep it if a set has not seen it. Both make k
permutations of documents of 10 sentences, the blocks of the paper. Best of some repetitions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from math import factorial
from random import Random
from time import process_time

import numpy as np

from corpora.tasks.permutations import document_keys, permutations
from corpora.tasks.permuted import DOCUMENTS_PER_BATCH


def shuffle_and_set(n: int, k: int, random: Random) -> list[list[int]]:
    """k different permutations of one document, never the original."""
    original = list(range(n))
    seen, found = {tuple(original)}, []
    while len(found) < k:
        order = original.copy()
        random.shuffle(order)
        key = tuple(order)
        if key not in seen:
            seen.add(key)
            found.append(order)
    return found


def numpy_shuffle_and_set(n: int, k: int, random: np.random.Generator) -> list[np.ndarray]:
    """The same with a numpy generator."""
    seen, found = {tuple(range(n))}, []
    while len(found) < k:
        order = random.permutation(n)
        key = tuple(order)
        if key not in seen:
            seen.add(key)
            found.append(order)
    return found


def rate(documents: int, work: Callable[[], object], repeat: int = 5) -> float:
    """Documents a second of processor time: the best of `repeat` runs."""
    best = float("inf")
    for _ in range(repeat):
        start = process_time()
        work()
        best = min(best, process_time() - start)
    return documents / best


def ours(documents: int, n: int, k: int) -> None:
    """Keys, draws and orders, in the batches of the builder."""
    names = [f"document-{i}" for i in range(documents)]
    for start in range(0, documents, DOCUMENTS_PER_BATCH):
        ids = names[start : start + DOCUMENTS_PER_BATCH]
        texts = np.tile(np.arange(n, dtype=np.uint64), (len(ids), 1))
        permutations(document_keys(1, "bench", ids), texts, factorial(n), k)


def one_by_one(
    permute: Callable[..., object], documents: int, n: int, k: int, random: object
) -> None:
    for _ in range(documents):
        permute(n, k, random)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=10)
    n = parser.parse_args(arguments).sentences
    line = "| {:>5} | {:>9} | {:>11} | {:>15} | {:>14} |\n"
    sys.stdout.write(line.format("k", "ours", "random+set", "numpy+set", "ours / best"))
    sys.stdout.write(line.format(*["---"] * 5))
    for k, documents in ((20, 4096), (100, 2048), (1000, 512)):
        batched = rate(documents, partial(ours, documents, n, k))
        few = max(4, 4000 // k)
        plain = rate(few, partial(one_by_one, shuffle_and_set, few, n, k, Random(1)))
        array = rate(
            few, partial(one_by_one, numpy_shuffle_and_set, few, n, k, np.random.default_rng(1))
        )
        ratio = batched / max(plain, array)
        sys.stdout.write(
            line.format(k, f"{batched:,.0f}", f"{plain:,.0f}", f"{array:,.0f}", f"{ratio:.1f}")
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
