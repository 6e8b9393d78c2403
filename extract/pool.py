"""Documents in groups, and a pool of processes whose results come back in the groups' order."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, TypeVar

from corpora.document import Document
from corpora.errors import DiscoforgeError

Result = TypeVar("Result")
BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Part:
    """Which shards a worker of several makes: number `rank`, `rank + of`, `rank + 2 of`, ..."""

    rank: int = 0
    of: int = 1

    def has(self, shard: int) -> bool:
        return shard % self.of == self.rank


WHOLE = Part()


def by_words(documents: Iterable[Document], words: int) -> Iterator[list[Document]]:
    """Documents in groups of about `words` words, which depend on nothing but the documents."""
    group: list[Document] = []
    filled = 0
    for document in documents:
        group.append(document)
        filled += document.text.count(" ") + 1
        if filled >= words:
            yield group
            group, filled = [], 0
    if group:
        yield group


def in_order(
    work: Callable[..., Result], jobs: Iterable[tuple[Any, ...]], workers: int = 1
) -> Iterator[Result]:
    """`work(*job)` for every job, in `workers` processes (none for 1), results in job order.

    At most two jobs a worker are under way, so that memory does not grow with the input. Each
    process computes with one BLAS thread. Raises `DiscoforgeError` if a process is killed.
    """
    if workers <= 1:
        for job in jobs:
            yield work(*job)
        return
    for name in BLAS_THREADS:
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start) as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for job in jobs:
                pending.append(pool.submit(work, *job))
                if len(pending) >= 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool as error:
            raise DiscoforgeError(
                "a worker process was killed",
                hint="mostly that is for want of memory: run it again with fewer workers",
            ) from error
        finally:
            for future in pending:
                future.cancel()


def _start() -> None:
    from corpora.processes import stop_with_build

    stop_with_build()
