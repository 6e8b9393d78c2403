"""Figures of predictions, with bootstrap intervals from a named random stream; McNemar's test.

A figure in a result holds its `ci`, which is None where fewer than `FEW` units were drawn anew,
and beside it `units`, their number. Whole groups are drawn by their counts (one multinomial draw
a sample): `scipy.stats.bootstrap` would draw and sum every row, and offers no groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    """Of the values that `resampled` draws where the units are enough."""
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
    shown = " to ".join(map(str, dict.fromkeys((few[0], few[-1]))))
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


def confusion_matrix(gold: np.ndarray, predicted: np.ndarray, classes: int) -> np.ndarray:
    """Counts `[gold, predicted]`."""
    cells = np.bincount(gold * classes + predicted, minlength=classes * classes)
    return cells.reshape(classes, classes)


def accuracy(confusion: np.ndarray) -> float:
    return float(np.trace(confusion) / max(confusion.sum(), 1))


def macro_f1(confusion: np.ndarray) -> float:
    """The mean F1 over the classes with gold rows; a class never predicted has F1 0."""
    *_, f1 = _scores(confusion)
    present = confusion.sum(1) > 0
    return float(f1[present].mean()) if present.any() else 0.0


def per_class(confusion: np.ndarray, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each class (0 where undefined), with its rows."""
    precision, recall, f1 = _scores(confusion)
    return {
        name: {
            "precision": float(precision[i]),
            "recall": float(recall[i]),
            "f1": float(f1[i]),
            "gold": int(confusion[i].sum()),
            "predicted": int(confusion[:, i].sum()),
        }
        for i, name in enumerate(names)
    }


def weighted_average(confusion: np.ndarray) -> dict[str, float]:
    """Precision and recall averaged over the rows' classes: the line `Avg` of tables 8 to 10."""
    precision, recall, _ = _scores(confusion)
    shares = confusion.sum(1) / max(confusion.sum(), 1)
    return {"precision": float(shares @ precision), "recall": float(shares @ recall)}


def _scores(confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    right = np.diag(confusion).astype(float)
    precision = right / np.maximum(confusion.sum(0), 1)
    recall = right / np.maximum(confusion.sum(1), 1)
    return precision, recall, 2 * precision * recall / np.maximum(precision + recall, 1e-12)


def finite(scores: np.ndarray, where: str) -> np.ndarray:
    """`scores` as they are. Raises `InputError` if one is NaN or infinite: it would just lose."""
    if not np.isfinite(scores).all():
        raise InputError("the model gives scores that are not finite", where=where)
    return scores


def ranked(
    coherent: np.ndarray, other: np.ndarray, units: Sequence[str], seed: int, name: str
) -> dict[str, Any]:
    """How often `coherent[i] > other[i]`; a tie is wrong, and reported.

    `units[i]` is what pair `i` came from (a document): pairs of one unit are not independent,
    so the interval draws whole units.
    """
    wins, ties = coherent > other, coherent == other
    return {
        "value": float(wins.mean()),
        **of_groups(wins, np.asarray(units), seed, name),
        "ties": int(ties.sum()),
    }


@dataclass(frozen=True)
class Ranking:
    """The scores of `documents[pair]` and of a permutation of each, and the lengths of both.

    `identical` counts the permutations that do not differ from their document: left out.
    """

    documents: Sequence[str]
    coherent: np.ndarray
    permuted: np.ndarray
    lengths: tuple[np.ndarray, np.ndarray]
    identical: int = 0

    def __post_init__(self) -> None:
        if not self.documents:
            problem = "no document differs from its permutations"
            raise InputError(problem, hint="it needs two sentences")
        finite(self.coherent, "permuted")
        finite(self.permuted, "permuted")

    def metrics(self, seed: int) -> dict[str, Any]:
        """Accuracy, and that of the rules `random`, `longer` and `shorter`."""
        names, (longer, other) = self.documents, self.lengths
        drawn = stream(seed, "zoo.evaluate.random").random((2, len(names)))
        return {
            "accuracy": ranked(self.coherent, self.permuted, names, seed, "permuted"),
            "pairs": len(names),
            "documents": len(set(names)),
            "identical": self.identical,
            "baselines": {
                "random": ranked(drawn[0], drawn[1], names, seed, "random"),
                "longer": ranked(longer, other, names, seed, "longer"),
                "shorter": ranked(-longer, -other, names, seed, "shorter"),
            },
            "resampled": "documents",
        }
