"""The audit's rules: rows are divided, rules fitted and scored, with intervals.

Protocol. A rule is one logistic regression on features of `corpora.audit.features` (numbers are
standardised, C 0.1; bags of words C 0.05), fitted on training rows and scored on rows of the other
splits whose documents are not in training. Without a training split each quarter of the rows is
scored once by a fit on the others. Intervals are bootstrap intervals over documents (1,000
resamples).
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from corpora.audit.features import WORD, Array, Features, Kind, Matrix, Row

SEED = 13
FEWEST_TRAIN, FEWEST_TEST = 40, 20
DRAWS = 1_000
UNEVEN = 1.1
"""Classes are uneven if the largest has more than this many times its even share."""
ALIKE = 0.8
"""Texts are nearly equal if their sets of words have this Jaccard similarity."""
ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Example:
    """A row as the rules see it.

    `texts`: its text, or the better and the worse one. `unit` is its document or a substitute; rows
    with the same `item` are two forms of one text. `tenth` is the row's tenth of the split;
    `columns` are columns about the position; `place` is the text's length and the number of its
    changed sentence.
    """

    texts: Row
    label: Hashable
    unit: str
    item: tuple[str, int]
    tenth: int
    columns: Hashable = None
    place: tuple[int, int] | None = None


class Division(NamedTuple):
    train: list[Example]
    test: list[Example]


@dataclass(frozen=True, slots=True)
class Reached:
    """A rule's accuracy on `n` rows, in per cent, with its interval and chance."""

    rule: str
    measure: str
    value: float
    low: float
    high: float
    chance: float
    n: int


