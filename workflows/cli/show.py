"""The commands that print facts of builds and pattern tables: plan, status, markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpora.terminal import print_table, wide_console
from workflows.cli.common import (
    Config,
    Json,
    Language,
    Output,
    Patterns,
    build_file,
    planned,
    print_json,
)
from workflows.cli.disk import count_size

if TYPE_CHECKING:
    from workflows.stage import StageTask
    from workflows.tasks.build import Missing


def plan(config: Config = "", output: Output = "build", as_json: Json = False) -> None:
    """List the stages of a build file, their inputs, and missing inputs; exit code 1 if any is.

    A dataset or model without a source is skipped; inputs from the network are not missing.
    """
    from corpora.licences import UNKNOWN
    from workflows import engines
    from workflows.tasks import Divide, Evaluate, Train
    from workflows.tasks.build import missing_inputs

    task = planned(build_file(config), output)
    engines.check(task.build.engine, task.build.path)
    stages: list[dict[str, Any]] = []
    missing: dict[str, Missing] = {}
    states: dict[StageTask, str] = {}
    to_do = task.to_do()
    result_of = {folder: result for result, folder in task.outdated().items()}
    for stage in task.lineage[:-1]:
        stage_missing = missing_inputs(stage)
        missing |= {entry.name: entry for entry in stage_missing}
        if stage.complete():
            states[stage] = "done"
        elif stage not in to_do:  # all stages made from it are done
            states[stage] = "not needed"
        elif any(entry.stops for entry in stage_missing):
            states[stage] = "input missing"
        else:
            waits = any(states[upstream].endswith("missing") for upstream in stage.upstream)
            states[stage] = "waits for missing" if waits else "to do"
        stages.append(
            {
                "stage": stage.title,
                "state": states[stage],
                "hash": stage.hash,
                "sources": [source.spec for source in stage.own_sources],
                "reads": [upstream.title for upstream in stage.upstream],
            }
        )
        if states[stage] == "done" and stage.folder in result_of:
            stages[-1]["put_back_as"] = str(result_of[stage.folder])
        if states[stage] == "to do" and isinstance(stage, Train | Evaluate) and stage.reusable:
            stages[-1]["reused_if_rows_are_equal"] = True
        if isinstance(stage, Train) and (changed := stage.changed_code()):
            stages[-1]["built_by_other_code"] = changed
    divisions = (stage for stage in task.lineage if isinstance(stage, Divide))
    warnings = [warning for stage in divisions for warning in stage.foreseen_warnings()]
    if as_json:
        inputs = [{"input": m.name, "problem": str(m), "get": m.get} for m in missing.values()]
        build = {"name": task.build.name, "file": task.build.path, "stages": stages}
        plan_facts = {"skipped": task.build.skipped, "missing": inputs, "warnings": warnings}
        print_json({**build, **plan_facts})
    else:
        typer.echo(f"{task.build.name}: {task.build.path}\n")
        _print_plan(stages)
        for title in task.build.skipped:
            typer.echo(f"skipped: no source for {title}")
        licensed = {source.name for source in task.all_sources if source.licence != UNKNOWN}
        unlicensed = [s.name for s in task.build.sources if s.datasets and s.name not in licensed]
        if unlicensed:
            typer.echo(
                f"\nno licence in the build file: {', '.join(unlicensed)} (its datasets cannot be "
                "published, unless the documents name a licence)"
            )
        for warning in warnings:
            typer.echo(f"\nwarning: {warning}")
        typer.echo("\ninputs that are not on this machine:" if missing else "\nevery input is here")
        for entry in missing.values():
            typer.echo(f"  {entry.name}: {entry}")
            if entry.get:
                typer.echo(f"    get it: {entry.get}")
    if any(entry.stops for entry in missing.values()):
        raise typer.Exit(1)


def _print_plan(stages: Sequence[Mapping[str, Any]]) -> None:
    """Print for each stage its state and hash, then the sources and stages that it reads."""
    width = max(len(stage["stage"]) for stage in stages)
    for stage in stages:
        typer.echo(f"{stage['stage']:<{width}}  {stage['state']:<16}  {stage['hash']}")
        if other := stage.get("built_by_other_code"):
            typer.echo(f"    built by other code ({', '.join(other)}): discorpora build --retrain")
        if place := stage.get("put_back_as"):
            typer.echo(f"    not built again, but put at {place}")
        if stage.get("reused_if_rows_are_equal"):
            typer.echo("    reused if the rows are equal")
        reads = stage["reads"]
        if len(reads) > 5:
            reads = [*reads[:4], f"{len(reads) - 4} more stages"]
        for name in [*stage["sources"], *reads]:
            typer.echo(f"    reads {name}")


def status(
    config: Config = "",
    output: Output = "build",
    every: Annotated[bool, typer.Option("--all", help="Show a row for every source.")] = False,
    as_json: Json = False,
) -> None:
    """Show which stages of a build file are built, and where the results are."""
    from workflows.report.blocks import shown
    from workflows.report.stages import collapsed, stage_rows
    from workflows.tasks.build import SHELVES

    config = build_file(config)
    task = planned(config, output)
    to_do, complete = {(stage.stage, stage.key) for stage in task.to_do()}, task.complete()
    folders = {(stage.stage, stage.key): stage.folder for stage in task.stages()}
    counted = set[tuple[int, int]]()
    rows = [
        replace(
            row,
            needed=row.done or (row.stage, row.key) in to_do,
            size=count_size([folders[row.stage, row.key]], counted) if row.done else None,
        )
        for row in stage_rows(task.stages())
    ]
    size = sum(row.size or 0 for row in rows) + count_size([task.place], counted)
    # A path relative to the current folder, if it is below it.
    current, place = Path.cwd(), task.place
    place = place.relative_to(current) if place.is_relative_to(current) else place
    if as_json:
        stages = [asdict(row) for row in rows]
        build = {"name": task.build.name, "file": task.build.path, "complete": complete}
        build |= {"folder": str(place), "size": size}
        print_json({**build, "stages": stages, "skipped": task.build.skipped})
        return
    lines = []
    for row in rows if every else collapsed(rows):
        unit = row.unit if row.done else "not built" if row.needed else "not needed"
        numbers = [shown(number, 1) for number in (row.rejects, row.seconds, row.memory)]
        mib = None if row.size is None else row.size / 2**20
        lines.append([row.stage, row.key, shown(row.rows, 1), unit, *numbers, shown(mib, 1)])
    right = ("rows", "rejects", "seconds", "peak MiB", "disk MiB")
    columns = ("stage", "over", "rows", "", *right[1:])
    print_table(columns, lines, title=f"build {task.build.name}", right=right)
    for title in task.build.skipped:
        typer.echo(f"skipped: no source for {title}")
    if size:
        typer.echo(f"{'size':<12}{size / 2**20:,.1f} MiB, with the results in {place}/")
    if not complete:
        typer.echo(f"not complete: run  discorpora build --config {config} --output {output}")
        return
    for shelf in SHELVES.values():
        if (place / shelf).is_dir():
            names = ", ".join(sorted(p.name for p in (place / shelf).iterdir()))
            line = f"{shelf:<12}{place / shelf}/  ({names})"
            wide_console().print(line, highlight=False, markup=False)
    typer.echo(f"{'report':<12}{place / 'report'}/index.html")


def markers(language: Language = "en", patterns: Patterns = None) -> None:
    """List the markers, their sets and their patterns."""
    from extract.patterns import load_patterns

    table = load_patterns(language, files=patterns or [])
    rows = []
    for pattern in table.patterns:
        sets = [name for name, members in table.sets.items() if pattern.marker in members]
        rows.append((pattern.marker, " ".join(sets), pattern.id, pattern.example))
    print_table(("marker", "sets", "pattern", "example"), rows)
    names = ", ".join(word.name for word in table.multiwords)
    console = wide_console()
    console.print("connectives of several words, each a label of its own or left out:")
    console.print(names, highlight=False)
