"""Recipe: bag of n-grams and logistic regression (Nie et al. 2019, appendix A.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from zoo.dissent.data import NgramVocabulary, encode_ngrams
from zoo.dissent.finishing import leave
from zoo.dissent.modeling import NgramConfig, NgramForMarkers
from zoo.labelled import load_for
from zoo.logistic import fit_logistic
from zoo.training.job import Job, is_main_process

if TYPE_CHECKING:
    from zoo.dissent.recipes import Ngram


def train(recipe: Ngram, job: Job) -> None:
    """Fit a regression on n-grams, and write the model, results and card to `job.folder`."""
    if not is_main_process():
        return

    # Data
    data = load_for(recipe, job)
    vocabulary = NgramVocabulary.fit(
        data.all_texts("train"), recipe.longest, min_texts=recipe.min_texts, limit=recipe.features
    )
    rows = {
        split: encode_ngrams(*data.texts(split), vocabulary, labels=data.gold(split))
        for split in data.tables
    }

    # Model
    model = NgramForMarkers(NgramConfig(features=2 * len(vocabulary.ngrams), **data.names))

    # Objective
    features = {}
    for split in ("train", "validation"):
        ids, bounds = rows[split].texts.ids, rows[split].texts.bounds
        shape = (len(rows[split]), rows[split].pad_id)
        ones = csr_matrix((np.ones(len(ids), np.float32), ids, bounds), shape)
        features[split] = normalize(ones)  # each row of length 1, as in the model
    fitted = fit_logistic(
        (features["train"], rows["train"].labels),
        (features["validation"], rows["validation"].labels),
        len(data.labels),
        grid=recipe.grid,
        iterations=recipe.iterations,
    )
    with torch.no_grad():
        model.weight[:-1] = torch.from_numpy(fitted.coefficients.T)
        model.bias.copy_(torch.from_numpy(fitted.intercept))

    # Evaluation and card
    details = {"ngrams": len(vocabulary.ngrams)}
    leave(job, data, model, vocabulary, rows, details=details, training=fitted.describe())
