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

from corpora.audit.features import WORD, Array, Features, Kind, Matrix, Variants

SEED = 13
FEWEST_TRAIN, FEWEST_TEST = 40, 20
DRAWS = 1_000
"""Bootstrap resamples."""
UNEVEN = 1.1
"""Classes are uneven if the largest has more than this many times its even share."""
ALIKE = 0.8
"""Texts are nearly equal if their sets of words have this Jaccard similarity."""
ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class AuditedRow:
    """A row as the rules see it.

    - `texts`: its text, or the better and the worse one
    - `unit`: its document, or the row itself if it names none
    - `item`: equal for two rows that are forms of one text
    - `tenth`: the tenth of the split that the row is in, from 0
    - `columns`: the values of `position` and `order`, if it has them
    - `place`: the number of sentences of the text, and the position of the changed one
    """

    texts: Variants
    label: Hashable
    unit: str
    item: tuple[str, int]
    tenth: int
    columns: Hashable = None
    place: tuple[int, int] | None = None


class Division(NamedTuple):
    """The rows to which rules are fitted, and the rows on which they are scored."""

    train: list[AuditedRow]
    test: list[AuditedRow]


@dataclass(frozen=True, slots=True)
class RuleScore:
    """The accuracy (`value`) of a rule on `n` rows, in per cent, with its interval and chance.

    `measure` is `accuracy`, `balanced` (the mean over labels) or `pairwise`; the 95 % interval is
    from `low` to `high`.
    """

    rule: str
    measure: str
    value: float
    low: float
    high: float
    chance: float
    n: int


def make_divisions(train: list[AuditedRow], test: list[AuditedRow]) -> list[Division]:
    """Return divisions into training and test rows that have no document in common.

    There is one division of `train` and `test`. If one of the lists is empty, the other one is cut
    into quarters, and each of four divisions tests one quarter.
    """
    if train and test:
        parts = [(train, test)]
    else:
        rows = train or test
        # Quarters of items: two forms of a text stay together.
        number = {item: i for i, item in enumerate(dict.fromkeys(row.item for row in rows))}
        quarters: list[list[AuditedRow]] = [[] for _ in range(4)]
        for row in rows:
            quarters[4 * number[row.item] // len(number)].append(row)
        parts = [
            ([row for other in quarters if other is not quarter for row in other], quarter)
            for quarter in quarters
        ]
    divisions = []
    for train_rows, test_rows in parts:
        units = {row.unit for row in train_rows}
        divisions.append(Division(train_rows, [row for row in test_rows if row.unit not in units]))
    return divisions


def too_few(division: Division) -> str:
    """Return the reason why no rule can be fitted to a division, or ""."""
    train, test = len(division.train), len(division.test)
    if train < FEWEST_TRAIN or test < FEWEST_TEST:
        return (
            f"{train} training rows and {test} test rows of other documents "
            f"(at least {FEWEST_TRAIN} and {FEWEST_TEST} are needed)"
        )
    if len({row.label for row in division.train}) < 2 and len(division.train[0].texts) == 1:
        return "all training rows have the same label"
    return ""


def rule_scores(kind: Kind, divisions: Sequence[Division]) -> list[RuleScore]:
    """Fit every rule to the training rows of each division, and score it on the test rows."""
    # Labels, and whether one is much more frequent than the others
    tests = [row for division in divisions for row in division.test]
    units, labels = [row.unit for row in tests], [row.label for row in tests]
    train_labels = Counter(row.label for row in divisions[0].train)
    classes = 2 if kind.ranked else len(train_labels)
    uneven = not kind.ranked and any(
        max(count.values()) * classes > UNEVEN * count.total()
        for count in (train_labels, Counter(labels))
    )
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)  # of each test row
    for train, test in divisions:
        # Rules from features of the texts
        train_texts, test_texts = ([row.texts for row in rows] for rows in (train, test))
        features = Features(kind, train_texts, test_texts)
        train_features, test_features = features.of(train_texts), features.of(test_texts)
        for rule, matrix in train_features.items():
            matrices = matrix, test_features[rule]
            if kind.ranked:
                scores[rule, "pairwise"] += _ranking_scores(*matrices)
                continue
            scores[rule, "accuracy"] += _label_scores(*matrices, train, test, None)
            if uneven:
                scores[rule, "balanced"] += _label_scores(*matrices, train, test, "balanced")
        if kind.ranked:
            continue
        # Rules that know no text: the most frequent label of all rows or of rows with an equal key
        keys: dict[str, Callable[[AuditedRow], Hashable]] = {"majority": lambda row: 0}
        keys["row_order"] = lambda row: row.tenth
        if train[0].columns:
            keys["columns"] = lambda row: row.columns
        for rule, key in keys.items():
            cases, queries = ([(key(row), row.label) for row in rows] for rows in (train, test))
            scores[rule, "accuracy"] += _predict_most_frequent(cases, queries)[0]
    # Accuracies with intervals
    majority = with_interval(scores["majority", "accuracy"], units)[0] if uneven else 100 / classes
    results = []
    for (rule, measure), values in scores.items():
        figures = with_interval(values, units, labels if measure == "balanced" else None)
        chance = majority if measure == "accuracy" else 100 / classes
        results.append(RuleScore(rule, measure, *figures, round(chance, 1), len(values)))
    return [
        *sorted(results, key=lambda each: each.rule != "majority"),
        *_position_scores(divisions),
    ]


