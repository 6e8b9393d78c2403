"""`discorpora compare A B ...`: several models in one table, the published rows labelled so.

Results are read from files and folders. Two data or two protocols are never put in one table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from corpora.errors import InputError
from corpora.outside import read_json
from corpora.store.manifest import read_results as read_checked
from zoo.declared import Suite
from zoo.evaluate import SUITES
from zoo.evaluate.outcomes import Columns, joined, place_of, read_outcomes
from zoo.evaluate.results import datasets_of
from zoo.evaluate.table import Cell, Cells, Comparison, Row, Rows, Table, compared, percent, plain

PUBLISHED = Path(__file__).with_name("published.toml")
HASH = re.compile("[0-9a-f]{16}")
TOLERANCE = 1e-3
"""Per cent: outcomes are kept in float32."""


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


@dataclass(frozen=True)
class Measured:
    """One result: what its JSON says, the rows that it gives, and where it was read."""

    path: Path
    suite: str
    model: str
    """The model's name; of a build's stage, whose folder is a hash, the folder around it."""
    kind: str
    """The type of the model."""
    trained_on: Any
    data: Mapping[str, str]
    """Each data set with its revision and the split that was scored."""
    protocol: Mapping[str, Any]
    examples: int | None
    notes: Sequence[str]
    rows: Rows
    result: Mapping[str, Any] = field(repr=False)
    outcomes: Columns = field(default_factory=dict, repr=False)
    of_training: bool = False
    """Whether it is a model folder's own results.json and not a suite's."""
    trainings: int = 1

    @property
    def cells(self) -> Cells:
        """The model's own row."""
        return self.rows[""]


def compare(
    paths: Iterable[str | Path], *, published: bool = True, seeds: bool = False
) -> Comparison:
    """Tables of the results at `paths`: JSON files, model folders, folders of evaluations.

    Results of one model that fill different columns share a row. With `seeds` those of one name
    that fill the same columns are trainings with several seeds: one row has their mean and standard
    deviation. Raises `InputError` for a path without a result, and for results that differ in the
    data's revision or in the protocol.
    """
    results = [result for path in paths for result in read_results(Path(path))]
    if not results:
        raise InputError("nothing to compare", hint="name result files or model folders")
    refuse_mixed(results)
    if seeds:
        results = join_seeds(results)
    suites = dict.fromkeys(result.suite for result in results)
    return Comparison(
        [_table(suite, [r for r in results if r.suite == suite], published) for suite in suites]
    )


def alike(paths: Iterable[Path]) -> list[list[Path]]:
    """The paths of results in groups, each of which `compare` takes into one table."""
    groups: list[list[Measured]] = []
    for path in paths:
        (one,) = read_results(path)
        for group in groups:
            try:
                refuse_mixed([*group, one])
            except InputError:
                continue
            group.append(one)
            break
        else:
            groups.append([one])
    return [[one.path for one in group] for group in groups]


# Reading.


def read_results(path: Path) -> list[Measured]:
    """The results in a JSON file, a model folder, or a folder of an evaluation.

    Raises `InputError` for a path that holds none.
    """
    files = [path]
    if path.is_dir():
        own = path / "results.json"
        files = [own] if own.is_file() else sorted(path.glob("*.json"))
    results = [result for file in files if (result := _read(file)) is not None]
    if not results:
        raise InputError(
            "no result here",
            where=str(path),
            hint="give what discorpora evaluate --json wrote, or a folder with results.json",
        )
    return results


def _read(path: Path) -> Measured | None:
    """The result in a JSON file; None for a file of anything else."""
    if not path.exists():
        raise InputError("no such file or folder", where=str(path))
    found = read_json(path)
    if not isinstance(found, dict) or "metrics" not in found:
        return None
    result = read_checked(path)
    of_training = "suite" not in result
    one = _measured(result, path, of_training=of_training)
    outcomes = {} if of_training else read_outcomes(path)
    _check_outcomes(outcomes, one.cells, path)
    return replace(one, outcomes=outcomes)


def table_of(result: Mapping[str, Any]) -> Table:
    """The table of one result as `finished` gives it: the model, rules, and published rows."""
    return _table(str(result["suite"]), [_measured(result, Path())], published=True)


def _measured(result: Mapping[str, Any], path: Path, *, of_training: bool = False) -> Measured:
    suite = str(result.get("suite", ""))
    try:
        result = _of_training(result, path) if of_training else result
        suite = str(result["suite"])
        rows = _rows(suite, result)
    except InputError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise InputError(
            f"is no result of the suite {suite!r}: {error!r}", where=str(path)
        ) from error
    model, split = result.get("model", {}), result.get("split", "test")
    name = str(model.get("name") or path.stem)
    return Measured(
        path,
        suite,
        f"{path.parent.parent.name} {name[:6]}" if HASH.fullmatch(name) else name,
        str(model.get("type", "")),
        result.get("trained_on"),
        {
            name: f"{name}, revision {about['revision']}, split {about.get('split', split)}"
            for name, about in datasets_of(result.get("dataset", {})).items()
        },
        result.get("protocol", {}),
        result.get("examples"),
        result.get("notes", []),
        rows,
        result,
        of_training=of_training,
    )


