"""`discorpora compare A B ...`: several models in one table, the published rows labelled so.

Results are read from files and folders. Two data or two protocols are never put in one table.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from corpora.errors import InputError
from corpora.outside import read_json, record_of
from corpora.store.manifest import Results
from zoo.declared import Suite
from zoo.evaluate import SUITES
from zoo.evaluate.results import Result, by_rule, datasets_of, outcomes_of, place_of
from zoo.evaluate.scores import (
    Columns,
    Difference,
    Outcomes,
    differences,
    joined,
    left_out_note,
    mean_of,
)
from zoo.evaluate.table import Cell, Cells, Comparison, Row, Rows, Table, percent, plain
from zoo.training.job import RESULTS

PUBLISHED = Path(__file__).with_name("published.toml")
HASH = re.compile("[0-9a-f]{16}")
TOLERANCE = 1e-3
"""Per cent: outcomes are kept in float32."""


def compare(
    results: Iterable[Result | str | Path], *, published: bool = True, seeds: bool = False
) -> Comparison:
    """Tables of results: in hand, or in JSON files, model folders and folders of evaluations.

    Results of one model that fill different columns share a row. With `seeds` those of one name
    that fill the same columns are trainings with several seeds: one row has their mean and standard
    deviation. Raises `InputError` for a path without a result, and for results that differ in the
    data's revision or in the protocol.
    """
    found = []
    for each in results:
        found += [_in_hand(each)] if isinstance(each, Result) else read_results(Path(each))
    for pair in combinations(found, 2):
        if reason := conflict(*pair):
            raise reason
    suites: dict[str, list[Measured]] = {}
    for one in found:
        suites.setdefault(one.result.suite, []).append(one)
    alike = [on_same_rows(own) for own in suites.values()]
    return Comparison([table_of(join_seeds(own) if seeds else own, published) for own in alike])


def alike(paths: Iterable[Path]) -> list[list[Path]]:
    """The paths of results in groups, each of which `compare` takes into one table."""
    found = [one for path in paths for one in read_results(path)]
    groups = _grouped(found, lambda group, one: not any(conflict(each, one) for each in group))
    return [[one.path for one in group] for group in groups]


def _grouped(
    results: Iterable[Measured], fits: Callable[[Sequence[Measured], Measured], bool]
) -> list[list[Measured]]:
    """The results in groups, each in the first that it `fits`, or else in a new one."""
    groups: list[list[Measured]] = []
    for one in results:
        group = next((group for group in groups if fits(group, one)), None)
        if group is None:
            groups.append(group := [])
        group.append(one)
    return groups


# Reading.


@dataclass(frozen=True)
class Measured:
    """A result that was read at `path`: the model's own cells, and the rows of rules beside it."""

    result: Result
    path: Path
    cells: Cells
    rules: Rows
    outcomes: Columns = field(default_factory=dict, repr=False)
    rule_outcomes: Mapping[str, Columns] = field(default_factory=dict, repr=False)
    """Of the rules beside the model, by row."""
    of_training: bool = False
    """Whether it is a model folder's own results.json and not a suite's."""
    trainings: int = 1

    @property
    def model(self) -> str:
        """The model's name; of a build's stage, whose folder is a hash, the folder around it."""
        name = str(self.result.model.get("name") or self.path.stem)
        shown = f"{self.path.parent.parent.name} {name[:6]}" if HASH.fullmatch(name) else name
        return shown if self.trainings == 1 else f"{shown} ({self.trainings} seeds)"

    @property
    def kind(self) -> str:
        """The type of the model."""
        return str(self.result.model.get("type", ""))

    @property
    def data(self) -> dict[str, str]:
        """Each data set with its revision and the split that was scored."""
        return {
            name: f"{name}, revision {about['revision']}, "
            f"split {about.get('split', self.result.split)}"
            for name, about in datasets_of(self.result.dataset).items()
        }


def read_results(path: Path) -> list[Measured]:
    """The results in a JSON file, a model folder, or a folder of an evaluation.

    Raises `InputError` for a path that holds none.
    """
    files = [path]
    if path.is_dir():
        files = [path / RESULTS] if (path / RESULTS).is_file() else sorted(path.glob("*.json"))
    found = []
    for file in files:
        table = read_json(file)
        if not isinstance(table, dict) or "metrics" not in table:
            continue
        record_of(Results, table, str(file))
        of_training = "suite" not in table
        try:
            one = measured(_of_training(table, file) if of_training else Result.of(table), file)
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            problem = f"is no result of the suite {table.get('suite', '')!r}: {error!r}"
            raise InputError(problem, where=str(file)) from error
        rules = {} if of_training else outcomes_of(file)
        outcomes = rules.pop("", {})
        _check_same_run(one, outcomes)
        found.append(replace(one, outcomes=outcomes, rule_outcomes=rules, of_training=of_training))
    if not found:
        raise InputError(
            "no result here",
            where=str(path),
            hint="give what discorpora evaluate --json wrote, or a folder with results.json",
        )
    return found


