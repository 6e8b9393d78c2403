"""`discorpora compare A B ...`: several models in one table, the published rows labelled so."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from corpora.errors import InputError
from zoo.evaluate.compare_columns import Cell, Cells
from zoo.evaluate.compare_read import Measured, join_seeds, read_results, refuse_mixed
from zoo.evaluate.compare_table import Comparison, Row, Table
from zoo.evaluate.differences import Parts
from zoo.evaluate.pairwise_tests import test_results

PUBLISHED = Path(__file__).with_name("published.toml")
COEFFICIENTS = frozenset({"agreement"})
"""Suites whose published figures are no percentages."""


def compare(
    paths: Iterable[str | Path], *, published: bool = True, seeds: bool = False
) -> Comparison:
    """Tables of the results at `paths`: JSON files, model folders, folders of evaluations.

    Results of one model that fill different columns share a row. With `seeds` those of one name
    that fill the same columns are trainings with several seeds: one row has their mean and standard
    deviation. Raises `InputError` for a path
    without a result, and for results that differ in the data's revision or in the protocol.
    """
    found = [result for path in paths for result in read_results(Path(path))]
    if not found:
        raise InputError("nothing to compare", hint="name result files or model folders")
    refuse_mixed(found)
    if seeds:
        found = join_seeds(found)
    suites = list(dict.fromkeys(result.suite for result in found))
    return Comparison(
        [_table(suite, [r for r in found if r.suite == suite], published) for suite in suites]
    )


def alike(paths: Iterable[Path]) -> list[list[Path]]:
    """The paths of results in groups, each of which `compare` takes into one table."""
    groups: list[list[Measured]] = []
    for path in paths:
        (one,) = read_results(path)
        home = next((group for group in groups if _fits(group, one)), None)
        if home is None:
            groups.append([one])
        else:
            home.append(one)
    return [[one.path for one in group] for group in groups]


def _fits(group: Sequence[Measured], one: Measured) -> bool:
    try:
        refuse_mixed([*group, one])
    except InputError:
        return False
    return True


def published_tables(suite: str) -> list[dict[str, Any]]:
    """The tables of `published.toml` for a suite: paper, source, columns, rows."""
    with PUBLISHED.open("rb") as file:
        tables = tomllib.load(file)["table"]
    return [table for table in tables if table["suite"] == suite]


def _table(suite: str, found: Sequence[Measured], published: bool) -> Table:
    models = _model_rows(found)
    rules = _rule_rows(found)
    columns = _in_order(suite, dict.fromkeys(name for row in models for name in row.cells))
    rows = [*models, *rules]
    notes = _notes(suite, found)
    if published:
        protocols = {str(r.result.get("protocol", {}).get("protocol", "")) for r in found}
        printed, said = _published_rows(suite, columns, protocols)
        named = {row.name for row in printed}
        printed += [row for row in _carried_rows(found, columns) if row.name not in named]
        rows, notes = [*rows, *printed], [*notes, *said]
    return Table(suite, columns, rows, notes)


def _in_order(suite: str, columns: Iterable[str]) -> list[str]:
    """The columns that a paper has in its order, then the others."""
    printed = [name for table in published_tables(suite) for name in table["columns"]]
    return sorted(columns, key=lambda name: (*printed, name).index(name))


def _model_rows(found: Sequence[Measured]) -> list[Row]:
    """A row for each model.

    Results of equal name get rows of their own where they share a column or are of models that
    differ in type or training data.
    """
    rows: list[tuple[Measured, Cells, dict[str, Parts]]] = []
    for result in found:
        own = result.rows[""]
        home = next(
            (r for r in rows if r[0].may_be(result) and not r[1].keys() & own.keys()),
            None,
        )
        if home is None:
            rows.append((result, dict(own), dict(result.outcomes)))
        else:
            home[1].update(own)
            home[2].update(result.outcomes)
    names = [first.model for first, *_ in rows]
    return [
        Row(
            first.model if names.count(first.model) == 1 else f"{first.model} ({first.path})",
            "model",
            cells,
            str(first.path),
            known,
        )
        for first, cells, known in rows
    ]


def _rule_rows(found: Sequence[Measured]) -> list[Row]:
    """The rules beside the models, once each.

    The data are the same, but a rule may still hang on the result that has it: on its seed, or on
    the model's tokens. Then it has a row for each model.
    """
    rules: dict[str, Cells] = {}
    for result in found:
        for name, cells in result.rows.items():
            if name:
                known = rules.get(name, {})
                other = any(c in known and known[c].value != cells[c].value for c in cells)
                kept = f"{name} ({result.model})" if other else name
                rules[kept] = {**cells, **rules.get(kept, {})}
    return [Row(name, "rule", cells) for name, cells in rules.items()]


def _published_rows(
    suite: str, columns: Sequence[str], protocols: Collection[str]
) -> tuple[list[Row], list[str]]:
    """The published rows that have a figure in `columns`, and what their tables say of the data.

    A table of one of a suite's protocols stands only beside results of it.
    """
    rows, notes = [], []
    for table in published_tables(suite):
        if table.get("protocol") not in (None, *protocols):
            continue
        source = f"{table['paper']}, {table['source']}"
        before = len(rows)
        for name, *values in table["rows"]:
            pairs = zip(table["columns"], values, strict=True)
            cells = {c: _printed(suite, v) for c, v in pairs if v != "" and c in columns}
            if cells:
                rows.append(Row(name, "published", cells, source))
        if len(rows) > before and "data" in table:
            notes.append(f"Published rows of {source}: {table['data']}.")
    return rows, notes


def _carried_rows(found: Sequence[Measured], columns: Sequence[str]) -> list[Row]:
    """The published rows that a result brings along (suite discoeval), once each."""
    rows: dict[str, Row] = {}
    for result in found:
        for row in result.result["metrics"].get("published", []):
            cells = {c: Cell(float(v)) for c, v in row["figures"].items() if c in columns}
            if cells:
                rows.setdefault(row["model"], Row(row["model"], "published", cells, row["source"]))
    return list(rows.values())


def _printed(suite: str, value: float) -> Cell:
    """A figure with the decimals that the paper prints."""
    if suite in COEFFICIENTS:
        return Cell(float(value), None, 2)
    return Cell(float(value), None, 1 if round(value, 1) == value else 2)


def _notes(suite: str, found: Sequence[Measured]) -> list[str]:
    """The data, what each result says of itself, and McNemar between the models of `pairwise`."""
    data = dict.fromkeys(text for result in found for text in result.data.values())
    notes = [f"Data: {'; '.join(data)}."] if data else []
    notes += [f"{r.model}: {note}" for r in found for note in r.result.get("notes", [])]
    if suite != "pairwise":
        return notes
    for one, two in combinations(found, 2):
        if not one.rows[""].keys() & two.rows[""].keys() or one.trainings + two.trainings > 2:
            continue
        for name, test in test_results(one.result, two.result).items():
            notes.append(
                f"{name}: {one.model} alone is right on {test['only_this']}, {two.model} alone on "
                f"{test['only_other']} pairs; McNemar exact p = {test['p']:.2g}."
            )
    return notes