def _of_training(found: Mapping[str, Any], path: Path) -> dict[str, Any]:
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
    return {
        "suite": suite,
        "split": split,
        "model": {"name": path.parent.name, "type": found.get("model_type", "")},
        "dataset": data,
        "metrics": metrics,
    }


def _kind(suite: str) -> type[Suite]:
    """The suite's class; of a suite that is not installed, and of a training, the base class."""
    return SUITES.find(suite) if suite in SUITES else Suite


def _rows(suite: str, result: Mapping[str, Any]) -> Rows:
    """The model's row (named "") and those of the rules beside it."""
    if "nats_a_word" in result["metrics"]:
        return _learnt_words(result)
    return {name: cells for name, cells in _kind(suite).rows(result).items() if cells or not name}


def _learnt_words(result: Mapping[str, Any]) -> Rows:
    """Nats a word as they are, with those of the words' frequency beside; the classes' shares."""
    metrics = result["metrics"]
    words = metrics["nats_a_word"]
    own = {f"{name} nats": plain(of, of.get("sentences")) for name, of in words.items()}
    alone = {f"{name} nats": plain(of["by_frequency"]) for name, of in words.items()}
    majority: Cells = {}
    for name, of in metrics["classes"].items():
        for key, shown in (("accuracy", "accuracy"), ("f1", "F1")):
            own[f"{name} {shown}"] = percent(of[key], of.get("rows"))
            majority[f"{name} {shown}"] = percent(of["majority"][key])
    # A model's vocabulary is its own, and with it what the frequency of words gives.
    by_frequency = f"rule: frequency of words ({result['model']['name']})"
    return {"": own, by_frequency: alone, "rule: majority": majority}


def _check_outcomes(outcomes: Columns, cells: Cells, path: Path) -> None:
    """Raise `InputError` if they are of another run than the result, whose figures they give."""
    for column, parts in outcomes.items():
        shares = [100 * float(one.right.mean()) for one in parts.values() if one.right is not None]
        shown = cells[column].value if column in cells else None
        if shares and (shown is None or abs(mean(shares) - shown) > TOLERANCE):
            raise InputError(
                f"the outcomes say {column} = {mean(shares):.3f}, {path.name} says "
                f"{'nothing' if shown is None else f'{shown:.3f}'}: they are of another run",
                where=str(place_of(path)),
                hint="evaluate the model again, or remove the file of outcomes",
            )


def join_seeds(results: Sequence[Measured]) -> list[Measured]:
    """The results of one name and the same columns as one: mean and deviation over trainings.

    A path that comes twice counts once; a model folder's own result is not joined with a suite's,
    which may be of the same training. Raises `InputError` for one name on two types of model.
    """
    groups: dict[tuple[Any, ...], list[Measured]] = {}
    for one in {each.path.resolve(): each for each in results}.values():
        key = (one.suite, one.model, frozenset(one.cells), one.of_training)
        groups.setdefault(key, []).append(one)
    rows = []
    for first, *others in groups.values():
        for other in (each for each in others if each.kind != first.kind):
            raise InputError(
                f"{first.path} is of a {first.kind}, {other.path} of a {other.kind}, and both "
                f"are named {first.model!r}",
                hint="results of one name are joined: give each model its own with --name",
            )
        rows.append(_joined([first, *others]) if others else first)
    return rows


def _joined(group: Sequence[Measured]) -> Measured:
    cells = {}
    for name, cell in group[0].cells.items():
        values = [one.cells[name].value for one in group]
        cells[name] = replace(cell, value=mean(values), ci=None, sd=stdev(values))
    return replace(
        group[0],
        model=f"{group[0].model} ({len(group)} seeds)",
        notes=list(dict.fromkeys(note for one in group for note in one.notes)),
        rows={**group[0].rows, "": cells},
        outcomes=joined([one.outcomes for one in group]),
        trainings=len(group),
    )


