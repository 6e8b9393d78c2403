"""Child processes that do not outlive the build that started them, and pools of them."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from corpora.errors import DiscorporaError

Result = TypeVar("Result")

BUILD_VARIABLE = "DISCORPORA_BUILD_PID"

POLL_SECONDS = 0.5
BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
GUARD_HINT = (
    'a script that uses workers must start them under `if __name__ == "__main__":`, '
    "because every worker imports the script"
)


def stop_with_build() -> None:
    """End this process soon after the build that started it has ended.

    A killed build must not leave a worker that writes to the files of the next run. Does nothing in
    a process that a user started.
    """
    parent = multiprocessing.parent_process()
    pid = parent.pid if parent else int(os.environ.get(BUILD_VARIABLE, "0"))
    if pid:
        threading.Thread(target=_watch, args=(pid,), daemon=True).start()


def _start_worker(prepare: Callable[[], object] | None) -> None:
    """Run in each new worker process: watch the build, then call `prepare`."""
    stop_with_build()
    if prepare:
        prepare()


def collect_rarely() -> None:
    """Let Python look for cycles of garbage every 10,000 new objects in place of every 700.

    Otherwise a command that imports torch and transformers spends an eighth of its time on it.
    """
    gc.set_threshold(10_000)


def _watch(pid: int) -> None:
    """End this process as soon as the process `pid` has ended."""
    with suppress(ProcessLookupError):
        while True:
            with suppress(PermissionError):  # alive, but another user's
                os.kill(pid, 0)
            time.sleep(POLL_SECONDS)
    os._exit(1)


def in_order(
    work: Callable[..., Result],
    jobs: Iterable[tuple[Any, ...]],
    workers: int = 1,
    prepare: Callable[[], object] | None = None,
) -> Iterator[Result]:
    """Yield `work(*job)` for every job, in the order of the jobs.

    With more than one, `workers` is the number of processes; `prepare` is called once in each.
    At most two jobs for each worker are in progress, so memory does not grow with the input. Each
    process uses one BLAS thread. A script that uses several workers needs the guard `if __name__ ==
    "__main__":`, because each process imports it. Raises `DiscorporaError` without the guard, and
    if a process is killed.
    """
    if workers <= 1:
        if prepare:
            prepare()
        for job in jobs:
            yield work(*job)
        return
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise DiscorporaError("a worker process tried to start workers itself", hint=GUARD_HINT)
    with _one_blas_thread():
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, context, _start_worker, (prepare,))
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
                hint="usually it ran out of memory: run it again with fewer workers.\n"
                f"  {GUARD_HINT}",
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Let processes started inside use one BLAS thread each, unless the user set a number."""
    added = [name for name in BLAS_THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
