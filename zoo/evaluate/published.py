"""The tables and figures of the papers with their printed numbers, from `published.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from statistics import mode
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from corpora.errors import ConfigError, nearest

PUBLISHED = Path(__file__).with_name("published.toml")

Kind = Literal["table", "bars", "histogram", "curves", "progress", "confusion", "heat"]
"""How a table is drawn: `curves` over its columns or over a setting, `progress` over the steps."""


class Part(BaseModel):
    """One `[[table]]`: a part of a paper's table, whose cells one suite gives.

    The file's first lines say what the keys mean.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    paper: str
    table: str
    suite: str
    """A suite; or `training` (the results.json of a model), `validation`, `dataset`."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str | Decimal, ...], ...]
    title: str = ""
    """Given once a table."""
    about: str = ""
    """What the table shows, where its title does not tell; given once a table."""
    source: str = ""
    """Where the numbers stand, if not in the table itself."""
    heads: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    """The order of the heads of all parts, if it is another one."""
    others: tuple[str, ...] = ()
    data: str = ""
    protocol: str | None = None
    config: str = ""
    """The configuration of the dataset that the results are of."""
    path: str = ""
    scale: float = 1.0
    """Factor from the number at `path` to the printed one."""
    kind: Kind = "table"
    unit: str = ""
    """What the axis of a drawing shows."""
    y_unit: str = "accuracy"
    over: str = ""
    """The setting whose values are the rows."""
    compare: bool = True
    """Whether `discorpora compare` shows it."""

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """The paper's names of the columns."""
        return self.heads or self.columns

    @property
    def numbers(self) -> dict[str, dict[str, Decimal]]:
        """The paper's numbers as printed, by row and by the paper's name of the column."""
        rows: dict[str, dict[str, Decimal]] = {}
        for name, *values in self.rows:
            pairs = zip(self.shown_columns, values, strict=False)
            rows[str(name)] = {head: Decimal(value) for head, value in pairs if value != ""}
        return rows

    @property
    def printed(self) -> dict[str, dict[str, float]]:
        """The paper's numbers (`numbers`) as floats, by row and column."""
        return {
            row: {head: float(number) for head, number in cells.items()}
            for row, cells in self.numbers.items()
        }

    def decimals(self, head: str) -> int:
        """The decimals that most numbers of a column are printed with.

        Without numbers: none for counts, 3 for shares, else 1.
        """
        numbers = [row[head] for row in self.numbers.values() if head in row]
        default = {"histogram": 0, "bars": 3}.get(self.kind, 1)
        return mode(map(decimals_of, numbers)) if numbers else default

    def as_printed(self, row: str, head: str) -> str:
        """The paper's number; "" where there is none."""
        return str(self.numbers.get(row, {}).get(head, ""))


def decimals_of(number: Decimal) -> int:
    """The decimals that a number is printed with."""
    return len(str(number).partition(".")[2])


@dataclass(frozen=True)
class PaperTable:
    """A table or a figure of a paper, with its parts."""

    name: str
    """`dissent:5`, `coherence:figure-2d`."""
    citation: str
    title: str
    parts: tuple[Part, ...]

    @property
    def called(self) -> str:
        """`table 5`, `figure 2d`, or where else the numbers stand."""
        return source_of(self.parts[0])

    @property
    def about(self) -> str:
        """What the table shows, where its title does not tell; else ""."""
        return " ".join(" ".join(part.about for part in self.parts).split())

    @property
    def kind(self) -> Kind:
        return self.parts[0].kind

    @property
    def over(self) -> str:
        return self.parts[0].over

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(str(row[0]) for part in self.parts for row in part.rows))

    @property
    def columns(self) -> list[str]:
        """The paper's names of the columns, in the order of the paper."""
        heads = dict.fromkeys(head for part in self.parts for head in part.shown_columns)
        order = next((part.order for part in self.parts if part.order), ())
        return sorted(heads, key=lambda head: (*order, head).index(head))

    @property
    def others(self) -> set[str]:
        """The rows that stay published-only."""
        return {row for part in self.parts for row in part.others}

    def printed(self, row: str) -> dict[str, float]:
        """The paper's numbers of a row by column."""
        return {head: n for part in self.parts for head, n in part.printed.get(row, {}).items()}


class Paper(BaseModel):
    """One `[papers.NAME]`."""

    model_config = ConfigDict(extra="forbid")

    citation: str
    title: str
    without_results: dict[str, str] = Field(default_factory=dict)
    """Its tables and figures that show no result of a model, by their number."""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    papers: dict[str, Paper]
    table: tuple[Part, ...]


@cache
def _read() -> _File:
    text = PUBLISHED.read_text(encoding="utf-8")
    return _File.model_validate(tomllib.loads(text, parse_float=Decimal))


def papers() -> Mapping[str, Paper]:
    """The papers by their short names."""
    return _read().papers


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """The tables and figures with results, by name: `dissent:5`, `coherence:figure-2d`."""
    parts: dict[str, list[Part]] = {}
    for part in _read().table:
        parts.setdefault(f"{part.paper}:{part.table}", []).append(part)
    return {
        name: PaperTable(name, papers()[group[0].paper].citation, group[0].title, tuple(group))
        for name, group in parts.items()
    }


def paper_table(name: str) -> PaperTable:
    """The paper's table `name`. Raises `ConfigError` with the nearest names for an unknown one."""
    known = paper_tables()
    if name in known:
        return known[name]
    paper, _, number = name.partition(":")
    if paper in papers() and (title := papers()[paper].without_results.get(number)):
        raise ConfigError(
            f"{name} ({title}) has no row for a model",
            hint=f"tables with such rows: {', '.join(t for t in known if t.startswith(paper))}",
        )
    raise ConfigError(
        f"no table {name!r}; {nearest(name, known)}".rstrip("; "),
        hint=f"the tables are: {', '.join(known)}",
    )


def source_of(part: Part) -> str:
    """Where a part's numbers stand: `table 5`, `figure 2d`, `section 2.2`, the README."""
    if part.source:
        return part.source
    kind, dash, number = part.table.rpartition("-")
    return f"{kind} {number}" if dash else f"table {number}"


def parts_of(suite: str) -> list[Part]:
    """The parts that stand beside the results of a suite."""
    return [part for part in _read().table if part.suite == suite and part.compare]
