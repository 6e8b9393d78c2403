"""What the command line prints of builds and pattern tables: plan, status, markers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from extract.patterns import load_patterns
from workflows import engines
from workflows.report.stages import Row, collapsed, table
from workflows.settings import options, planning
from workflows.sources import FROM_NETWORK
from workflows.stage import StageTask
from workflows.tasks import BuildAll, Parse, Train
from workflows.tasks.build import SHELVES, lacking, missing_inputs

NO_TERMINAL_WIDTH = 132

Config = Annotated[str, typer.Option("--config", "-c", help="A build file: path or shipped name.")]
Output = Annotated[str, typer.Option("--output", help="The folder that everything is built in.")]
Language = Annotated[str, typer.Option(help="The language of the texts and the pattern table.")]
Patterns = Annotated[
    list[Path] | None,
    typer.Option("--patterns", help="A pattern file that adds or replaces markers; repeatable."),
]


def plan(config: Config = "sample", output: Output = "build") -> None:
    """Print each stage of a build file, its inputs, and which inputs are missing; 1 if some are.

    A dataset or model without a source is skipped, and what comes from the network is not missing.
    """
    with options(config, output), planning():
        task = BuildAll(config=config)
        engines.check(task.build.engine, task.build.path)
        typer.echo(f"{task.build.name}: {task.build.path}\n")
        stages = task.lineage[:-1]
        states: dict[str, str] = {}
        width = max(len(stage.title) for stage in stages)
        for stage in stages:
            state = states[stage.task_id] = _state(stage, states)
            typer.echo(f"{stage.title:<{width}}  {state:<16}  {stage.hash}")
            if isinstance(stage, Train) and (other := stage.other_code()):
                said = f"built by other code ({', '.join(other)}): discorpora build --retrain"
                typer.echo(f"    {said}")
            # At most four of the stages that it reads are named.
            upstream = [each.title for each in stage.upstream]
            if len(upstream) > 5:
                upstream[4:] = [f"{len(upstream) - 4} more stages"]
            for name in [*(source.spec for source in stage.own_sources), *upstream]:
                typer.echo(f"    reads {name}")
        for skipped in task.upstream[0].chosen_settings["skipped"]:
            typer.echo(f"skipped: no source for {skipped}")
        missing = missing_inputs(stages)
        typer.echo("\ninputs that are not on this machine:" if missing else "\nevery input is here")
        for name, why, get in missing:
            typer.echo(f"  {name}: {why}" + (f"\n    get it: {get}" if get else ""))
    if not all(why.endswith(FROM_NETWORK) for _, why, _ in missing):
        raise typer.Exit(1)


def _state(stage: StageTask, states: Mapping[str, str]) -> str:
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
) -> None:
    """Print what the stages of a build file have built, and where the results are."""
    with options(config, output), planning():
        task = BuildAll(config=config)
        rows, complete = table(task.made()), task.complete()
    console = wide_console()
    console.print(status_table(rows if every else collapsed(rows), task.build.name))
    for what in task.upstream[0].chosen_settings["skipped"]:
        console.print(f"skipped: no source for {what}")
    if not complete:
        console.print(f"not complete: run  luigi --module workflows BuildAll --config {config}")
        return
    # A path relative to the current folder, if it is below it.
    here, place = Path.cwd(), task.place
    place = place.relative_to(here) if place.is_relative_to(here) else place
    for shelf in SHELVES.values():
        if (place / shelf).is_dir():
            names = ", ".join(sorted(p.name for p in (place / shelf).iterdir()))
            console.print(f"{shelf:<12}{place / shelf}/  ({names})", highlight=False)
    console.print(f"{'report':<12}{place / 'report'}/index.html", highlight=False)


def status_table(rows: list[Row], name: str) -> Table:
    out = Table(title=f"build {name}", title_justify="left")
    for column in ("stage", "over"):
        out.add_column(column, no_wrap=True)
    for column in ("rows", "", "rejects", "seconds", "peak MiB"):
        out.add_column(column, justify="left" if column == "" else "right")
    for row in rows:
        numbers = [
            "" if v is None else f"{v:,}" if isinstance(v, int) else f"{v:,.1f}"
            for v in (row.rows, row.rejects, row.seconds, row.memory)
        ]
        numbers.insert(1, row.unit if row.done else "not built")
        out.add_row(row.stage, row.key, *numbers)
    return out


def markers(language: Language = "en", patterns: Patterns = None) -> None:
    """List the markers, their sets and their patterns."""
    known = load_patterns(language, files=patterns or [])
    out = Table("marker", "sets", "pattern", "example")
    for row in known.patterns:
        sets = [name for name, members in known.sets.items() if row.marker in members]
        out.add_row(row.marker, " ".join(sets), row.id, row.example)
    console = wide_console()
    console.print(out)
    console.print("connectives of several words, which are a label of their own or are left out:")
    console.print(", ".join(word.name for word in known.multiwords), highlight=False)


def wide_console() -> Console:
    """A console as wide as the terminal, or 132 columns where the output is not a terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=NO_TERMINAL_WIDTH)
