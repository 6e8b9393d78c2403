"""What the command line prints of builds and pattern tables: plan, status, markers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workflows.cli.common import (
    Config,
    Json,
    Language,
    Output,
    Patterns,
    print_json,
    print_table,
    wide_console,
)

if TYPE_CHECKING:
    from workflows.report.stages import Row
    from workflows.stage import StageTask
    from workflows.tasks import BuildAll


def plan(config: Config = "sample", output: Output = "build", as_json: Json = False) -> None:
    """List the stages of a build file, their inputs, and missing inputs; exit code 1 if any is.

    A dataset or model without a source is skipped; inputs from the network are not missing.
    """
    from workflows import engines
    from workflows.settings import options, planning
    from workflows.sources import FROM_NETWORK
    from workflows.tasks import BuildAll

    with options(config, output), planning():
        task = BuildAll(config=config)
        engines.check(task.build.engine, task.build.path)
        planned = _planned(task)
    if as_json:
        print_json(planned)
    else:
        _print_plan(planned)
    if not all(each["problem"].endswith(FROM_NETWORK) for each in planned["missing"]):
        raise typer.Exit(1)


def _planned(task: BuildAll) -> dict[str, Any]:
    """The plan of a build as `--json` prints it."""
    from workflows.tasks import Train
    from workflows.tasks.build import missing_inputs

    stages, states = task.lineage[:-1], dict[str, str]()
    listed = []
    for stage in stages:
        states[stage.task_id] = _state(stage, states)
        reads = [each.title for each in stage.upstream]
        entry: dict[str, Any] = {"stage": stage.title, "state": states[stage.task_id]}
        entry |= {"hash": stage.hash, "sources": [source.spec for source in stage.own_sources]}
        entry["reads"] = reads
        if isinstance(stage, Train) and (other := stage.other_code()):
            entry["built_by_other_code"] = other
        listed.append(entry)
    missing = missing_inputs(stages)
    return {
        "name": task.build.name,
        "file": task.build.path,
        "stages": listed,
        "skipped": task.upstream[0].chosen_settings["skipped"],
        "missing": [{"input": n, "problem": why, "get": get} for n, why, get in missing],
    }


def _print_plan(planned: Mapping[str, Any]) -> None:
    typer.echo(f"{planned['name']}: {planned['file']}\n")
    width = max(len(each["stage"]) for each in planned["stages"])
    for each in planned["stages"]:
        typer.echo(f"{each['stage']:<{width}}  {each['state']:<16}  {each['hash']}")
        if other := each.get("built_by_other_code"):
            typer.echo(f"    built by other code ({', '.join(other)}): discorpora build --retrain")
        reads = each["reads"]
        if len(reads) > 5:
            reads = [*reads[:4], f"{len(reads) - 4} more stages"]
        for name in [*each["sources"], *reads]:
            typer.echo(f"    reads {name}")
    for skipped in planned["skipped"]:
        typer.echo(f"skipped: no source for {skipped}")
    missing = planned["missing"]
    typer.echo("\ninputs that are not on this machine:" if missing else "\nevery input is here")
    for each in missing:
        typer.echo(f"  {each['input']}: {each['problem']}")
        if each["get"]:
            typer.echo(f"    get it: {each['get']}")


def _state(stage: StageTask, states: Mapping[str, str]) -> str:
    from workflows.tasks import Parse
    from workflows.tasks.build import lacking

    if stage.complete():
        return "done"
    if any(source.problem and not source.remote for source in stage.own_sources):
        return "input missing"
    if isinstance(stage, Parse) and lacking(stage.parser_name)[0]:
        return "input missing"
    if any(states[each.task_id].endswith("missing") for each in stage.upstream):
        return "waits for missing"
    return "to do"


def status(
    config: Config = "sample",
    output: Output = "build",
    every: Annotated[bool, typer.Option("--all", help="Show a row for every source.")] = False,
    as_json: Json = False,
) -> None:
    """Show which stages of a build file are built, and where the results are."""
    from workflows.report.stages import collapsed, table
    from workflows.settings import options, planning
    from workflows.tasks import BuildAll
    from workflows.tasks.build import SHELVES

    with options(config, output), planning():
        task = BuildAll(config=config)
        rows, complete = table(task.made()), task.complete()
    # A path relative to the current folder, if it is below it.
    here, place = Path.cwd(), task.place
    place = place.relative_to(here) if place.is_relative_to(here) else place
    skipped = task.upstream[0].chosen_settings["skipped"]
    if as_json:
        stages = [asdict(row) for row in rows]
        found = {"name": task.build.name, "file": task.build.path, "complete": complete}
        print_json({**found, "folder": str(place), "stages": stages, "skipped": skipped})
        return
    _print_status(rows if every else collapsed(rows), task.build.name)
    for what in skipped:
        typer.echo(f"skipped: no source for {what}")
    if not complete:
        typer.echo(f"not complete: run  discorpora build --config {config} --output {output}")
        return
    for shelf in SHELVES.values():
        if (place / shelf).is_dir():
            names = ", ".join(sorted(p.name for p in (place / shelf).iterdir()))
            wide_console().print(f"{shelf:<12}{place / shelf}/  ({names})", highlight=False)
    typer.echo(f"{'report':<12}{place / 'report'}/index.html")


def _print_status(rows: list[Row], name: str) -> None:
    lines = []
    for row in rows:
        values = (row.rows, row.rejects, row.seconds, row.memory)
        numbers = [
            "" if v is None else f"{v:,}" if isinstance(v, int) else f"{v:,.1f}" for v in values
        ]
        numbers.insert(1, row.unit if row.done else "not built")
        lines.append([row.stage, row.key, *numbers])
    right = ("rows", "rejects", "seconds", "peak MiB")
    columns = ("stage", "over", "rows", "", *right[1:])
    print_table(columns, lines, title=f"build {name}", right=right)


def markers(language: Language = "en", patterns: Patterns = None) -> None:
    """List the markers, their sets and their patterns."""
    from extract.patterns import load_patterns

    known = load_patterns(language, files=patterns or [])
    rows = []
    for row in known.patterns:
        sets = [name for name, members in known.sets.items() if row.marker in members]
        rows.append((row.marker, " ".join(sets), row.id, row.example))
    print_table(("marker", "sets", "pattern", "example"), rows)
    names = ", ".join(word.name for word in known.multiwords)
    console = wide_console()
    console.print("connectives of several words, each a label of its own or left out:")
    console.print(names, highlight=False)
