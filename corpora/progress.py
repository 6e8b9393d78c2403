"""Progress of long loops: bars on a terminal, a plain log line every half minute elsewhere."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import TaskID

log = logging.getLogger("discorpora")

Item = TypeVar("Item")

LOG_EVERY_SECONDS = 30.0
DRAW_EVERY_SECONDS = 0.5
"""A shorter loop shows no bar."""


def time_left(seconds: float) -> str:
    """Return a number of seconds as text: `45 s left`, `3 min left` or `2 h 5 min left`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:,.0f} s left"
    if minutes < 90:
        return f"{minutes} min left"
    return f"{minutes // 60:,} h {minutes % 60} min left"


@dataclass
class Loop:
    """A running loop: its name, the number of units done, and their total if known."""

    what: str
    total: int | None = None
    done: int = 0
    start: float = field(default_factory=time.monotonic)

    @property
    def rate(self) -> float:
        """The number of units done a second."""
        return self.done / max(time.monotonic() - self.start, 1e-9)

    def line(self) -> str:
        """Return the progress in one line: `reading: 40 of 100 in 2 s, 20 a second, 3 s left`."""
        seconds = f"{time.monotonic() - self.start:,.0f} s"
        if not (self.done or self.total):
            return f"{self.what}: {seconds}"
        of_total = f" of {self.total:,}" if self.total else ""
        line = f"{self.what}: {self.done:,}{of_total} in {seconds}, {self.rate:,.3g} a second"
        if self.total and self.rate:
            line += f", {time_left(max(0, self.total - self.done) / self.rate)}"
        return line


class _Reporter(threading.Thread):
    """Shows the running loops from a thread until it is stopped; a loop itself only counts."""

    def __init__(self) -> None:
        super().__init__(name="progress", daemon=True)
        self.stopped = threading.Event()

    def run(self) -> None:
        """Draw bars on a terminal, or write a line to the log every half minute."""
        # Only one process draws on a terminal.
        if sys.stderr.isatty() and multiprocessing.parent_process() is None:
            self._draw()
            return
        while not self.stopped.wait(LOG_EVERY_SECONDS):
            log.info("%s", "; ".join(loop.line() for loop in list(_loops)))

    def _draw(self) -> None:
        """Draw a bar for each running loop until the reporter is stopped."""
        if self.stopped.wait(DRAW_EVERY_SECONDS):
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed
        from rich.progress import TimeRemainingColumn as Remaining

        rate, left = TextColumn("{task.fields[rate]} a second"), TextColumn("left")
        named = TextColumn("{task.description}", markup=False)
        columns = (named, BarColumn(), MofNCompleteColumn(), rate, Elapsed(), Remaining(), left)
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            bar_of: dict[int, TaskID] = {}  # by the id of the loop
            while True:
                # Held until the next round: no other loop gets the id of one that is shown.
                loops = {id(loop): loop for loop in list(_loops)}
                for key in bar_of.keys() - loops.keys():
                    bars.remove_task(bar_of.pop(key))
                for key, loop in loops.items():
                    rate_now = f"{loop.rate:,.3g}"
                    if key not in bar_of:
                        bar_of[key] = bars.add_task(loop.what, total=loop.total, rate=rate_now)
                    bars.update(bar_of[key], completed=loop.done, rate=rate_now)
                if self.stopped.wait(DRAW_EVERY_SECONDS):
                    return


_loops: list[Loop] = []
"""The running loops, the outermost first."""
_reporters: list[_Reporter] = []


def _forget_loops() -> None:
    """Forget the loops of the parent in a forked process, which has no thread to show them."""
    _loops.clear()
    _reporters.clear()


os.register_at_fork(after_in_child=_forget_loops)


@contextmanager
def show_progress(what: str, total: int | None = None) -> Iterator[Loop]:
    """Show the progress of a loop named `what`, which counts its units in `done` of the `Loop`."""
    loop = Loop(what, total)
    _loops.append(loop)
    if not _reporters:
        _reporters.append(_Reporter())
        _reporters[0].start()
    try:
        yield loop
    finally:
        _loops[:] = [other for other in _loops if other is not loop]
        if not _loops and _reporters:
            reporter = _reporters.pop()
            reporter.stopped.set()
            reporter.join()


def track(items: Iterable[Item], what: str, *, total: int | None = None) -> Iterator[Item]:
    """Yield `items` and show the progress; `what` names the loop ("reading text:books")."""
    with show_progress(what, total) as loop:
        for item in items:
            yield item
            loop.done += 1
