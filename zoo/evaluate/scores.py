"""Statistics: figures of predictions, bootstrap intervals, and by how much two models differ.

A figure in a result holds its `ci`, which is None where fewer than `FEW` units were drawn anew,
and beside it `units`, their number. Whole groups are drawn by their counts (one multinomial draw
a sample): `scipy.stats.bootstrap` would draw and sum every row, and offers no groups.

Differences have paired bootstrap intervals (Berg-Kirkpatrick, Burkett and Klein 2012,
https://aclanthology.org/D12-1091): the examples are drawn anew, the same for both models. How
difficult the examples are then makes no difference, so the interval is narrower than those of the
two figures would suggest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from corpora.errors import InputError, amount
from corpora.intervals import FEW
from corpora.rng import stream

RESAMPLES = 1000

RIGHT, WRONG, TIE, LEFT_OUT = "1", "0", "=", "-"
"""Outcomes of a pair of texts: the coherent one scores higher, lower, or they tie; or the pair is
left out, because the model reads its two texts as one."""
Ties = Literal["half", "wrong"]
"""What a tie of two different texts counts: one half, or nothing as in the authors' code."""
PROBES = "probe_"
"""How the names of the probes of the suite `pairwise` begin."""


def finite(values: np.ndarray, what: str, where: str = "", hint: str = "") -> np.ndarray:
    """`values` as they are. Raises `InputError` if one is NaN or infinite: it would just lose."""
    if not np.isfinite(values).all():
        raise InputError(f"{what} with NaN or infinity", where=where, hint=hint)
    return values


# Intervals.


def interval(values: np.ndarray) -> list[float]:
    """The percentile interval (95 %) of a statistic's resampled `values`."""
    return [float(bound) for bound in np.percentile(values, [2.5, 97.5])]


def stated(units: int, resampled: Iterable[float]) -> dict[str, Any]:
    """`ci` of the `resampled` values, which are only drawn where the `units` are enough."""
    return {"ci": None if units < FEW else interval(np.array([*resampled])), "units": units}


def of_confusion(
    confusion: np.ndarray, statistic: Callable[[np.ndarray], float], seed: int, name: str
) -> dict[str, Any]:
    """`statistic(confusion)`, with its interval when the rows, its `units`, are drawn anew.

    `confusion [gold, predicted]` counts rows. Drawing as many rows with replacement is one
    multinomial draw over its cells. One draw is held at a time: a matrix of many classes is large.
    """
    rows, random = int(confusion.sum()), stream(seed, f"zoo.bootstrap.{name}")
    shares = (confusion / max(rows, 1)).ravel()
    draws = (random.multinomial(rows, shares).reshape(confusion.shape) for _ in range(RESAMPLES))
    return {"value": statistic(confusion), **stated(rows, map(statistic, draws))}


def of_ratio(wins: np.ndarray, counts: np.ndarray, seed: int, name: str) -> dict[str, Any]:
    """The interval of `sum(wins) / sum(counts)` when whole `units` are drawn anew.

    A unit, such as a document with all its permutations, has `wins[i]` of `counts[i]`.
    """
    drawn = whole_units(len(counts), seed, name)
    return stated(len(counts), ((each @ wins) / (each @ counts) for each in drawn))


def mean_of(values: np.ndarray, groups: Sequence[Any] | np.ndarray, seed: int, name: str) -> Any:
    """The mean of `values`, with its interval when whole groups are drawn: they are dependent."""
    _, index = np.unique(np.asarray(groups), return_inverse=True)
    drawn = of_ratio(np.bincount(index, weights=values), np.bincount(index), seed, name)
    return {"value": float(values.mean()), **drawn}


def whole_units(units: int, seed: int, name: str) -> Iterator[np.ndarray]:
    """How often each of `units` units is in a sample, `[units]`, for each of `RESAMPLES` samples.

    One sample is held at a time: there may be many units.
    """
    random = stream(seed, f"zoo.bootstrap.{name}")
    shares = np.full(units, 1 / max(units, 1))
    return (random.multinomial(units, shares) for _ in range(RESAMPLES))


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


# Figures of classifiers, from counts `[gold, predicted]`: a bootstrap draws counts, not rows, so
# scikit-learn's functions of rows do not serve.


