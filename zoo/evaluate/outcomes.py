"""What models got right, example by example, and by how much two models differ on it.

A suite's result may have `outcomes`; beside `OUT.json` they go to `OUT.outcomes.parquet`, a row an
example. Differences have paired bootstrap intervals (Berg-Kirkpatrick, Burkett and Klein 2012,
https://aclanthology.org/D12-1091): the examples are drawn anew, the same for both models. How
difficult the examples are then makes no difference, so the interval is narrower than those of the
two figures would suggest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import InputError
from corpora.intervals import FEW
from corpora.rng import stream
from corpora.store.rows import write_parquet
from zoo.evaluate.scores import RESAMPLES, interval, macro_f1

SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("part", pa.string()),
        ("unit", pa.string()),
        ("right", pa.float32()),
        ("gold", pa.int32()),
        ("predicted", pa.int32()),
    ]
)
PROBES = "probe_"
"""How the names of the probes of the suite `pairwise` begin."""


@dataclass(frozen=True)
class Outcomes:
    """The examples behind one figure.

    `column` is the figure's in `discorpora compare`; the mean of its `part`s (domains) if it has
    several. Examples of one unit (a document with its permutations) are drawn together. Either
    `right [examples]`, the share of the classifiers that are right, whose mean is the figure; or
    the classes `gold` and `predicted`, whose unweighted F1 is.
    """

    column: str
    units: Sequence[str]
    right: np.ndarray | None = None
    gold: np.ndarray | None = None
    predicted: np.ndarray | None = None
    part: str = ""


Parts: TypeAlias = Mapping[str, Outcomes]
Columns: TypeAlias = Mapping[str, Parts]
"""Outcomes by column and part."""


def numbered(rows: int) -> list[str]:
    """Units for examples that are independent of each other."""
    return [str(row) for row in range(rows)]


def stem_of(result: Path) -> Path:
    """The result's path without `.json`; any other ending stays."""
    return result.with_name(result.name.removesuffix(".json"))


def place_of(result: Path) -> Path:
    """Where the outcomes of the result `result` lie."""
    stem = stem_of(result)
    return stem.with_name(f"{stem.name}.outcomes.parquet")


def write_outcomes(result: Path, outcomes: Iterable[Outcomes]) -> None:
    """Write the outcomes beside the result, or remove those that another run has left there."""
    place, batches = place_of(result), []
    for one in outcomes:
        size = len(one.units)
        columns: dict[str, Any] = {"column": [one.column] * size, "part": [one.part] * size}
        columns["unit"] = list(one.units)
        for name in ("right", "gold", "predicted"):
            values = getattr(one, name)
            columns[name] = [None] * size if values is None else values
        batches.append(pa.RecordBatch.from_pydict(columns, SCHEMA))
    if batches:
        write_parquet(place, batches, SCHEMA)
    else:
        place.unlink(missing_ok=True)


def read_outcomes(result: Path) -> dict[str, dict[str, Outcomes]]:
    """The outcomes beside a result by column and part; none where the file is not there.

    Raises `InputError` for a file that is no such table.
    """
    place = place_of(result)
    if not place.is_file():
        return {}
    try:
        table = pq.read_table(place, page_checksum_verification=True)
        if table.schema.names != SCHEMA.names:
            raise pa.ArrowInvalid(f"its columns are {', '.join(table.schema.names)}")
        table = table.cast(SCHEMA)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"is no table of outcomes: {error}",
            where=str(place),
            hint="evaluate the model again, or remove the file",
        ) from error
    values = {name: table[name].to_numpy(zero_copy_only=False) for name in SCHEMA.names}
    columns: dict[str, dict[str, Outcomes]] = {}
    for column, part in dict.fromkeys(zip(values["column"], values["part"], strict=True)):
        rows = (values["column"] == column) & (values["part"] == part)
        units, right = values["unit"][rows].tolist(), values["right"][rows]
        if np.isnan(right).all():
            gold, predicted = (values[name][rows].astype(int) for name in ("gold", "predicted"))
            one = Outcomes(column, units, gold=gold, predicted=predicted, part=part)
        else:
            one = Outcomes(column, units, right.astype(np.float64), part=part)
        columns.setdefault(column, {})[part] = one
    return columns


def joined(trainings: Sequence[Columns]) -> dict[str, dict[str, Outcomes]]:
    """Those of several trainings as one: an example counts by the share that has it right.

    Only the parts that all have, on the same examples; classes have no mean and are left out.
    """
    columns: dict[str, dict[str, Outcomes]] = {}
    for column, parts in trainings[0].items():
        for part, one in parts.items():
            same = [other.get(column, {}).get(part) for other in trainings]
            shares = [o.right for o in same if o and list(o.units) == list(one.units)]
            known = [share for share in shares if share is not None]
            if len(known) == len(trainings):
                columns.setdefault(column, {})[part] = replace(one, right=np.mean(known, axis=0))
    return columns


@dataclass(frozen=True)
class Difference:
    """Other minus first, in points of per cent, over `units` units of the `of` that either has.

    `ci` is the 95 % interval; None where there are fewer than `FEW` units.
    """

    value: float
    ci: tuple[float, float] | None
    units: int
    of: int

    @property
    def text(self) -> str:
        """With an asterisk where the interval excludes 0."""
        if self.ci is None:
            return f"{self.value:+.1f} ({self.units} units)"
        clear = "" if self.ci[0] <= 0 <= self.ci[1] else "*"
        shown = f"{self.value:+.1f} [{self.ci[0]:+.1f}, {self.ci[1]:+.1f}]{clear}"
        return shown if self.units == self.of else f"{shown} ({self.units} of {self.of} units)"


