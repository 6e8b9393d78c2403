"""Suite `ratings`: do a scorer's scores agree with people's ratings of coherence?

- Spearman's rank correlation of the scores with the mean rating of each text (score prediction of
  Lai and Tetreault 2018, section 4). Scores are on no fixed scale, so ranks are compared.
- Accuracy on the consensus classes of the dataset, where its training split has them too: low,
  medium, high (GCDC), 1 to 5 (CoheSentia). A scorer predicts no classes, so a logistic regression
  of the score is fitted on the training texts, for each domain separately (as the papers train).
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
from zoo.evaluate.scores import ci_and_units, finite, mean_figure, resampled_counts
from zoo.evaluate.table import Rows, percent, plain, rows_of_sets
from zoo.texts import as_sentences
from zoo.training.data import as_datasets, several, spread

COLUMNS = ("group", "text", "ratings")


class Ratings(OfScorers):
    """Whether the scores agree with people's ratings of coherence.

    It gives Spearman's correlation of the scores with the mean ratings, and the accuracy on the
    consensus classes (GCDC has three, CoheSentia five) of a logistic regression of the score, which
    is fitted on the training split.
    """

    name = "ratings"
    paper = "Lai and Tetreault 2018; Maimon and Tsarfaty 2023"
    percent = False
    reads = (Form(COLUMNS),)
    all_configs = True

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Compute rho and accuracy of the scorer and of the rules on each configuration.

        Raises `InputError` if no configuration has rated texts in the split.
        """
        datasets = as_datasets(data)
        tables = {}
        for each in (each for each in datasets if split in each.splits):
            # The split to judge, and the training split for the classes if it is another one
            splits = dict.fromkeys((split, "train"))
            parts = [spread(each.splits[s], limit) for s in splits if s in each.splits]
            if {*COLUMNS} <= {*parts[0].column_names} and any(parts[0]["ratings"].to_pylist()):
                tables[each.config] = parts
        if not tables:
            raise InputError(
                f"no configuration has rated texts in its split {split!r}",
                where=datasets[0].name,
                hint="give a dataset built by `rated`; CoheSentia's texts are in train, too",
            )
        scorers = self.scorers(model, seed, *RULES)
        sets = {name: evaluate_set(parts, scorers, seed, name) for name, parts in tables.items()}
        about = datasets[0].describe()
        result = Result(
            model=in_hand.about(model),
            dataset={key: about[key] for key in ("name", "revision", "licence", "licence_hub")}
            | {"config": "" if several(data) else datasets[0].config},
            protocol={"correlation": "spearman", "ratings": "mean", "limit": limit},
            examples=sum(each["texts"] for each in sets.values()),
            metrics={"sets": sets, "resampled": "groups"},
            more={"cut": cut_of(model)},
        )
        return finished(self, result, model, split, seed)

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """A row of the model and one of each rule: columns of rho and of accuracy for each set."""
        rows: Rows = {}
        for name, metrics in result.metrics["sets"].items():
            parts = [rows_of_sets({name: metrics}, "rho", plain, "texts")]
            if "accuracy" in metrics:
                accuracies = {f"{name} accuracy": {**metrics, "baselines": metrics["accuracies"]}}
                parts.append(rows_of_sets(accuracies, "accuracy", percent, "texts"))
            for rule, cells in (row for part in parts for row in part.items()):
                rows.setdefault(rule, {}).update(cells)
        return rows


