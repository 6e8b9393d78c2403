"""Tables of the figures of several models: cells, rows, and their Markdown, CSV and JSON.

A suite's method `rows` makes the cells of a result.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from corpora.errors import amount, check_choice
from corpora.escape import markdown as escaped
from corpora.terminal import print_table
from zoo.evaluate.scores import Columns, Difference
from zoo.figures import every_figure

FORMATS = ("markdown", "csv", "json")


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure as a table shows it, with its interval.

    The value is in per cent, unless it is a coefficient (such as alpha) or in nats.
    """

    value: float
    ci: tuple[float, float] | None = None
    digits: int = 1
    """The number of decimals."""
    sd: float | None = None
    """The standard deviation over trainings with several seeds."""
    units: int | None = None
    """The number of units that were judged, where they are too few for an interval."""
    n: int | None = None
    """The number of examples that were judged, where the result says it."""
    parts: tuple[str, ...] = ()
    """The names of the figures whose mean it is: a task's domains, or the probes."""
    ties: int = 0
    """How many pairs of different texts have equal scores."""

    @property
    def ties_in_words(self) -> str:
        """The number of ties as text, such as "3 ties"; "" if there are none."""
        if not self.ties:
            return ""
        return "all ties" if self.ties == self.n else amount(self.ties, "tie")

    @property
    def text(self) -> str:
        """The value with its interval and the number of ties."""
        return f"{self.figure}; {self.ties_in_words}" if self.ties else self.figure

    @property
    def figure(self) -> str:
        """The value with its interval, such as "71.3 [68.0, 74.5]", standard deviation or units."""
        value = f"{self.value:.{self.digits}f}"
        if self.sd is not None:
            return f"{value} ± {self.sd:.{self.digits}f}"
        if self.units is not None:
            return f"{value} ({amount(self.units, 'unit')})"
        if self.ci is None:
            return value
        return f"{value} [{self.ci[0]:.{self.digits}f}, {self.ci[1]:.{self.digits}f}]"


Cells: TypeAlias = dict[str, Cell]
Rows: TypeAlias = dict[str, Cells]
"""The cells of rows by the row's name; the model's row has the name ""."""


def percent(figure: Any, n: Any = None, *, scale: float = 100, digits: int = 1) -> Cell:
    """Return the cell of a share of `n` examples in per cent.

    `figure` is the share, or a table `{"value": share, "ci": [low, high]}`, perhaps with `units`
    and `ties`. An `n` that is no integer is ignored. `scale` is 1 for figures not in per cent.
    """
    n = n if isinstance(n, int) else None
    if not isinstance(figure, Mapping):
        return Cell(scale * float(figure), None, digits, n=n)
    ci = figure.get("ci")
    bounds = (scale * float(ci[0]), scale * float(ci[1])) if ci else None
    units = None if ci or "units" not in figure else int(figure["units"])
    ties = int(figure.get("ties", 0))
    return Cell(scale * float(figure["value"]), bounds, digits, units=units, n=n, ties=ties)


def plain(figure: Any, n: Any = None) -> Cell:
    """Return the cell of a coefficient between -1 and 1, or of nats, with three decimals."""
    return percent(figure, n, scale=1, digits=3)


def rows_of_sets(
    sets: Mapping[str, Any], figure: str, show: Callable[..., Cell], n: str = "pairs"
) -> Rows:
    """Return a row of the model and one of each baseline rule, with a column for each test set.

    `sets` has the metrics of each test set: under the key that `figure` names the model's figure,
    under the key that `n` names the number of examples, under "baselines" the figure of each rule.
    `show(figure, examples)` makes a cell, such as `percent`.
    """
    rows: Rows = {"": {}}
    for name, metrics in sets.items():
        examples = metrics.get(n)
        rows[""][name] = show(metrics[figure], examples)
        for rule, value in metrics.get("baselines", {}).items():
            rows.setdefault(f"rule: {rule}", {})[name] = show(value, examples)
    return rows


def every_cell(metrics: Mapping[str, Any]) -> Cells:
    """Return a cell in per cent for each figure in nested metrics, by the keys that lead to it."""
    return {name: percent(figure, figure.get("n")) for name, figure in every_figure(metrics)}


@dataclass(frozen=True)
class ScoreRow:
    """A row of a table of scores: the cells of a model, of a rule, or of a paper's row.

    `kind` is `model`, `rule` or `published`. `source` is the path of a model's result, or the
    paper and its table.
    """

    name: str
    kind: str
    cells: Mapping[str, Cell]
    source: str = ""
    outcomes: Columns = field(default_factory=dict)


@dataclass(frozen=True)
class ScoreTable:
    """The scores of models on one suite.

    `differences[row][column]` is the figure of that row minus that of the row `baseline`.
    """

    suite: str
    columns: Sequence[str]
    rows: Sequence[ScoreRow]
    notes: Sequence[str]
    baseline: str
    differences: Mapping[str, Mapping[str, Difference]]

    @property
    def examples(self) -> dict[str, int]:
        """The number of examples that the models were judged on, by column, where it is known.

        All models of a column were judged on the same examples, so the first one counts.
        """
        counts: dict[str, int | None] = {}
        for row in self.rows:
            if row.kind == "model":
                counts = {**{column: cell.n for column, cell in row.cells.items()}, **counts}
        return {c: n for c in self.columns if (n := counts.get(c)) is not None}


