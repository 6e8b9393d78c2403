"""Suite `ratings`: do a scorer's scores rise with people's ratings of coherence?

Spearman's rank correlation of the scores with the mean rating of each text: scores have no scale
of their own, so ranks are all that can be compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.errors import InputError
from zoo.evaluate.results import Result
from zoo.evaluate.scorers import (
    Scorer,
    baseline,
    cut_of,
    describe,
    load_scorer,
    scores_of,
)
from zoo.evaluate.scores import finite, stated, whole_units
from zoo.texts import as_sentences
from zoo.training.data import open_dataset, read_manifest, split_spec, spread

if TYPE_CHECKING:
    import pyarrow as pa

    from zoo.evaluate import Request

RULES = ("random", "longer", "shorter", "tfidf")


def evaluate(request: Request) -> Result:
    """Rho on every configuration with rated texts, beside the rules.

    Raises `InputError` where no configuration has any in the split.
    """
    folder, config = split_spec(request.data)
    one = config or not Path(folder).is_dir()
    configs = [config] if one else list(read_manifest(Path(folder))["configs"])
    opened = [open_dataset(folder, name) for name in configs]
    tables = {
        data.config: spread(table, request.limit)
        for data in opened
        if (table := data.splits.get(request.split)) is not None
        and {"text", "group", "ratings"} <= {*table.column_names}
    }
    if not tables:
        raise InputError(
            f"no configuration has rated texts in its split {request.split!r}",
            where=request.data,
            hint="give a dataset built by `rated`; CoheSentia's texts are in train, too",
        )
    model = load_scorer(request.model, request.seed)
    scorers: dict[str, Scorer] = {"": model}
    scorers |= {name: baseline(name, request.seed) for name in RULES}
    sets = {
        name: evaluate_set(table, scorers, request.seed, name) for name, table in tables.items()
    }
    about = opened[0].describe()
    return Result(
        model=describe(request.model, model),
        dataset={key: about[key] for key in ("name", "revision", "licence", "licence_hub")}
        | {"config": config},
        protocol={"correlation": "spearman", "ratings": "mean", "limit": request.limit},
        examples=sum(each["texts"] for each in sets.values()),
        metrics={"sets": sets, "resampled": "groups"},
        more={"cut": cut_of(model)},
    )


def evaluate_set(
    table: pa.Table, scorers: dict[str, Scorer], seed: int, name: str
) -> dict[str, Any]:
    """Rho of the model (the scorer called "") with its interval, and of the rules."""
    rows = [row for row in table.to_pylist() if row["ratings"]]
    ratings = np.array([np.mean(row["ratings"]) for row in rows])
    texts = [tuple(as_sentences(row["text"])) for row in rows]
    _, group = np.unique([row["group"] for row in rows], return_inverse=True)
    found: dict[str, Any] = {"texts": len(rows), "groups": int(group.max(initial=-1)) + 1}
    for rule, scorer in scorers.items():
        scores = finite(scores_of(scorer, texts), name)
        found[rule] = rho_of(scores, ratings, group, seed, f"{name}.{rule}")
    return {"rho": found.pop(""), "baselines": {r: found.pop(r) for r in RULES}, **found}


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
