"""A suite's result: its fields, its files, and its warnings about the model's training data."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.code import versions
from corpora.errors import InputError
from corpora.store.atomic import write_json
from corpora.store.rows import write_parquet
from zoo.declared import Suite
from zoo.evaluate.in_hand import folder_of
from zoo.evaluate.scores import Columns, Outcomes, notes_of
from zoo.training.job import LIBRARIES
from zoo.training.results import trained_on

log = logging.getLogger("zoo")


@dataclass(frozen=True)
class Result:
    """The result of a suite for one model.

    `model` has a name and a type; `dataset` describes one dataset, a list of them, or several by
    name. Two results are comparable if `dataset` and `protocol` are equal. Figures in `metrics`
    are tables with `value`, a share, and perhaps `ci` and `n`. `examples` is the number of examples
    that were judged, `outcomes` says how each was judged. `more` has other keys of the JSON. The
    function `finished` fills in the fields after `more`.
    """

    model: Mapping[str, Any]
    dataset: Any
    examples: int | None
    metrics: Mapping[str, Any]
    protocol: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    outcomes: Sequence[Outcomes] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    suite: str = ""
    split: str = "test"
    seed: int = 0
    trained_on: Sequence[Mapping[str, str]] = ()

    def as_json(self) -> dict[str, Any]:
        """The content of the result's JSON file: the fields, and the versions of the libraries."""
        values = {key: getattr(self, key) for key in KEYS}
        return {**values, **self.more, "versions": versions(*LIBRARIES)}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Result:
        """The result in the `content` of a JSON file, which must have `metrics`.

        A file that another program wrote may lack all other keys.
        """
        more = {"model": {}, "dataset": {}, "examples": None, **content}
        values = {key: more.pop(key) for key in KEYS if key in more}
        return cls(**values, more=more)


KEYS = [each.name for each in fields(Result) if each.name not in ("outcomes", "more")]
"""The fields of `Result` that are keys of its JSON file."""


def finished(suite: Suite, result: Result, model: Any, split: str, seed: int) -> Result:
    """Return the result with its suite, split, seed, training data and notes filled in.

    A result whose suite is filled in already is returned as it is. Logs a warning if the model was
    trained on another revision of the data.
    """
    if result.suite:
        return result
    trained = trained_on(folder_of(model))
    notes = other_revisions(trained, result.dataset)
    for note in notes:
        log.warning("%s", note)
    return replace(
        result,
        suite=suite.name or type(suite).__name__,
        split=str(result.more.get("split", split)),  # superglue may take another one
        seed=seed,
        trained_on=trained,
        notes=[*result.notes, *notes, *notes_of(result.metrics)],
    )


def save(suite: Suite, path: Path, result: Result) -> None:
    """Write a result as JSON to `path`, and its outcomes and the suite's own files beside it."""
    suite.write_files(result, stem_of(path))
    place_of(path).unlink(missing_ok=True)  # outcomes of an earlier run are not this result's
    write_json(path, result.as_json())
    write_outcomes(path, result.outcomes)


def stem_of(result: Path) -> Path:
    """The path of a result file without `.json`; any other ending stays."""
    return result.with_name(result.name.removesuffix(".json"))


# The outcomes beside a result.

SCHEMA = pa.schema(
    [
        *[(name, pa.string()) for name in ("column", "part", "unit")],
        ("right", pa.float32()),
        ("gold", pa.int32()),
        ("predicted", pa.int32()),
        ("rule", pa.string()),
    ]
)


def place_of(result: Path) -> Path:
    """The path of the outcomes of a result file: `OUT.outcomes.parquet` beside `OUT.json`."""
    stem = stem_of(result)
    return stem.with_name(f"{stem.name}.outcomes.parquet")


def write_outcomes(result: Path, outcomes: Sequence[Outcomes]) -> None:
    """Write the outcomes, if there are any, beside the result file: a row for each example."""
    batches = []
    for each in outcomes:
        rows = len(each.units)
        nulls = [None] * rows
        values = {
            "column": [each.column] * rows,
            "part": [each.part] * rows,
            "unit": each.units,
            "right": nulls if each.right is None else each.right,
            "gold": nulls if each.gold is None else each.gold,
            "predicted": nulls if each.predicted is None else each.predicted,
            "rule": [each.rule] * rows,
        }
        batches.append(pa.RecordBatch.from_pydict(values, SCHEMA))
    if batches:
        write_parquet(place_of(result), batches, SCHEMA)


