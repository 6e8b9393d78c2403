"""What the command line prints: status, markers, folders, recipes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from corpora.errors import BadRecord, ConfigError, InputError, nearest
from corpora.store.atomic import read_json
from workflows.report.summary import Row, collapsed, table
from workflows.settings import options, planning
from workflows.tasks import BuildAll

NO_TERMINAL_WIDTH = 132


def show_status(config: str, output: str, *, every: bool = False) -> None:
    """Print the table of what was built (`every` source by itself), and where it is."""
    with options(config, output), planning():
        task = BuildAll(config=config)
        rows, place = table(task), task.root / task.build.name
        rows = rows if every else collapsed(rows)
        skipped = task.report.skipped()
        complete = task.complete()
    console = wide_console()
    console.print(status_table(rows, task.build.name))
    for what in skipped:
        console.print(f"skipped: no source for {what}")
    if not complete:
        console.print(f"not complete: run  luigi --module workflows BuildAll --config {config}")
        return
    for shelf in ("datasets", "models", "evaluations", "validation"):
        if (place / shelf).is_dir():
            names = ", ".join(sorted(p.name for p in (place / shelf).iterdir()))
            console.print(f"{shelf:<12}{_short(place / shelf)}/  ({names})", highlight=False)
    console.print(f"{'report':<12}{_short(place / 'report')}/report.md", highlight=False)


def status_table(rows: list[Row], name: str) -> Table:
    out = Table(title=f"build {name}", title_justify="left")
    for column in ("stage", "over"):
        out.add_column(column, no_wrap=True)
    for column in ("rows", "", "rejects", "seconds", "peak MiB"):
        out.add_column(column, justify="left" if column == "" else "right")
    for row in rows:
        state = row.unit if row.done else "not built"
        cells = (_number(row.rows), state, _number(row.rejects))
        out.add_row(row.stage, row.key, *cells, _number(row.seconds), _number(row.memory))
    return out


def show_markers(language: str, files: list[Path]) -> None:
    """Print the markers of a language, the sets that they are in, and their patterns."""
    from extract.patterns import load_patterns

    patterns = load_patterns(language, files=files)
    out = Table("marker", "sets", "pattern", "example")
    for row in patterns.patterns:
        sets = [name for name, markers in patterns.sets.items() if row.marker in markers]
        out.add_row(row.marker, " ".join(sets), row.id, row.example)
    wide_console().print(out)
    wide_console().print("connectives of several words, labelled as themselves or left out:")
    wide_console().print(", ".join(word.name for word in patterns.multiwords), highlight=False)


def show_recipes(results: Path | None) -> None:
    """Print the recipes; with a folder of models, the figures measured there too."""
    from zoo.presets import catalogue

    columns = ("name", "paper", "objective", "dataset", "published", "measured")
    out = Table(*columns)
    for entry in catalogue(results):
        about = entry.about.model_dump()
        out.add_row(entry.name, *(about[key] for key in columns[1:-1]), entry.measured)
    wide_console().print(out)


def show_folder(path: Path, rows: int, config: str, split: str) -> None:
    """Print a manifest's main lines and some rows."""
    if path.is_file():
        _check_choices({}, config, split, path)
        _show_rows(path, rows)
        return
    manifest = path / "manifest.json"
    if not manifest.is_file():
        manifest = path / "results.json"
    if not manifest.is_file():
        raise InputError(
            "neither a folder with manifest.json or results.json, nor a file",
            where=str(path),
            hint="give a folder that discorpora built, e.g. build/sample/datasets/sp",
        )
    try:
        text = manifest.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text: {error}", where=str(manifest)) from error
    if config or split:
        _check_choices(read_json(manifest).get("configs") or {}, config, split, path)
    typer.echo(text)
    for file in sorted(path.rglob("*.parquet")):
        if config in ("", file.parent.name) and file.name.startswith(f"{split}-" if split else ""):
            typer.echo(f"\n{file.relative_to(path)}")
            _show_rows(file, rows)


def _check_choices(configs: Mapping[str, Any], config: str, split: str, path: Path) -> None:
    """Raise `ConfigError` for a configuration, or a split of it, that a dataset does not have."""
    chosen = configs.values() if not config else [configs.get(config, {})]
    splits = {name for entry in chosen for name in entry.get("splits", {})}
    for option, value, choices in (("config", config, configs), ("split", split, splits)):
        if value and value not in choices:
            raise ConfigError(
                f"no {option} {value!r}; {nearest(value, choices)}".rstrip("; "),
                where=str(path),
                hint=f"it has: {', '.join(sorted(choices))}"
                if choices
                else f"only a dataset's folder takes --{option}",
            )


def _show_rows(path: Path, rows: int) -> None:
    for record in _first_rows(path, rows):
        typer.echo(json.dumps(record, ensure_ascii=False, default=str))


def _first_rows(path: Path, rows: int) -> Iterator[Mapping[str, Any]]:
    """Up to `rows` rows of a Parquet file or of JSON Lines; `InputError` for what is neither."""
    from corpora.readers import jsonl, parquet

    records = parquet.records if path.suffix == ".parquet" else jsonl.records
    for where, record in islice(records(path), rows):
        if isinstance(record, BadRecord):
            hint = "rows are shown of .parquet files and of JSON Lines"
            raise InputError(record.reason, where=where, hint=hint)
        yield record


def wide_console() -> Console:
    """A console that is wide where no terminal says how wide it is."""
    console = Console()
    return console if console.is_terminal else Console(width=NO_TERMINAL_WIDTH)


def _number(value: float | int | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _short(path: Path) -> str:
    """A path as one would type it from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
