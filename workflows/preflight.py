"""What can be known before anything runs: sources and parsers are there, settings can be used."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from corpora.errors import ConfigError, InputError
from workflows.parsers import lacking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflows.sources import SourceRecord
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


def looking() -> bool:
    """Whether the graph is built only to look at it: then nothing is written either."""
    return _planning.get()


def check(task: StageTask) -> None:
    """Raise `InputError` naming every source of `task`'s graph that is not there.

    And `ConfigError` for an engine that cannot be used, and for a parser that is not installed.
    """
    if looking():
        return
    check_engine(task)
    missing = [
        (source, reason)
        for source in task.all_sources()
        if not source.remote and (reason := source.missing())
    ]
    if missing:
        _complain(task, missing)
    _check_parsers(task)


def check_engine(task: StageTask) -> None:
    """Raise `ConfigError` for an engine that cannot be used."""
    if task.build.engine.kind != "here":
        from workflows import engines

        engines.check(task.build.engine, task.build.path)


def _check_parsers(task: StageTask) -> None:
    from workflows.links import walk
    from workflows.tasks.sources import Parse

    for stage in walk(task):
        if isinstance(stage, Parse) and not stage.output().exists():
            reason, how = lacking(stage.parser_name)
            if reason:
                where = task.build.where(*stage.parser_keys)
                raise ConfigError(f"{stage.parser_name!r}: {reason}", where=where, hint=how)


def _complain(task: StageTask, missing: list[tuple[SourceRecord, str]]) -> None:
    lines = [
        f"{s.name} = {s.spec!r}: {why}{f' (get it: {s.get})' * bool(s.get)}" for s, why in missing
    ]
    raise InputError(
        f"{len(missing)} of the sources cannot be read:\n  " + "\n  ".join(lines),
        where=task.build.path,
        hint="set DISCORPORA_DATA or mend the build file; see: discorpora plan --config FILE",
    )
