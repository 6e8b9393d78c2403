"""Suite `ratings`: do a scorer's scores agree with people's ratings of coherence?

- Spearman's rank correlation of the scores with the mean rating of each text (score prediction of
  Lai and Tetreault 2018, section 4): scores have no scale of their own, so ranks are compared.
- Accuracy on the release's consensus classes, where a training split has such texts: low, medium,
  high (GCDC), 1 to 5 (CoheSentia). A scorer has no classes, so a logistic regression of the score
  is fitted on the training texts, those of each domain by themselves (as the papers train).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.errors import InputError
from zoo.declared import Form
from zoo.evaluate import in_hand
from zoo.evaluate.results import Result, finished
from zoo.evaluate.scorers import RULES, OfScorers, Scorer, cut_of, scores_of
from zoo.evaluate.scores import ci_and_units, finite, mean_figure, whole_units
from zoo.evaluate.table import Rows, percent, plain, rows_of_sets
from zoo.texts import as_sentences
from zoo.training.data import as_datasets, several, spread

COLUMNS = ("group", "text", "ratings")


class Ratings(OfScorers):
    """Whether the scores agree with people's ratings of coherence.

    Spearman's correlation with the mean ratings; accuracy on the consensus classes (GCDC's three,
    CoheSentia's five), which a logistic regression of the score learns on the training split.
    """

    name = "ratings"
    paper = "Lai and Tetreault 2018; Maimon and Tsarfaty 2023"
    percent = False
    reads = (Form(COLUMNS),)
    all_configs = True

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Rho and accuracy on every configuration with rated texts, beside the rules.

        Raises `InputError` where no configuration has any in the split.
        """
        opened = as_datasets(data)
        # Classes are learnt on the training split, so that they are not judged on it.
        tables = {}
        for each in (each for each in opened if split in each.splits):
            splits = dict.fromkeys((split, "train"))
            parts = [spread(each.splits[s], limit) for s in splits if s in each.splits]
            if {*COLUMNS} <= {*parts[0].column_names} and any(parts[0]["ratings"].to_pylist()):
                tables[each.config] = parts
        if not tables:
            raise InputError(
                f"no configuration has rated texts in its split {split!r}",
                where=opened[0].name,
                hint="give a dataset built by `rated`; CoheSentia's texts are in train, too",
            )
        scorers = self.scorers(model, seed, *RULES)
        sets = {name: evaluate_set(parts, scorers, seed, name) for name, parts in tables.items()}
        about = opened[0].describe()
        result = Result(
            model=in_hand.about(model),
            dataset={key: about[key] for key in ("name", "revision", "licence", "licence_hub")}
            | {"config": "" if several(data) else opened[0].config},
            protocol={"correlation": "spearman", "ratings": "mean", "limit": limit},
            examples=sum(each["texts"] for each in sets.values()),
            metrics={"sets": sets, "resampled": "groups"},
            more={"cut": cut_of(model)},
        )
        return finished(self, result, model, split, seed)

    @classmethod
    def rows(cls, result: Result) -> Rows:
        rows: Rows = {}
        for name, found in result.metrics["sets"].items():
            parts = [rows_of_sets({name: found}, "rho", plain, "texts")]
            if "accuracy" in found:
                learnt = {f"{name} accuracy": {**found, "baselines": found["accuracies"]}}
                parts.append(rows_of_sets(learnt, "accuracy", percent, "texts"))
            for rule, cells in (row for part in parts for row in part.items()):
                rows.setdefault(rule, {}).update(cells)
        return rows


