"""The blocks of a report (headings, texts, tables, figures), written as Markdown and as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from pathlib import Path
from typing import TypeAlias

from corpora import escape
from workflows.report.latex import latex_of, tabular
from workflows.report.markup import Html, escaped, joined, link, tag

Cell: TypeAlias = str | int | float | None

NOTHING = Html("")
SHADES = 10
"""Number of shades of a confusion matrix: a cell's shade is its share of its row."""


@dataclass(frozen=True)
class Heading:
    """A heading of the report, or of a part of it at a deeper `level`."""

    text: str
    level: int = 3


@dataclass(frozen=True)
class Fold:
    """A heading whose blocks the page shows after a click; they may not be figures."""

    text: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Text:
    """A paragraph, printed bold if `strong`; parts between backticks are code."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """A table of cells, with a name for each column.

    The page draws bars in the column `bar`, and shades the numbers of a `heat` table. `links` has
    the web address for the text of a cell; `digits` is the number of decimals of fractions.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    bar: str = ""
    heat: bool = False
    digits: int = 3
    links: dict[str, str] = field(default_factory=dict)

    def has_content(self) -> bool:
        """Tell whether a cell beside the names in the first of several columns has a value."""
        return any(cell not in (None, "") for row in self.rows for cell in row[1:] or row)


@dataclass(frozen=True)
class Figure:
    """A drawing with a caption; its file will have the name `name`.

    The drawing is `svg`, as markup, or an existing `file`.
    """

    name: str
    caption: str
    svg: Html = NOTHING
    file: Path | None = None


Block: TypeAlias = Heading | Fold | Text | Table | Figure


@dataclass(frozen=True)
class Section:
    """A part of the report; `id` is its address in the page."""

    id: str
    title: str
    blocks: Sequence[Block]


