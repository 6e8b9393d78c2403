"""`discorpora compare A B ...`: the results of several models in one table, and rows of papers.

Results are read from files and folders. A table has one revision of the data and one protocol.
"""

from __future__ import annotations

import json
import re
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
from zoo.evaluate.published import Part, decimals_of, papers, parts_of, source_of
from zoo.evaluate.results import Result, by_rule, datasets_of, outcomes_of, place_of
from zoo.evaluate.scores import (
    Columns,
    Difference,
    Outcomes,
    differences,
    left_out_note,
    mean_figure,
    mean_outcomes,
)
from zoo.evaluate.table import (
    Cell,
    Cells,
    Comparison,
    Rows,
    ScoreRow,
    ScoreTable,
    percent,
    plain,
)
from zoo.training.job import RESULTS

HASH = re.compile("[0-9a-f]{16}")
"""The name of a build stage's folder, such as 0f3a9c27d1b84e65."""
TOLERANCE = 1e-3
"""Per cent: outcomes are kept in float32."""


def compare(
    results: Iterable[Result | str | Path], *, published: bool = True, seeds: bool = False
) -> Comparison:
    """Return a table for each suite of `results`: objects, JSON files, or folders of results.

    Results of one model that fill different columns share a row. With `seeds`, results of equal
    name that fill the same columns are trainings with several seeds: one row has their mean and
    standard deviation. A path that comes twice counts once, in its first place: the first model is
    the one that differences are from. `published` adds the rows of papers. Raises `InputError` for
    a path without a result, and for results that differ in the data's revision or in the protocol.
    """
    by_place: dict[int | Path, Entry] = {}
    for number, each in enumerate(results):
        if isinstance(each, Result):
            by_place[number] = _entry_in_hand(each)
        else:
            by_place |= {entry.path.resolve(): entry for entry in read_results(Path(each))}
    entries = [*by_place.values()]
    for pair in combinations(entries, 2):
        if reason := conflict(*pair):
            raise reason
    by_suite: dict[str, list[Entry]] = {}
    for entry in entries:
        by_suite.setdefault(entry.result.suite, []).append(entry)
    tables = []
    for same_suite in by_suite.values():
        rows = on_same_rows(same_suite)
        tables.append(table_of(join_seeds(rows) if seeds else rows, published))
    return Comparison(tables)


def alike(paths: Iterable[Path]) -> list[list[Path]]:
    """Group the paths of results so that `compare` can show each group in one table."""
    entries = [entry for path in paths for entry in read_results(path)]
    groups = _group(entries, lambda group, entry: not any(conflict(each, entry) for each in group))
    return [[entry.path for entry in group] for group in groups]


def _group(
    entries: Iterable[Entry], fits: Callable[[Sequence[Entry], Entry], bool]
) -> list[list[Entry]]:
    """Group the entries: each goes to the first group that it `fits`, or starts a new one."""
    groups: list[list[Entry]] = []
    for entry in entries:
        group = next((group for group in groups if fits(group, entry)), None)
        if group is None:
            groups.append(group := [])
        group.append(entry)
    return groups


# Reading.


@dataclass(frozen=True)
class Entry:
    """A result to compare, from the file `path`: the model's cells and the baseline rules' rows."""

    result: Result
    path: Path
    cells: Cells
    rules: Rows
    outcomes: Columns = field(default_factory=dict, repr=False)
    rule_outcomes: Mapping[str, Columns] = field(default_factory=dict, repr=False)
    """The outcomes of each baseline rule on the same examples."""
    of_training: bool = False
    """True for a model folder's results.json, False for the result of a suite."""
    trainings: int = 1
    """The number of trainings, with several seeds, whose mean it is."""

    @property
    def model(self) -> str:
        """The model's name as the table shows it.

        A model in a build's folder MODEL/HASH is called MODEL and the first six digits of HASH.
        """
        name = str(self.result.model.get("name") or self.path.stem)
        shown = f"{self.path.parent.parent.name} {name[:6]}" if HASH.fullmatch(name) else name
        return shown if self.trainings == 1 else f"{shown} ({self.trainings} seeds)"

    @property
    def kind(self) -> str:
        """The type of the model."""
        return str(self.result.model.get("type", ""))

    @property
    def data(self) -> dict[str, str]:
        """For each dataset, by its name, a text with name, revision and the judged split."""
        return {
            name: f"{name}, revision {about['revision']}, "
            f"split {about.get('split', self.result.split)}"
            for name, about in datasets_of(self.result.dataset).items()
        }