def _position_scores(divisions: Sequence[Division]) -> list[RuleScore]:
    """Return the accuracy of a rule that guesses the position of the changed sentence. The guess is
    the most frequent position in training texts of the same length. Empty without positions."""
    right: list[float] = []
    chances: list[float] = []
    units: list[str] = []
    for train, test in divisions:
        cases, queries = ([row.place for row in rows if row.place] for rows in (train, test))
        is_right, chance = _predict_most_frequent(cases, queries)
        right, chances = right + is_right, chances + chance
        units += [row.unit for row in test if row.place]
    if not right:
        return []
    figures = with_interval(right, units)
    return [RuleScore("position", "accuracy", *figures, _percent(np.mean(chances)), len(right))]


def _fit(matrix: Matrix, labels: Any, weight: str | None = None, *, ranked: bool = False) -> Any:
    """Fit a logistic regression; `weight` is its `class_weight`. `ranked`: features are differences
    of two texts, so 0 stays 0 and there is no intercept."""
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


def _label_scores(
    train_features: Matrix,
    test_features: Matrix,
    train: Sequence[AuditedRow],
    test: Sequence[AuditedRow],
    weight: str | None,
) -> list[float]:
    """Return 1 for each test row whose label is predicted correctly, else 0."""
    labels = dict.fromkeys(row.label for row in (*train, *test))
    number = {label: n for n, label in enumerate(labels)}
    model = _fit(train_features, [number[row.label] for row in train], weight)
    correct = model.predict(test_features) == [number[row.label] for row in test]
    return correct.astype(float).tolist()


def _ranking_scores(train: Matrix, test: Matrix) -> list[float]:
    """Return 1 for each test pair whose better text gets the higher score, 1/2 for a tie, else 0.
    Rows are the features of the better text minus those of the worse one. A single feature is not
    fitted: only the sign that most training pairs have is used."""
    dense = isinstance(train, np.ndarray)
    if dense:
        train, test = train.round(9), test.round(9)  # rounding errors do not break ties
    if train.shape[1] == 1:
        direction = 1 if (train > 0).sum() >= (train < 0).sum() else -1
        differences = direction * test[:, 0]
    else:
        # Every other pair is swapped, so that there are two classes.
        signs = np.where(np.arange(train.shape[0]) % 2, -1.0, 1.0)[:, None]
        swapped = train * signs if dense else train.multiply(signs).tocsr()
        model = _fit(swapped, signs[:, 0] > 0, ranked=True)
        differences = model.decision_function(test)
    return np.where(np.abs(differences) < 1e-9, 0.5, differences > 0).tolist()


