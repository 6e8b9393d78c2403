"""Tables of several models' figures: their cells, and how they are written.

Markdown, CSV and JSON are all made here; the suites say which cells a result gives.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from corpora.errors import amount, chosen
from corpora.escape import markdown as escaped
from corpora.terminal import print_table
from zoo.evaluate.scores import Columns, Difference
from zoo.figures import every_figure

FORMATS = ("markdown", "csv", "json")


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure as it is shown: percent, but for alpha and nats; with its interval."""

    value: float
    ci: tuple[float, float] | None = None
    digits: int = 1
    sd: float | None = None
    """Over trainings with several seeds."""
    units: int | None = None
    """Where they are too few for an interval."""
    n: int | None = None
    """Of how many examples it is, where the result says so."""
    of: tuple[str, ...] = ()
    """What it is the mean of: a task's domains, or the probes."""
    ties: int = 0
    """How many of the pairs of different texts have equal scores."""

    @property
    def tied(self) -> str:
        """The ties in words, if there are any."""
        if not self.ties:
            return ""
        return "all ties" if self.ties == self.n else amount(self.ties, "tie")

    @property
    def text(self) -> str:
        return f"{self.figure}; {self.tied}" if self.tied else self.figure

    @property
    def figure(self) -> str:
        """The value with its interval."""
        shown = f"{self.value:.{self.digits}f}"
        if self.sd is not None:
            return f"{shown} ± {self.sd:.{self.digits}f}"
        if self.units is not None:
            return f"{shown} ({amount(self.units, 'unit')})"
        if self.ci is None:
            return shown
        return f"{shown} [{self.ci[0]:.{self.digits}f}, {self.ci[1]:.{self.digits}f}]"


Cells: TypeAlias = dict[str, Cell]
Rows: TypeAlias = dict[str, Cells]
"""Rows by name; the model's own has the name ""."""


def percent(figure: Any, n: Any = None, *, scale: float = 100, digits: int = 1) -> Cell:
    """A share of `n` examples, or `{"value": share, "ci": [low, high]}`, in percent."""
    n = n if isinstance(n, int) else None
    if not isinstance(figure, Mapping):
        return Cell(scale * float(figure), None, digits, n=n)
    ci = figure.get("ci")
    bounds = (scale * float(ci[0]), scale * float(ci[1])) if ci else None
    few = None if ci or "units" not in figure else int(figure["units"])
    ties = int(figure.get("ties", 0))
    return Cell(scale * float(figure["value"]), bounds, digits, units=few, n=n, ties=ties)


def plain(figure: Any, n: Any = None) -> Cell:
    """A coefficient between -1 and 1, or nats, over `n` examples, with three decimals."""
    return percent(figure, n, scale=1, digits=3)


def rows_of_sets(
    sets: Mapping[str, Any], figure: str, show: Callable[..., Cell], n: str = "pairs"
) -> Rows:
    """The model's `figure` of each test set, over its `n` examples; the rules' beside it."""
    rows: Rows = {"": {name: show(found[figure], found.get(n)) for name, found in sets.items()}}
    for name, found in sets.items():
        for rule, value in found.get("baselines", {}).items():
            rows.setdefault(f"rule: {rule}", {})[name] = show(value, found.get(n))
    return rows


def every_cell(metrics: Mapping[str, Any]) -> Cells:
    """Every figure of the metrics in per cent, under the names on the way to it."""
    return {name: percent(found, found.get("n")) for name, found in every_figure(metrics)}


@dataclass(frozen=True)
class Row:
    """One line of a table. `kind` is `model`, `rule` or `published`; `source` says where from."""

    name: str
    kind: str
    cells: Mapping[str, Cell]
    source: str = ""
    outcomes: Columns = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """The models of one suite; `differences` are those from the row `baseline`, by model."""

    suite: str
    columns: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str]
    baseline: str
    differences: Mapping[str, Mapping[str, Difference]]

    @property
    def examples(self) -> dict[str, int]:
        """By column the examples that the models were judged on: the same ones for all of them."""
        cells = [row.cells for row in self.rows if row.kind == "model"]
        known = {c: next((own[c].n for own in cells if c in own), None) for c in self.columns}
        return {column: n for column, n in known.items() if n is not None}