def with_content(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks without empty tables and folds, and without headings over nothing."""
    kept: list[Block] = []
    for block in reversed(blocks):
        match block:
            case Fold():
                block = Fold(block.text, with_content(block.blocks))
                stays = bool(block.blocks)
            case Table():
                stays = block.has_content()
            case Heading():
                below = kept[-1] if kept else Heading("", 0)
                stays = not (isinstance(below, Heading) and below.level <= block.level)
            case _:
                stays = True
        if stays:
            kept.append(block)
    return kept[::-1]


def tables(blocks: Iterable[Block]) -> Iterator[Table]:
    """Yield all tables in order, also those of folds: the first has the number 1."""
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Fold):
            yield from tables(block.blocks)


def shown(value: Cell, digits: int) -> str:
    """Format the value of a cell for readers: `1,234`, `0.500`; None is empty."""
    if isinstance(value, str) or value is None:
        return value or ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


NUMBER = re.compile(r"[-+]?(\d[\d,]*)?\.?\d+\*?( .*)?")
"""A number, which an interval or a unit may follow: `-0.12`, `81.5 [79.0, 84.1]`."""


def numeric(rows: Sequence[Sequence[Cell]], column: int) -> bool:
    """Tell whether a column holds numbers, which are aligned to the right."""
    cells = [row[column] for row in rows if row[column] not in (None, "")]
    return bool(cells) and all(not isinstance(c, str) or NUMBER.fullmatch(c) for c in cells)


def markdown(title: str, sections: Sequence[Section]) -> str:
    """Write the report as Markdown, with links to the figures in `figures/`."""
    parts, numbers = [f"# {escape.markdown(title)}"], count(1)
    for section in sections:
        blocks = (_as_markdown(block, numbers) for block in section.blocks)
        parts += [f"## {escape.markdown(section.title)}", *blocks]
    return "\n\n".join(parts) + "\n"


def _as_markdown(block: Block, numbers: Iterator[int]) -> str:
    """Write a block as Markdown; `numbers` are those of tables."""
    match block:
        case Heading():
            return f"{'#' * block.level} {escape.markdown(block.text)}"
        case Fold():
            inside = (Heading(block.text), *block.blocks)
            return "\n\n".join(_as_markdown(each, numbers) for each in inside)
        case Text():
            text = escape.markdown(block.text)
            return f"**{text}**" if block.strong else text
        case Figure():
            return f"![{escape.markdown(block.caption)}](figures/{block.name}.svg)"
        case Table():
            caption = f"Table {next(numbers)}. {escape.markdown(block.caption)}:"
            return f"{caption}\n\n{table_markdown(block)}"


def table_markdown(table: Table) -> str:
    """Write a table as Markdown, without its caption."""
    rule = ["---:" if numeric(table.rows, i) else "---" for i in range(len(table.header))]
    rows = ([shown(cell, table.digits) for cell in row] for row in table.rows)
    lines = (table.header, rule, *rows)
    return "\n".join(f"| {' | '.join(map(escape.markdown, line))} |" for line in lines)


WIDE = 60
"""A column with a longer text than this many characters is a paragraph in LaTeX."""


def table_latex(table: Table) -> str:
    """Write a table as a LaTeX `tabular`; its caption is a comment."""
    columns = ""
    for i in range(len(table.header)):
        longest = max((len(shown(row[i], table.digits)) for row in table.rows), default=0)
        columns += "r" if numeric(table.rows, i) else "p{6cm}" if longest > WIDE else "l"
    rows = ([shown(cell, table.digits) for cell in row] for row in table.rows)
    cells = [[latex_of(cell.replace("`", "")) for cell in row] for row in (table.header, *rows)]
    return tabular(columns, cells, [table.caption])


def html(blocks: Iterable[Block], counters: Mapping[type, Iterator[int]]) -> Html:
    """Write blocks as HTML; adjacent figures share one row.

    `counters` has an iterator of numbers for the class `Table` and one for `Figure`.
    """
    rows = []
    for are_figures, group in groupby(blocks, lambda block: isinstance(block, Figure)):
        elements = [_as_html(block, counters) for block in group]
        rows.append(tag("div", *elements, class_="figures") if are_figures else joined(*elements))
    return joined(*rows)


def _as_html(block: Block, counters: Mapping[type, Iterator[int]]) -> Html:
    """Write a block as HTML."""
    match block:
        case Heading():
            return tag(f"h{block.level}", block.text)
        case Text():
            text = _with_code(block.text)
            return tag("p", tag("strong", text) if block.strong else text)
        case Table():
            return _table(block, f"Table {next(counters[Table])}. ")
        case Fold():
            summary = tag("summary", tag("h3", block.text))
            return tag("details", summary, html(block.blocks, counters))
        case Figure():
            number, file = next(counters[Figure]), f"figures/{block.name}.svg"
            image = tag("img", src=file, alt=block.caption) if block.file else block.svg
            caption = tag("figcaption", tag("b", f"Figure {number}. "), f"{block.caption}. ")
            address = tag("a", "SVG", href=file, aria_label=f"Figure {number} as SVG")
            return tag("figure", image, caption, address)


def _table(table: Table, number: str) -> Html:
    """Write a table as HTML; `number` is "Table 1. ", or empty."""
    classes = ["number" if numeric(table.rows, i) else "" for i in range(len(table.header))]
    heads = (
        tag("th", name, scope="col", class_=kind or None)
        for name, kind in zip(table.header, classes, strict=True)
    )
    bar = table.header.index(table.bar) if table.bar else -1
    longest = max((float(row[bar] or 0) for row in table.rows), default=0) if bar >= 0 else 0
    rows = []
    for row in table.rows:
        total = sum(cell for cell in row if isinstance(cell, int)) or 1
        cells = []
        for i, (cell, kind) in enumerate(zip(row, classes, strict=True)):
            if table.heat and isinstance(cell, int):
                kind += f" heat h{cell * (SHADES - 1) // total}"
            kind += " bar" if i == bar else ""
            content = _cell(cell, table, longest if i == bar else 0)
            scope = {} if i else {"scope": "row"}
            cells.append(tag("td" if i else "th", content, class_=kind or None, **scope))
        rows.append(tag("tr", *cells))
    caption = tag("span", tag("b", number), f"{table.caption}.")
    parts = tag("caption", caption), tag("thead", tag("tr", *heads)), tag("tbody", *rows)
    attributes = {"role": "group", "tabindex": 0, "aria_label": f"{number}{table.caption}"}
    size = "table narrow" if len(table.header) < 3 else "table"
    return tag("div", tag("table", *parts), class_=size, **attributes)


def _cell(cell: Cell, table: Table, longest: float) -> Html:
    """Write the content of a cell; a number gets a bar, which is full at `longest` (0: no bar)."""
    text = shown(cell, table.digits)
    if text in table.links:
        return link(text, table.links[text])
    if not longest or not isinstance(cell, int | float):
        return _with_code(text)
    bar = tag("rect", width=f"{100 * cell / longest:.1f}%", height="100%")
    return joined(text, tag("svg", bar, aria_hidden="true"))


def _with_code(text: str) -> Html:
    """Write a text as HTML; parts between backticks are code, as in Markdown."""
    parts = text.split("`")
    if not len(parts) % 2:
        return escaped(text)
    return joined(*(tag("code", part) if i % 2 else part for i, part in enumerate(parts)))
