"""By how much two models differ on the same examples, with paired bootstrap intervals.

Berg-Kirkpatrick, Burkett and Klein 2012 (https://aclanthology.org/D12-1091): the examples are
drawn anew, the same for both models. What hangs on the examples' difficulty falls out, so the
interval is narrower than those of the two figures would suggest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from corpora.intervals import FEW
from corpora.rng import stream
from zoo.evaluate.bootstrap import RESAMPLES, interval
from zoo.evaluate.outcomes import Outcomes

Parts = Mapping[str, Outcomes]
PROBES = "probe_"


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

    def difference(self) -> Difference:
        low, high = interval(self.values)
        ci = None if self.units < FEW else (100 * low, 100 * high)
        return Difference(100 * self.value, ci, self.units, self.of)


def differences(
    suite: str, first: Mapping[str, Parts], other: Mapping[str, Parts], seed: int = 0
) -> dict[str, Difference]:
    """`other` minus `first` for each column that both have, for its parts, and for their means.

    A column is compared where both have the same parts. Units that only one of them has are left
    out; a part without a common unit is too, and one of classes whose examples are not the same.
    """
    columns: dict[str, _Drawn] = {}
    found: dict[str, Difference] = {}
    for column in [name for name in first if name in other]:
        one, two = first[column], other[column]
        names = {part: f"{suite}.{column}.{part}" for part in one if part in two}
        drawn = {part: _drawn(one[part], two[part], name, seed) for part, name in names.items()}
        kept = {part: values for part, values in drawn.items() if values is not None}
        if kept.keys() == one.keys() == two.keys():
            columns[column] = _mean(list(kept.values()))
            found[column] = columns[column].difference()
        if len(one.keys() | two.keys()) > 1:
            found |= {f"{column} {part}": values.difference() for part, values in kept.items()}
    if suite == "discoeval" and len(columns) > 1:
        # The tasks have examples of their own: they are drawn independently.
        found[f"mean of {len(columns)} tasks"] = _mean(list(columns.values())).difference()
    return {**found, **_probes(suite, first, other, seed)}


def _probes(
    suite: str, first: Mapping[str, Parts], other: Mapping[str, Parts], seed: int
) -> dict[str, Difference]:
    """The mean over the probes, which change the same texts: a text is drawn for all of them."""
    names = [n for n in first if n.startswith(PROBES) and n in other]
    pairs = [(first[name].get(""), other[name].get("")) for name in names]
    shares = [(a, b) for a, b in pairs if a and b and a.right is not None and b.right is not None]
    if len(shares) < 2:
        return {}
    title = f"mean of {len(shares)} probes"
    drawn = _of_shares(shares, f"{suite}.{title}", seed)
    return {title: drawn.difference()} if drawn else {}


def _mean(drawn: Sequence[_Drawn]) -> _Drawn:
    """Of what was drawn independently."""
    return _Drawn(
        float(np.mean([one.value for one in drawn])),
        np.mean([one.values for one in drawn], axis=0),
        sum(one.units for one in drawn),
        sum(one.of for one in drawn),
    )


def _drawn(first: Outcomes, other: Outcomes, name: str, seed: int) -> _Drawn | None:
    if first.right is not None and other.right is not None:
        return _of_shares([(first, other)], name, seed)
    if first.gold is None or other.gold is None or list(first.units) != list(other.units):
        return None
    return _of_classes(first, other, name, seed)


def _of_shares(pairs: Sequence[tuple[Outcomes, Outcomes]], name: str, seed: int) -> _Drawn | None:
    """The mean difference of pairs of shares when whole units are drawn anew, for all at once.

    Units alike in all their numbers are drawn as one kind: the same law, and far fewer draws.
    """
    shared = [set(one.units) & set(two.units) for one, two in pairs]
    number = {unit: at for at, unit in enumerate(sorted(set().union(*shared)))}
    if not all(shared):
        return None
    rows = [
        _per_unit(each, number, common)
        for pair, common in zip(pairs, shared, strict=True)
        for each in pair
    ]
    kinds, counts = np.unique(np.concatenate(rows), axis=1, return_counts=True)
    units = len(number)
    draws = stream(seed, f"zoo.differences.{name}").multinomial(
        units, counts / units, size=RESAMPLES
    )

    def difference(drawn: np.ndarray) -> np.ndarray:
        sums = np.reshape(drawn @ kinds.T, (*drawn.shape[:-1], len(pairs), 2, 2))
        with np.errstate(invalid="ignore"):  # none of a probe's few units was drawn
            shares = sums[..., 0] / sums[..., 1]
        return np.nanmean(shares[..., 1] - shares[..., 0], axis=-1)

    either = set().union(*(one.units for pair in pairs for one in pair))
    return _Drawn(float(difference(counts)), difference(draws), units, len(either))


def _per_unit(one: Outcomes, number: Mapping[str, int], common: set[str]) -> np.ndarray:
    """What is right in each unit, and its examples, `[2, units]`; 0 outside the `common` ones."""
    assert one.right is not None
    at = np.array([number[unit] if unit in common else -1 for unit in one.units])
    kept, size = at >= 0, len(number)
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

    random = stream(seed, f"zoo.differences.{name}")
    draws = (random.multinomial(units, counts / units) for _ in range(RESAMPLES))
    values = np.array([difference(draw) for draw in draws])
    return _Drawn(difference(counts), values, units, units)