def read_outcomes(result: Path) -> Columns:
    """Read the model's outcomes beside a result file, by column and part; see `outcomes_of`."""
    return outcomes_of(result).get("", {})


def by_rule(outcomes: Iterable[Outcomes]) -> dict[str, Columns]:
    """Group outcomes by baseline rule ("" for the model), column and part: see `Outcomes`."""
    rules: dict[str, dict[str, dict[str, Outcomes]]] = {}
    for each in outcomes:
        rules.setdefault(each.rule, {}).setdefault(each.column, {})[each.part] = each
    return {**rules}


def outcomes_of(result: Path) -> dict[str, Columns]:
    """Read the outcomes beside a result file: `outcomes_of(result)[rule][column][part]`.

    `rule` is the baseline rule whose answers were judged, "" for the model's answers. `column` is a
    column of `discorpora compare`, `part` one of the parts of its figure, such as a domain;
    `Outcomes` describes all three. Returns {} if there is no file of outcomes. Raises `InputError`
    for a file that is no table of outcomes.
    """
    # Read the table.
    place = place_of(result)
    if not place.is_file():
        return {}
    try:
        table = pq.read_table(place, page_checksum_verification=True)
        if "rule" not in table.column_names:  # of an earlier version
            table = table.append_column("rule", pa.array([""] * len(table), pa.string()))
        table = table.cast(SCHEMA)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise InputError(
            f"is no table of outcomes: {error}",
            where=str(place),
            hint="evaluate the model again, or remove the file",
        ) from error
    # Divide it by rule, column and part.
    values = {name: table[name].to_numpy(zero_copy_only=False) for name in SCHEMA.names}
    outcomes = []
    rules, columns, parts = (values[name] for name in ("rule", "column", "part"))
    for rule, column, part in dict.fromkeys(zip(rules, columns, parts, strict=True)):
        rows = (rules == rule) & (columns == column) & (parts == part)
        units, right = values["unit"][rows].tolist(), values["right"][rows]
        if np.isnan(right).all():  # `right` is null in each row: the outcomes are classes
            gold, predicted = (values[name][rows].astype(int) for name in ("gold", "predicted"))
            each = Outcomes(column, units, gold=gold, predicted=predicted, part=part, rule=rule)
        else:
            each = Outcomes(column, units, right.astype(np.float64), part=part, rule=rule)
        outcomes.append(each)
    return by_rule(outcomes)


# A row that one revision of a dataset holds out may be a training row of another. A build knows its
# documents and counts such rows (`corpora.splits.seen`). An evaluation by itself has only the names
# and revisions of the data that the model was trained and judged on.


def other_revisions(trained: Sequence[Mapping[str, str]], judged: Any) -> list[str]:
    """Return a warning for each dataset whose revision in training is not the one judged on.

    `trained` has the name and revision of each training dataset, `judged` is the result's
    `dataset`: one description, a list, or several by name.
    """
    notes = [
        f"trained on {data['name']}, revision {data['revision'] or 'unknown'}, judged on revision "
        f"{about['revision'] or 'unknown'}: rows judged here may have been training rows there; "
        "judge the model on the revision that it was trained on, or train it anew"
        for data in trained
        for about in datasets_of(judged).values()
        if about.get("name", "") == data["name"] and str(about["revision"]) != data["revision"]
    ]
    return list(dict.fromkeys(notes))


def datasets_of(dataset: Any) -> dict[str, Mapping[str, Any]]:
    """The descriptions of a result's datasets by name; those without a revision are left out.

    `dataset` is one description, a list of them (discoeval), or several by name (senteval).
    """
    if isinstance(dataset, list):
        named: dict[str, Any] = {}
        for about in (each for each in dataset if isinstance(each, Mapping)):
            parts = [str(about[key]) for key in ("task", "domain") if key in about]
            named[" ".join(parts) or str(about.get("name", "?"))] = about
    else:
        named = {str(dataset.get("name", "?")): dataset} if "revision" in dataset else dict(dataset)
    return {
        str(name): about
        for name, about in named.items()
        if isinstance(about, Mapping) and "revision" in about
    }