def evaluate_set(
    tables: Sequence[pa.Table], scorers: Mapping[str, Scorer], seed: int, name: str
) -> dict[str, Any]:
    """The metrics of one test set: rho of the model (the scorer called "") and of the rules.

    `tables` are the split to judge and perhaps the training split. If both have classes, the
    metrics also have the accuracy of the model (over all texts and by domain), of the rules, and
    of the most frequent class (`majority`).
    """
    rows, *train = ([row for row in table.to_pylist() if row["ratings"]] for table in tables)
    training = train[0] if train and rows and _has_classes([*rows, *train[0]]) else []
    all_rows, judged = [*rows, *training], len(rows)
    ratings = np.array([np.mean(row["ratings"]) for row in rows])
    _, group = np.unique([row["group"] for row in rows], return_inverse=True)
    texts = [tuple(as_sentences(row["text"])) for row in all_rows]
    # GCDC has a file for each domain: an id such as `Clinton_test:12` is of the domain Clinton.
    # The ids of the other releases give one domain, "".
    ids = [row.get("id") or "" for row in all_rows]
    domains = np.array([id.partition(":")[0].rpartition("_")[0] for id in ids])
    classes = np.array([row["rating"] for row in all_rows]) if training else np.zeros(0)
    rho, right = {}, {}
    for rule, scorer in scorers.items():
        # The splits are scored one by one: a text's TF-IDF vectors depend on the texts beside it.
        parts = [scores_of(scorer, part) for part in (texts[:judged], texts[judged:])]
        scores = finite(np.concatenate(parts), "the model gives scores", name)
        rho[rule] = rho_of(scores[:judged], ratings, group, seed, f"{name}.{rule}")
        if training:
            right[rule] = classify(scores, classes, domains, judged) == classes[:judged]
    units = int(group.max(initial=-1)) + 1
    metrics = {"rho": rho.pop(""), "baselines": rho, "texts": judged, "groups": units}
    if not training:
        return metrics
    # From equal scores the regression predicts the most frequent class of the training texts.
    by_majority = classify(np.zeros(len(texts)), classes, domains, judged) == classes[:judged]
    figures = {
        r: mean_figure(hits, group, seed, f"{name}.{r}.accuracy") for r, hits in right.items()
    }
    by_domain = {
        str(domain): float(right[""][domains[:judged] == domain].mean())
        for domain in np.unique(domains[:judged])
    }
    metrics["accuracy"] = {**figures.pop(""), "domains": by_domain, "trained_on": len(training)}
    return {**metrics, "accuracies": {**figures, "majority": {"value": float(by_majority.mean())}}}


def _has_classes(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each text's `rating` is a whole number, a class; SummEval's ratings are means."""
    values = [row.get("rating") for row in rows]
    return all(value is not None and float(value).is_integer() for value in values)


def classify(
    scores: np.ndarray, classes: np.ndarray, domains: np.ndarray, judged: int
) -> np.ndarray:
    """Predict the classes of the first `judged` texts from their scores, `[judged]`.

    The texts after them are the training texts; all arrays are `[texts]`. Each domain has its own
    logistic regression, or without training texts one that is trained on all domains.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    predicted = np.zeros(len(scores))
    train = np.arange(len(scores)) >= judged
    for domain in np.unique(domains[:judged]):
        rows = domains == domain
        training = train & rows if (train & rows).any() else train
        two_classes = len(np.unique(classes[training])) > 1
        learner = LogisticRegression() if two_classes else DummyClassifier()
        model = make_pipeline(StandardScaler(), learner)
        model.fit(scores[training, None], classes[training])
        predicted[rows] = model.predict(scores[rows, None])
    return predicted[:judged]


def rho_of(
    scores: np.ndarray, ratings: np.ndarray, group: np.ndarray, seed: int, name: str
) -> dict[str, Any]:
    """Spearman's rho of scores and ratings, with its bootstrap interval over `group [texts]`."""
    units = int(group.max(initial=-1)) + 1
    samples = resampled_counts(units, seed, name)
    rows = (np.repeat(np.arange(len(group)), times[group]) for times in samples)
    resampled = (spearman(scores[row], ratings[row]) for row in rows)
    return {"value": spearman(scores, ratings), **ci_and_units(units, resampled)}


def spearman(scores: np.ndarray, ratings: np.ndarray) -> float:
    """Spearman's rho of scores and ratings; 0 if all scores or all ratings are equal."""
    from scipy.stats import spearmanr

    if len(scores) < 2 or np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return 0.0
    return float(spearmanr(scores, ratings).statistic)
