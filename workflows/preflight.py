"""What can be known before anything runs: that sources are there, and the engine can be used."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from corpora.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflows.stage import StageTask

_planning: ContextVar[bool] = ContextVar("planning", default=False)


@contextmanager
def planning() -> Iterator[None]:
    """Build the graph only to look at it: missing sources are no error."""
    token = _planning.set(True)
    try:
        yield
    finally:
        _planning.reset(token)


def check(task: StageTask) -> None:
    """Raise `InputError` naming every source of `task`'s graph that is not there.

    And `ConfigError` for an engine that cannot be used.
    """
    if _planning.get():
        return
    if task.build.engine.kind != "here":
        from workflows import engines

        engines.check(task.build.engine, task.build.path)
    missing = [
        (source, reason)
        for source in task.all_sources()
        if not source.remote and (reason := source.missing())
    ]
    if not missing:
        return
    lines = [
        f"{s.name} = {s.spec!r}: {why}{f' (get it: {s.get})' * bool(s.get)}" for s, why in missing
    ]
    raise InputError(
        f"{len(missing)} of the sources cannot be read:\n  " + "\n  ".join(lines),
        where=task.build.path,
        hint="set DISCOFORGE_DATA or mend the build file; see: discoforge plan --config FILE",
    )
