"""The tables and figures of papers as blocks of the report, as text, as LaTeX and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from operator import itemgetter
from typing import Any

from workflows.papers import Filled, Line
from workflows.report import charts
from workflows.report.blocks import Block, Cell, Figure, Heading, Table, Text
from workflows.report.latex import latex_of, tabular
from zoo.evaluate.table import Cell as Measured

PAPER, OURS = "paper", "ours"


def title_of(filled: Filled) -> str:
    """`Nie, Bennett and Goodman 2019, table 5: Discourse classification`."""
    table = filled.table
    return f"{table.citation}, {table.called}: {table.title}"


def grid(filled: Filled) -> list[list[str]]:
    """The rows as texts, the header first: of each a line of the paper's and one of our numbers."""
    columns = filled.table.columns
    rows = [["", "", *columns]]
    for line in filled.lines:
        name = line.name
        if line.printed or not line.measured:
            rows.append([name, PAPER, *(filled.printed(line, column) for column in columns)])
            name = ""
        if line.state:
            rows.append([name, OURS, line.state, *[""] * (len(columns) - 1)])
        else:
            cells = (line.measured.get(column) for column in columns)
            texts = [cell.text if cell else "" for cell in cells]
            rows.append([name, OURS, *(map(_best, line.curves.values()) if line.curves else texts)])
    return rows


def _best(points: Sequence[tuple[float, float]]) -> str:
    """The highest point of a training's progress."""
    step, value = max(points, key=itemgetter(1))
    return f"{100 * value:.1f} at step {step:g}"


def text(filled: Filled) -> str:
    """The table as plain text, its columns aligned, with its matrices and notes."""
    # The reason of a missing row may be longer than the column that it begins in.
    parts = [[*_aligned(grid(filled), left=2, wide={line.state for line in filled.lines})]]
    for caption, header, rows in _matrices(filled):
        parts.append([caption, *_aligned([header, *_texts(rows)], left=1)])
    notes = [f"- {note}" for note in _notes(filled)]
    lines = [line for part in parts for line in ("", *part)]
    return "\n".join([title_of(filled), *lines, "", *notes]).rstrip() + "\n"


