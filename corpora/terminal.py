"""Tables and texts on a terminal; rich is loaded when the first is printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

NO_TERMINAL_WIDTH = 132
_CONTROL = dict.fromkeys({*range(32), *range(127, 160)} - {ord("\n")}, " ")


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    title: str = "",
    caption: str = "",
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
) -> None:
    """Print a table; columns in `right` are aligned right, those in `whole` are not wrapped."""
    from rich.table import Table

    table = Table(title=plain(title), caption=plain(caption))
    table.title_justify = table.caption_justify = "left"
    for column in columns:
        side: Literal["right", "left"] = "right" if column in right else "left"
        table.add_column(column, justify=side, overflow="fold", no_wrap=column in whole)
    for row in rows:
        table.add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in row))
    wide_console().print(table)


def plain(text: str, style: str = "") -> Text:
    """Return a text without markup for rich and without control characters for the terminal."""
    from rich.text import Text

    return Text(text.translate(_CONTROL), style=style)


def wide_console() -> Console:
    """Return a console as wide as the terminal, or of 132 columns for output elsewhere."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=NO_TERMINAL_WIDTH)