@dataclass(frozen=True)
class _Drawn:
    """The difference, and its value in each resample."""

    value: float
    values: np.ndarray
    units: int
    of: int

    @classmethod
    def mean(cls, drawn: Sequence[_Drawn]) -> _Drawn:
        """Of what was drawn independently."""
        return cls(
            float(np.mean([one.value for one in drawn])),
            np.mean([one.values for one in drawn], axis=0),
            sum(one.units for one in drawn),
            sum(one.of for one in drawn),
        )

    def difference(self) -> Difference:
        low, high = interval(self.values)
        ci = None if self.units < FEW else (100 * low, 100 * high)
        return Difference(100 * self.value, ci, self.units, self.of)


def differences(suite: str, first: Columns, other: Columns, seed: int = 0) -> dict[str, Difference]:
    """`other` minus `first` for each column that both have, for its parts, and for their means.

    A column is compared where both have the same parts. Units that only one of them has are left
    out; a part without a common unit is too, and one of classes whose examples are not the same.
    """
    columns: dict[str, _Drawn] = {}
    found: dict[str, Difference] = {}
    for column in (name for name in first if name in other):
        one, two = first[column], other[column]
        kept: dict[str, _Drawn] = {}
        for part in (name for name in one if name in two):
            own, its, name = one[part], two[part], f"{suite}.{column}.{part}"
            if own.right is not None and its.right is not None:
                drawn = _of_shares([(own, its)], name, seed)
            else:
                drawn = _of_classes(own, its, name, seed)
            kept |= {part: drawn} if drawn else {}
        if kept.keys() == one.keys() == two.keys():
            columns[column] = _Drawn.mean(list(kept.values()))
            found[column] = columns[column].difference()
        if len(one.keys() | two.keys()) > 1:
            found |= {f"{column} {part}": drawn.difference() for part, drawn in kept.items()}
    if suite == "discoeval" and len(columns) > 1:
        # The tasks have examples of their own: they are drawn independently.
        found[f"mean of {len(columns)} tasks"] = _Drawn.mean(list(columns.values())).difference()
    # The probes change the same texts: a text is drawn for all of them.
    names = [name for name in first if name.startswith(PROBES) and name in other]
    pairs = [(first[name].get(""), other[name].get("")) for name in names]
    shares = [(a, b) for a, b in pairs if a and b and a.right is not None and b.right is not None]
    if len(shares) > 1:
        title = f"mean of {len(shares)} probes"
        drawn = _of_shares(shares, f"{suite}.{title}", seed)
        found |= {title: drawn.difference()} if drawn else {}
    return found


def _of_shares(pairs: Sequence[tuple[Outcomes, Outcomes]], name: str, seed: int) -> _Drawn | None:
    """The mean difference of pairs of shares when whole units are drawn anew, for all at once.

    Units alike in all their numbers are drawn as one kind: the same law, and far fewer draws.
    """
    shared = [set(one.units) & set(two.units) for one, two in pairs]
    if not all(shared):
        return None
    number = {unit: at for at, unit in enumerate(sorted(set().union(*shared)))}
    units = len(number)
    rows = []  # of each model of each pair: what is right in a unit, and its examples
    for pair, common in zip(pairs, shared, strict=True):
        for one in pair:
            assert one.right is not None
            at = np.array([number[unit] if unit in common else -1 for unit in one.units])
            rows.append(np.bincount(at[at >= 0], weights=one.right[at >= 0], minlength=units))
            rows.append(np.bincount(at[at >= 0], minlength=units).astype(float))
    kinds, counts = np.unique(np.stack(rows), axis=1, return_counts=True)
    random = stream(seed, f"zoo.differences.{name}")
    draws = random.multinomial(units, counts / units, size=RESAMPLES)

    def difference(drawn: np.ndarray) -> np.ndarray:
        sums = np.reshape(drawn @ kinds.T, (*drawn.shape[:-1], len(pairs), 2, 2))
        with np.errstate(invalid="ignore"):  # none of a probe's few units was drawn
            shares = sums[..., 0] / sums[..., 1]
        return np.nanmean(shares[..., 1] - shares[..., 0], axis=-1)

    either = set().union(*(one.units for pair in pairs for one in pair))
    return _Drawn(float(difference(counts)), difference(draws), units, len(either))


def _of_classes(first: Outcomes, other: Outcomes, name: str, seed: int) -> _Drawn | None:
    """The difference of two unweighted F1 when rows are drawn anew; None of other examples.

    Drawing rows is one multinomial draw over the cells (gold, first's class, other's class).
    """
    if first.gold is None or other.gold is None or list(first.units) != list(other.units):
        return None
    rows = np.array([first.gold, first.predicted, other.predicted])
    if not np.array_equal(rows[0], np.array(other.gold)):
        return None
    classes, units = int(rows.max()) + 1, len(first.units)
    (gold, own, its), counts = np.unique(rows, axis=1, return_counts=True)

    def difference(weights: np.ndarray) -> float:
        values = []
        for predicted in (own, its):
            cells = np.bincount(gold * classes + predicted, weights, classes * classes)
            values.append(macro_f1(cells.reshape(classes, classes)))
        return values[1] - values[0]

    random = stream(seed, f"zoo.differences.{name}")
    draws = (random.multinomial(units, counts / units) for _ in range(RESAMPLES))
    values = np.array([difference(draw) for draw in draws])
    return _Drawn(difference(counts), values, units, units)
