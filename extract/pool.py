"""Documents in groups, and a pool of processes whose results come back in the groups' order."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from corpora.document import Document
from corpora.errors import DiscorporaError
from corpora.processes import stop_with_build

Result = TypeVar("Result")
LETTERS_A_WORD = 10
"""Characters that count as a word where blanks are rarer; English prose has 5 to 8 a blank."""
BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
GUARD_HINT = (
    'a script that asks for workers must do so under `if __name__ == "__main__":`, '
    "since every worker imports the script"
)


@dataclass(frozen=True, slots=True)
class Part:
    """Which shards a worker of several makes: number `rank`, `rank + of`, `rank + 2 of`, ..."""

    rank: int = 0
    of: int = 1

    def has(self, shard: int) -> bool:
        return shard % self.of == self.rank


WHOLE = Part()


def by_words(documents: Iterable[Document], words: int) -> Iterator[list[Document]]:
    """Documents in groups of about `words` words, which depend on nothing but the documents.

    Words are counted by blanks, or by length where a script has none or each word its line.
    """
    group: list[Document] = []
    filled = 0
    for document in documents:
        group.append(document)
        filled += max(document.text.count(" ") + 1, len(document.text) // LETTERS_A_WORD)
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
    process computes with one BLAS thread. A script that asks for several needs the guard
    `if __name__ == "__main__":`, since each process imports it anew. Raises `DiscorporaError`
    without it, and if a process is killed.
    """
    if workers <= 1:
        for job in jobs:
            yield work(*job)
        return
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise DiscorporaError("a worker process started workers of its own", hint=GUARD_HINT)
    with _one_blas_thread():
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=stop_with_build)
        pending: deque[Future[Result]] = deque()
        try:
            for job in jobs:
                pending.append(pool.submit(work, *job))
                if len(pending) >= 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool as error:
            raise DiscorporaError(
                "a worker process was killed",
                hint="mostly that is for want of memory: run it again with fewer workers.\n"
                f"  {GUARD_HINT}",
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Processes that start meanwhile get one thread each, unless the user said how many."""
    added = [name for name in BLAS_THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
