"""What a report is made of: headings, texts, tables and figures, and how Markdown writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from corpora import escape
from workflows.report.markup import Html

Cell: TypeAlias = str | int | float | None


NOTHING = Html("")


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 3


@dataclass(frozen=True)
class Fold:
    """Blocks under a heading that the page opens on a click; none of them is a figure."""

    text: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Text:
    text: str
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under a header. `caption` says what they are; the page draws a bar in each cell of the
    column `bar`, and shades the numbers of a `heat` table. `links` are the addresses of cells,
    `digits` the decimals of numbers that are not whole.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    bar: str = ""
    heat: bool = False
    digits: int = 3
    links: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A drawing: `name` is that of its file, `caption` what it shows, `svg` its markup.

    `file` is a drawing that is there already, in place of `svg`.
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


def shown(value: Cell, digits: int) -> str:
    """A cell as a reader sees it."""
    if isinstance(value, str) or value is None:
        return value or ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


NUMBER = re.compile(r"[-+]?(\d[\d,]*)?\.?\d+\*?( .*)?")


def numeric(rows: Sequence[Sequence[Cell]], column: int) -> bool:
    """Whether a column holds numbers, maybe with intervals: they are aligned to the right."""
    cells = [row[column] for row in rows if row[column] not in (None, "")]
    return bool(cells) and all(not isinstance(c, str) or NUMBER.fullmatch(c) for c in cells)


def markdown(title: str, sections: Sequence[Section]) -> str:
    """The report as Markdown; its figures are in `figures/`."""
    parts = [f"# {escape.markdown(title)}"]
    for section in sections:
        parts += [f"## {escape.markdown(section.title)}", *map(_block, section.blocks)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {escape.markdown(block.text)}"
        case Fold():
            return "\n\n".join(map(_block, (Heading(block.text), *block.blocks)))
        case Text():
            text = escape.markdown(block.text)
            return f"**{text}**" if block.strong else text
        case Figure():
            return f"![{escape.markdown(block.caption)}](figures/{block.name}.svg)"
        case Table():
            rule = ["---:" if numeric(block.rows, i) else "---" for i in range(len(block.header))]
            rows = ([shown(cell, block.digits) for cell in row] for row in block.rows)
            lines = (
                f"| {' | '.join(map(escape.markdown, line))} |"
                for line in (block.header, rule, *rows)
            )
            return "\n".join([f"{escape.markdown(block.caption)}:", "", *lines])