def _check_same_run(one: Measured, outcomes: Columns) -> None:
    """Raise `InputError` if the outcomes beside a result do not give its figures."""
    for column, parts in outcomes.items():
        shares = [
            100 * float(np.nanmean(each.right)) for each in parts.values() if each.right is not None
        ]
        shown = one.cells[column].value if column in one.cells else None
        if shares and (shown is None or abs(mean(shares) - shown) > TOLERANCE):
            said = "nothing" if shown is None else f"{shown:.3f}"
            raise InputError(
                f"the outcomes say {column} = {mean(shares):.3f}, {one.path.name} says {said}: "
                "they are of another run",
                where=str(place_of(one.path)),
                hint="evaluate the model again, or remove the file of outcomes",
            )


def measured(result: Result, path: Path = Path()) -> Measured:
    """A result with the model's cells and those of the rules beside it."""
    learnt = "nats_a_word" in result.metrics
    rows = _learnt_words(result) if learnt else _kind(result.suite).rows(result)
    rules = {name: cells for name, cells in rows.items() if name and cells}
    return Measured(result, path, rows[""], rules)


def _in_hand(result: Result) -> Measured:
    """A result that was not written, with its outcomes."""
    rules = by_rule(result.outcomes)
    outcomes = rules.pop("", {})
    # As it reads from a file: with other results it shares the order of keys, and has no tuples.
    read = Result.of(json.loads(json.dumps(result.as_json(), sort_keys=True)))
    return replace(measured(read), outcomes=outcomes, rule_outcomes=rules)


def _of_training(found: Mapping[str, Any], path: Path) -> Result:
    """The results.json of a model folder as the result of the suite that training ends with.

    That is of the test split, or of the validation split where the test's labels are hidden.
    """
    split = next((name for name in ("test", "validation") if name in found["metrics"]), "test")
    metrics = found["metrics"].get(split, found["metrics"])
    suite, data = str(found.get("recipe", "?")).partition("/")[0], found.get("dataset", {})
    if "per_class" in metrics:
        suite = "dissent"
    elif {"documents", "pairs", "baselines"} <= set(metrics):
        # Whatever it was trained on, a scorer's recipe ends with the pairs.
        suite, data = "permuted", {**data, "config": "pairwise"}
    folder = path.parent if path.parent.name not in ("", "..") else path.parent.resolve()
    model = {"name": folder.name, "type": found.get("model_type", "")}
    # A training of an earlier version counted ties as wrong, and said so nowhere.
    protocol = {"ties": metrics.get("ties", "wrong")} if suite == "permuted" else {}
    left_out = metrics.get("identical", 0)
    notes = [left_out_note(split, left_out, metrics["pairs"] + left_out)] if left_out else []
    return Result(model, data, None, metrics, protocol, notes, suite=suite, split=split)


def _kind(suite: str) -> type[Suite]:
    """The suite's class; of a suite that is not installed, and of a training, the base class."""
    return SUITES.find(suite) if suite in SUITES else Suite


def _learnt_words(result: Result) -> Rows:
    """Nats a word as they are, with those of the words' frequency beside; the classes' shares."""
    words = result.metrics["nats_a_word"]
    own = {f"{name} nats": plain(of, of.get("sentences")) for name, of in words.items()}
    alone = {f"{name} nats": plain(of["by_frequency"]) for name, of in words.items()}
    majority: Cells = {}
    for name, of in result.metrics["classes"].items():
        for key, shown in (("accuracy", "accuracy"), ("f1", "F1")):
            own[f"{name} {shown}"] = percent(of[key], of.get("rows"))
            majority[f"{name} {shown}"] = percent(of["majority"][key])
    # A model's vocabulary is its own, and with it what the frequency of words gives.
    by_frequency = f"rule: frequency of words ({result.model['name']})"
    return {"": own, by_frequency: alone, "rule: majority": majority}


# What may share a table, and what a row.