def print_result(table: Table) -> None:
    """Print the table of one result: a line for each metric.

    Of the published rows the one with the highest figure is shown.
    """
    model, *others = table.rows
    lines, papers = [], set()
    for column, cell in model.cells.items():
        value, _, interval = cell.figure.partition("  " if cell.sd is not None else " ")
        beside = [text for text in (interval.strip("[]()"), cell.tied) if text]
        own = [row for row in others if column in row.cells]
        rules = [row for row in own if row.kind == "rule"]
        printed = [row for row in own if row.kind == "published"]
        baselines = "\n".join(
            f"{row.name.removeprefix('rule: ')} {row.cells[column].text}" for row in rules
        )
        best = max(printed, key=lambda row: row.cells[column].value, default=None)
        if best:
            papers.add(best.source)
        paper = f"{best.name} {best.cells[column].text}" if best else ""
        lines.append([column, value, "; ".join(beside), baselines, paper])
    header = ("metric", "value", "95 % interval", "baselines", "published, highest")
    caption = f"published: {'; '.join(sorted(papers))}" if papers else ""
    title = f"{model.name}, suite {table.suite}"
    print_table(header, lines, title=title, caption=caption, right=header[1:2])
    for note in table.notes:
        sys.stdout.write(f"- {note}\n")


@dataclass(frozen=True)
class Comparison:
    """A table for each suite; `render` writes them in one of `FORMATS`."""

    tables: Sequence[Table]

    def render(self, form: str = "markdown") -> str:
        """Raises `ConfigError` for another format."""
        chosen("format", form, FORMATS)
        if form == "markdown":
            return "\n".join(_markdown(table) for table in self.tables)
        if form == "csv":
            figures = ("column", "value", "low", "high", "sd", "n")
            lines = (line for table in self.tables for line in _lines(table))
            return csv_text(["suite", "row", "kind", "source", *figures], lines)
        tables = [_as_dict(table) for table in self.tables]
        return json.dumps({"tables": tables}, indent=2, ensure_ascii=False) + "\n"


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table, its header first; figures stand on the right."""
    lines = ["| " + " | ".join(map(escaped, row)) + " |" for row in rows]
    return [lines[0], "|---|" + "---:|" * (len(rows[0]) - 1), *lines[1:]]


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _grid(name: str, cells: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """A line of a Markdown table: the texts of the cells, "-" where there is none."""
    return [name, *(cells[c].text if c in cells else "-" for c in columns)]


def _markdown(table: Table) -> str:
    rows = [["", *table.columns]]
    if counts := table.examples:
        numbers = [f"{counts[c]:,}" if c in counts else "-" for c in table.columns]
        rows.append(["*n, examples judged here*", *numbers])
    for row in table.rows:
        name = f"{row.name} (published: {row.source})" if row.kind == "published" else row.name
        rows.append(_grid(name, row.cells, table.columns))
    lines = [f"## {table.suite}\n", *markdown(rows)]
    if table.differences:
        shown = dict.fromkeys(column for by in table.differences.values() for column in by)
        columns = sorted(shown, key=lambda name: (*table.columns, name).index(name))
        rows = [["", *columns]]
        rows += [_grid(name, by, columns) for name, by in table.differences.items()]
        said = f"Differences from {table.baseline} in points, on the same examples (paired "
        lines += ["", f"{said}bootstrap, 95 % intervals; *: without 0):", "", *markdown(rows)]
    notes = [f"- {note}" for note in table.notes]
    return "\n".join([*lines, "", *notes, ""] if notes else [*lines, ""])


def _lines(table: Table) -> Iterator[list[Any]]:
    """A line of the CSV file for each figure."""
    for row in table.rows:
        for column, cell in row.cells.items():
            sd, bounds = "" if cell.sd is None else cell.sd, cell.ci or ("", "")
            head = [table.suite, row.name, row.kind, row.source, column]
            yield [*head, cell.value, *bounds, sd, cell.n or ""]
    for name, columns in table.differences.items():
        for column, one in columns.items():
            head = [table.suite, f"{name} - {table.baseline}", "difference", "", column]
            yield [*head, one.value, *(one.ci or ("", "")), "", ""]


def _as_dict(table: Table) -> dict[str, Any]:
    rows, differences = [], {}
    for row in table.rows:
        cells = {}
        for column, cell in row.cells.items():
            figures = {"value": cell.value, "ci": cell.ci, "sd": cell.sd, "units": cell.units}
            figures["ties"] = cell.ties or None
            cells[column] = {key: value for key, value in figures.items() if value is not None}
        rows.append({"name": row.name, "kind": row.kind, "source": row.source, "cells": cells})
    for name, columns in table.differences.items():
        differences[name] = {
            column: {"value": one.value, "ci": one.ci, "units": one.units, "of": one.of}
            for column, one in columns.items()
        }
    return {
        "suite": table.suite,
        "columns": list(table.columns),
        "examples": table.examples,
        "rows": rows,
        "differences": {"from": table.baseline, "rows": differences},
        "notes": list(table.notes),
    }
