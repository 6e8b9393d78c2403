"""Statistics: figures of predictions, bootstrap intervals, and differences between two models.

A figure in a result has a 95 % bootstrap interval `ci` and the number of `units` that were
resampled, such as rows or documents. `ci` is None for fewer than `FEW` units. A resample draws the
counts of its units at once, from a multinomial distribution: `scipy.stats.bootstrap` would draw and
sum every row, and offers no groups.

Differences have paired bootstrap intervals (Berg-Kirkpatrick, Burkett and Klein 2012,
https://aclanthology.org/D12-1091): each resample has the same examples for both models. Examples
that are difficult for both then add no variance, and the interval is narrower than those of the two
figures would suggest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from corpora.errors import InputError, amount
from corpora.intervals import FEW
from corpora.rng import stream

RESAMPLES = 1000
CELLS_AT_ONCE = 1 << 20
"""The most cells of resampled confusion matrices that are in memory at a time, 8 bytes each."""

RIGHT, WRONG, TIE, LEFT_OUT = "1", "0", "=", "-"
"""Outcomes of a pair of texts: the coherent one scores higher, lower, or they tie; or the pair is
left out, because the model reads its two texts as one."""
Ties = Literal["half", "wrong"]
"""What a tie of two different texts counts: one half, or nothing as in the authors' code."""
PROBES = "probe_"
"""The prefix of the names of the suite `pairwise`'s probes: sets with one kind of change."""


def finite(values: np.ndarray, what: str, where: str = "", hint: str = "") -> np.ndarray:
    """Return `values`. Raises `InputError` ("{what} with NaN or infinity") if one is not finite."""
    if not np.isfinite(values).all():
        raise InputError(f"{what} with NaN or infinity", where=where, hint=hint)
    return values


# Intervals.


def interval(values: np.ndarray) -> list[float]:
    """The percentile interval (95 %), [low, high], of a statistic's resampled `values`."""
    return [float(bound) for bound in np.percentile(values, [2.5, 97.5])]


def ci_and_units(units: int, resampled: Iterable[float]) -> dict[str, Any]:
    """A figure's 95 % interval `ci` from its values in resamples, and the number of its `units`."""
    return {"ci": None if units < FEW else interval(np.array([*resampled])), "units": units}