def confusion_matrix(
    gold: np.ndarray, predicted: np.ndarray, classes: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Counts `[gold, predicted]`; each row counts once, or by its weight."""
    cells = np.bincount(gold * classes + predicted, weights, classes * classes)
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


# Pairs of a coherent and another text.


def wins(coherent: np.ndarray, other: np.ndarray, ties: Ties = "half") -> np.ndarray:
    """1 where `coherent[i] > other[i]`, 0 where it is lower, and what a tie counts."""
    return (coherent > other) + (0.5 if ties == "half" else 0.0) * (coherent == other)


def ranked(
    coherent: np.ndarray,
    other: np.ndarray,
    units: Sequence[str],
    seed: int,
    name: str,
    ties: Ties = "half",
) -> dict[str, Any]:
    """How often `coherent[i] > other[i]`, and the number of `ties` (see `wins`).

    `units[i]` is what pair `i` came from (a document): pairs of one unit are not independent,
    so the interval draws whole units.
    """
    figure = mean_of(wins(coherent, other, ties), units, seed, name)
    return {**figure, "ties": int((coherent == other).sum())}


class Compared(NamedTuple):
    """The scores of both texts of each pair, `[pairs]`, and whether a scorer reads them as one.

    It does where its cut takes the difference away. Such a pair is left out and counted, for the
    rules beside the scorer too.
    """

    coherent: np.ndarray
    other: np.ndarray
    same: np.ndarray

    @property
    def outcomes(self) -> str:
        """A character a pair."""
        signs = np.sign(self.coherent - self.other).astype(int)
        return "".join(np.where(self.same, LEFT_OUT, np.array([WRONG, TIE, RIGHT])[signs + 1]))

    def right(self, ties: Ties, same: np.ndarray | None = None) -> np.ndarray:
        """`wins`, NaN where a pair is left out: by itself, or by `same` of another scorer."""
        left_out = self.same if same is None else same
        return np.where(left_out, np.nan, wins(self.coherent, self.other, ties))


def left_out_note(name: str, identical: int, pairs: int) -> str:
    """What a result says of pairs that the cut made equal; `pairs` are those before it."""
    return (
        f"{name}: {identical:,} of {amount(pairs, 'pair')} left out: the model's cut makes their "
        "two texts equal"
    )


@dataclass(frozen=True)
class Ranking:
    """The scores of `documents[pair]` and of a permutation of each, and the lengths of both.

    `same` marks the permutations that a scorer reads as the document: its cut takes the difference
    away, or the sentences are equal. They are left out. Raises `InputError` if none is left.
    """

    documents: Sequence[str]
    coherent: np.ndarray
    permuted: np.ndarray
    lengths: tuple[np.ndarray, np.ndarray]
    same: np.ndarray

    def __post_init__(self) -> None:
        if self.same.all():
            problem = "no document differs from its permutations"
            raise InputError(problem, hint="it needs two sentences that the model reads whole")
        finite(np.stack([self.coherent, self.permuted]), "the model gives scores", "permuted")

    @property
    def compared(self) -> Compared:
        return Compared(self.coherent, self.permuted, self.same)

    @property
    def identical(self) -> int:
        """The number of pairs left out."""
        return int(self.same.sum())

    def rules(self, seed: int) -> dict[str, Compared]:
        """The rules `random`, `longer` and `shorter`, on all pairs."""
        longer, other = self.lengths
        one, two = stream(seed, "zoo.evaluate.random").random((2, len(self.documents)))
        return {
            "random": Compared(one, two, self.same),
            "longer": Compared(longer, other, self.same),
            "shorter": Compared(-longer, -other, self.same),
        }

    def figure(self, scores: Compared, seed: int, name: str, ties: Ties) -> dict[str, Any]:
        """The accuracy of a scorer on the pairs that are not left out here."""
        judged = ~self.same
        units = [name for name, one in zip(self.documents, judged, strict=True) if one]
        return ranked(scores.coherent[judged], scores.other[judged], units, seed, name, ties)

    def metrics(self, seed: int, ties: Ties = "half") -> dict[str, Any]:
        """Accuracy, and that of the rules, on the `pairs` judged; `identical` counts the others."""
        judged = {name for name, same in zip(self.documents, self.same, strict=True) if not same}
        return {
            "accuracy": self.figure(self.compared, seed, "permuted", ties),
            "pairs": len(self.documents) - self.identical,
            "documents": len(judged),
            "identical": self.identical,
            "ties": ties,
            "baselines": {
                name: self.figure(scores, seed, name, ties)
                for name, scores in self.rules(seed).items()
            },
            "resampled": "documents",
        }


class McNemar(NamedTuple):
    """McNemar's test: on how many pairs one of two models alone is better, and its p."""

    only_this: int
    only_other: int
    p: float


def mcnemar(one: str, two: str, ties: Ties = "half") -> McNemar:
    """McNemar's exact two-sided test: do two models err equally often on the same pairs?

    `one` and `two` are a character a pair; pairs that either left out do not count. A tie is better
    than an error and worse than a hit (which makes it the sign test), or is an error like others.
    Pairs of one document are taken as independent, so p is too small where a document has many.
    """
    from scipy.stats import binomtest

    worth = {WRONG: 0, TIE: int(ties == "half"), RIGHT: 2}
    both = [(worth[a], worth[b]) for a, b in zip(one, two, strict=True) if LEFT_OUT not in (a, b)]
    only_this, only_other = sum(a > b for a, b in both), sum(a < b for a, b in both)
    differ = only_this + only_other
    p = float(binomtest(only_this, differ).pvalue) if differ else 1.0
    return McNemar(only_this, only_other, p)


# Differences between two models, from what each has right example by example.


@dataclass(frozen=True)
class Outcomes:
    """The examples behind one figure.

    `column` is the figure's in `discorpora compare`; the mean of its `part`s (domains) if it has
    several. Examples of one unit (a document with its permutations) are drawn together. Either
    `right [examples]`, the share of the classifiers that are right, whose mean is the figure (NaN:
    an example that was left out); or the classes `gold` and `predicted`, whose unweighted F1 is.
    `rule` is the row of the rule whose outcomes they are, "" those of the model.
    """

    column: str
    units: Sequence[str]
    right: np.ndarray | None = None
    gold: np.ndarray | None = None
    predicted: np.ndarray | None = None
    part: str = ""
    rule: str = ""

    @property
    def judged(self) -> np.ndarray:
        """Which examples were judged, `[examples]`."""
        return np.ones(len(self.units), bool) if self.right is None else ~np.isnan(self.right)

    def only(self, kept: np.ndarray) -> Outcomes:
        """Those of the examples `kept`; of shares only."""
        assert self.right is not None
        units = [unit for unit, one in zip(self.units, kept, strict=True) if one]
        return replace(self, units=units, right=self.right[kept])


Columns: TypeAlias = Mapping[str, Mapping[str, Outcomes]]
"""Outcomes by column and part."""


def numbered(rows: int) -> list[str]:
    """Units for examples that are independent of each other."""
    return [str(row) for row in range(rows)]


def joined(trainings: Sequence[Columns]) -> Columns:
    """The outcomes of several trainings as one: `right` is the share of trainings with a hit.

    A part stays if all trainings have it on the same examples; classes have no mean and go.
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
    """Other minus first, over `units` units of the `of` that either has.

    `share` is the difference and `drawn` its value in each resample; `value` and the 95 % interval
    `ci` are in points of per cent. There is no interval for fewer than `FEW` units.
    """

    share: float
    drawn: np.ndarray = field(repr=False, compare=False)
    units: int
    of: int

    @property
    def value(self) -> float:
        return 100 * self.share

    @property
    def ci(self) -> tuple[float, float] | None:
        low, high = interval(self.drawn)
        return None if self.units < FEW else (100 * low, 100 * high)

    @property
    def text(self) -> str:
        """With an asterisk where the interval excludes 0."""
        if self.ci is None:
            return f"{self.value:+.1f} ({amount(self.units, 'unit')})"
        clear = "" if self.ci[0] <= 0 <= self.ci[1] else "*"
        shown = f"{self.value:+.1f} [{self.ci[0]:+.1f}, {self.ci[1]:+.1f}]{clear}"
        return shown if self.units == self.of else f"{shown} ({self.units} of {self.of} units)"


def differences(suite: str, first: Columns, other: Columns, seed: int = 0) -> dict[str, Difference]:
    """`other` minus `first` for each column that both have, for its parts, and for their means.

    A column is compared where both have the same parts. Units that only one of them has are left
    out; a part without a common unit is too, and one of classes whose examples are not the same.
    """
    found: dict[str, Difference] = {}
    columns = []
    for column in (name for name in first if name in other):
        one, two = first[column], other[column]
        parts = {}
        for part in (name for name in one if name in two):
            if drawn := _drawn([(one[part], two[part])], f"{suite}.{column}.{part}", seed):
                parts[part] = drawn
        if parts.keys() == one.keys() == two.keys():
            columns.append(_mean([*parts.values()]))
            found[column] = columns[-1]
        if len(one.keys() | two.keys()) > 1:
            found |= {f"{column} {part}": each for part, each in parts.items()}
    if suite == "discoeval" and len(columns) > 1:
        # The tasks have examples of their own: they are drawn independently.
        found[f"mean of {len(columns)} tasks"] = _mean(columns)
    # The probes change the same texts: a text is drawn for all of them.
    probes = [name for name in first if name.startswith(PROBES)]
    both = [(first[name].get(""), other.get(name, {}).get("")) for name in probes]
    pairs = [(a, b) for a, b in both if a and b and a.right is not None and b.right is not None]
    if len(pairs) > 1:
        title = f"mean of {len(pairs)} probes"
        if drawn := _drawn(pairs, f"{suite}.{title}", seed):
            found[title] = drawn
    return found


def _mean(drawn: Sequence[Difference]) -> Difference:
    """Of what was drawn independently."""
    share = float(np.mean([each.share for each in drawn]))
    values = np.mean([each.drawn for each in drawn], axis=0)
    units, of = sum(each.units for each in drawn), sum(each.of for each in drawn)
    return Difference(share, values, units, of)


def _drawn(pairs: Sequence[tuple[Outcomes, Outcomes]], name: str, seed: int) -> Difference | None:
    """The mean difference of pairs of outcomes, drawn anew; None where they share no units.

    Whole units of shares are drawn, for all pairs at once. Units alike in all their numbers are
    drawn as one kind: the same law, and far fewer draws.
    """
    random = stream(seed, f"zoo.differences.{name}")
    if any(one.right is None for pair in pairs for one in pair):
        return _of_classes(*pairs[0], random)
    pairs = [_judged_by_both(*pair) for pair in pairs]
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
    draws = random.multinomial(units, counts / units, size=RESAMPLES)

    def difference(drawn: np.ndarray) -> np.ndarray:
        sums = np.reshape(drawn @ kinds.T, (*drawn.shape[:-1], len(pairs), 2, 2))
        with np.errstate(invalid="ignore"):  # none of a probe's few units was drawn
            shares = sums[..., 0] / sums[..., 1]
        return np.nanmean(shares[..., 1] - shares[..., 0], axis=-1)

    either = set().union(*(one.units for pair in pairs for one in pair))
    return Difference(float(difference(counts)), difference(draws), units, len(either))


def _judged_by_both(one: Outcomes, two: Outcomes) -> tuple[Outcomes, Outcomes]:
    """Without the examples that either left out, or each its own if they are not of one order."""
    if list(one.units) == list(two.units):
        both = one.judged & two.judged
        return one.only(both), two.only(both)
    return one.only(one.judged), two.only(two.judged)


def _of_classes(first: Outcomes, other: Outcomes, random: np.random.Generator) -> Difference | None:
    """The difference of two unweighted F1 when rows are drawn anew; None of other examples.

    Drawing rows is one multinomial draw over the cells (gold, first's class, other's class).
    """
    if first.gold is None or other.gold is None or not np.array_equal(first.gold, other.gold):
        return None
    if list(first.units) != list(other.units):
        return None
    rows = np.array([first.gold, first.predicted, other.predicted])
    classes, units = int(rows.max()) + 1, len(first.units)
    (gold, own, its), counts = np.unique(rows, axis=1, return_counts=True)

    def difference(weights: np.ndarray) -> float:
        one, two = (confusion_matrix(gold, each, classes, weights) for each in (own, its))
        return macro_f1(two) - macro_f1(one)

    draws = (random.multinomial(units, counts / units) for _ in range(RESAMPLES))
    return Difference(difference(counts), np.array([*map(difference, draws)]), units, units)