def conflict(one: Measured, two: Measured) -> InputError | None:
    """Why two results of one suite are not comparable, or None.

    They are not if a data set has two revisions (or splits), if figures of one column are from
    different data (of a mean: not over the same parts), from another number of examples, or by
    another protocol.
    """
    if one.result.suite != two.result.suite:
        return None
    pair, shared = (one, two), sorted(one.cells.keys() & two.cells.keys())
    on, by = "evaluated on", "measured with"
    checks = [(on, [each.data[name] for each in pair]) for name in one.data if name in two.data]
    if shared:
        # Without a data set in common all must be equal.
        checks = checks or [(on, ["; ".join(each.data.values()) for each in pair])]
        for column in shared:
            checks.append((on, [f"{column} ({', '.join(m.cells[column].of)})" for m in pair]))
        # A key that only one has is no difference: a model folder says less than a suite.
        for key in sorted(one.result.protocol.keys() & two.result.protocol.keys()):
            checks.append((by, [f"{key} = {each.result.protocol[key]}" for each in pair]))
        for column in shared:
            rows = [m.cells[column].n for m in pair]
            if None not in rows and not all(column in m.outcomes for m in pair):
                checks.append((on, [f"{n} examples of {column}" for n in rows]))
        counts = [each.result.examples for each in pair]
        if one.cells.keys() == two.cells.keys() and None not in counts:
            checks.append((on, [f"{count} examples" for count in counts]))
    for verb, (own, other) in checks:
        if own != other:
            return InputError(
                f"{one.path} was {verb} {own}; {two.path} was {verb} {other}",
                where=f"suite {one.result.suite}",
                hint="one table holds one revision of the data, one protocol and the same rows: "
                "evaluate both alike",
            )
    return None


def on_same_rows(results: Sequence[Measured]) -> list[Measured]:
    """The results of one suite with their figures over the rows that all of them judged.

    Scorers leave out the pairs that their cut makes equal: other ones with another cut. A rule
    whose outcomes are not known has no figure in such a column.
    """
    for column in dict.fromkeys(name for one in results for name in one.outcomes):
        known = [own for one in results if (own := _shares(one.outcomes, column))]
        if any(list(own.units) != list(known[0].units) for own in known):
            continue
        judged = np.array([own.judged for own in known])
        common = np.logical_and.reduce(judged)
        if (judged == common).all():
            continue
        if not common.any():
            raise InputError(
                "no row was judged for all models: each has left out others",
                where=column,
                hint="compare them two by two, or evaluate with --long windows",
            )
        results = [
            _on_rows(one, column, common) if _shares(one.outcomes, column) else one
            for one in results
        ]
    return [*results]


def _shares(columns: Columns, column: str) -> Outcomes | None:
    """The outcomes of a column of one part that are shares."""
    own = columns.get(column, {}).get("")
    return None if own is None or own.right is None else own


def _on_rows(one: Measured, column: str, kept: np.ndarray) -> Measured:
    """A result whose figures of `column`, and of the rules beside it, are over the rows `kept`."""

    def cell(own: Outcomes) -> Cell:
        own = own.only(kept)
        assert own.right is not None
        figure = mean_of(own.right, own.units, one.result.seed, column)
        return percent({**figure, "ties": int((own.right == 0.5).sum())}, len(own.units))

    def over_them(cells: Cells, columns: Columns) -> Cells:
        own = _shares(columns, column)
        rest = {name: each for name, each in cells.items() if name != column}
        cells = {column: cell(own), **rest} if own else rest
        means = {name: each.of for name, each in cells.items() if column in each.of}
        for name, of in means.items():
            cells[name] = replace(cells[name], value=mean(cells[part].value for part in of))
        return cells

    own = one.outcomes[column][""]
    assert own.right is not None
    note = (
        f"{column}: the figures are over the {int(kept.sum()):,} of {len(kept):,} rows that all "
        f"models here judged; this one judged {int(own.judged.sum()):,}"
    )
    right = np.where(kept, own.right, np.nan)
    return replace(
        one,
        result=replace(one.result, notes=[*one.result.notes, note]),
        cells=over_them(one.cells, one.outcomes),
        rules={
            name: over_them(cells, one.rule_outcomes.get(name, {}))
            for name, cells in one.rules.items()
        },
        outcomes={**one.outcomes, column: {"": replace(own, right=right)}},
    )


def join_seeds(results: Sequence[Measured]) -> list[Measured]:
    """The results of one model and the same columns as one: mean and deviation over trainings.

    A path that comes twice counts once; a model folder's own result is not joined with a suite's,
    which may be of the same training.
    """
    groups: dict[tuple[Any, ...], list[Measured]] = {}
    for one in {each.path.resolve(): each for each in results}.values():
        key = (one.result.suite, one.model, one.kind, frozenset(one.cells), one.of_training)
        groups.setdefault(key, []).append(one)
    rows = []
    for group in groups.values():
        first = group[0]
        if len(group) > 1:
            cells = {}
            for name, cell in first.cells.items():
                values = [one.cells[name].value for one in group]
                cells[name] = replace(cell, value=mean(values), ci=None, sd=stdev(values))
            notes = dict.fromkeys(note for one in group for note in one.result.notes)
            first = replace(
                first,
                result=replace(first.result, notes=list(notes)),
                cells=cells,
                outcomes=joined([one.outcomes for one in group]),
                trainings=len(group),
            )
        rows.append(first)
    return rows


# The table of a suite.


