"""The end of a recipe that trains a classifier of pairs: card, results, one log line."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from zoo import card
from zoo.dissent.labelled import Labelled
from zoo.job import Job

log = logging.getLogger("zoo")

USAGE = """
from zoo.dissent import predict
predict(FOLDER, [("It rained all day.", "We stayed inside.")])    # a probability a label
"""


def finish(
    job: Job,
    data: Labelled,
    *,
    model_type: str,
    parameters: int,
    metrics: Mapping[str, Any],
    details: Mapping[str, Any],
    training: Mapping[str, Any] | None = None,
) -> None:
    """Write the card and results.json of the model that is already in `job.folder`.

    `metrics` holds a report of each split that was evaluated; the headline is the test's, or
    the validation's where the test split has no labels.
    """
    job.trained_on = data.tables["train"].num_rows
    headline = "test" if "test" in metrics else "validation"
    found = metrics[headline]
    results: dict[str, Any] = {
        "model_type": model_type,
        "dataset": data.data.describe(),
        "labels": data.labels,
        "parameters": parameters,
        "metrics": metrics,
        "data": {**details, "empty_classes": data.empty_classes},
        "training": training or {},
        "headline_name": f"{headline} accuracy, unweighted F1",
        "headline": f"{found['accuracy']['value']:.3f}, {found['f1']['value']:.3f}",
    }
    card.finish(job, results, USAGE)