def refuse_mixed(results: Sequence[Measured]) -> None:
    """Raise `InputError` if two results of one suite are not comparable.

    They are not if a data set has two revisions (or splits), if figures of one column are from
    different data (of a mean: not over the same parts), from another number of examples, or by
    another protocol.
    """
    for one, two in combinations(results, 2):
        if one.suite != two.suite:
            continue
        pair, shared = (one, two), sorted(one.cells.keys() & two.cells.keys())
        evaluated = [[each.data[name] for each in pair] for name in one.data if name in two.data]
        said = [("evaluated on", own) for own in evaluated]
        if shared:
            if not said:
                said.append(("evaluated on", ["; ".join(each.data.values()) for each in pair]))
            for column in shared:
                parts = [f"{column} ({', '.join(each.cells[column].of)})" for each in pair]
                said.append(("evaluated on", parts))
            # A key that only one has is no difference: a model folder says less than a suite.
            keys = sorted(one.protocol.keys() & two.protocol.keys())
            keys = [key for key in keys if one.protocol[key] != two.protocol[key]]
            values = [", ".join(f"{k} = {each.protocol[k]}" for k in keys) for each in pair]
            said.append(("measured with", values))
            if one.cells.keys() == two.cells.keys() and None not in (one.examples, two.examples):
                said.append(("evaluated on", [f"{each.examples} examples" for each in pair]))
        for verb, (own, other) in said:
            if own != other:
                raise InputError(
                    f"{one.path} was {verb} {own}; {two.path} was {verb} {other}",
                    where=f"suite {one.suite}",
                    hint="one table holds one revision of the data and one protocol: evaluate both "
                    "alike",
                )


# The table of a suite.


def _table(suite: str, results: Sequence[Measured], published: bool) -> Table:
    models = _model_rows(results)
    printed = [name for table in published_tables(suite) for name in table.columns]
    names = dict.fromkeys(name for row in models for name in row.cells)
    # Those that a paper has in its order, then the others.
    columns = sorted(names, key=lambda name: (*printed, name).index(name))
    rows, notes = [*models, *_rule_rows(results)], _notes(suite, results)
    if published:
        protocols = {str(result.protocol.get("protocol", "")) for result in results}
        papers, said = _published_rows(suite, columns, protocols)
        rows, notes = [*rows, *papers], [*notes, *said]
    return Table(suite, columns, rows, notes, *compared(suite, rows))


def _model_rows(results: Sequence[Measured]) -> list[Row]:
    """A row for each model.

    Results of equal name get rows of their own where they share a column or are of models that
    differ in type or training data.
    """
    models: list[list[Measured]] = []
    for one in results:
        for same in models:
            shared = any(one.cells.keys() & other.cells.keys() for other in same)
            about = (same[0].kind, one.kind), (same[0].trained_on, one.trained_on)
            differ = same[0].model != one.model or any(a and b and a != b for a, b in about)
            if not differ and not shared:
                same.append(one)
                break
        else:
            models.append([one])
    names = [same[0].model for same in models]
    rows = []
    for first, *others in models:
        cells, outcomes = dict(first.cells), dict(first.outcomes)
        for other in others:
            cells |= other.cells
            outcomes |= other.outcomes
        name = first.model if names.count(first.model) == 1 else f"{first.model} ({first.path})"
        rows.append(Row(name, "model", cells, str(first.path), outcomes))
    return rows


def _rule_rows(results: Sequence[Measured]) -> list[Row]:
    """The rules beside the models, once each.

    The data are the same, but a rule's figure may depend on the result that has it: on its seed,
    or on the model's tokens. Then it has a row for each model.
    """
    rules: dict[str, Cells] = {}
    for result in results:
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
    """The published rows that have a figure in `columns`, and what their tables say of the data."""
    rows: list[Row] = []
    notes = []
    for table in published_tables(suite):
        source, before = f"{table.paper}, {table.source}", len(rows)
        for name, *values in table.rows if table.protocol in (None, *protocols) else ():
            cells = {}
            for column, value in zip(table.columns, values, strict=True):
                if value != "" and column in columns:  # with the decimals that the paper prints
                    one = _kind(suite).percent and round(value, 1) == value
                    cells[column] = Cell(float(value), None, 1 if one else 2)
            if cells:
                rows.append(Row(name, "published", cells, source))
        if len(rows) > before and table.data:
            notes.append(f"Published rows of {source}: {table.data}.")
    return rows, notes


def _notes(suite: str, results: Sequence[Measured]) -> list[str]:
    """The data, what each result says of itself, and tests between single trainings."""
    data = dict.fromkeys(text for result in results for text in result.data.values())
    notes = [f"Data: {'; '.join(data)}."] if data else []
    notes += [f"{result.model}: {note}" for result in results for note in result.notes]
    for one, two in combinations(results, 2):
        if not one.cells.keys() & two.cells.keys() or one.trainings + two.trainings > 2:
            continue
        for name, test in _kind(suite).tests(one.result, two.result).items():
            notes.append(
                f"{name}: {one.model} alone is right on {test['only_this']}, {two.model} alone on "
                f"{test['only_other']} pairs; McNemar exact p = {test['p']:.2g}."
            )
    return notes
