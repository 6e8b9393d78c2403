"""The commands that write pages for a web browser: a build's report, a dataset's examples."""

from __future__ import annotations

import shutil
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from corpora.errors import DiscorporaError, InputError
from workflows.cli.common import (
    DATASET,
    Config,
    Json,
    Open,
    Output,
    UsageError,
    build_file,
    planned,
    print_json,
)

PAGE = "index.html"


def report(
    build: Annotated[
        str,
        typer.Argument(
            metavar="BUILD", help="A build file (path or shipped name), or a built folder."
        ),
    ] = "",
    config: Config = "",
    output: Output = "build",
    to: Annotated[
        Path | None, typer.Option(help="Write a report on the stages built so far to this folder.")
    ] = None,
    table: Annotated[
        str,
        typer.Option(
            help="Print a table: its number in the report, or a paper's, such as dissent:5."
        ),
    ] = "",
    latex: Annotated[bool, typer.Option("--latex", help="Print the table as LaTeX.")] = False,
    as_json: Json = False,
    open_page: Open = False,
) -> None:
    """Print where a build's report is; before the build is complete, write one of its stages."""
    from workflows.papers import filled
    from workflows.report.page import write_report
    from workflows.report.stages import made_in, ordered

    build = build_file(config, build)
    if table and not table.isdecimal():
        _print_table(build, output, table, latex=latex, as_json=as_json)
        return
    if (latex or as_json) and not table:
        raise UsageError(
            "--latex and --json print a table: name it with --table, by its number in the report "
            "or as a table of a paper"
        )
    folder, skipped, tables = Path(build), [], []
    stages = made_in(folder) if folder.is_dir() else []
    has_report = (folder / "report" / PAGE).is_file()
    name = folder.resolve().name
    if not stages:
        task = planned(build, output)
        stages, has_report = task.stages(), task.complete()
        folder, name = task.place, task.build.name
        skipped, tables = task.build.skipped, filled(task.build, stages)
    if not has_report or to is not None:
        if not ordered(stages):
            hint = f"discorpora build --config {build} --output {output}"
            raise InputError(f"nothing of {name!r} is built", where=str(folder), hint=hint)
        to = to or folder / "report-by-now"
        _replace_page(
            to, lambda partial: write_report(name, stages, skipped, partial, tables)["examples"]
        )
    if table:
        _print_numbered(to or folder / "report", int(table), latex=latex, as_json=as_json)
        return
    _show((to or folder / "report") / PAGE, open_page)


def _print_numbered(report: Path, number: int, *, latex: bool, as_json: bool) -> None:
    """Print a table of a report by its number there."""
    from workflows.report.blocks import table_latex, table_markdown
    from workflows.report.page import read_table

    table = read_table(report, number)
    if as_json:
        keys = ("caption", "header", "rows")
        print_json({"number": number, **{key: getattr(table, key) for key in keys}})
    elif latex:
        typer.echo(table_latex(table), nl=False)
    else:
        typer.echo(f"Table {number}. {table.caption}:\n\n{table_markdown(table)}")


def _print_table(build: str, output: str, name: str, *, latex: bool, as_json: bool) -> None:
    """Print one table of a paper, with the results of the stages that are built."""
    from corpora.errors import ConfigError, nearest
    from workflows.papers import filled
    from workflows.report import papers
    from zoo.evaluate.published import paper_table

    task = planned(build, output)
    paper_table(name)  # raises for an unknown name
    tables = {entry.table.name: entry for entry in filled(task.build, task.stages())}
    if name not in tables:
        raise ConfigError(
            f"the build has no table {name!r}; {nearest(name, tables)}".rstrip("; "),
            where=task.build.path,
            hint=f'add [[tables]] with table = "{name}"; it has: {", ".join(tables) or "none"}',
        )
    if as_json:
        print_json(papers.as_json(tables[name]))
        return
    typer.echo((papers.latex if latex else papers.text)(tables[name]), nl=False)


def browse(
    dataset: Annotated[str, typer.Argument(help=DATASET)],
    to: Annotated[
        Path | None, typer.Option(help="The page's folder; by default build/browse/NAME.")
    ] = None,
    kind: Annotated[str, typer.Option(help="What its rows are, if it does not say so.")] = "",
    open_page: Open = False,
) -> None:
    """Write a page to search and read the examples of a dataset."""
    from corpora.audit.opening import opened
    from corpora.outside import split_config
    from workflows.report.page import dataset_at, write_browser

    place, _ = split_config(dataset)
    browsed = dataset_at(place, opened(dataset, kind))
    to = to or Path("build", "browse", browsed.name.replace("/", "--"))
    _replace_page(to, lambda partial: write_browser(browsed, partial))
    _show(to / PAGE, open_page)


def _replace_page(folder: Path, write: Callable[[Path], int]) -> None:
    """Replace the folder of a page by what `write` writes; raises if the folder has other files.

    `write` takes an empty folder and returns the number of examples.
    """
    from corpora.store.atomic import MANIFEST, cleared, is_complete, staged, write_json
    from corpora.store.copies import mend, replace_folder

    mend(folder)
    if folder.is_symlink():
        raise DiscorporaError(
            "is a link, which a page cannot replace",
            where=str(folder),
            hint="name another folder with --to",
        )
    is_page = is_complete(folder) and (folder / PAGE).is_file()
    if folder.exists() and any(folder.iterdir()) and not is_page:
        raise DiscorporaError(
            "exists and was not created by discorpora report or browse",
            where=str(folder),
            hint="name another folder with --to",
        )
    fresh = folder.with_name(f".{folder.name}.fresh")
    shutil.rmtree(fresh, ignore_errors=True)  # left by a run that was stopped at the last line
    with staged(fresh) as partial:
        cleared(partial)  # removes what an interrupted run left
        write_json(partial / MANIFEST, {"counts": {"examples": write(partial)}})
    replace_folder(folder, fresh)


def _show(page: Path, open_page: bool) -> None:
    """Print the path of a page; with `open_page` also open it in the web browser."""
    typer.echo(str(page))
    if open_page:
        webbrowser.open(page.absolute().as_uri())
