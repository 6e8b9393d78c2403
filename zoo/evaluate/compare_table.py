"""Tables of several models' results, as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from corpora.errors import ConfigError, nearest
from zoo.evaluate.compare_columns import Cell
from zoo.evaluate.differences import Difference, Parts, differences

FORMATS = ("markdown", "csv", "json")


@dataclass(frozen=True)
class Row:
    """One line of a table. `kind` is `model`, `rule` or `published`; `source` says where from."""

    name: str
    kind: str
    cells: Mapping[str, Cell]
    source: str = ""
    outcomes: Mapping[str, Parts] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """The models of one suite."""

    suite: str
    columns: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def examples(self) -> dict[str, int]:
        """By column the examples that the models were judged on: the same ones for all of them."""
        cells = [row.cells for row in self.rows if row.kind == "model"]
        found = {c: next((own[c].n for own in cells if c in own), None) for c in self.columns}
        return {column: n for column, n in found.items() if n is not None}

    @cached_property
    def differences(self) -> dict[str, dict[str, Difference]]:
        """By model the columns by which it differs from the baseline."""
        first = self._baseline
        if first is None:
            return {}
        others = [row for row in self.rows if row.outcomes and row is not first]
        found = {r.name: differences(self.suite, first.outcomes, r.outcomes) for r in others}
        return {name: columns for name, columns in found.items() if columns}

    @property
    def baseline(self) -> str:
        """The model that the others are compared with; "" where no two have outcomes."""
        return self._baseline.name if self._baseline and self.differences else ""

    @property
    def _baseline(self) -> Row | None:
        """The first model that shares a column with another one."""
        for row in self.rows:
            if any(row.outcomes.keys() & other.outcomes for other in self.rows if other is not row):
                return row
        return None


@dataclass(frozen=True)
class Comparison:
    """A table for each suite; `render` writes them in one of `FORMATS`."""

    tables: Sequence[Table]

    def render(self, form: str = "markdown") -> str:
        """Raises `ConfigError` for another format."""
        writers = {"markdown": self.to_markdown, "csv": self.to_csv, "json": self.to_json}
        if form not in writers:
            hint = f"{nearest(form, FORMATS)}they are: {', '.join(FORMATS)}"
            raise ConfigError(f"no format {form!r}", hint=hint)
        return writers[form]()

    def to_markdown(self) -> str:
        return "\n".join(_markdown(table) for table in self.tables)

    def to_csv(self) -> str:
        """A line for each figure."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        figures = ("column", "value", "low", "high", "sd", "n")
        writer.writerow(["suite", "row", "kind", "source", *figures])
        for table in self.tables:
            for row in table.rows:
                head = [table.suite, row.name, row.kind, row.source]
                for column, cell in row.cells.items():
                    sd = "" if cell.sd is None else cell.sd
                    bounds = cell.ci or ("", "")
                    writer.writerow([*head, column, cell.value, *bounds, sd, cell.n or ""])
            for name, columns in table.differences.items():
                head = [table.suite, f"{name} - {table.baseline}", "difference", ""]
                for column, one in columns.items():
                    writer.writerow([*head, column, one.value, *(one.ci or ("", "")), "", ""])
        return text.getvalue()

    def to_json(self) -> str:
        tables = [
            {
                "suite": table.suite,
                "columns": list(table.columns),
                "examples": table.examples,
                "rows": [_as_dict(row) for row in table.rows],
                "differences": {
                    "from": table.baseline,
                    "rows": {
                        name: {column: asdict(one) for column, one in columns.items()}
                        for name, columns in table.differences.items()
                    },
                },
                "notes": list(table.notes),
            }
            for table in self.tables
        ]
        return json.dumps({"tables": tables}, indent=2, ensure_ascii=False) + "\n"


def _markdown(table: Table) -> str:
    lines = [
        f"## {table.suite}\n",
        _line(["", *table.columns]),
        "|" + "---|" + "---:|" * len(table.columns),
    ]
    if table.examples:
        counts = [f"{table.examples[c]:,}" if c in table.examples else "-" for c in table.columns]
        lines.append(_line(["*n, examples judged here*", *counts]))
    for row in table.rows:
        name = f"{row.name} (published: {row.source})" if row.kind == "published" else row.name
        cells = [row.cells[c].text if c in row.cells else "-" for c in table.columns]
        lines.append(_line([name, *cells]))
    lines += _difference_lines(table)
    notes = [f"- {note}" for note in table.notes]
    return "\n".join([*lines, "", *notes, ""] if notes else [*lines, ""])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _difference_lines(table: Table) -> list[str]:
    """How the other models differ from the first, in points."""
    if not table.differences:
        return []
    shown = dict.fromkeys(column for found in table.differences.values() for column in found)
    columns = sorted(shown, key=lambda name: (*table.columns, name).index(name))
    lines = [
        "",
        f"Differences from {table.baseline} in points, on the same examples (paired bootstrap, "
        "95 % intervals; *: without 0):",
        "",
        _line(["", *columns]),
        "|" + "---|" + "---:|" * len(columns),
    ]
    for name, found in table.differences.items():
        cells = [found[column].text if column in found else "-" for column in columns]
        lines.append(_line([name, *cells]))
    return lines


def _as_dict(row: Row) -> dict[str, Any]:
    cells = {
        name: {
            "value": cell.value,
            **({"ci": list(cell.ci)} if cell.ci else {}),
            **({} if cell.sd is None else {"sd": cell.sd}),
            **({} if cell.units is None else {"units": cell.units}),
        }
        for name, cell in row.cells.items()
    }
    return {"name": row.name, "kind": row.kind, "source": row.source, "cells": cells}
