"""`discorpora plan`: the stages of a build file, their inputs, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from workflows import preflight
from workflows.links import walk
from workflows.parsers import lacking
from workflows.settings import options, planning
from workflows.tasks import BuildAll, Parse, Train
from workflows.training import external_inputs

if TYPE_CHECKING:
    from workflows.stage import StageTask


def show_plan(config: str, output: str) -> None:
    """Print the plan of a build file; nothing is read but the sources' names and bytes.

    Raises `ConfigError` for an engine that cannot be used, as the build would.
    """
    with options(config, output), planning():
        task = BuildAll(config=config)
        preflight.check_engine(task)
        stages = [t for t in walk(task) if t.stage != "all"]
        typer.echo(f"{task.build.name}: {task.build.path}\n")
        for line in [*_stage_lines(stages), *_skipped(task), *_missing_lines(stages)]:
            typer.echo(line)


def missing_inputs(stages: list[StageTask]) -> list[tuple[str, str, str]]:
    """Name, why it is missing, how to get it: for each input that is not on this machine."""
    found: dict[str, tuple[str, str, str]] = {}
    for stage in stages:
        for source in stage.sources():
            if reason := source.missing():
                found[source.name] = (source.name, f"{source.spec}: {reason}", source.get)
        if isinstance(stage, Parse):
            name, (why, get) = f"parser {stage.parser_name}", lacking(stage.parser_name)
            found |= {name: (name, why, get)} if why else {}
        if isinstance(stage, Train):
            for name, why in external_inputs(stage.chosen.recipe):
                found[f"{stage.key}/{name}"] = (f"{stage.key}, {name}", why, stage.entry.get)
    return list(found.values())


def _stage_lines(stages: list[StageTask]) -> Iterator[str]:
    states: dict[str, str] = {}
    width = max(len(stage.title) for stage in stages)
    for stage in stages:
        states[stage.task_id] = _state(stage, states)
        yield f"{stage.title:<{width}}  {states[stage.task_id]:<16}  {stage.hash}"
        if isinstance(stage, Train) and (other := stage.other_code()):
            yield f"    built by other code ({', '.join(other)}): discorpora build --retrain"
        yield from (f"    reads {what}" for what in _reads(stage))


def _state(stage: StageTask, states: dict[str, str]) -> str:
    if stage.output().exists():
        return "done"
    if any(source.missing() and not source.remote for source in stage.sources()):
        return "input missing"
    if isinstance(stage, Parse) and lacking(stage.parser_name)[0]:
        return "input missing"
    if any(states.get(task.task_id, "").endswith("missing") for task in stage.upstream()):
        return "waits for missing"
    return "to do"


def _reads(stage: StageTask) -> list[str]:
    """The stage's own sources, and the stages that it builds on (the first few of many)."""
    own = [source.spec for source in stage.sources()]
    upstream = [task.title for task in stage.upstream()]
    more = [f"{len(upstream) - 4} more stages"] if len(upstream) > 5 else []
    return own + (upstream[:4] + more if more else upstream)


def _skipped(task: BuildAll) -> list[str]:
    return [f"skipped: no source for {what}" for what in task.report.skipped()]


def _missing_lines(stages: list[StageTask]) -> Iterator[str]:
    missing = missing_inputs(stages)
    yield "\ninputs that are not on this machine:" if missing else "\nevery input is here"
    for name, why, get in missing:
        yield f"  {name}: {why}"
        if get:
            yield f"    get it: {get}"
