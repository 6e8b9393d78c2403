"""By how much two models differ on the same examples, with paired bootstrap intervals.

Berg-Kirkpatrick, Burkett and Klein 2012 (https://aclanthology.org/D12-1091): the examples are
drawn anew, the same for both models. What hangs on the examples' difficulty falls out, so the
interval is narrower than those of the two figures would suggest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from corpora.rng import stream
from zoo.evaluate.bootstrap import RESAMPLES, interval
from zoo.evaluate.outcomes import Outcomes

Parts = Mapping[str, Outcomes]
PROBES = "probe_"


@dataclass(frozen=True)
class Difference:
    """Other minus first, in points of per cent; `ci` is the 95 % interval over `units` units."""

    value: float
    ci: tuple[float, float]
    units: int

    @property
    def text(self) -> str:
        """With an asterisk where the interval excludes 0."""
        clear = "" if self.ci[0] <= 0 <= self.ci[1] else "*"
        return f"{self.value:+.1f} [{self.ci[0]:+.1f}, {self.ci[1]:+.1f}]{clear}"


@dataclass(frozen=True)
class _Drawn:
    value: float
    values: np.ndarray
    units: int

    def difference(self) -> Difference:
        low, high = interval(self.values)
        return Difference(100 * self.value, (100 * low, 100 * high), self.units)


def differences(
    suite: str, first: Mapping[str, Parts], other: Mapping[str, Parts], seed: int = 0
) -> dict[str, Difference]:
    """`other` minus `first` for each column that both have, for its parts, and for their means.

    Units that only one of them has are left out; a column without a common unit is too, and one of
    classes whose examples are not the same.
    """
    drawn: dict[str, _Drawn] = {}
    found: dict[str, Difference] = {}
    for column in first:
        parts = {
            part: _drawn(one, other[column][part], f"{suite}.{column}.{part}", seed)
            for part, one in first[column].items()
            if part in other.get(column, {})
        }
        kept = {part: one for part, one in parts.items() if one is not None}
        if not kept or len(kept) < len(first[column]):
            continue
        drawn[column] = _mean(list(kept.values()))
        found[column] = drawn[column].difference()
        if len(kept) > 1:
            found |= {f"{column} {part}": one.difference() for part, one in kept.items()}
    for name, columns in _groups(suite, list(drawn)).items():
        found[name] = _mean([drawn[column] for column in columns]).difference()
    return found


def _groups(suite: str, columns: Sequence[str]) -> dict[str, list[str]]:
    """Means that a suite's papers give: of DiscoEval's tasks, of the probes."""
    if suite == "discoeval" and len(columns) > 1:
        return {f"mean of {len(columns)} tasks": list(columns)}
    probes = [column for column in columns if column.startswith(PROBES)]
    return {f"mean of {len(probes)} probes": probes} if len(probes) > 1 else {}


def _mean(drawn: Sequence[_Drawn]) -> _Drawn:
    """The parts are drawn independently of each other."""
    return _Drawn(
        float(np.mean([one.value for one in drawn])),
        np.mean([one.values for one in drawn], axis=0),
        sum(one.units for one in drawn),
    )


def _drawn(first: Outcomes, other: Outcomes, name: str, seed: int) -> _Drawn | None:
    if first.right is not None and other.right is not None:
        return _of_shares(first, other, name, seed)
    if first.gold is None or other.gold is None or list(first.units) != list(other.units):
        return None
    return _of_classes(first, other, name, seed)


def _of_shares(first: Outcomes, other: Outcomes, name: str, seed: int) -> _Drawn | None:
    """The difference of two shares when whole units are drawn anew."""
    shared = sorted(set(first.units) & set(other.units))
    if not shared:
        return None
    number = {unit: at for at, unit in enumerate(shared)}
    rows = np.concatenate([_per_unit(one, number) for one in (first, other)])
    # Units alike in all four numbers are drawn as one kind: the same law, and far fewer draws.
    (own, of_own, its, of_its), counts = np.unique(rows, axis=1, return_counts=True)
    units = len(shared)
    draws = stream(seed, f"zoo.differences.{name}").multinomial(
        units, counts / units, size=RESAMPLES
    )

    def difference(drawn: np.ndarray) -> np.ndarray:
        return np.asarray(drawn @ its / (drawn @ of_its) - drawn @ own / (drawn @ of_own))

    return _Drawn(float(difference(counts)), difference(draws), units)


def _per_unit(one: Outcomes, number: Mapping[str, int]) -> np.ndarray:
    """What is right in each unit, and its examples, `[2, units]`."""
    assert one.right is not None
    at = np.array([number.get(unit, -1) for unit in one.units])
    kept = at >= 0
    size = len(number)
    right = np.bincount(at[kept], weights=one.right[kept], minlength=size)
    return np.stack([right, np.bincount(at[kept], minlength=size)])


def _of_classes(first: Outcomes, other: Outcomes, name: str, seed: int) -> _Drawn | None:
    """The difference of two unweighted F1 when rows are drawn anew.

    Drawing rows is one multinomial draw over the cells (gold, first's class, other's class).
    """
    from zoo.evaluate.classification import macro_f1

    assert first.gold is not None and first.predicted is not None
    assert other.gold is not None and other.predicted is not None
    if not np.array_equal(first.gold, other.gold):
        return None
    rows = np.stack([first.gold, first.predicted, other.predicted])
    classes, units = int(rows.max()) + 1, len(first.units)
    (gold, own, its), counts = np.unique(rows, axis=1, return_counts=True)

    def difference(weights: np.ndarray) -> float:
        values = []
        for predicted in (own, its):
            cells = np.bincount(gold * classes + predicted, weights, classes * classes)
            values.append(macro_f1(cells.reshape(classes, classes)))
        return values[1] - values[0]

    draws = stream(seed, f"zoo.differences.{name}").multinomial(
        units, counts / units, size=RESAMPLES
    )
    return _Drawn(difference(counts), np.array([difference(draw) for draw in draws]), units)
