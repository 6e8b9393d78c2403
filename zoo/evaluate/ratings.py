"""Suite `ratings`: do a scorer's scores agree with people's ratings of coherence?

- Spearman's rank correlation of the scores with the mean rating of each text (score prediction of
  Lai and Tetreault 2018, section 4): scores have no scale of their own, so ranks are compared.
- Accuracy on the release's consensus classes, where a training split has such texts: low, medium,
  high (GCDC), 1 to 5 (CoheSentia). A scorer has no classes, so a logistic regression of the score
  is fitted on the training texts, those of each domain by themselves (as the papers train).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.errors import InputError
from zoo.evaluate.results import Result
from zoo.evaluate.scorers import (
    RULES,
    Scorer,
    beside,
    cut_of,
    describe,
    load_scorer,
    scores_of,
)
from zoo.evaluate.scores import finite, of_groups, stated, whole_units
from zoo.texts import as_sentences
from zoo.training.data import open_configs, spread

if TYPE_CHECKING:
    import pyarrow as pa

    from zoo.evaluate import Request
    from zoo.evaluate.suites import Ratings

COLUMNS = {"text", "group", "ratings"}


def evaluate(options: Ratings, request: Request) -> Result:
    """Rho and accuracy on every configuration with rated texts, beside the rules.

    Raises `InputError` where no configuration has any in the split.
    """
    config, opened = open_configs(request.data)
    # Classes are learnt on the training split, so that they are not judged on it.
    wanted = dict.fromkeys((request.split, "train"))
    tables = {
        data.config: [
            spread(data.splits[split], request.limit)
            for split in wanted
            if split in data.splits and {*data.splits[split].column_names} >= COLUMNS
        ]
        for data in opened
        if request.split in data.splits
    }
    tables = {name: parts for name, parts in tables.items() if parts}
    if not tables:
        raise InputError(
            f"no configuration has rated texts in its split {request.split!r}",
            where=request.data,
            hint="give a dataset built by `rated`; CoheSentia's texts are in train, too",
        )
    scorers = {"": load_scorer(request.model, request.seed)}
    scorers |= beside((*RULES, *options.beside), request.seed)
    sets = {
        name: evaluate_set(parts, scorers, request.seed, name) for name, parts in tables.items()
    }
    about = opened[0].describe()
    return Result(
        model=describe(request.model, scorers[""]),
        dataset={key: about[key] for key in ("name", "revision", "licence", "licence_hub")}
        | {"config": config},
        protocol={"correlation": "spearman", "ratings": "mean", "limit": request.limit},
        examples=sum(each["texts"] for each in sets.values()),
        metrics={"sets": sets, "resampled": "groups"},
        more={"cut": cut_of(scorers[""])},
    )


def evaluate_set(
    tables: Sequence[pa.Table], scorers: Mapping[str, Scorer], seed: int, name: str
) -> dict[str, Any]:
    """Rho of the model (the scorer called "") with its interval, and of the rules.

    `tables` are the split to judge on and, where there is one, the training split: then also
    `accuracy` with that of each domain, and `majority`.
    """
    rows, *train = ([row for row in table.to_pylist() if row["ratings"]] for table in tables)
    ratings = np.array([np.mean(row["ratings"]) for row in rows])
    _, group = np.unique([row["group"] for row in rows], return_inverse=True)
    learnt = train[0] if train and rows and _has_classes([*rows, *train[0]]) else []
    texts = [tuple(as_sentences(row["text"])) for row in [*rows, *learnt]]
    domains = np.array([_domain(row["id"]) for row in [*rows, *learnt]])
    classes = np.array([row["rating"] for row in [*rows, *learnt]]) if learnt else np.zeros(0)
    found: dict[str, Any] = {"texts": len(rows), "groups": int(group.max(initial=-1)) + 1}
    judged = {}
    for rule, scorer in scorers.items():
        # Each split by itself: a text's TF-IDF vectors depend on the texts beside it.
        parts = [scores_of(scorer, part) for part in (texts[: len(rows)], texts[len(rows) :])]
        scores = finite(np.concatenate(parts), name)
        found[rule] = rho_of(scores[: len(rows)], ratings, group, seed, f"{name}.{rule}")
        if learnt:
            predicted = classify(scores, classes, domains, len(rows))
            judged[rule] = predicted == classes[: len(rows)]
    rules = [rule for rule in scorers if rule]
    whole = {"rho": found.pop(""), "baselines": {r: found.pop(r) for r in rules}, **found}
    if not learnt:
        return whole
    # A score that says nothing: the most frequent class of the training texts.
    often = classify(np.zeros(len(texts)), classes, domains, len(rows)) == classes[: len(rows)]
    figures = {
        rule: {
            "value": float(right.mean()),
            **of_groups(right, group, seed, f"{name}.{rule}.accuracy"),
        }
        for rule, right in judged.items()
    }
    each = {str(domain): domains[: len(rows)] == domain for domain in np.unique(domains)}
    own = {domain: float(judged[""][of].mean()) for domain, of in each.items() if of.any()}
    whole["accuracy"] = {**figures.pop(""), "domains": own, "trained_on": len(learnt)}
    return {**whole, "accuracies": {**figures, "majority": {"value": float(often.mean())}}}


def _has_classes(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the release settles on a whole number for each text; SummEval's is a mean."""
    values = [row.get("rating") for row in rows]
    return all(value is not None and float(value).is_integer() for value in values)


def _domain(id: str) -> str:
    """That of GCDC's files, `Clinton_test:12`; the others have one domain."""
    return id.partition(":")[0].rpartition("_")[0]


def classify(
    scores: np.ndarray, classes: np.ndarray, domains: np.ndarray, judged: int
) -> np.ndarray:
    """The class of the first `judged` texts, `[judged]`, by the scores of the texts after them.

    A domain without a training text takes those of all domains.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    predicted = np.zeros(judged)
    train = np.arange(len(scores)) >= judged
    for domain in np.unique(domains[:judged]):
        own = train & (domains == domain)
        own = own if own.any() else train
        rows = ~train & (domains == domain)
        if len(np.unique(classes[own])) == 1:
            predicted[rows[:judged]] = classes[own][0]
            continue
        model = make_pipeline(StandardScaler(), LogisticRegression())
        model.fit(scores[own, None], classes[own])
        predicted[rows[:judged]] = model.predict(scores[rows, None])
    return predicted


def rho_of(
    scores: np.ndarray, ratings: np.ndarray, group: np.ndarray, seed: int, name: str
) -> dict[str, Any]:
    """Spearman's rho, with its interval when whole groups are drawn anew."""
    units = int(group.max(initial=-1)) + 1

    def resampled() -> np.ndarray:
        drawn = whole_units(units, seed, name)
        rows = (np.repeat(np.arange(len(group)), times[group]) for times in drawn)
        return np.array([spearman(scores[row], ratings[row]) for row in rows])

    return {"value": spearman(scores, ratings), **stated(units, resampled)}


def spearman(one: np.ndarray, two: np.ndarray) -> float:
    """Spearman's rho; 0 where either side has one value only, and orders nothing."""
    from scipy.stats import spearmanr

    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(two) == 0:
        return 0.0
    return float(spearmanr(one, two).statistic)