def figure_of_confusion(
    confusion: np.ndarray, statistic: Callable[[np.ndarray], Any], seed: int, name: str
) -> dict[str, Any]:
    """The figure `statistic(confusion)`, with its bootstrap interval over rows.

    `confusion [gold, predicted]` counts rows. A resample draws the same number of rows with
    replacement, which is one multinomial draw over the cells. `statistic` takes several matrices
    at once, `[resamples, gold, predicted]`: as many as have `CELLS_AT_ONCE` cells, since many
    classes need much memory.
    """
    rows, random = int(confusion.sum()), stream(seed, f"zoo.bootstrap.{name}")
    shares = (confusion / max(rows, 1)).ravel()
    at_once = max(1, CELLS_AT_ONCE // max(confusion.size, 1))
    values = chain.from_iterable(
        statistic(random.multinomial(rows, shares, count).reshape(count, *confusion.shape))
        for start in range(0, RESAMPLES, at_once)
        for count in [min(at_once, RESAMPLES - start)]
    )
    return {"value": float(statistic(confusion)), **ci_and_units(rows, values)}


def ratio_interval(wins: np.ndarray, counts: np.ndarray, seed: int, name: str) -> dict[str, Any]:
    """The bootstrap interval of `sum(wins) / sum(counts)` over units, and their number.

    Unit `i`, such as a document with all its permutations, has `wins[i]` wins in `counts[i]` cases.
    `name` gives the figure its own random numbers.
    """
    samples = resampled_counts(len(counts), seed, name)
    ratios = ((times @ wins) / (times @ counts) for times in samples)
    return ci_and_units(len(counts), ratios)


def mean_figure(
    values: np.ndarray, groups: Sequence[Any] | np.ndarray, seed: int, name: str
) -> dict[str, Any]:
    """The mean of `values`, with its bootstrap interval over groups.

    `groups[i]` is the group of value `i`; values of one group depend on each other.
    """
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    sums, sizes = np.bincount(group, weights=values), np.bincount(group)
    return {"value": float(values.mean()), **ratio_interval(sums, sizes, seed, name)}


def resampled_counts(units: int, seed: int, name: str) -> Iterator[np.ndarray]:
    """Yield for each of `RESAMPLES` bootstrap samples how often each unit is in it, `[units]`.

    One sample is in memory at a time: there may be many units.
    """
    random = stream(seed, f"zoo.bootstrap.{name}")
    shares = np.full(units, 1 / max(units, 1))
    return (random.multinomial(units, shares) for _ in range(RESAMPLES))


def notes_of(metrics: Any) -> list[str]:
    """Return [a note on the figures in `metrics` that have no interval], or [] if all have one.

    `metrics` is a result: nested mappings whose figures have `units` and the interval `ci`. The
    note gives the smallest and the largest number of units of figures without an interval.
    """

    def units_without_interval(tree: Any) -> Iterator[int]:
        if isinstance(tree, Mapping):
            if "units" in tree and tree.get("ci") is None:
                yield int(tree["units"])
            for subtree in tree.values():
                yield from units_without_interval(subtree)

    numbers = sorted(set(units_without_interval(metrics)))
    if not numbers:
        return []
    # "3 to 8", or "3" if both ends are equal
    shown = " to ".join(map(str, dict.fromkeys((numbers[0], numbers[-1]))))
    return [
        f"no interval where fewer than {FEW} units (rows, documents: what is drawn anew) were "
        f"judged, here {shown}: it would say nothing"
    ]


# Figures of classifiers, from counts `[gold, predicted]`: a bootstrap draws counts, not rows, so
# scikit-learn's functions of rows do not serve.


def confusion_matrix(
    gold: np.ndarray, predicted: np.ndarray, classes: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Count the rows by class: `[gold, predicted]`; a row counts 1, or `weights[row]`.

    `gold [rows]` and `predicted [rows]` are numbers below `classes`.
    """
    cells = np.bincount(gold * classes + predicted, weights, classes * classes)
    return cells.reshape(classes, classes)


def accuracy(confusion: np.ndarray) -> Any:
    """The share of rows on the diagonal of each `confusion [..., gold, predicted]`, `[...]`."""
    right = np.trace(confusion, axis1=-2, axis2=-1)
    return right / np.maximum(confusion.sum((-2, -1)), 1)


def macro_f1(confusion: np.ndarray) -> Any:
    """The mean F1 over the classes with gold rows of each `confusion [..., gold, predicted]`.

    `[...]`; a class never predicted has F1 0.
    """
    *_, f1 = _precision_recall_f1(confusion)
    present = confusion.sum(-1) > 0
    return (f1 * present).sum(-1) / np.maximum(present.sum(-1), 1)


def per_class(confusion: np.ndarray, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each class (0 where undefined), and its numbers of rows."""
    precision, recall, f1 = _precision_recall_f1(confusion)
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
    """Precision and recall, averaged over classes by their gold rows (DisSent's tables 8 to 10)."""
    precision, recall, _ = _precision_recall_f1(confusion)
    shares = confusion.sum(1) / max(confusion.sum(), 1)
    return {"precision": float(shares @ precision), "recall": float(shares @ recall)}


def _precision_recall_f1(confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and F1 of each class, `[..., classes]` each; 0 where undefined."""
    right = np.diagonal(confusion, axis1=-2, axis2=-1).astype(float)
    precision = right / np.maximum(confusion.sum(-2), 1)
    recall = right / np.maximum(confusion.sum(-1), 1)
    return precision, recall, 2 * precision * recall / np.maximum(precision + recall, 1e-12)


def calibration_error(probabilities: np.ndarray, gold: np.ndarray, bins: int = 15) -> float:
    """The expected calibration error (Guo et al. 2017): the mean distance between the probability
    of the most probable class and how often it is right, in `bins` of equally many rows.

    `probabilities [rows, classes]`; `gold [rows]` are the right classes.
    """
    confidence, predicted = probabilities.max(axis=1), probabilities.argmax(axis=1)
    order = np.argsort(confidence, kind="stable")
    gaps = (confidence - (predicted == gold))[order]
    return sum(abs(float(part.sum())) for part in np.array_split(gaps, bins)) / max(len(gaps), 1)


# Pairs of a coherent and another text.


def wins(coherent: np.ndarray, other: np.ndarray, ties: Ties = "half") -> np.ndarray:
    """1 where `coherent[i] > other[i]`, 0 where it is lower; a tie counts 0.5 or 0, by `ties`."""
    return (coherent > other) + (0.5 if ties == "half" else 0.0) * (coherent == other)


def ranking_accuracy(
    coherent: np.ndarray,
    other: np.ndarray,
    units: Sequence[str],
    seed: int,
    name: str,
    ties: Ties = "half",
) -> dict[str, Any]:
    """The share of pairs whose coherent text scores higher, its interval, and the number of ties.

    Pair `i` has the scores `coherent[i]` and `other[i]`; a tie counts one half, or 0 (`ties`).
    `units[i]` is the document (or other source) of pair `i`. Pairs of one unit depend on each
    other, so the bootstrap draws whole units.
    """
    figure = mean_figure(wins(coherent, other, ties), units, seed, name)
    return {**figure, "ties": int((coherent == other).sum())}


class PairScores(NamedTuple):
    """The scores of the coherent and of the other text of each pair, `[pairs]` each.

    `same [pairs]` marks the pairs whose two texts are equal after the scorer cut them to its limit
    of tokens. They are left out and counted.
    """

    coherent: np.ndarray
    other: np.ndarray
    same: np.ndarray

    @property
    def outcomes(self) -> str:
        """One character for each pair: `RIGHT`, `WRONG`, `TIE` or `LEFT_OUT`."""
        signs = np.sign(self.coherent - self.other).astype(int)
        return "".join(np.where(self.same, LEFT_OUT, np.array([WRONG, TIE, RIGHT])[signs + 1]))

    def right(self, ties: Ties, same: np.ndarray | None = None) -> np.ndarray:
        """The share of each pair that is right: 1, 0, or for a tie what `ties` says (`wins`).

        It is NaN for the pairs to leave out, which `same [pairs]` marks (default: `self.same`).
        """
        left_out = self.same if same is None else same
        return np.where(left_out, np.nan, wins(self.coherent, self.other, ties))


def left_out_note(name: str, identical: int, pairs: int) -> str:
    """The note that `identical` of `pairs` pairs were left out, since their cut texts are equal."""
    return (
        f"{name}: {identical:,} of {amount(pairs, 'pair')} left out: the model's cut makes their "
        "two texts equal"
    )


@dataclass(frozen=True)
class Ranking:
    """The scores of documents and of permutations of their sentences, pair by pair.

    Pair `i` is the document named `documents[i]`, with the score `coherent[i]`, and a permutation
    of it, with the score `permuted[i]`; `lengths` has the lengths of both. `same` marks the pairs
    to leave out, whose two texts are equal as the scorer reads them: it cuts them before the first
    difference, or the moved sentences are equal. Raises `InputError` if it marks all pairs.
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
    def scores(self) -> PairScores:
        """The scorer's scores of the pairs."""
        return PairScores(self.coherent, self.permuted, self.same)

    @property
    def identical(self) -> int:
        """The number of pairs left out."""
        return int(self.same.sum())

    @property
    def judged(self) -> list[str]:
        """The document of each pair that is not left out."""
        return [name for name, same in zip(self.documents, self.same, strict=True) if not same]

    def rules(self, seed: int) -> dict[str, PairScores]:
        """The scores of the rules `random`, `longer` and `shorter` on all pairs."""
        lengths, permuted_lengths = self.lengths
        draws = stream(seed, "zoo.evaluate.random").random((2, len(self.documents)))
        return {
            "random": PairScores(draws[0], draws[1], self.same),
            "longer": PairScores(lengths, permuted_lengths, self.same),
            "shorter": PairScores(-lengths, -permuted_lengths, self.same),
        }

    def figure(self, scores: PairScores, seed: int, name: str, ties: Ties) -> dict[str, Any]:
        """The accuracy of the scorer or rule that gave `scores`, on the pairs not left out here."""
        coherent, other = scores.coherent[~self.same], scores.other[~self.same]
        return ranking_accuracy(coherent, other, self.judged, seed, name, ties)

    def metrics(self, seed: int, ties: Ties = "half") -> dict[str, Any]:
        """The accuracy of the scorer and of the rules on the `pairs` that are not left out."""
        return {
            "accuracy": self.figure(self.scores, seed, "permuted", ties),
            "pairs": len(self.judged),
            "documents": len({*self.judged}),
            "identical": self.identical,
            "ties": ties,
            "baselines": {
                name: self.figure(scores, seed, name, ties)
                for name, scores in self.rules(seed).items()
            },
            "resampled": "documents",
        }


class McNemar(NamedTuple):
    """McNemar's test: the numbers of pairs that only one of two models gets right, and p."""

    only_this: int
    only_other: int
    p: float


def mcnemar(first: str, second: str, ties: Ties = "half") -> McNemar:
    """McNemar's exact two-sided test of whether two models err equally often on the same pairs.

    `first` and `second` have one character for each pair, as `PairScores.outcomes`. Pairs that one
    of the models left out do not count. With `ties="half"` a tie is better than an error and worse
    than a right answer (then it is the sign test), otherwise it is an error. The test assumes that
    pairs are independent, so p is too small where a document has many.
    """
    from scipy.stats import binomtest

    worth = {WRONG: 0, TIE: int(ties == "half"), RIGHT: 2}
    outcomes = [pair for pair in zip(first, second, strict=True) if LEFT_OUT not in pair]
    only_this = sum(worth[a] > worth[b] for a, b in outcomes)
    only_other = sum(worth[a] < worth[b] for a, b in outcomes)
    differ = only_this + only_other
    p = float(binomtest(only_this, differ).pvalue) if differ else 1.0
    return McNemar(only_this, only_other, p)


# Differences between two models, from the outcomes of each example.


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of the examples from which one figure is computed.

    `column` is the figure's column in `discorpora compare`. A column with several `part`s (domains)
    shows their mean. `units[i]` is the unit of example `i`, such as its document; the bootstrap
    draws whole units. The outcomes are either `right [examples]`, the share of the classifiers that
    are right (NaN: the example was left out), whose mean is the figure; or the classes `gold` and
    `predicted`, `[examples]` each, whose unweighted F1 is the figure. `rule` is the table row of
    the baseline rule that answered, "" for the model.
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

    def only(self, mask: np.ndarray) -> Outcomes:
        """The outcomes of the examples that `mask [examples]` marks; they must be shares."""
        assert self.right is not None
        units = [unit for unit, marked in zip(self.units, mask, strict=True) if marked]
        return replace(self, units=units, right=self.right[mask])


Columns: TypeAlias = Mapping[str, Mapping[str, Outcomes]]
"""The outcomes of one model or rule, by column and part."""


def independent_units(rows: int) -> list[str]:
    """Return a separate unit for each of `rows` independent examples: "0", "1", ..."""
    return [str(row) for row in range(rows)]


def mean_outcomes(trainings: Sequence[Columns]) -> Columns:
    """Average the outcomes of trainings with several seeds: `right` is the mean of their `right`.

    A part is left out if a training lacks it or judged other examples in it, or if its outcomes are
    classes, which have no mean.
    """
    columns: dict[str, dict[str, Outcomes]] = {}
    for column, parts in trainings[0].items():
        for part, first in parts.items():
            outcomes = [training.get(column, {}).get(part) for training in trainings]
            shares = [
                each.right
                for each in outcomes
                if each and each.right is not None and list(each.units) == list(first.units)
            ]
            if len(shares) == len(trainings):
                columns.setdefault(column, {})[part] = replace(first, right=np.mean(shares, axis=0))
    return columns


@dataclass(frozen=True)
class Difference:
    """The difference of the figures of two models: the other's minus the first's.

    `share` is the difference, `drawn [resamples]` its value in each bootstrap resample. `value` and
    the 95 % interval `ci` are in percentage points. `units` counts the units (documents, rows) that
    both models judged, `of` those that at least one judged.
    """

    share: float
    drawn: np.ndarray = field(repr=False, compare=False)
    units: int
    of: int

    @property
    def value(self) -> float:
        """The difference in percentage points."""
        return 100 * self.share

    @property
    def ci(self) -> tuple[float, float] | None:
        """The 95 % interval in percentage points; None for fewer than `FEW` units."""
        low, high = interval(self.drawn)
        return None if self.units < FEW else (100 * low, 100 * high)

    @property
    def text(self) -> str:
        """The value and its interval as text, with an asterisk where the interval excludes 0."""
        if self.ci is None:
            return f"{self.value:+.1f} ({amount(self.units, 'unit')})"
        low, high = self.ci
        asterisk = "" if low <= 0 <= high else "*"
        shown = f"{self.value:+.1f} [{low:+.1f}, {high:+.1f}]{asterisk}"
        return shown if self.units == self.of else f"{shown} ({self.units} of {self.of} units)"


def differences(suite: str, first: Columns, other: Columns, seed: int = 0) -> dict[str, Difference]:
    """Compute by how much each figure of the model `other` differs from that of the model `first`.

    The figures are, by name: the columns that both models have with the same parts, the parts
    (domains) themselves, and the means over the tasks of DiscoEval and over the suite `pairwise`'s
    probes. Units that only one model judged are left out. A part has no difference if the models
    share no unit, or if its outcomes are classes and their examples are not the same.
    """
    by_figure: dict[str, Difference] = {}
    columns = []
    for column in (name for name in first if name in other):
        first_parts, other_parts = first[column], other[column]
        parts = {}
        for part in (name for name in first_parts if name in other_parts):
            pair = first_parts[part], other_parts[part]
            if difference := _difference([pair], f"{suite}.{column}.{part}", seed):
                parts[part] = difference
        if parts.keys() == first_parts.keys() == other_parts.keys():
            columns.append(_mean_difference([*parts.values()]))
            by_figure[column] = columns[-1]
        if len(first_parts.keys() | other_parts.keys()) > 1:
            by_figure |= {f"{column} {part}": each for part, each in parts.items()}
    if suite == "discoeval" and len(columns) > 1:
        # The tasks have examples of their own: they are drawn independently.
        by_figure[f"mean of {len(columns)} tasks"] = _mean_difference(columns)
    # The probes change the same texts: a text is drawn for all of them.
    probes = [name for name in first if name.startswith(PROBES)]
    outcomes = [(first[name].get(""), other.get(name, {}).get("")) for name in probes]
    pairs = [(a, b) for a, b in outcomes if a and b and a.right is not None and b.right is not None]
    if len(pairs) > 1:
        title = f"mean of {len(pairs)} probes"
        if difference := _difference(pairs, f"{suite}.{title}", seed):
            by_figure[title] = difference
    return by_figure


def _mean_difference(independent: Sequence[Difference]) -> Difference:
    """The mean of differences, each with resamples that are independent of those of the others."""
    share = float(np.mean([each.share for each in independent]))
    drawn = np.mean([each.drawn for each in independent], axis=0)
    units, of = sum(each.units for each in independent), sum(each.of for each in independent)
    return Difference(share, drawn, units, of)


def _difference(
    pairs: Sequence[tuple[Outcomes, Outcomes]], name: str, seed: int
) -> Difference | None:
    """The mean over pairs of (first, other) outcomes of the difference; None if a pair has no unit.

    The bootstrap draws whole units, the same ones for all pairs. Units with equal counts are drawn
    as one kind, which has the same distribution and takes far fewer draws.
    """
    random = stream(seed, f"zoo.differences.{name}")
    if any(outcomes.right is None for pair in pairs for outcomes in pair):
        return _difference_of_f1(*pairs[0], random)
    pairs = [_judged_by_both(*pair) for pair in pairs]
    shared = [set(first.units) & set(other.units) for first, other in pairs]
    if not all(shared):
        return None
    number = {unit: index for index, unit in enumerate(sorted(set().union(*shared)))}
    units = len(number)
    rows = []  # for each model of each pair two rows [units]: the right examples, all examples
    for pair, common in zip(pairs, shared, strict=True):
        for outcomes in pair:
            assert outcomes.right is not None
            mask = np.array([unit in common for unit in outcomes.units])
            unit_numbers = np.array([number[unit] for unit in outcomes.units if unit in common])
            rows.append(np.bincount(unit_numbers, weights=outcomes.right[mask], minlength=units))
            rows.append(np.bincount(unit_numbers, minlength=units).astype(float))
    kinds, counts = np.unique(np.stack(rows), axis=1, return_counts=True)
    draws = random.multinomial(units, counts / units, size=RESAMPLES)

    def difference(drawn: np.ndarray) -> np.ndarray:
        """The mean difference, `[...]`, if each kind of unit counts `drawn [..., kinds]` times."""
        sums = np.reshape(drawn @ kinds.T, (*drawn.shape[:-1], len(pairs), 2, 2))
        with np.errstate(invalid="ignore"):  # none of a probe's few units was drawn
            shares = sums[..., 0] / sums[..., 1]
        return np.nanmean(shares[..., 1] - shares[..., 0], axis=-1)

    all_units = set().union(*(outcomes.units for pair in pairs for outcomes in pair))
    return Difference(float(difference(counts)), difference(draws), units, len(all_units))


def _judged_by_both(first: Outcomes, other: Outcomes) -> tuple[Outcomes, Outcomes]:
    """The outcomes of two models on the examples that both judged.

    If their examples are not the same in the same order, each model's own omissions are dropped.
    """
    if list(first.units) == list(other.units):
        both = first.judged & other.judged
        return first.only(both), other.only(both)
    return first.only(first.judged), other.only(other.judged)


def _difference_of_f1(
    first: Outcomes, other: Outcomes, random: np.random.Generator
) -> Difference | None:
    """The difference of two models' unweighted F1; None if they did not judge the same rows.

    The bootstrap draws units, such as documents with all their rows, and counts the cells (gold
    class, first model's class, other model's class) in each draw. If each row is a unit, that is
    one multinomial draw over the cells.
    """
    if first.gold is None or other.gold is None or not np.array_equal(first.gold, other.gold):
        return None
    if list(first.units) != list(other.units):
        return None
    rows = np.array([first.gold, first.predicted, other.predicted])
    classes, (names, unit) = int(rows.max()) + 1, np.unique(first.units, return_inverse=True)
    (gold, *predictions), cell, counts = np.unique(
        rows, axis=1, return_inverse=True, return_counts=True
    )

    def difference(weights: np.ndarray) -> float:
        """The other model's F1 minus the first one's, where cell `i` counts `weights[i]`."""
        matrices = [confusion_matrix(gold, each, classes, weights) for each in predictions]
        return macro_f1(matrices[1]) - macro_f1(matrices[0])

    units, draws = len(names), range(RESAMPLES)
    drawn: Iterator[np.ndarray]
    if units == len(unit):
        drawn = (random.multinomial(units, counts / units) for _ in draws)
    else:
        cells = np.zeros((units, len(counts)))  # the rows of each unit by cell
        np.add.at(cells, (unit, cell.ravel()), 1)
        drawn = (random.multinomial(units, np.full(units, 1 / units)) @ cells for _ in draws)
    return Difference(difference(counts), np.array([*map(difference, drawn)]), units, units)
