"""Progress of long loops: a bar on a terminal, a plain log line now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

log = logging.getLogger("discorpora")

Item = TypeVar("Item")

LOG_EVERY_SECONDS = 15.0


def track(items: Iterable[Item], what: str, *, total: int | None = None) -> Iterator[Item]:
    """Yield `items` and show progress; `what` names them ("documents")."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

        columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            yield from progress.track(items, total, description=what)
        return
    last = start = time.monotonic()
    for count, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - last >= LOG_EVERY_SECONDS:
            of = f" of {total:,}" if total else ""
            log.info("%s: %s%s after %.0f s", what, f"{count:,}", of, now - start)
            last = now