def read_results(path: Path) -> list[Entry]:
    """Read the results in a JSON file, a model folder, or a folder of evaluations.

    Raises `InputError` for a path that holds none.
    """
    files = [path]
    if path.is_dir():
        files = [path / RESULTS] if (path / RESULTS).is_file() else sorted(path.glob("*.json"))
    entries = []
    for file in files:
        content = read_json(file)
        if not isinstance(content, dict) or "metrics" not in content:
            continue
        record_of(Results, content, str(file))
        # The figures, then the outcomes of the model and of the rules
        of_training = "suite" not in content
        try:
            result = _training_result(content, file) if of_training else Result.of(content)
            entry = entry_of(result, file)
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            problem = f"is no result of the suite {content.get('suite', '')!r}: {error!r}"
            raise InputError(problem, where=str(file)) from error
        rules = {} if of_training else outcomes_of(file)
        outcomes = rules.pop("", {})
        _check_same_run(entry, outcomes)
        entries.append(
            replace(entry, outcomes=outcomes, rule_outcomes=rules, of_training=of_training)
        )
    if not entries:
        raise InputError(
            "no result here",
            where=str(path),
            hint="give what discorpora evaluate --json wrote, or a folder with results.json",
        )
    return entries


def _check_same_run(entry: Entry, outcomes: Columns) -> None:
    """Raise `InputError` if the figures of a result are not the means of its file of outcomes."""
    for column, parts in outcomes.items():
        shares = [
            100 * float(np.nanmean(part.right)) for part in parts.values() if part.right is not None
        ]
        figure = entry.cells[column].value if column in entry.cells else None
        if shares and (figure is None or abs(mean(shares) - figure) > TOLERANCE):
            shown = "nothing" if figure is None else f"{figure:.3f}"
            raise InputError(
                f"the outcomes say {column} = {mean(shares):.3f}, {entry.path.name} says {shown}: "
                "they are of another run",
                where=str(place_of(entry.path)),
                hint="evaluate the model again, or remove the file of outcomes",
            )


def entry_of(result: Result, path: Path = Path()) -> Entry:
    """Make the entry of a result: the table cells of its model (row "") and of each rule."""
    predicts_words = "nats_a_word" in result.metrics
    rows = _rows_of_criteria(result) if predicts_words else _suite_class(result.suite).rows(result)
    rules = {name: cells for name, cells in rows.items() if name and cells}
    return Entry(result, path, rows[""], rules)


def _entry_in_hand(result: Result) -> Entry:
    """Make the entry of a result object, with its outcomes; no file is read."""
    rules = by_rule(result.outcomes)
    outcomes = rules.pop("", {})
    # Converted to JSON and back, as a result read from a file: keys are sorted, tuples are lists.
    as_read = Result.of(json.loads(json.dumps(result.as_json(), sort_keys=True)))
    return replace(entry_of(as_read), outcomes=outcomes, rule_outcomes=rules)


def _training_result(content: Mapping[str, Any], path: Path) -> Result:
    """Convert a model folder's results.json to a result of the suite that its training ends with.

    `content` is the file's content, `path` its path. The figures are those of the test split, or of
    the validation split if the test split has no labels.
    """
    metrics = content["metrics"]
    split = next((name for name in ("test", "validation") if name in metrics), "test")
    metrics = metrics.get(split, metrics)
    suite, data = str(content.get("recipe", "?")).partition("/")[0], content.get("dataset", {})
    if "per_class" in metrics:
        suite = "dissent"
    elif {"documents", "pairs", "baselines"} <= set(metrics):
        # Whatever it was trained on, a scorer's recipe ends with the pairs.
        suite, data = "permuted", {**data, "config": "pairwise"}
    folder = path.parent if path.parent.name not in ("", "..") else path.parent.resolve()
    model = {"name": folder.name, "type": content.get("model_type", "")}
    # A training of an earlier version counted ties as wrong, and its results do not say so.
    protocol = {"ties": metrics.get("ties", "wrong")} if suite == "permuted" else {}
    left_out = metrics.get("identical", 0)
    notes = [left_out_note(split, left_out, metrics["pairs"] + left_out)] if left_out else []
    return Result(model, data, None, metrics, protocol, notes, suite=suite, split=split)