def _predict_most_frequent(
    cases: Sequence[tuple[Hashable, Hashable]], queries: Sequence[tuple[Hashable, Hashable]]
) -> tuple[list[float], list[float]]:
    """Predict the value of each query as the most frequent value of the `cases` with its key. Cases
    and queries are pairs (key, value); for a key without cases all cases count. Returns two lists
    over queries: 1 if the prediction is right, else 0; and chance, 1 / number of counted values."""
    counts: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    for key, value in cases:
        counts[key][value] += 1
        counts[None][value] += 1
    pairs = [(counts[key if key in counts else None], value) for key, value in queries]
    is_right = [float(count.most_common(1)[0][0] == value) for count, value in pairs]
    return is_right, [1 / len(count) for count, _ in pairs]


@lru_cache(2)
def _resamples(units: int) -> Array:
    """Return how often each unit is in each bootstrap resample: [DRAWS, units]."""
    even = np.full(units, 1 / units)
    return np.random.default_rng(SEED).multinomial(units, even, size=DRAWS).astype(float)


def with_interval(
    scores: Sequence[float] | Array,
    units: Sequence[str],
    classes: Sequence[Hashable] | None = None,
) -> tuple[float, float, float]:
    """Return the mean of `scores` and its 95 % bootstrap interval over units, all in per cent.

    `units` and `classes` have an entry for each score. With `classes`, the mean is that of the
    classes' means.
    """
    labels = classes or [0] * len(units)
    row = {unit: n for n, unit in enumerate(dict.fromkeys(units))}
    column = {label: n for n, label in enumerate(dict.fromkeys(labels))}
    cells = [row[unit] for unit in units], [column[label] for label in labels]
    sums, counts = np.zeros((2, len(row), len(column)))  # [units, classes] each
    # `add.at` also counts rows of the same unit and class, which `sums[cells] +=` would not.
    np.add.at(sums, cells, scores)
    np.add.at(counts, cells, 1)
    repetitions = _resamples(len(row))
    with np.errstate(invalid="ignore"):  # a resample without a row of some class
        means = np.nanmean((repetitions @ sums) / (repetitions @ counts), axis=1)
    value = (sums.sum(0) / counts.sum(0)).mean()
    low, high = np.percentile(means, [2.5, 97.5])
    return _percent(value), _percent(low), _percent(high)


def _percent(share: Any) -> float:
    return round(100 * float(share), 1)


def nearly_equal(division: Division) -> dict[str, tuple[float, float, float, int]]:
    """Return the shares of test texts that are nearly equal to a training or another test text.

    The two values, by name, are (share, low, high, number of texts), in per cent with a 95 %
    interval. Equal texts count once, and forms of one item are not compared.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    def without_equal(rows: Sequence[AuditedRow]) -> list[AuditedRow]:
        return list({tuple(sorted(row.texts[0])): row for row in reversed(rows)}.values())

    train, test = without_equal(division.train), without_equal(division.test)
    items = {item: n for n, item in enumerate(dict.fromkeys(r.item for r in (*train, *test)))}
    item = np.array([items[row.item] for row in (*train, *test)])
    texts = [" ".join(row.texts[0]) for row in (*train, *test)]
    words = CountVectorizer(binary=True, token_pattern=WORD, dtype=np.float32)
    bags = words.fit_transform(texts)
    size: Array = np.asarray(bags.sum(1), float).ravel()
    blocks = []
    for start in range(len(train), len(texts), ROWS_AT_ONCE):
        part = slice(start, min(start + ROWS_AT_ONCE, len(texts)))
        common = (bags[part] @ bags.T).toarray()
        is_alike = common >= ALIKE * (size[part, None] + size - common)
        is_alike[item[part, None] == item] = False
        blocks.append(np.c_[is_alike[:, : len(train)].any(1), is_alike[:, len(train) :].any(1)])
    has_alike = np.concatenate(blocks).astype(float)  # [test texts, 2]
    units = [row.unit for row in test]
    return {
        name: (*with_interval(has_alike[:, side], units), len(test))
        for side, name in enumerate(("a training row", "another scored row"))
    }
