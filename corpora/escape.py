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
    """Return the text of a value in one line, without control characters."""
    return _CONTROL.sub(" ", str(value)).strip()


def html(value: object) -> str:
    """Return a value as HTML text, safe inside an element and between quotes."""
    return standard.escape(_CONTROL.sub(" ", str(value)))


def markdown(value: object) -> str:
    """Return a value as Markdown text for a line or a cell; it starts no HTML, link or new cell."""
    entities = {"<": "&lt;", "&": "&amp;"}
    return _MARKS.sub(lambda mark: entities.get(mark[0], f"\\{mark[0]}"), line(value))


def markdown_cell(value: object) -> str:
    """Return a value as the text of a cell in a Markdown table: `12,345` for an integer."""
    return f"{value:,}" if isinstance(value, int) else markdown(value)


def markdown_table(head: str, rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with the columns of `head` ("name, rows"), or "" without rows."""
    columns = head.split(", ")
    body = [[*map(markdown_cell, row)] for row in rows]
    rule = ["---"] * len(columns)
    lines = (f"| {' | '.join(cells)} |" for cells in (columns, rule, *body))
    return "\n".join(lines) if body else ""


def fenced(text: str, language: str) -> str:
    """Return a Markdown code block with `text`; its fence is longer than any in the text."""
    longest = max(map(len, re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def yaml(table: Mapping[str, Any]) -> str:
    """Return a table as YAML in the style of the Hub's library, with control characters escaped."""
    import yaml as library

    class Dumper(library.SafeDumper):
        """Writes a text with control characters in quotes, with escapes."""

    def text(dumper: Any, value: str) -> Any:
        style = '"' if _CONTROL.search(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    dumped: str = library.dump(dict(table), Dumper=Dumper, sort_keys=False, allow_unicode=True)
    return dumped.strip()
