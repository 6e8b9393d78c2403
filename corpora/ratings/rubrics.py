"""The rubrics, and the items that a rater sees of a dataset's rows."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import BaseModel

from corpora.audit.data import Configuration
from corpora.errors import InputError

Row = Mapping[str, Any]
SIDES = ("s1", "s2")


class Rubric(BaseModel):
    """What raters are told about one kind of items; `rubrics.toml` explains the fields."""

    name: str
    title: str
    text: str
    measures: str
    ratings: dict[str, str]
    numbered: bool = False
    binary: bool = False

    def choices(self, fields: Mapping[str, str]) -> tuple[str, ...]:
        """Return the ratings that an item with these fields may get."""
        numbers = filter(str.isdecimal, fields) if self.numbered else ()
        return *numbers, *self.ratings

    def category(self, rating: str) -> str:
        """Return what of a rating counts for kappa."""
        best = next(iter(self.ratings))
        return rating if not self.binary or rating == best else "other"


@cache
def rubrics() -> dict[str, Rubric]:
    """Return all rubrics by name."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {name: Rubric(name=name, **table) for name, table in tomllib.loads(text).items()}


class Blind(NamedTuple):
    """A row for a rater: its texts by name, and the rating that is right, which is not shown."""

    fields: dict[str, str]
    expected: str


class Form(NamedTuple):
    """How the rows of a configuration become items: the name of the rubric, and a function.

    The function takes a row and the name of its label; it returns an item with an empty text or an
    empty `expected` for a row that cannot be rated. `paired`: two adjacent rows may be two forms of
    one text, of which a rater must see only one.
    """

    rubric: str
    item: Callable[[Row, str], Blind]
    paired: bool = False


def form_of(configuration: Configuration, where: str) -> Form:
    """Return how the rows of a configuration are rated.

    Raises `InputError`, with the place `where`, if no rubric fits its columns.
    """
    schema = configuration.schema
    columns = {*schema.names}
    if {*SIDES} <= columns and all(pa.types.is_string(schema.field(side).type) for side in SIDES):
        return Form("pairs", _pair)
    if configuration.kind == "bso":
        return Form("order", _order, paired=True)
    if configuration.kind == "sp":
        return Form("position", _position)
    if {"sentences", "position", "label"} <= columns:
        return Form("intrusion", _intruded, paired=True)
    if {"neg", "position"} <= columns:
        return Form("intrusion", _negative)
    raise InputError(
        f"no rubric fits its columns: {', '.join(schema.names)}",
        where=where,
        hint="rated are pairs (s1, s2), orders (bso, sp) and intruders (dc, intrusion); --config "
        "names another configuration, --kind says what the rows of foreign files are",
    )


def _pair(row: Row, label: str) -> Blind:
    return Blind({"marker": row.get("marker") or label, "s1": row["s1"], "s2": row["s2"]}, "good")


def _order(row: Row, label: str) -> Blind:
    expected = {0: "swapped", 1: "original"}.get(row["label"], "")
    return Blind({"first": row["sentence1"], "second": row["sentence2"]}, expected)


def _position(row: Row, label: str) -> Blind:
    return Blind(_numbered(row["sentences"]), _place(row["label"]))


def _intruded(row: Row, label: str) -> Blind:
    coherent = label == "coherent" or row["position"] == -1
    return Blind(_numbered(row["sentences"]), "none" if coherent else _place(row["position"]))


def _negative(row: Row, label: str) -> Blind:
    return Blind(_numbered(row["neg"]), _place(row["position"]))


def _numbered(sentences: Sequence[str]) -> dict[str, str]:
    """Return sentences by their numbers, from 1."""
    return {str(number): sentence for number, sentence in enumerate(sentences, 1)}


def _place(position: int | None) -> str:
    """Return the number of the sentence at a position from 0; "" for an unknown position."""
    return "" if position is None or position < 0 else str(position + 1)
