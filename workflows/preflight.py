"""What can be known before anything runs: sources and parsers are there, settings can be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpora.errors import ConfigError, InputError
from workflows import engines
from workflows.links import walk
from workflows.parsers import lacking
from workflows.settings import looking
from workflows.tasks.sources import Parse

if TYPE_CHECKING:
    from workflows.sources import SourceRecord
    from workflows.stage import StageTask


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
        engines.check(task.build.engine, task.build.path)


def _check_parsers(task: StageTask) -> None:
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
