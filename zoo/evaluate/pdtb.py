"""Suite `pdtb`: implicit relations, and marked against unmarked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo.evaluate import Request
from zoo.evaluate.classification import (
    PairClassifier,
    classifier_class,
    model_type,
    need_labels,
    predict,
    report,
)
from zoo.evaluate.encoders import Encoder, load_encoder
from zoo.evaluate.outcomes import Outcomes, numbered
from zoo.evaluate.results import Result
from zoo.labelled import Labelled, load
from zoo.logistic import fit_logistic
from zoo.training.data import check_labels

if TYPE_CHECKING:
    from zoo.evaluate.suites import Pdtb

GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Inverse penalties of the logistic regression."""
ITERATIONS = 200


def evaluate(options: Pdtb, request: Request) -> Result:
    """Accuracy, F1 and each class's scores by the protocols above; majority class beside them.

    Raises `InputError` for a model that has neither sentence vectors nor the dataset's labels,
    and for a split without a labelled row.
    """
    data = load(
        request.data,
        splits={"test": request.split},
        columns=("arg1", "arg2"),
        classes=options.classes,
        max_eval_rows=request.limit,
        empty="warn",
    )
    if "test" not in data.data.splits:
        _ = data.data["test"]  # says which splits are there
    rows = data.tables["test"].num_rows if "test" in data.tables else 0
    need_labels(rows, request.split, data.data.where)
    protocol: dict[str, Any] = {"classes": len(data.labels), "limit": request.limit}
    metrics, outcomes = {}, []
    task = "marked" if "marked" in data.labels else "implicit"

    def add(name: str, predicted: np.ndarray, **more: Any) -> None:
        gold = data.gold("test")
        metrics[name] = {**report(gold, predicted, data.labels, request.seed), **more}
        column = options.column(task, name)
        outcomes.append(Outcomes(column, numbered(rows), predicted == gold))

    known = classifier_class(request.model) is not None
    classifier = PairClassifier.load(request.model) if known else None
    if classifier is not None and set(classifier.labels) & set(data.labels):
        check_labels(classifier.labels, data.labels, data.data.where)
        texts = classifier.rows(*data.texts("test"), data.gold("test"))
        predicted = predict(classifier.model, texts, request.batch_size)
        add("fine_tuned", predicted, truncated=texts.truncated)
    else:
        protocol["representation"] = options.representation
        encoder = load_encoder(request.model, options.representation, cache=options.cache or None)
        both = options.protocol == "both"
        for name in ("sentences", "pair") if both else (options.protocol,):
            predicted, about = probe(encoder, data, name)
            add(name, predicted, **about)
    return Result(
        model={"name": Path(request.model).name, "type": model_type(request.model)},
        dataset=data.data.describe(),
        protocol=protocol,
        examples=rows,
        metrics=metrics,
        notes=data.notes,
        outcomes=outcomes,
        more={"task": task},
    )


def probe(encoder: Encoder, data: Labelled, protocol: str) -> tuple[np.ndarray, dict[str, Any]]:
    """What a logistic regression on standardised frozen features predicts of the test split."""
    features = {}
    for split in data.tables:
        one, two = data.texts(split)
        if protocol == "pair":
            features[split] = encoder.encode_pairs(list(zip(one, two, strict=True)))
        else:
            both = encoder.encode([*one, *two])
            x1, x2 = both[: len(one)], both[len(one) :]
            features[split] = np.concatenate([x1, x2, x1 * x2, np.abs(x1 - x2)], axis=1)
    mean, deviation = features["train"].mean(0), features["train"].std(0) + 1e-8
    scaled = {split: (values - mean) / deviation for split, values in features.items()}
    fitted = fit_logistic(
        (scaled["train"], data.gold("train")),
        (scaled["validation"], data.gold("validation")),
        len(data.labels),
        grid=GRID,
        iterations=ITERATIONS,
    )
    about = {"c": fitted.c, "validation_accuracy": fitted.accuracy, "converged": fitted.converged}
    return fitted.predict(scaled["test"]), {"probe": about, "width": len(mean)}
