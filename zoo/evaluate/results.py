"""A suite's result: what it holds, what it says of the model's training, how it is kept."""

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
    """What a suite found.

    `model` has a name and a type; `dataset` describes one dataset, a list of them, or several by
    name. Two results are compared where dataset and `protocol` are equal. Figures in `metrics`
    are tables with `value`, a share, and perhaps `ci` and `n`. `more`: other keys of the JSON.
    The fields after that are filled in by `finished`.
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
        """The result as its JSON holds it, with the versions of the libraries."""
        kept = {key: getattr(self, key) for key in KEYS}
        return {**kept, **self.more, "versions": versions(*LIBRARIES)}

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Result:
        """The result in a JSON; another program's may lack all but `metrics`."""
        given = {"model": {}, "dataset": {}, "examples": None, **found}
        known = {key: given.pop(key) for key in KEYS if key in given}
        return cls(**known, more=given)


KEYS = [each.name for each in fields(Result) if each.name not in ("outcomes", "more")]


def finished(suite: Suite, result: Result, model: Any, split: str, seed: int) -> Result:
    """The result with suite, split, seed, training data and notes; once, if called twice.

    Warns if the model was trained on another revision of the data.
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
    """Write `path`, what the suite draws or tabulates, and the outcomes: a row an example."""
    suite.write_files(result, stem_of(path))
    place_of(path).unlink(missing_ok=True)  # those of an earlier run are not this result's
    write_json(path, result.as_json())
    write_outcomes(path, result.outcomes)


def stem_of(result: Path) -> Path:
    """The result's path without `.json`; any other ending stays."""
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
    """Where the outcomes of the result `result` lie: `OUT.outcomes.parquet` beside `OUT.json`."""
    stem = stem_of(result)
    return stem.with_name(f"{stem.name}.outcomes.parquet")


def write_outcomes(result: Path, outcomes: Sequence[Outcomes]) -> None:
    """Write the outcomes, if there are any, beside the result."""
    batches = []
    for one in outcomes:
        none = [None] * len(one.units)
        values = {
            "column": [one.column] * len(none),
            "part": [one.part] * len(none),
            "unit": one.units,
            "right": none if one.right is None else one.right,
            "gold": none if one.gold is None else one.gold,
            "predicted": none if one.predicted is None else one.predicted,
            "rule": [one.rule] * len(none),
        }
        batches.append(pa.RecordBatch.from_pydict(values, SCHEMA))
    if batches:
        write_parquet(place_of(result), batches, SCHEMA)


def read_outcomes(result: Path) -> Columns:
    """The model's outcomes beside a result by column and part; see `outcomes_of`."""
    return outcomes_of(result).get("", {})


def by_rule(outcomes: Iterable[Outcomes]) -> dict[str, Columns]:
    """The outcomes of the model ("") and of each rule, by column and part."""
    rules: dict[str, dict[str, dict[str, Outcomes]]] = {}
    for one in outcomes:
        rules.setdefault(one.rule, {}).setdefault(one.column, {})[one.part] = one
    return {**rules}


def outcomes_of(result: Path) -> dict[str, Columns]:
    """The outcomes beside a result, of the model ("") and of rules; none where there is no file.

    Raises `InputError` for a file that is no such table.
    """
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
    values = {name: table[name].to_numpy(zero_copy_only=False) for name in SCHEMA.names}
    outcomes = []
    keys = [values[name] for name in ("rule", "column", "part")]
    for key in dict.fromkeys(zip(*keys, strict=True)):
        rows = np.all([own == one for own, one in zip(keys, key, strict=True)], axis=0)
        rule, column, part = key
        units, right = values["unit"][rows].tolist(), values["right"][rows]
        if np.isnan(right).all():
            gold, predicted = (values[name][rows].astype(int) for name in ("gold", "predicted"))
            one = Outcomes(column, units, gold=gold, predicted=predicted, part=part, rule=rule)
        else:
            one = Outcomes(column, units, right.astype(np.float64), part=part, rule=rule)
        outcomes.append(one)
    return by_rule(outcomes)


# What a model was trained on, and whether it is judged on another cut of it: what one revision of a
# dataset holds out, another may train on. A build knows its documents and counts the rows
# (`corpora.splits.seen`); an evaluation by itself has only the names and revisions of both.


def other_revisions(trained: Sequence[Mapping[str, str]], judged: Any) -> list[str]:
    """A warning for each dataset of training that a result was judged on in another revision.

    `judged` is the result's `dataset`: one description, a list, or several by name.
    """
    notes = [
        f"trained on {one['name']}, revision {one['revision'] or 'unknown'}, judged on revision "
        f"{about['revision'] or 'unknown'}: rows judged here may have been training rows there; "
        "judge the model on the revision that it was trained on, or train it anew"
        for one in trained
        for about in datasets_of(judged).values()
        if about.get("name", "") == one["name"] and str(about["revision"]) != one["revision"]
    ]
    return list(dict.fromkeys(notes))


def datasets_of(dataset: Any) -> dict[str, Mapping[str, Any]]:
    """The datasets that a result's `dataset` describes with a revision, by name.

    It is one description, a list (discoeval), or several by name (senteval).
    """
    if isinstance(dataset, list):
        named: dict[str, Any] = {}
        for about in (each for each in dataset if isinstance(each, Mapping)):
            parts = [str(about[key]) for key in ("task", "domain") if key in about]
            named[" ".join(parts) or str(about.get("name", "?"))] = about
    else:
        named = {str(dataset.get("name", "?")): dataset} if "revision" in dataset else dict(dataset)
    known = (pair for pair in named.items() if isinstance(pair[1], Mapping))
    return {str(name): about for name, about in known if "revision" in about}
