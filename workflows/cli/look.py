"""`discorpora inspect`: rows of a dataset, facts of a stage or model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from corpora.errors import BadRecord, ConfigError, InputError, amount, nearest
from corpora.outside import HUB_ID, record_of
from corpora.store.atomic import MANIFEST, read_json
from corpora.store.manifest import Feature, Manifest, read_results
from corpora.terminal import plain, print_table, wide_console
from workflows.cli.common import print_json_lines

if TYPE_CHECKING:
    import pyarrow.dataset as pads

MARKERS = ("marker", "connective", "label")
"""Columns that `--marker` looks at, the first that a table has."""
FACTS = (
    *("name", "recipe", "suite", "model", "dataset", "hash", "command", "licence", "licences"),
    *("headline_name", "headline", "parameters", "trained_on", "counts", "rejects"),
)
"""What of a manifest, and of results beside it, is shown."""
MOST_ROWS = 1_000_000
INLINE, TEXTS, LONGEST = 12, 6, 300
"""The most values of a nested entry, texts of a list, and characters of a text that are shown."""


class Rows(NamedTuple):
    """Some rows of a table, with the names of their labels; `total` is -1 if it is not known."""

    title: str
    rows: list[dict[str, Any]]
    total: int = -1


def inspect(
    path: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="A dataset, stage or model FOLDER, a FILE, or OWNER/NAME."
        ),
    ],
    rows: Annotated[
        int, typer.Option("-n", "--rows", min=0, max=MOST_ROWS, help="Rows to show.")
    ] = 5,
    config: Annotated[
        str, typer.Option("--config", "--table", help="A dataset's configuration.")
    ] = "",
    split: Annotated[str, typer.Option(help="A dataset's split.")] = "",
    marker: Annotated[
        str, typer.Option("--marker", "--label", help="Only rows of this marker or label.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON Lines.")] = False,
) -> None:
    """Show rows of a dataset with their label names; or facts of a stage, a model or a file."""
    place, at, named = path.rpartition("@")
    if at and not Path(path).exists():
        path, config = place, config or named
    folder = Path(path).expanduser()
    manifest = read_json(folder / MANIFEST) if (folder / MANIFEST).is_file() else {}
    about = record_of(Manifest, manifest, str(folder / MANIFEST))
    results = folder / "results.json"
    is_stage = not about.configs and bool(manifest or results.is_file())
    if is_stage or folder.is_file():
        for option, value in (("config", config), ("split", split)):
            _choose(path, option, value, ())
        if is_stage and not as_json:
            found = read_results(results) if results.is_file() else {}
            _show_facts(manifest | found, folder)
        files = sorted(folder.glob("*.parquet"))[:1] if is_stage else [folder]
        shown = [_file_rows(file, rows, marker) for file in files]
    elif folder.is_dir() or HUB_ID.fullmatch(path):
        _refuse_shelf(folder)
        from corpora.audit.opening import opened

        configurations = opened(path, config)
        default = (name for name, entry in about.configs.items() if entry.default)
        config = config or next(default, next(iter(configurations)))
        chosen = configurations[config]
        _choose(path, "split", split, chosen.splits)
        split = split or next(iter(chosen.splits))
        title = f"{path}, {config}/{split}" + f", {marker}" * bool(marker)
        with _read_as_parquet(path):
            shown = [_table_rows(title, chosen.splits[split], chosen.classes, rows, marker)]
        if about.configs and not as_json:
            _show_configurations(about)
    else:
        raise InputError(
            "no such file or folder",
            where=path,
            hint="give what discorpora built, such as build/sample/datasets/sp, a file, or a "
            "dataset of the Hub as OWNER/NAME",
        )
    for part in shown:
        if as_json:
            print_json_lines(part.rows)
        else:
            _show_rows(part)


def _choose(path: str, option: str, value: str, choices: Collection[str]) -> None:
    """Raise `ConfigError` for a part that `path` does not have; only datasets have `choices`."""
    if value and value not in choices:
        has = f"it has: {', '.join(sorted(choices))}"
        raise ConfigError(
            f"no {option} {value!r}; {nearest(value, choices)}".rstrip("; "),
            where=path,
            hint=has if choices else f"only a dataset's folder takes --{option}",
        )


def _refuse_shelf(folder: Path) -> None:
    """Raise `InputError` for a folder of results, which it names."""
    inside = sorted({*folder.glob(f"*/{MANIFEST}"), *folder.glob(f"*/*/{MANIFEST}")})
    if inside and not (folder / MANIFEST).is_file():
        raise InputError(
            f"is a folder of {amount(len(inside), 'result')}",
            where=str(folder),
            hint=f"inspect one of them: {_few([str(path.parent) for path in inside])}",
        )


@contextmanager
def _read_as_parquet(where: str) -> Iterator[None]:
    """Raise `InputError` for what is not Parquet, or is damaged."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        said = str(error).splitlines()[0]
        raise InputError(f"cannot be read as Parquet: {said}", where=where) from None


def _table_rows(
    title: str, table: pads.Dataset, classes: Mapping[str, list[str]], number: int, marker: str
) -> Rows:
    import pyarrow.compute as pc

    wanted = None
    if marker:
        column = _marker_column(table.schema.names, title)
        names = classes.get(column, [])
        if names:
            _choose(title, column, marker, names)
        field = pc.field(column)
        wanted = field == names.index(marker) if names else field.cast("string") == marker
    rows = table.head(number, filter=wanted).to_pylist()
    for row in rows:
        for column, names in classes.items():
            if row[column] is not None and 0 <= row[column] < len(names):
                row[column] = names[row[column]]
    return Rows(title, rows, table.count_rows(filter=wanted))