def evaluate_set(
    tables: Sequence[pa.Table], scorers: Mapping[str, Scorer], seed: int, name: str
) -> dict[str, Any]:
    """Rho of the model (the scorer called "") with its interval, and of the rules.

    `tables` are the split to judge on and, where there is one, the training split: then also
    `accuracy` with that of each domain, and that of the rules and of the `majority` class.
    """
    rows, *train = ([row for row in table.to_pylist() if row["ratings"]] for table in tables)
    learnt = train[0] if train and rows and _has_classes([*rows, *train[0]]) else []
    both, judged = [*rows, *learnt], len(rows)
    ratings = np.array([np.mean(row["ratings"]) for row in rows])
    _, group = np.unique([row["group"] for row in rows], return_inverse=True)
    texts = [tuple(as_sentences(row["text"])) for row in both]
    # A domain is that of GCDC's files, `Clinton_test:12`; the other releases have one.
    ids = [row.get("id") or "" for row in both]
    domains = np.array([id.partition(":")[0].rpartition("_")[0] for id in ids])
    classes = np.array([row["rating"] for row in both]) if learnt else np.zeros(0)
    rho, right = {}, {}
    for rule, scorer in scorers.items():
        # Each split by itself: a text's TF-IDF vectors depend on the texts beside it.
        parts = [scores_of(scorer, part) for part in (texts[:judged], texts[judged:])]
        scores = finite(np.concatenate(parts), "the model gives scores", name)
        rho[rule] = rho_of(scores[:judged], ratings, group, seed, f"{name}.{rule}")
        if learnt:
            right[rule] = classify(scores, classes, domains, judged) == classes[:judged]
    units = int(group.max(initial=-1)) + 1
    whole = {"rho": rho.pop(""), "baselines": rho, "texts": judged, "groups": units}
    if not learnt:
        return whole
    # Equal scores give the most frequent class of the training texts.
    by_majority = classify(np.zeros(len(texts)), classes, domains, judged) == classes[:judged]
    figures = {
        r: mean_figure(hits, group, seed, f"{name}.{r}.accuracy") for r, hits in right.items()
    }
    by_domain = {
        str(domain): float(right[""][domains[:judged] == domain].mean())
        for domain in np.unique(domains[:judged])
    }
    whole["accuracy"] = {**figures.pop(""), "domains": by_domain, "trained_on": len(learnt)}
    return {**whole, "accuracies": {**figures, "majority": {"value": float(by_majority.mean())}}}


def _has_classes(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the release settles on a whole number for each text; SummEval's is a mean."""
    values = [row.get("rating") for row in rows]
    return all(value is not None and float(value).is_integer() for value in values)


def classify(
    scores: np.ndarray, classes: np.ndarray, domains: np.ndarray, judged: int
) -> np.ndarray:
    """The class of the first `judged` texts, `[judged]`, by the scores of the texts after them.

    A domain without a training text takes those of all domains.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    predicted = np.zeros(len(scores))
    train = np.arange(len(scores)) >= judged
    for domain in np.unique(domains[:judged]):
        rows = domains == domain
        own = train & rows if (train & rows).any() else train
        several = len(np.unique(classes[own])) > 1
        learner = LogisticRegression() if several else DummyClassifier()
        model = make_pipeline(StandardScaler(), learner).fit(scores[own, None], classes[own])
        predicted[rows] = model.predict(scores[rows, None])
    return predicted[:judged]


def rho_of(
    scores: np.ndarray, ratings: np.ndarray, group: np.ndarray, seed: int, name: str
) -> dict[str, Any]:
    """Spearman's rho, with its interval when whole groups are drawn anew."""
    units = int(group.max(initial=-1)) + 1
    drawn = whole_units(units, seed, name)
    rows = (np.repeat(np.arange(len(group)), times[group]) for times in drawn)
    resampled = (spearman(scores[row], ratings[row]) for row in rows)
    return {"value": spearman(scores, ratings), **ci_and_units(units, resampled)}


def spearman(one: np.ndarray, two: np.ndarray) -> float:
    """Spearman's rho; 0 where either side has one value only, and orders nothing."""
    from scipy.stats import spearmanr

    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(two) == 0:
        return 0.0
    return float(spearmanr(one, two).statistic)
