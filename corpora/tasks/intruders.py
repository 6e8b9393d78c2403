"""Which sentence of a similar text is put where, so that nothing simple tells it.

An intruder is about as similar to its new surroundings as the sentence that it replaces, by four
measures: bags of words and overlaps of words then say little of which text was changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Flags = NDArray[np.bool_]

SCALES = (0.05, 0.05, 0.05, 0.8)
"""One step of each measure: to the rest, share of marks, to the neighbours, log of the length."""

SHORTFALL = 1.5
"""An intruder that is less similar than what it replaces costs more than one that is more so."""


class Bounds(Protocol):
    """What an intruder must keep to (see `corpora.tasks.intrusion.Settings`)."""

    @property
    def min_similarity(self) -> float: ...
    @property
    def max_similarity(self) -> float: ...
    @property
    def max_ratio(self) -> float: ...
    @property
    def max_cost(self) -> float: ...


LONELY = 4.0
"""The cost of sharing less with the rest than any other sentence does: it would show where."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A text, the host, and the sentences (guests) that might intrude on it.

    `host` [sentences, features] and `guests` [guests, features]: parts of unit vectors, over the
    features that the host has; `few` [features]: those that few texts have, called marks.
    `marks` and `words`: of the host's sentences, then of the guests. `usable`: of the guests.
    """

    host: Matrix
    guests: Matrix
    few: Flags
    marks: NDArray[np.int64]
    words: NDArray[np.int64]
    usable: Flags


@dataclass(frozen=True, slots=True)
class Intruder:
    """Which guest, at what cost, and how similar to the rest; `replaced`: what it replaces."""

    guest: int
    cost: float
    similarity: float
    replaced: float


def find_intruder(
    scene: Scene, position: int, bounds: Bounds, draw: np.random.Generator | None = None
) -> Intruder | None:
    """The best intruder at a position of the host, or None if none keeps to the bounds.

    With `draw` any guest that keeps to the bounds, each as likely.
    """
    host, n = scene.host, len(scene.host)
    ratio = np.abs(np.log(scene.words[n:] / scene.words[position]))
    fits = scene.usable & (ratio <= np.log(bounds.max_ratio))
    # Nearly a copy of no sentence of the text, the replaced one included.
    fits &= (scene.guests @ host.T).max(axis=1) <= bounds.max_similarity
    rest = _to_rest(host, scene.guests, position)
    fits &= (rest >= bounds.min_similarity) & (rest <= bounds.max_similarity)
    kept = np.flatnonzero(fits)
    if not kept.size:
        return None
    everyone = np.vstack([scene.guests[kept], host[position]])
    marked, lonely = _marked(scene, kept, position)
    cost = (ratio[kept] / SCALES[3]) ** 2 + LONELY * (marked[:-1] < lonely)
    to_rest = _to_rest(host, everyone, position)
    measures = (to_rest, marked, _to_neighbours(host, everyone, position))
    for measure, scale in zip(measures, SCALES, strict=False):
        steps = (measure[:-1] - measure[-1]) / scale
        cost = cost + steps**2 * np.where(steps < 0, SHORTFALL, 1)
    best = int(np.argmin(cost)) if draw is None else int(draw.integers(len(kept)))
    return Intruder(int(kept[best]), float(cost[best]), float(to_rest[best]), float(to_rest[-1]))


def _marked(scene: Scene, kept: NDArray[np.int64], position: int) -> tuple[Matrix, float]:
    """The share of marks of each guest, and of the replaced sentence; the least of the others."""
    n = len(scene.host)
    host = (scene.host[:, scene.few] > 0).astype(np.float64)
    guests = (scene.guests[np.ix_(kept, scene.few)] > 0).astype(np.float64)
    sizes = np.append(scene.marks[n:][kept], scene.marks[position])
    others = [
        float(_share(host, host[i : i + 1], scene.marks[i : i + 1], i)[0])
        for i in range(1, n)
        if i != position
    ]
    everyone = np.vstack([guests, host[position]])
    return _share(host, everyone, sizes, position), min(others, default=0.0)


def _to_rest(host: Matrix, guests: Matrix, position: int) -> Matrix:
    """Cosine of each guest to the sum of the host's sentences but the one at `position`."""
    rest = host.sum(axis=0) - host[position]
    return (guests @ rest) / (np.sqrt(rest @ rest) or 1.0)


def _share(host: Matrix, guests: Matrix, sizes: NDArray[np.int64], position: int) -> Matrix:
    """The share of each guest's marks (`sizes` of them) that another sentence of the host has."""
    rest = (host.sum(axis=0) - host[position]) > 0
    return (guests @ rest) / np.maximum(sizes, 1)


def _to_neighbours(host: Matrix, guests: Matrix, position: int) -> Matrix:
    """Mean cosine of each guest to the sentences before and after `position`."""
    return (guests @ host[[i for i in (position - 1, position + 1) if i < len(host)]].T).mean(
        axis=1
    )
