"""Bootstrap intervals, drawn from a named random stream, and McNemar's test.

A figure in a result holds its `ci`, which is None where fewer than `FEW` units were drawn anew,
and beside it `units`, their number. Whole groups are drawn by their counts (one multinomial draw
a sample): `scipy.stats.bootstrap` would draw and sum every row, and offers no groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypedDict

import numpy as np

from corpora.errors import InputError
from corpora.intervals import FEW
from corpora.rng import stream

RESAMPLES = 1000
LEVEL = 95.0

RIGHT, WRONG, TIE = "1", "0", "="
"""Outcomes of a pair of texts: the coherent one scores higher, lower, or they tie."""


class Interval(TypedDict):
    """The interval of a figure, as its result holds it."""

    ci: list[float] | None
    units: int


class McNemar(TypedDict):
    """McNemar's test, as a result holds it: what one of two models alone has right."""

    only_this: int
    only_other: int
    p: float


def interval(values: np.ndarray) -> list[float]:
    """The percentile interval (95 %) of a statistic's resampled `values`."""
    tails = [(100 - LEVEL) / 2, (100 + LEVEL) / 2]
    return [float(bound) for bound in np.percentile(values, tails)]


def stated(units: int, resampled: Callable[[], np.ndarray]) -> Interval:
    """`resampled` is asked for values of the statistic where the units are enough."""
    return {"ci": None if units < FEW else interval(resampled()), "units": units}


def of_confusion(
    confusion: np.ndarray, statistic: Callable[[np.ndarray], float], seed: int, name: str
) -> Interval:
    """Of `statistic(confusion)` when the rows, its `units`, are drawn anew.

    `confusion [gold, predicted]` counts rows. Drawing as many rows with replacement is one
    multinomial draw over its cells. One draw is held at a time: a matrix of many classes is large.
    """
    rows = int(confusion.sum())

    def resampled() -> np.ndarray:
        shares = (confusion / rows).ravel()
        random = stream(seed, f"zoo.bootstrap.{name}")
        draws = (random.multinomial(rows, shares) for _ in range(RESAMPLES))
        return np.array([statistic(draw.reshape(confusion.shape)) for draw in draws])

    return stated(rows, resampled)


def of_ratio(wins: np.ndarray, counts: np.ndarray, seed: int, name: str) -> Interval:
    """Of `sum(wins) / sum(counts)` when whole `units` are drawn anew.

    A unit, such as a document with all its permutations, has `wins[i]` of `counts[i]`.
    """

    def resampled() -> np.ndarray:
        drawn = whole_units(len(counts), seed, name)
        return (drawn @ wins) / (drawn @ counts)

    return stated(len(counts), resampled)


def of_groups(values: np.ndarray, groups: np.ndarray, seed: int, name: str) -> Interval:
    """Of the mean of `values` when whole groups are drawn anew: values of one are dependent."""
    _, index = np.unique(groups, return_inverse=True)
    return of_ratio(np.bincount(index, weights=values), np.bincount(index), seed, name)


def whole_units(units: int, seed: int, name: str) -> np.ndarray:
    """How often each of `units` units is in each sample, `[samples, units]`."""
    random = stream(seed, f"zoo.bootstrap.{name}")
    return random.multinomial(units, np.full(units, 1 / units), size=RESAMPLES)


def notes_of(metrics: Any) -> list[str]:
    """Why figures of a result have no interval, if any have none."""

    def too_few(tree: Any) -> Iterator[int]:
        if isinstance(tree, Mapping):
            if "units" in tree and tree.get("ci") is None:
                yield int(tree["units"])
            for below in tree.values():
                yield from too_few(below)

    few = sorted(set(too_few(metrics)))
    if not few:
        return []
    shown = f"{few[0]}" if len(few) == 1 else f"{few[0]} to {few[-1]}"
    return [
        f"no interval where fewer than {FEW} units (rows, documents: what is drawn anew) were "
        f"judged, here {shown}: it would say nothing"
    ]


def mcnemar(one: str, two: str) -> McNemar:
    """McNemar's exact two-sided test: do two models err equally often on the same pairs?

    `one` and `two` are a character a pair; a tie counts as wrong. Pairs of one document are taken
    as independent, so p is too small where a document has many.
    """
    from statsmodels.stats import contingency_tables

    if len(one) != len(two):
        raise InputError(f"{len(one)} outcomes against {len(two)}: not of the same pairs")
    right = [(a == RIGHT, b == RIGHT) for a, b in zip(one, two, strict=True)]
    only_this, only_other = right.count((True, False)), right.count((False, True))
    found = contingency_tables.mcnemar([[0, only_this], [only_other, 0]], exact=True)
    return {"only_this": only_this, "only_other": only_other, "p": float(found.pvalue)}