def _suite_class(suite: str) -> type[Suite]:
    """The suite's class; the base class for a training, and for a suite that is not installed."""
    return SUITES.find(suite) if suite in SUITES else Suite


def _rows_of_criteria(result: Result) -> Rows:
    """The table rows of a model of `zoo.criteria`, which predicts words and classes.

    The model's row has nats a word, and the accuracy and F1 of each classification. One rule
    predicts words by their frequency, the other the majority class.
    """
    model: Cells = {}
    by_frequency: Cells = {}
    majority: Cells = {}
    for name, figures in result.metrics["nats_a_word"].items():
        model[f"{name} nats"] = plain(figures, figures.get("sentences"))
        by_frequency[f"{name} nats"] = plain(figures["by_frequency"])
    for name, figures in result.metrics["classes"].items():
        for key, shown in (("accuracy", "accuracy"), ("f1", "F1")):
            model[f"{name} {shown}"] = percent(figures[key], figures.get("rows"))
            majority[f"{name} {shown}"] = percent(figures["majority"][key])
    # Each model has a vocabulary of its own, and with it other frequencies of words.
    frequency_rule = f"rule: frequency of words ({result.model['name']})"
    return {"": model, frequency_rule: by_frequency, "rule: majority": majority}


# What may share a table, and what a row.


def conflict(first: Entry, second: Entry) -> InputError | None:
    """The error that says why two results of one suite are not comparable, or None if they are.

    Two results are not comparable if a dataset has two revisions or splits, or if a column that
    both have is of other data, of the mean of other parts, of another number of examples, or of
    another protocol.
    """
    if first.result.suite != second.result.suite:
        return None
    pair, shared = (first, second), sorted(first.cells.keys() & second.cells.keys())
    on, by = "evaluated on", "measured with"
    common_data = [name for name in first.data if name in second.data]
    # A check is a verb for the message, and two texts, which must be equal for both results.
    checks = [(on, [entry.data[name] for entry in pair]) for name in common_data]
    if shared:
        # Without a common dataset, the descriptions of all their data must be equal.
        checks = checks or [(on, ["; ".join(entry.data.values()) for entry in pair])]
        for column in shared:
            parts = [", ".join(entry.cells[column].parts) for entry in pair]
            checks.append((on, [f"{column} ({names})" for names in parts]))
        # Keys that only one has are ignored: a model folder's result has fewer than a suite's.
        for key in sorted(first.result.protocol.keys() & second.result.protocol.keys()):
            checks.append((by, [f"{key} = {entry.result.protocol[key]}" for entry in pair]))
        for column in shared:
            sizes = [entry.cells[column].n for entry in pair]
            if None not in sizes and not all(column in entry.outcomes for entry in pair):
                checks.append((on, [f"{n} examples of {column}" for n in sizes]))
        counts = [entry.result.examples for entry in pair]
        if first.cells.keys() == second.cells.keys() and None not in counts:
            checks.append((on, [f"{count} examples" for count in counts]))
    for verb, (of_first, of_second) in checks:
        if of_first != of_second:
            return InputError(
                f"{first.path} was {verb} {of_first}; {second.path} was {verb} {of_second}",
                where=f"suite {first.result.suite}",
                hint="one table holds one revision of the data, one protocol and the same rows: "
                "evaluate both alike",
            )
    return None


def on_same_rows(entries: Sequence[Entry]) -> list[Entry]:
    """Recompute the figures of one suite's entries over the rows that all of their models judged.

    A scorer cuts texts at its limit of tokens, and leaves out the pairs whose two texts become
    equal; limits differ. In a column where models left out other rows, a rule without outcomes
    loses its figure.
    """
    for column in dict.fromkeys(name for entry in entries for name in entry.outcomes):
        shares = [share for entry in entries if (share := _shares(entry.outcomes, column))]
        if any(list(share.units) != list(shares[0].units) for share in shares):
            continue  # the models judged different examples
        judged = np.array([share.judged for share in shares])
        common = np.logical_and.reduce(judged)
        if (judged == common).all():
            continue
        if not common.any():
            raise InputError(
                "no row was judged for all models: each has left out others",
                where=column,
                hint="compare them two by two, or evaluate with --long windows",
            )
        entries = [
            _on_rows(entry, column, common) if _shares(entry.outcomes, column) else entry
            for entry in entries
        ]
    return [*entries]