def _marker_column(columns: list[str], where: str) -> str:
    for name in MARKERS:
        if name in columns:
            return name
    raise ConfigError(
        "it has no column of markers or labels",
        where=where,
        hint=f"--marker looks at the columns {', '.join(MARKERS)}; it has: {', '.join(columns)}",
    )


def _file_rows(path: Path, number: int, marker: str) -> Rows:
    """The first rows of a Parquet file or of JSON Lines; `InputError` for what is neither."""
    if path.suffix == ".parquet":
        import pyarrow.dataset as pads

        from corpora.splits import division
        from corpora.store.manifest import label_names

        with _read_as_parquet(str(path)):
            table = pads.dataset(path)
            names = label_names(table.schema.metadata)
            if path.name == division.FILE:
                names = {"split": [*division.PLACES]}
            return _table_rows(str(path), table, names, number, marker)
    from corpora.readers.rows import json_rows

    kept: list[dict[str, Any]] = []
    column = ""
    for where, record in json_rows(path):
        if isinstance(record, BadRecord):
            hint = "rows are shown of .parquet files and of JSON Lines"
            raise InputError(record.reason, where=where, hint=hint)
        if len(kept) == number:
            break
        if marker and not column:
            column = _marker_column([*record], where)
        if not marker or str(record.get(column)) == marker:
            kept.append(dict(record))
    return Rows(str(path), kept)


def _show_configurations(about: Manifest) -> None:
    """A dataset's name, licence and languages, and the rows of each split."""
    from corpora.splits import SPLITS  # loads numpy

    named = {split for entry in about.configs.values() for split in entry.splits}
    splits = [split for split in SPLITS if split in named]
    rows = []
    for name, entry in about.configs.items():
        counts = [f"{entry.splits[s].rows if s in entry.splits else 0:,}" for s in splits]
        features = [each for each in entry.features.values() if isinstance(each, Feature)]
        labels = [label for feature in features for label in feature.names or ()]
        rows.append([name + " (default)" * entry.default, *counts, _few(labels)])
    licence = about.licence.id if about.licence else "unknown"
    title = f"{about.name}: licence {licence}, language {', '.join(about.languages)}"
    heads = [f"{split} rows" for split in splits]
    print_table(["configuration", *heads, "labels"], rows, title=title, right=heads)


def _show_facts(about: Mapping[str, Any], folder: Path) -> None:
    """The short facts of a stage, model or evaluation, and the sizes of its files."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for key in FACTS:
        if about.get(key) not in (None, "", {}, []):
            table.add_row(key.replace("_", " "), plain(_said(about[key])))
    if scores := list(_scores(about.get("metrics", {}))):
        table.add_row("metrics", plain(_few(scores)))
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    names = _few(sorted(path.name for path in files))
    table.add_row("files", plain(f"{len(files)}, {size / 2**20:,.1f} MiB: {names}"))
    wide_console().print(table)


def _scores(metrics: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """The metrics that have a value, each with the names that lead to it."""
    for key, inner in metrics.items():
        said = f"{name} {key}".strip()
        if isinstance(inner, Mapping) and "value" in inner:
            yield f"{said} {_said(inner['value'])}"
        elif isinstance(inner, Mapping):
            yield from _scores(inner, said)


def _show_rows(part: Rows) -> None:
    """Each row: its short values on one line, then a line for each text or list."""
    from rich.table import Table

    out = wide_console()
    said = amount(len(part.rows), "row")
    if part.total >= 0:
        said = f"{len(part.rows):,} of {amount(part.total, 'row')}"
    out.print(plain(f"\n{part.title}: {said}", "bold"))
    for number, row in enumerate(part.rows, 1):
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right", style="dim", no_wrap=True)
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(overflow="fold")
        short, lines = [], list[tuple[str, str]]()
        for key, value in row.items():
            texts = value if isinstance(value, list) else [value]
            if any(isinstance(text, str) and " " in text for text in texts):
                if len(texts) > TEXTS:
                    texts = [*texts[:TEXTS], f"... {len(texts) - TEXTS:,} more"]
                lines += zip([key, *[""] * (len(texts) - 1)], map(_cut, texts), strict=True)
            elif value not in (None, "", []):
                short.append(f"{key} {_said(value)}")
        lines[:0] = [("", "  ".join(short))] if short else []
        for at, (key, text) in enumerate(lines):
            table.add_row("" if at else str(number), key, plain(text))
        out.print(table)


def _said(value: Any, *, inside: bool = False) -> str:
    """A value in a few words: numbers rounded, long lists and tables cut."""
    if isinstance(value, Mapping):
        parts = [f"{k} {_said(v, inside=True)}" for k, v in value.items() if v not in ({}, [])]
        text = _few(parts) or "none"
        return f"({text})" if inside else text
    if isinstance(value, list):
        return f"[{_few([_said(v, inside=True) for v in value[: INLINE + 1]], len(value))}]"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _few(shown: list[str], total: int = 0) -> str:
    more = max(total, len(shown)) - INLINE
    return ", ".join(shown[:INLINE]) + (f", ... {more:,} more" if more > 0 else "")


def _cut(text: Any) -> str:
    text = str(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"