def print_result(table: ScoreTable) -> None:
    """Print the table of one model's result: a line for each metric, with the rules' figures.

    Only the highest of the published figures of a metric is shown.
    """
    model, *others = table.rows
    lines, papers = [], set()
    for column, cell in model.cells.items():
        value, _, interval = cell.figure.partition("  " if cell.sd is not None else " ")
        details = [text for text in (interval.strip("[]()"), cell.ties_in_words) if text]
        comparable = [row for row in others if column in row.cells]
        baselines = [
            f"{row.name.removeprefix('rule: ')} {row.cells[column].text}"
            for row in comparable
            if row.kind == "rule"
        ]
        published = [row for row in comparable if row.kind == "published"]
        best = max(published, key=lambda row: row.cells[column].value, default=None)
        if best:
            papers.add(best.source)
        paper = f"{best.name} {best.cells[column].text}" if best else ""
        lines.append([column, value, "; ".join(details), "\n".join(baselines), paper])
    header = ("metric", "value", "95 % interval", "baselines", "published, highest")
    caption = f"published: {'; '.join(sorted(papers))}" if papers else ""
    title = f"{model.name}, suite {table.suite}"
    print_table(header, lines, title=title, caption=caption, right=header[1:2])
    for note in table.notes:
        sys.stdout.write(f"- {note}\n")


@dataclass(frozen=True)
class Comparison:
    """The tables of several models, one for each suite."""

    tables: Sequence[ScoreTable]

    def render(self, form: str = "markdown") -> str:
        """Return the tables as one text in a format of `FORMATS`.

        Raises `ConfigError` for another format.
        """
        check_choice("format", form, FORMATS)
        if form == "markdown":
            return "\n".join(_markdown(table) for table in self.tables)
        if form == "csv":
            figures = ("column", "value", "low", "high", "sd", "n")
            lines = (line for table in self.tables for line in _csv_rows(table))
            return csv_text(["suite", "row", "kind", "source", *figures], lines)
        tables = [_as_dict(table) for table in self.tables]
        return json.dumps({"tables": tables}, indent=2, ensure_ascii=False) + "\n"


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; `rows` has its header first.

    All columns but the first are aligned to the right.
    """
    lines = ["| " + " | ".join(map(escaped, row)) + " |" for row in rows]
    return [lines[0], "|---|" + "---:|" * (len(rows[0]) - 1), *lines[1:]]


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a CSV file's text, the header's line first."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _row_texts(name: str, cells: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """A row of a Markdown table: its name and the text of its cell in each column, "-" for none."""
    return [name, *(cells[c].text if c in cells else "-" for c in columns)]


def _markdown(table: ScoreTable) -> str:
    """The table in Markdown under a heading, with its differences and notes below it."""
    # The table of figures
    rows = [["", *table.columns]]
    if counts := table.examples:
        numbers = [f"{counts[c]:,}" if c in counts else "-" for c in table.columns]
        rows.append(["*n, examples judged here*", *numbers])
    for row in table.rows:
        name = f"{row.name} (published: {row.source})" if row.kind == "published" else row.name
        rows.append(_row_texts(name, row.cells, table.columns))
    lines = [f"## {table.suite}\n", *markdown(rows)]
    # The table of differences
    if table.differences:
        names = dict.fromkeys(name for cells in table.differences.values() for name in cells)
        columns = sorted(names, key=lambda name: (*table.columns, name).index(name))
        rows = [["", *columns]]
        rows += [_row_texts(name, cells, columns) for name, cells in table.differences.items()]
        caption = (
            f"Differences from {table.baseline} in points, on the same examples (paired "
            "bootstrap, 95 % intervals; *: without 0):"
        )
        lines += ["", caption, "", *markdown(rows)]
    notes = [f"- {note}" for note in table.notes]
    return "\n".join([*lines, "", *notes, ""] if notes else [*lines, ""])


def _csv_rows(table: ScoreTable) -> Iterator[list[Any]]:
    """Yield a row of the CSV file for each figure and for each difference."""
    for row in table.rows:
        for column, cell in row.cells.items():
            sd, bounds = "" if cell.sd is None else cell.sd, cell.ci or ("", "")
            keys = [table.suite, row.name, row.kind, row.source, column]
            yield [*keys, cell.value, *bounds, sd, "" if cell.n is None else cell.n]
    for name, columns in table.differences.items():
        for column, difference in columns.items():
            keys = [table.suite, f"{name} - {table.baseline}", "difference", "", column]
            yield [*keys, difference.value, *(difference.ci or ("", "")), "", ""]


def _as_dict(table: ScoreTable) -> dict[str, Any]:
    """Return a table as the object to write as JSON."""
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
            column: {"value": each.value, "ci": each.ci, "units": each.units, "of": each.of}
            for column, each in columns.items()
        }
    return {
        "suite": table.suite,
        "columns": list(table.columns),
        "examples": table.examples,
        "rows": rows,
        "differences": {"from": table.baseline, "rows": differences},
        "notes": list(table.notes),
    }
