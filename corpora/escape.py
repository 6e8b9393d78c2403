"""Text from outside in Markdown, YAML and HTML: it stays text, whatever it holds."""

from __future__ import annotations

import html as standard
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]+")
"""Ends of lines, other control characters, and those that change the direction of writing."""
_MARKS = re.compile(
    r"\\(?=[|\\])"  # a backslash before what is escaped below
    r"|\|"  # the end of a cell
    r"|<(?=[A-Za-z!/?])"  # a tag or a comment
    r"|&(?=#?\w+;)"  # an entity
    r"|(?<=\])[(\[]"  # the target of a link or an image
)


def line(value: object) -> str:
    """The text of a value in one line, without control characters."""
    return _CONTROL.sub(" ", str(value)).strip()


def html(value: object) -> str:
    """A value as text of HTML, in an element or between quotes."""
    return standard.escape(_CONTROL.sub(" ", str(value)))


def markdown(value: object) -> str:
    """A value as text of Markdown, in a line or a cell: no HTML, no link, no other cell."""
    entities = {"<": "&lt;", "&": "&amp;"}
    return _MARKS.sub(lambda mark: entities.get(mark[0], f"\\{mark[0]}"), line(value))


def cell(value: object) -> str:
    """A value in a table of Markdown."""
    return f"{value:,}" if isinstance(value, int) else markdown(value)


def table(head: str, rows: Iterable[Sequence[object]]) -> str:
    """A table of Markdown, its columns named in `head`; "" without rows."""
    columns = head.split(", ")
    cells = [[*map(cell, row)] for row in rows]
    rule = ["---"] * len(columns)
    lines = (f"| {' | '.join(line)} |" for line in (columns, rule, *cells))
    return "\n".join(lines) if cells else ""


def fenced(text: str, language: str) -> str:
    """A block of code of Markdown that ends where the text ends."""
    longest = max(map(len, re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def yaml(table: Mapping[str, Any]) -> str:
    """A table as YAML, as the Hub's library writes it; each text keeps its characters."""
    import yaml as library

    class Dumper(library.SafeDumper):
        """Writes a text with control characters as one text in quotes, with escapes."""

    def text(dumper: Any, value: str) -> Any:
        style = '"' if _CONTROL.search(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    dumped: str = library.dump(dict(table), Dumper=Dumper, sort_keys=False, allow_unicode=True)
    return dumped.strip()