def _shares(columns: Columns, column: str) -> Outcomes | None:
    """The outcomes of `column`; None if they are classes (not `right`) or divided into parts."""
    outcomes = columns.get(column, {}).get("")
    return None if outcomes is None or outcomes.right is None else outcomes


def _on_rows(entry: Entry, column: str, common: np.ndarray) -> Entry:
    """Recompute the figures of `column` (rules' too) over the rows that `common [rows]` marks."""

    def cell(outcomes: Outcomes) -> Cell:
        """Return the cell of a model or rule over the common rows."""
        outcomes = outcomes.only(common)
        assert outcomes.right is not None
        figure = mean_figure(outcomes.right, outcomes.units, entry.result.seed, column)
        ties = int((outcomes.right == 0.5).sum())
        return percent({**figure, "ties": ties}, len(outcomes.units))

    def recomputed(cells: Cells, columns: Columns) -> Cells:
        """The cells of a row with new figures in `column`, and in the means over this column."""
        outcomes = _shares(columns, column)
        others = {name: each for name, each in cells.items() if name != column}
        cells = {column: cell(outcomes), **others} if outcomes else others
        means = {name: each.parts for name, each in cells.items() if column in each.parts}
        for name, parts in means.items():
            cells[name] = replace(cells[name], value=mean(cells[part].value for part in parts))
        return cells

    # The entry with a note, and new cells for the model and the rules
    outcomes = entry.outcomes[column][""]
    assert outcomes.right is not None
    note = (
        f"{column}: the figures are over the {int(common.sum()):,} of {len(common):,} rows that "
        f"all models here judged; this one judged {int(outcomes.judged.sum()):,}"
    )
    right = np.where(common, outcomes.right, np.nan)
    return replace(
        entry,
        result=replace(entry.result, notes=[*entry.result.notes, note]),
        cells=recomputed(entry.cells, entry.outcomes),
        rules={
            name: recomputed(cells, entry.rule_outcomes.get(name, {}))
            for name, cells in entry.rules.items()
        },
        outcomes={**entry.outcomes, column: {"": replace(outcomes, right=right)}},
    )


def join_seeds(entries: Sequence[Entry]) -> list[Entry]:
    """Join the entries of one model's trainings that fill the same columns to one entry each.

    Its cells have the mean and the standard deviation over the trainings. A model folder's result
    is not joined with a suite's result, since both may be of the same training.
    """
    groups: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries:
        columns = frozenset(entry.cells)
        key = (entry.result.suite, entry.model, entry.kind, columns, entry.of_training)
        groups.setdefault(key, []).append(entry)
    return [group[0] if len(group) == 1 else _mean_entry(group) for group in groups.values()]


def _mean_entry(group: Sequence[Entry]) -> Entry:
    """Join entries of several trainings to one: means and standard deviations, and all notes."""
    first = group[0]
    cells = {}
    for name, cell in first.cells.items():
        values = [entry.cells[name].value for entry in group]
        cells[name] = replace(cell, value=mean(values), ci=None, sd=stdev(values))
    notes = dict.fromkeys(note for entry in group for note in entry.result.notes)
    return replace(
        first,
        result=replace(first.result, notes=list(notes)),
        cells=cells,
        outcomes=mean_outcomes([entry.outcomes for entry in group]),
        trainings=len(group),
    )


# The table of a suite.


def table_of(entries: Sequence[Entry], published: bool = True) -> ScoreTable:
    """Make the table of one suite's results: rows of models, of baseline rules, and of papers."""
    suite = entries[0].result.suite
    models, parts = _model_rows(entries), parts_of(suite)
    # Columns that a paper has come in its order, the others after them.
    paper_order = [name for part in parts for name in part.columns]
    names = dict.fromkeys(name for row in models for name in row.cells)
    columns = sorted(names, key=lambda name: (*paper_order, name).index(name))
    # Rows and notes of rules, then those of the papers with a protocol that was judged here
    rules = [ScoreRow(name, "rule", cells) for name, cells in _rule_cells(entries).items()]
    rows, notes = [*models, *rules], _notes(suite, entries)
    protocols = {None, *(str(entry.result.protocol.get("protocol", "")) for entry in entries)}
    for part in parts if published else ():
        paper_rows = _published_rows(part, columns) if part.protocol in protocols else []
        rows += paper_rows
        if paper_rows and part.about:
            notes.append(f"{paper_rows[0].source}: {' '.join(part.about.split())}")
        if paper_rows and part.data:
            notes.append(f"Published rows of {paper_rows[0].source}: {part.data}.")
    return ScoreTable(suite, columns, rows, notes, *_differences(suite, rows))


