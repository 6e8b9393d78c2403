"""The end of a recipe that trains a classifier of pairs: evaluation, card, results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import PreTrainedModel

from zoo.evaluate.classification import predict, report
from zoo.labelled import Labelled
from zoo.training.finishing import finish
from zoo.training.job import Job

USAGE = """
from zoo.dissent import predict
predict(FOLDER, [("It rained all day.", "We stayed inside.")])    # a probability a label
"""


def leave(
    job: Job,
    data: Labelled,
    model: PreTrainedModel,
    tokenizer: Any,
    rows: Mapping[str, Any],
    *,
    details: Mapping[str, Any],
    training: Mapping[str, Any],
    batch_size: int = 256,
) -> None:
    """Evaluate the trained model; write it with its card and results.json.

    It is judged on the encoded rows of the test split, or of the validation split where the test
    split has no labels.
    """
    split = "test" if "test" in rows else "validation"
    predicted = predict(model, rows[split], batch_size)
    found = report(rows[split].labels, predicted, data.labels, job.recipe.seed)
    finish(
        job,
        model,
        tokenizer,
        data.data,
        USAGE,
        headline=headline(split, found),
        labels=data.labels,
        metrics={split: found},
        data={**details, "empty_classes": data.empty_classes},
        training=training,
    )


def headline(split: str, found: Mapping[str, Any]) -> tuple[str, str]:
    """The name and the text of a classifier's first figures."""
    figures = f"{found['accuracy']['value']:.3f}, {found['f1']['value']:.3f}"
    return f"{split} accuracy, unweighted F1", figures
