"""Child processes that do not outlive the build that started them."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from contextlib import suppress

BUILD_VARIABLE = "DISCORPORA_BUILD_PID"

POLL_SECONDS = 0.5


def stop_with_build(build: int = 0) -> None:
    """In a process that a build started: end it soon after the build is gone.

    A killed build must not leave a worker behind that goes on writing where the next run works.
    `build` is its process; without one it is found out. Does nothing in a process that a user
    started.
    """
    parent = multiprocessing.parent_process()
    pid = build or (parent.pid if parent else int(os.environ.get(BUILD_VARIABLE, "0")))
    if pid:
        threading.Thread(target=_watch, args=(pid,), daemon=True).start()


def _watch(pid: int) -> None:
    with suppress(ProcessLookupError):
        while True:
            with suppress(PermissionError):  # it is alive, and another user's
                os.kill(pid, 0)
            time.sleep(POLL_SECONDS)
    os._exit(1)