def divided(train: list[Example], test: list[Example]) -> list[Division]:
    """One division, or four if one of the lists is empty: each quarter is tested once."""
    if train and test:
        parts = [(train, test)]
    else:
        rows = train or test
        number = {item: i for i, item in enumerate(dict.fromkeys(row.item for row in rows))}
        quarters: list[list[Example]] = [[] for _ in range(4)]
        for row in rows:
            quarters[4 * number[row.item] // len(number)].append(row)
        parts = [
            ([row for other in quarters if other is not own for row in other], own)
            for own in quarters
        ]
    out = []
    for learn, judge in parts:
        known = {row.unit for row in learn}
        out.append(Division(learn, [row for row in judge if row.unit not in known]))
    return out


def too_few(division: Division) -> str:
    """Why nothing can be fitted, or an empty string."""
    train, test = len(division.train), len(division.test)
    if train < FEWEST_TRAIN or test < FEWEST_TEST:
        return (
            f"{train} training rows and {test} test rows of other documents "
            f"(at least {FEWEST_TRAIN} and {FEWEST_TEST} are needed)"
        )
    if len({row.label for row in division.train}) < 2 and len(division.train[0].texts) == 1:
        return "all training rows have the same label"
    return ""


def reached(kind: Kind, divisions: Sequence[Division]) -> list[Reached]:
    """What every rule reaches."""
    tests = [row for division in divisions for row in division.test]
    units, labels = [row.unit for row in tests], [row.label for row in tests]
    trained = Counter(row.label for row in divisions[0].train)
    classes = 2 if kind.ranked else len(trained)
    uneven = not kind.ranked and any(
        max(count.values()) * classes > UNEVEN * count.total()
        for count in (trained, Counter(labels))
    )
    earned: dict[tuple[str, str], list[float]] = defaultdict(list)
    for train, test in divisions:
        learn, judge = ([row.texts for row in rows] for rows in (train, test))
        features = Features(kind, learn, judge)
        a, b = features.of(learn), features.of(judge)
        for rule in a:
            if kind.ranked:
                earned[rule, "pairwise"] += _ranked(a[rule], b[rule], len(train))
                continue
            earned[rule, "accuracy"] += _classified(a[rule], b[rule], train, test, None)
            if uneven:
                earned[rule, "balanced"] += _classified(a[rule], b[rule], train, test, "balanced")
        if kind.ranked:
            continue
        keys: dict[str, Callable[[Example], Hashable]] = {"majority": lambda row: 0}
        keys["row_order"] = lambda row: row.tenth
        if train[0].columns:
            keys["columns"] = lambda row: row.columns
        for rule, key in keys.items():
            known, asked = ([(key(row), row.label) for row in rows] for rows in (train, test))
            earned[rule, "accuracy"] += _usual(known, asked)[0]
    usual = with_interval(earned["majority", "accuracy"], units)[0] if uneven else 100 / classes
    out = []
    for (rule, measure), gain in earned.items():
        balanced = measure == "balanced"
        figures = with_interval(gain, units, labels if balanced else None)
        chance = usual if measure == "accuracy" else 100 / classes
        out.append(Reached(rule, measure, *figures, round(chance, 1), len(gain)))
    return [*sorted(out, key=lambda each: each.rule != "majority"), *_position(divisions)]


def _position(divisions: Sequence[Division]) -> list[Reached]:
    """How often the changed position is the most frequent one in texts of that length."""
    right: list[float] = []
    chances: list[float] = []
    units: list[str] = []
    for train, test in divisions:
        known, asked = ([row.place for row in rows if row.place] for rows in (train, test))
        found, chance = _usual(known, asked)
        right, chances = right + found, chances + chance
        units += [row.unit for row in test if row.place]
    if not right:
        return []
    figures = with_interval(right, units)
    return [Reached("position", "accuracy", *figures, _percent(np.mean(chances)), len(right))]


def _fit(matrix: Matrix, labels: Any, weight: str | None = None, *, ranked: bool = False) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    dense = isinstance(matrix, np.ndarray)
    model = LogisticRegression(
        C=0.1 if dense else 0.05, max_iter=300, class_weight=weight, fit_intercept=not ranked
    )
    with warnings.catch_warnings():
        # 300 steps are enough: the weights are not used.
        warnings.filterwarnings("ignore", message="(?s).*failed to converge")
        scaler = StandardScaler(with_mean=not ranked)
        return (make_pipeline(scaler, model) if dense else model).fit(matrix, labels)


def _classified(
    a: Matrix, b: Matrix, train: Sequence[Example], test: Sequence[Example], weight: str | None
) -> list[float]:
    """1 for each test row whose label is found, else 0."""
    classes = {label: n for n, label in enumerate(dict.fromkeys(r.label for r in (*train, *test)))}
    fitted = _fit(a, [classes[row.label] for row in train], weight)
    return (fitted.predict(b) == [classes[row.label] for row in test]).astype(float).tolist()


def _ranked(a: Matrix, b: Matrix, trained: int) -> list[float]:
    """1 for each pair whose better text ranks higher, 1/2 for a tie; one feature counts by sign."""
    dense = isinstance(a, np.ndarray)
    if dense:
        a, b = a.round(9), b.round(9)  # rounding errors do not break ties
    if a.shape[1] == 1:
        direction = 1 if (a > 0).sum() >= (a < 0).sum() else -1
        z = direction * b[:, 0]
    else:
        # Every other pair is swapped, so that there are two classes.
        turn = np.where(np.arange(trained) % 2, -1.0, 1.0)[:, None]
        turned = a * turn if dense else a.multiply(turn).tocsr()
        z = _fit(turned, turn[:, 0] > 0, ranked=True).decision_function(b)
    return np.where(np.abs(z) < 1e-9, 0.5, z > 0).tolist()


def _usual(
    known: Sequence[tuple[Hashable, Hashable]], asked: Sequence[tuple[Hashable, Hashable]]
) -> tuple[list[float], list[float]]:
    """Whether each case of `asked` has the most frequent value of `known` cases with its key.

    All of `known` count for a new key. Also returns chance: 1 over the number of their values.
    """
    counts: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    for key, value in known:
        counts[key][value] += 1
        counts[None][value] += 1
    found = [(counts[key if key in counts else None], value) for key, value in asked]
    right = [float(count.most_common(1)[0][0] == value) for count, value in found]
    return right, [1 / len(count) for count, _ in found]


@lru_cache(2)
def _draws(units: int) -> Array:
    """How often each unit is in each bootstrap resample."""
    even = np.full(units, 1 / units)
    return np.random.default_rng(SEED).multinomial(units, even, size=DRAWS).astype(float)


def with_interval(
    earned: Sequence[float] | Array,
    units: Sequence[str],
    classes: Sequence[Hashable] | None = None,
) -> tuple[float, float, float]:
    """The mean score, in per cent, and its 95 % interval over units.

    With `classes`, the mean of the classes' means.
    """
    labels = classes or [0] * len(units)
    row = {unit: n for n, unit in enumerate(dict.fromkeys(units))}
    column = {label: n for n, label in enumerate(dict.fromkeys(labels))}
    where = [row[unit] for unit in units], [column[label] for label in labels]
    won, rows = np.zeros((2, len(row), len(column)))
    np.add.at(won, where, earned)
    np.add.at(rows, where, 1)
    times = _draws(len(row))
    with np.errstate(invalid="ignore"):  # a resample without a row of some class
        draws = np.nanmean((times @ won) / (times @ rows), axis=1)
    value = (won.sum(0) / rows.sum(0)).mean()
    low, high = np.percentile(draws, [2.5, 97.5])
    return _percent(value), _percent(low), _percent(high)


def _percent(share: Any) -> float:
    return round(100 * float(share), 1)


def nearly_equal(division: Division) -> dict[str, tuple[float, float, float, int]]:
    """By name, the share of test texts nearly equal to a training text, or to another test text.

    With its interval and the number of texts. Equal texts and forms of one item do not count.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    def once(rows: Sequence[Example]) -> list[Example]:
        return list({tuple(sorted(row.texts[0])): row for row in reversed(rows)}.values())

    train, test = once(division.train), once(division.test)
    items = {item: n for n, item in enumerate(dict.fromkeys(r.item for r in (*train, *test)))}
    item = np.array([items[row.item] for row in (*train, *test)])
    texts = [" ".join(row.texts[0]) for row in (*train, *test)]
    words = CountVectorizer(binary=True, token_pattern=WORD, dtype=np.float32)
    bags = words.fit_transform(texts)
    size: Array = np.asarray(bags.sum(1), float).ravel()
    alike = []
    for start in range(len(train), len(texts), ROWS_AT_ONCE):
        part = slice(start, min(start + ROWS_AT_ONCE, len(texts)))
        shared = (bags[part] @ bags.T).toarray()
        similar = shared >= ALIKE * (size[part, None] + size - shared)
        similar[item[part, None] == item] = False
        alike.append(np.c_[similar[:, : len(train)].any(1), similar[:, len(train) :].any(1)])
    found = np.concatenate(alike).astype(float)
    units = [row.unit for row in test]
    return {
        name: (*with_interval(found[:, side], units), len(test))
        for side, name in enumerate(("a training row", "another scored row"))
    }
