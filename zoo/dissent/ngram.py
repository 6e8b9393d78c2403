"""Recipe: bag of n-grams and logistic regression (Nie et al. 2019, appendix A.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.sparse import csr_matrix

from zoo.dissent.ngrams import (
    NgramConfig,
    NgramForMarkers,
    NgramRows,
    NgramVocabulary,
    encode_ngrams,
)
from zoo.dissent.results import leave
from zoo.labelled import Columns, load_for
from zoo.logistic import Grid, fit_logistic
from zoo.training.job import Job, is_main_process
from zoo.training.settings import Positive, RunSettings


@dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """A pair's features are the distinct n-grams of s1 and, apart from them, those of s2."""

    longest: Positive = 3
    min_texts: Positive = 2
    """An n-gram must be in so many sentences."""
    features: Positive = 200_000
    """So many n-grams at most, the most frequent."""
    grid: Grid = (0.1, 1.0, 10.0)
    """Inverse penalties, of which validation accuracy chooses one."""
    iterations: Positive = 200
    columns: Columns = ()
    empty_classes: Literal["error", "warn"] = "error"


def train(job: Job) -> None:
    """Train into `job.folder`: data, model, objective (scikit-learn), evaluation, card."""
    s: Settings = job.settings  # type: ignore[assignment]
    if not is_main_process():
        return

    # Data
    data = load_for(job)
    vocabulary = NgramVocabulary.fit(
        data.all_texts("train"), s.longest, min_texts=s.min_texts, limit=s.features
    )
    rows = {
        split: encode_ngrams(*data.texts(split), vocabulary, labels=data.gold(split))
        for split in data.tables
    }

    # Model
    model = NgramForMarkers(NgramConfig(features=2 * len(vocabulary), **data.names))

    # Objective
    fitted = fit_logistic(
        (_matrix(rows["train"]), rows["train"].labels),
        (_matrix(rows["validation"]), rows["validation"].labels),
        len(data.labels),
        grid=s.grid,
        iterations=s.iterations,
    )
    with torch.no_grad():
        model.weight[:-1] = torch.from_numpy(fitted.coefficients.T)
        model.bias.copy_(torch.from_numpy(fitted.intercept))

    # Evaluation and card
    details = {"ngrams": len(vocabulary)}
    leave(job, data, model, vocabulary, rows, details=details, training=fitted.describe())


def _matrix(rows: NgramRows) -> csr_matrix:
    """What the model computes its logits from: `[rows, features]`, each row of length 1."""
    sizes = rows.lengths()
    values = np.repeat(1 / np.sqrt(np.maximum(sizes, 1)), sizes).astype(np.float32)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    ids = np.concatenate([np.zeros(0, np.int64), *rows.features])
    return csr_matrix((values, ids, bounds), shape=(len(rows), rows.pad_id))
