"""`discorpora inspect`: rows of a dataset, or facts of a stage or model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from corpora.errors import BadRecord, ConfigError, InputError, amount, nearest
from corpora.outside import HUB_ID, record_of, split_config
from corpora.store.atomic import MANIFEST, read_json
from corpora.store.manifest import Feature, Manifest, read_results
from corpora.terminal import plain, print_table, wide_console
from workflows.cli.common import print_json_lines

if TYPE_CHECKING:
    import pyarrow.dataset as pads

MARKERS = ("marker", "connective", "label")
"""Columns that `--marker` may mean: the first of these that a table has."""
FACTS = (
    *("name", "recipe", "suite", "model", "dataset", "hash", "command", "licence", "licences"),
    *("headline_name", "headline", "parameters", "trained_on", "counts", "rejects"),
)
"""The keys of a manifest, and of results beside it, that are shown."""
MOST_ROWS = 1_000_000
INLINE, TEXTS, LONGEST = 12, 6, 300
"""Maximum values of a nested entry, texts of a list, and characters of a text that are shown."""


class TableRows(NamedTuple):
    """The first rows of a table, with label names; `total` counts all, or is -1 if unknown."""

    title: str
    rows: list[dict[str, Any]]
    total: int = -1


def inspect(
    path: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="A dataset, stage or model FOLDER, a FILE, or OWNER/NAME on the Hub; @CONFIG at "
            "its end names a dataset's configuration.",
        ),
    ],
    rows: Annotated[
        int, typer.Option("-n", "--rows", min=0, max=MOST_ROWS, help="Rows to show.")
    ] = 5,
    split: Annotated[str, typer.Option(help="A dataset's split.")] = "",
    marker: Annotated[
        str, typer.Option("--marker", "--label", help="Only rows of this marker or label.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON Lines.")] = False,
) -> None:
    """Show rows of a dataset with their label names; or facts of a stage, a model or a file."""
    path, config = split_config(path)
    folder = Path(path).expanduser()
    manifest = read_json(folder / MANIFEST) if (folder / MANIFEST).is_file() else {}
    dataset = record_of(Manifest, manifest, str(folder / MANIFEST))
    results = folder / "results.json"
    is_stage = not dataset.configs and bool(manifest or results.is_file())
    if is_stage or folder.is_file():
        for part, value in (("configuration", config), ("split", split)):
            _check_choice(path, part, value, ())
        if is_stage and not as_json:
            figures = read_results(results) if results.is_file() else {}
            _show_facts(manifest | figures, folder)
        files = sorted(folder.glob("*.parquet"))[:1] if is_stage else [folder]
        tables = [_file_rows(file, rows, marker) for file in files]
    elif folder.is_dir() or HUB_ID.fullmatch(path):
        _check_no_results_folder(folder)
        from corpora.audit.opening import opened

        configurations = opened(f"{path}@{config}" if config else path)
        default = (name for name, entry in dataset.configs.items() if entry.default)
        config = config or next(default, next(iter(configurations)))
        chosen = configurations[config]
        _check_choice(path, "split", split, chosen.splits)
        split = split or next(iter(chosen.splits))
        title = f"{path}, {config}/{split}" + f", {marker}" * bool(marker)
        with _explain_parquet_errors(path):
            tables = [_table_rows(title, chosen.splits[split], chosen.classes, rows, marker)]
        if dataset.configs and not as_json:
            _show_configurations(dataset)
    else:
        raise InputError(
            "no such file or folder",
            where=path,
            hint="give what discorpora built, such as build/sample/datasets/sp, a file, or a "
            "dataset of the Hub as OWNER/NAME",
        )
    for table in tables:
        if as_json:
            print_json_lines(table.rows)
        else:
            _show_rows(table)


def _check_choice(path: str, part: str, value: str, choices: Collection[str]) -> None:
    """Raise `ConfigError` for the name of a part that is not in `choices` (a dataset's names)."""
    if value and value not in choices:
        has = f"it has: {', '.join(sorted(choices))}"
        raise ConfigError(
            f"no {part} {value!r}; {nearest(value, choices)}".rstrip("; "),
            where=path,
            hint=has if choices else "only a dataset's folder has configurations and splits",
        )


def _check_no_results_folder(folder: Path) -> None:
    """Raise `InputError` for a folder that contains several results; the error names them."""
    manifests = sorted({*folder.glob(f"*/{MANIFEST}"), *folder.glob(f"*/*/{MANIFEST}")})
    if manifests and not (folder / MANIFEST).is_file():
        raise InputError(
            f"is a folder of {amount(len(manifests), 'result')}",
            where=str(folder),
            hint=f"inspect one of them: {_joined([str(path.parent) for path in manifests])}",
        )


@contextmanager
def _explain_parquet_errors(where: str) -> Iterator[None]:
    """Raise `InputError` for a file that is not Parquet, or is damaged."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        problem = str(error).splitlines()[0]
        raise InputError(f"cannot be read as Parquet: {problem}", where=where) from None


def _table_rows(
    title: str, table: pads.Dataset, classes: Mapping[str, list[str]], number: int, marker: str
) -> TableRows:
    """Return the first `number` rows, with label names; `marker` keeps only rows of that marker."""
    import pyarrow.compute as pc

    condition = None
    if marker:
        column = _marker_column(table.schema.names, title)
        condition = pc.field(column).cast("string") == marker
        if names := classes.get(column, []):
            _check_choice(title, column, marker, names)
            condition = pc.field(column) == names.index(marker)
    rows = table.head(number, filter=condition).to_pylist()
    for row in rows:
        for column, names in classes.items():
            if row[column] is not None and 0 <= row[column] < len(names):
                row[column] = names[row[column]]
    return TableRows(title, rows, table.count_rows(filter=condition))


def _marker_column(columns: list[str], where: str) -> str:
    """Return the column of markers or labels. Raises `ConfigError` if there is none."""
    for name in MARKERS:
        if name in columns:
            return name
    raise ConfigError(
        "it has no column of markers or labels",
        where=where,
        hint=f"--marker looks at the columns {', '.join(MARKERS)}; it has: {', '.join(columns)}",
    )


def _file_rows(path: Path, number: int, marker: str) -> TableRows:
    """Return the first rows of a file of Parquet or JSON Lines; `InputError` for another file."""
    if path.suffix == ".parquet":
        import pyarrow.dataset as pads

        from corpora.splits import division
        from corpora.store.manifest import label_names

        with _explain_parquet_errors(str(path)):
            table = pads.dataset(path)
            names = label_names(table.schema.metadata)
            if path.name == division.FILE:
                names = {"split": [*division.PLACES]}
            return _table_rows(str(path), table, names, number, marker)
    from corpora.readers.rows import json_rows

    rows: list[dict[str, Any]] = []
    column = ""
    for where, record in json_rows(path):
        if isinstance(record, BadRecord):
            hint = "rows are shown of .parquet files and of JSON Lines"
            raise InputError(record.reason, where=where, hint=hint)
        if len(rows) == number:
            break
        if marker and not column:
            column = _marker_column([*record], where)
        if not marker or str(record.get(column)) == marker:
            rows.append(dict(record))
    return TableRows(str(path), rows)


def _show_configurations(dataset: Manifest) -> None:
    """Print a dataset's name, licence and languages, and the rows of each split."""
    from corpora.splits import SPLITS  # loads numpy

    used = {split for config in dataset.configs.values() for split in config.splits}
    splits = [split for split in SPLITS if split in used]
    rows = []
    for name, config in dataset.configs.items():
        counts = [f"{config.splits[s].rows if s in config.splits else 0:,}" for s in splits]
        features = [feature for feature in config.features.values() if isinstance(feature, Feature)]
        labels = [label for feature in features for label in feature.names or ()]
        rows.append([name + " (default)" * config.default, *counts, _joined(labels)])
    licence = dataset.licence.id if dataset.licence else "unknown"
    title = f"{dataset.name}: licence {licence}, language {', '.join(dataset.languages)}"
    heads = [f"{split} rows" for split in splits]
    print_table(["configuration", *heads, "labels"], rows, title=title, right=heads)


def _show_facts(facts: Mapping[str, Any], folder: Path) -> None:
    """Print the short facts of a stage, model or evaluation, and the sizes of its files."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for key in FACTS:
        if facts.get(key) not in (None, "", {}, []):
            table.add_row(key.replace("_", " "), plain(_short_text(facts[key])))
    if scores := list(_scores(facts.get("metrics", {}))):
        table.add_row("metrics", plain(_joined(scores)))
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    names = _joined(sorted(path.name for path in files))
    table.add_row("files", plain(f"{len(files)}, {size / 2**20:,.1f} MiB: {names}"))
    wide_console().print(table)


def _scores(metrics: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """Yield each metric that has a value, with all keys that lead to it: "test f1 0.8"."""
    for key, inner in metrics.items():
        full_name = f"{name} {key}".strip()
        if isinstance(inner, Mapping) and "value" in inner:
            yield f"{full_name} {_short_text(inner['value'])}"
        elif isinstance(inner, Mapping):
            yield from _scores(inner, full_name)


def _show_rows(shown: TableRows) -> None:
    """Print each row: its short values on one line, then a line for each text or list."""
    from rich.table import Table

    out = wide_console()
    count = amount(len(shown.rows), "row")
    if shown.total >= 0:
        count = f"{len(shown.rows):,} of {amount(shown.total, 'row')}"
    out.print(plain(f"\n{shown.title}: {count}", "bold"))
    for number, row in enumerate(shown.rows, 1):
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right", style="dim", no_wrap=True)
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(overflow="fold")
        short, lines = [], list[tuple[str, str]]()  # `lines` has a key and a text for each line
        for key, value in row.items():
            texts = value if isinstance(value, list) else [value]
            if any(isinstance(text, str) and " " in text for text in texts):
                if len(texts) > TEXTS:
                    texts = [*texts[:TEXTS], f"... {len(texts) - TEXTS:,} more"]
                lines += zip([key, *[""] * (len(texts) - 1)], map(_cut, texts), strict=True)
            elif value not in (None, "", []):
                short.append(f"{key} {_short_text(value)}")
        lines[:0] = [("", "  ".join(short))] if short else []
        for i, (key, text) in enumerate(lines):
            table.add_row("" if i else str(number), key, plain(text))
        out.print(table)


def _short_text(value: Any, *, nested: bool = False) -> str:
    """Format a value on one line: numbers rounded, long lists and tables cut."""
    if isinstance(value, Mapping):
        entries = {key: inner for key, inner in value.items() if inner not in ({}, [])}
        parts = [f"{key} {_short_text(inner, nested=True)}" for key, inner in entries.items()]
        text = _joined(parts) or "none"
        return f"({text})" if nested else text
    if isinstance(value, list):
        parts = [_short_text(inner, nested=True) for inner in value[: INLINE + 1]]
        return f"[{_joined(parts, len(value))}]"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _joined(texts: list[str], total: int = 0) -> str:
    """Join at most `INLINE` texts, and add how many more there are, of `total` or of all texts."""
    more = max(total, len(texts)) - INLINE
    return ", ".join(texts[:INLINE]) + (f", ... {more:,} more" if more > 0 else "")


def _cut(value: Any) -> str:
    """Return a value as text, cut at `LONGEST` characters."""
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"
