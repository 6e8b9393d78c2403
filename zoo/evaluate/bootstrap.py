"""Bootstrap intervals, drawn from a named random stream.

A figure in a result holds its `ci`, which is None where fewer than `FEW` units were drawn anew,
and beside it `units`, their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from corpora.intervals import FEW
from corpora.rng import stream

RESAMPLES = 1000
LEVEL = 95.0


def interval(values: np.ndarray) -> list[float]:
    """The percentile interval (95 %) of a statistic's resampled `values`."""
    tails = [(100 - LEVEL) / 2, (100 + LEVEL) / 2]
    return [float(bound) for bound in np.percentile(values, tails)]


def stated(units: int, resampled: Callable[[], np.ndarray]) -> dict[str, Any]:
    """`ci` and `units` as a result holds them; `resampled` is asked for values of the statistic."""
    return {"ci": None if units < FEW else interval(resampled()), "units": units}


def of_confusion(
    confusion: np.ndarray, statistic: Callable[[np.ndarray], float], seed: int, name: str
) -> dict[str, Any]:
    """`ci` of `statistic(confusion)` when the rows, its `units`, are drawn anew.

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


def of_ratio(wins: np.ndarray, counts: np.ndarray, seed: int, name: str) -> dict[str, Any]:
    """`ci` of `sum(wins) / sum(counts)` when whole `units` are drawn anew.

    A unit, such as a document with all its permutations, has `wins[i]` of `counts[i]`.
    """

    def resampled() -> np.ndarray:
        drawn = whole_units(len(counts), seed, name)
        return (drawn @ wins) / (drawn @ counts)

    return stated(len(counts), resampled)


def whole_units(units: int, seed: int, name: str) -> np.ndarray:
    """How often each of `units` units is in each sample, `[samples, units]`."""
    random = stream(seed, f"zoo.bootstrap.{name}")
    return random.multinomial(units, np.full(units, 1 / units), size=RESAMPLES)


def notes_of(metrics: Any) -> list[str]:
    """Why figures of a result have no interval, if any have none."""
    few = sorted(set(_too_few(metrics)))
    if not few:
        return []
    shown = f"{few[0]}" if len(few) == 1 else f"{few[0]} to {few[-1]}"
    return [
        f"no interval where fewer than {FEW} units (rows, documents: what is drawn anew) were "
        f"judged, here {shown}: it would say nothing"
    ]


def _too_few(tree: Any) -> Iterator[int]:
    """The units of each figure that is left without an interval."""
    if not isinstance(tree, Mapping):
        return
    if "units" in tree and tree.get("ci") is None:
        yield int(tree["units"])
    for below in tree.values():
        yield from _too_few(below)