def _aligned(rows: Sequence[Sequence[str]], left: int, wide: Collection[str] = ()) -> Iterator[str]:
    """The rows as lines; all columns but the first `left`, and the cells `wide`, are aligned right.

    The cells `wide` may be wider than their column.
    """
    widths = [max(len(c) for c in column if c not in wide) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if i < left or cell in wide else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _matrices(filled: Filled) -> Iterator[tuple[str, list[str], list[list[Cell]]]]:
    """Our confusion matrices of a figure: a caption, the header, a row for each gold label."""
    for line in filled.lines:
        for name, matrix in line.confusions.items():
            counts = zip(matrix["classes"], matrix["gold_by_predicted"], strict=True)
            caption = f"{name}: rows are gold labels, columns are predicted labels; examples"
            yield caption, ["gold", *matrix["classes"]], [[gold, *row] for gold, row in counts]


def _texts(rows: Iterable[Iterable[Cell]]) -> list[list[str]]:
    return [[*map(str, row)] for row in rows]


def latex(filled: Filled) -> str:
    """The table as a `tabular`, then its matrices; titles and notes are comments."""
    states = {line.state for line in filled.lines if line.state}
    columns = len(filled.table.columns)
    rows = []
    for row in grid(filled):
        cells = [latex_of(cell) for cell in row]
        if row[2] in states:
            cells = [*cells[:2], rf"\multicolumn{{{columns}}}{{l}}{{{cells[2]}}}"]
        rows.append(cells)
    parts = [tabular(f"ll{'r' * columns}", rows, [title_of(filled)])]
    for caption, header, matrix in _matrices(filled):
        counts = [[latex_of(cell) for cell in row] for row in (header, *_texts(matrix))]
        parts.append(tabular(f"l{'r' * (len(header) - 1)}", counts, [caption]))
    notes = (f"% {' '.join(note.split())}\n" for note in _notes(filled))
    return "\n".join(parts) + "".join(notes)


def _notes(filled: Filled) -> list[str]:
    """What the table shows, if its title does not tell, and the notes on its numbers."""
    return [*filter(None, [filled.table.about]), *filled.notes]


def as_json(filled: Filled) -> dict[str, Any]:
    """The table as plain values, without rounding."""
    table = filled.table
    rows = []
    for line in filled.lines:
        measured = {column: _as_dict(cell) for column, cell in line.measured.items()}
        row: dict[str, Any] = {"name": line.name, PAPER: line.printed, OURS: measured}
        row |= {"state": line.state} if line.state else {}
        row |= {"curves": line.curves} if line.curves else {}
        row |= {"confusions": line.confusions} if line.confusions else {}
        rows.append(row)
    about = {"table": table.name, "paper": table.citation, "title": table.title}
    return {**about, "columns": table.columns, "rows": rows, "notes": _notes(filled)}


def _as_dict(cell: Measured) -> dict[str, Any]:
    """Return a cell as a dict of its fields; fields that are None or empty are left out.

    `parts` is empty without a part, `ties` if it counts none. In any other field, 0 is a value.
    """
    values = {key: value for key, value in asdict(cell).items() if value is not None}
    empty = {"ties": 0, "parts": ()}
    return {key: value for key, value in values.items() if value != empty.get(key)}


def blocks(filled: Sequence[Filled]) -> Iterator[Block]:
    """The blocks of the report: a table for each, and the drawing of a figure."""
    for one in filled:
        header, *rows = grid(one)
        header = ["row", "numbers", *header[2:]]
        yield Heading(title_of(one))
        if one.table.about:
            yield Text(one.table.about)
        cells: list[list[Cell]] = [[*row] for row in rows]
        yield Table(f"{one.table.name}: the paper's numbers and ours", header, cells)
        yield from _figures(one)
        yield from map(Text, one.notes)


def _figures(filled: Filled) -> Iterator[Block]:
    table, kind = filled.table, filled.table.kind
    unit, title = table.parts[0].unit, f"{table.title} ({table.called})"
    file = f"paper-{table.name.replace(':', '-')}"
    if kind == "confusion":
        for caption, labels, matrix in _matrices(filled):
            yield Table(caption, labels, matrix, heat=True)
    elif kind == "heat":
        measured = {line.name: line.measured for line in filled.lines if line.measured}
        rows = {n: {c: cell.value for c, cell in cells.items()} for n, cells in measured.items()}
        if rows:
            yield Figure(file, title, charts.heat(table.title, rows, table.columns))
    elif kind == "bars":
        for series, values in _series(filled):
            bars = {column: [values.get(column)] for column in table.columns if column in values}
            yield Figure(
                f"{file}-{series}", f"{title}: {series}", charts.bars(title, bars, [series], unit)
            )
    elif kind == "histogram":
        low, *_, last = map(float, table.columns)
        high = last + (last - low) / (len(table.columns) - 1)
        for series, values in _series(filled):
            counts = [int(values.get(column, 0)) for column in table.columns]
            drawn = charts.histogram(title, counts, low, high, unit)
            yield Figure(f"{file}-{series}", f"{title}: {series}", drawn)
    elif kind in ("curves", "progress") and (lines := _curves(filled)):
        yield Figure(file, title, charts.curves(title, lines, unit, table.parts[0].y_unit))


def _series(filled: Filled) -> Iterator[tuple[str, Mapping[str, float]]]:
    """The paper's numbers, then ours, of each row that has some."""
    for number, line in enumerate(filled.lines):
        more = f"-{number + 1}" if len(filled.lines) > 1 else ""
        if line.printed:
            yield f"{PAPER}{more}", line.printed
        if line.measured:
            yield f"{OURS}{more}", {column: cell.value for column, cell in line.measured.items()}


def _curves(filled: Filled) -> dict[str, list[tuple[float, float]]]:
    """Lines through our numbers: over the columns, over a setting, or over the steps."""
    table, lines = filled.table, filled.lines
    if table.kind == "progress":
        return {name: points for line in lines for name, points in line.curves.items()}
    if table.over:
        series = {}
        for column in table.columns:
            shown = [line for line in lines if column in line.measured]
            points = [(_value(line), line.measured[column].value) for line in shown]
            # An agreement is drawn in hundredths beside percentages, as in the paper.
            scale = 100 if all(abs(y) <= 1 for _, y in points) else 1
            if points:
                series[column] = [(x, scale * y) for x, y in points]
        return series
    return {
        line.name: [(float(column), cell.value) for column, cell in line.measured.items()]
        for line in lines
        if line.measured
    }


def _value(line: Line) -> float:
    """The value of the setting, which the name of the line ends with."""
    return float(line.name.rpartition(" ")[2])