@dataclass(frozen=True)
class Published:
    """A table of a paper, as `published.toml` has it: "" where the paper has no figure.

    A table of one of a suite's protocols stands only beside results of it.
    """

    suite: str
    paper: str
    source: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    data: str = ""
    protocol: str | None = None


def published_tables(suite: str) -> list[Published]:
    """The tables of `published.toml` for a suite."""
    tables = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))["table"]
    return [Published(**table) for table in tables if table["suite"] == suite]


def table_of(results: Sequence[Measured], published: bool = True) -> Table:
    """The table of results of one suite: the models, rules, and published rows."""
    suite = results[0].result.suite
    models, papers = _model_rows(results), published_tables(suite)
    printed = [name for table in papers for name in table.columns]
    names = dict.fromkeys(name for row in models for name in row.cells)
    # Those that a paper has in its order, then the others.
    columns = sorted(names, key=lambda name: (*printed, name).index(name))
    # A rule's figure may depend on the result that has it: on its seed, or on the model's tokens.
    # Then it has a row for each model.
    rules: dict[str, Cells] = {}
    for one in results:
        for name, cells in one.rules.items():
            for shown in (name, f"{name} ({one.model})", f"{name} ({one.path})"):
                known = rules.get(shown, {})
                if all(c not in known or known[c].value == cells[c].value for c in cells):
                    rules[shown] = {**cells, **known}
                    break
    rows = [*models, *(Row(name, "rule", cells) for name, cells in rules.items())]
    notes = _notes(suite, results)
    protocols = {None, *(str(one.result.protocol.get("protocol", "")) for one in results)}
    for paper in papers if published else ():
        own = _published_rows(paper, columns) if paper.protocol in protocols else []
        rows += own
        if own and paper.data:
            notes.append(f"Published rows of {paper.paper}, {paper.source}: {paper.data}.")
    return Table(suite, columns, rows, notes, *_differences(suite, rows))


def _model_rows(results: Sequence[Measured]) -> list[Row]:
    """A row for each model.

    Results of equal name get rows of their own where they share a column or are of models that
    differ in type or training data.
    """

    def fits(same: Sequence[Measured], one: Measured) -> bool:
        first = same[0]
        about = (first.kind, one.kind), (first.result.trained_on, one.result.trained_on)
        differ = first.model != one.model or any(a and b and a != b for a, b in about)
        return not differ and not any(one.cells.keys() & other.cells.keys() for other in same)

    models = _grouped(results, fits)
    names = [same[0].model for same in models]
    rows = []
    for same in models:
        name, path = same[0].model, str(same[0].path)
        shown = name if names.count(name) == 1 else f"{name} ({path})"
        cells = {column: cell for one in same for column, cell in one.cells.items()}
        outcomes = {column: parts for one in same for column, parts in one.outcomes.items()}
        rows.append(Row(shown, "model", cells, path, outcomes))
    return rows


def _published_rows(table: Published, columns: Sequence[str]) -> list[Row]:
    """The rows of a paper's table that have a figure in `columns`."""
    rows, in_percent = [], _kind(table.suite).percent
    for name, *values in table.rows:
        cells = {}
        for column, value in zip(table.columns, values, strict=True):
            if value != "" and column in columns:  # with the decimals that the paper prints
                digits = 1 if in_percent and round(value, 1) == value else 2
                cells[column] = Cell(float(value), None, digits)
        if cells:
            rows.append(Row(name, "published", cells, f"{table.paper}, {table.source}"))
    return rows


def _notes(suite: str, results: Sequence[Measured]) -> list[str]:
    """The data, what each result says of itself, and tests between single trainings."""
    data = dict.fromkeys(text for one in results for text in one.data.values())
    notes = [f"Data: {'; '.join(data)}."] if data else []
    notes += [f"{one.model}: {note}" for one in results for note in one.result.notes]
    for one, two in combinations(results, 2):
        if not one.cells.keys() & two.cells.keys() or one.trainings + two.trainings > 2:
            continue
        for name, test in _kind(suite).tests(one.result, two.result).items():
            notes.append(
                f"{name}: {one.model} does better on {test.only_this}, {two.model} on "
                f"{test.only_other} pairs; McNemar exact p = {test.p:.2g}."
            )
    return notes


def _differences(suite: str, rows: Sequence[Row]) -> tuple[str, dict[str, dict[str, Difference]]]:
    """The first row that shares a column with another one, and by how much others differ from it.

    The name is "", and there are no differences, where no two have outcomes.
    """
    for first in rows:
        others = [row for row in rows if row.outcomes and row is not first]
        if any(first.outcomes.keys() & row.outcomes for row in others):
            by = {row.name: differences(suite, first.outcomes, row.outcomes) for row in others}
            by = {name: columns for name, columns in by.items() if columns}
            return first.name if by else "", by
    return "", {}
