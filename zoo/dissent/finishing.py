"""Evaluating and saving a trained model that predicts the label of two texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedModel

from zoo.evaluate.classification import predict, report
from zoo.labelled import Labelled
from zoo.training.finishing import finish
from zoo.training.job import Job


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
    splits: Sequence[str] = (),
) -> None:
    """Evaluate a trained model of pairs, and write it with its card and results.json.

    It is evaluated on the encoded `rows` of `splits`; the card's headline is of the last one. By
    default that is the test split, or the validation split if the test split has no labels.
    `details` (of the data) and `training` are further facts for results.json.
    """
    splits = splits or ["test" if "test" in rows else "validation"]
    metrics = {}
    for split in splits:
        predictions = predict(model, rows[split], batch_size)
        metrics[split] = report(rows[split].labels, predictions, data.labels, job.recipe.seed)
    main = splits[-1]
    figures = [f"{metrics[main][name]['value']:.3f}" for name in ("accuracy", "f1")]
    finish(
        job,
        model,
        tokenizer,
        data.data,
        headline=(f"{main} accuracy, unweighted F1", ", ".join(figures)),
        labels=data.labels,
        metrics=metrics,
        data={
            **details,
            "empty_classes": data.empty_classes,
            "train_labels": data.label_counts("train"),
        },
        training=training,
    )