def _rule_cells(entries: Sequence[Entry]) -> Rows:
    """The cells of the baseline rules in all entries, by the name of their row.

    The figures of one rule beside two models may differ, since they may depend on the seed or on
    the model's tokens. Then the second gets its own row, named after its model or its path.
    """
    rules: Rows = {}
    for entry in entries:
        for name, cells in entry.rules.items():
            for row_name in (name, f"{name} ({entry.model})", f"{name} ({entry.path})"):
                row = rules.get(row_name, {})
                if all(row[c].value == cells[c].value for c in cells if c in row):
                    rules[row_name] = {**cells, **row}
                    break
    return rules


def _model_rows(entries: Sequence[Entry]) -> list[ScoreRow]:
    """Make a row for each model; results of one model that fill different columns share a row.

    Results of equal name get separate rows if they have a column in common, or if their models
    differ in type or in training data.
    """

    def fits(group: Sequence[Entry], entry: Entry) -> bool:
        """Return whether the entry has the model of a group, but none of its columns."""
        first = group[0]
        facts = (first.kind, entry.kind), (first.result.trained_on, entry.result.trained_on)
        same_facts = all(a == b for a, b in facts if a and b)  # an empty one is unknown
        common_columns = any(entry.cells.keys() & other.cells.keys() for other in group)
        return first.model == entry.model and same_facts and not common_columns

    groups = _group(entries, fits)
    names = [group[0].model for group in groups]
    rows = []
    for group in groups:
        name, path = group[0].model, str(group[0].path)
        shown = name if names.count(name) == 1 else f"{name} ({path})"
        cells = {column: cell for entry in group for column, cell in entry.cells.items()}
        outcomes = {column: parts for entry in group for column, parts in entry.outcomes.items()}
        rows.append(ScoreRow(shown, "model", cells, path, outcomes))
    return rows


def _published_rows(part: Part, columns: Sequence[str]) -> list[ScoreRow]:
    """The rows of a part of a paper's table that have a figure in `columns`, as printed there."""
    rows, source = [], f"{papers()[part.paper].citation}, {source_of(part)}"
    for name, numbers in part.numbers.items():
        heads = zip(part.columns, part.shown_columns, strict=True)  # our names, the paper's names
        cells = {
            column: Cell(float(numbers[head]), None, decimals_of(numbers[head]))
            for column, head in heads
            if column in columns and head in numbers
        }
        if cells:
            rows.append(ScoreRow(name, "published", cells, source))
    return rows


def _notes(suite: str, entries: Sequence[Entry]) -> list[str]:
    """The notes below a table: its data, the notes of each result, and the tests between models.

    The suite's significance tests are for single trainings.
    """
    data = dict.fromkeys(text for entry in entries for text in entry.data.values())
    notes = [f"Data: {'; '.join(data)}."] if data else []
    names = dict.fromkeys(entry.model for entry in entries)
    for note in dict.fromkeys(note for entry in entries for note in entry.result.notes):
        models = dict.fromkeys(entry.model for entry in entries if note in entry.result.notes)
        of_all = len(models) == len(names) > 1
        notes.append(f"{'all models' if of_all else ', '.join(models)}: {note}")
    for first, second in combinations(entries, 2):
        several_seeds = first.trainings + second.trainings > 2
        if several_seeds or not first.cells.keys() & second.cells.keys():
            continue
        for name, test in _suite_class(suite).tests(first.result, second.result).items():
            notes.append(
                f"{name}: {first.model} does better on {test.only_this}, {second.model} on "
                f"{test.only_other} pairs; McNemar exact p = {test.p:.2g}."
            )
    return notes


def _differences(
    suite: str, rows: Sequence[ScoreRow]
) -> tuple[str, dict[str, dict[str, Difference]]]:
    """The name of the baseline row, and by row and column how far the other rows are from it.

    The baseline is the first row with outcomes in a column in which another row has outcomes too.
    Without such a row the name is "".
    """
    for first in rows:
        others = [row for row in rows if row.outcomes and row is not first]
        if any(first.outcomes.keys() & row.outcomes for row in others):
            by_row = {row.name: differences(suite, first.outcomes, row.outcomes) for row in others}
            by_row = {name: columns for name, columns in by_row.items() if columns}
            return first.name if by_row else "", by_row
    return "", {}
