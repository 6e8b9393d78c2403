"""Suite `pdtb`: implicit relations, and marked against unmarked (DisSent, section 6, table 7).

The dataset says which: `pdtb_implicit` (the 11 most frequent senses) or `pdtb_marked`. A model
that was fine-tuned on it (recipe `dissent/pdtb`) is asked for its labels. Of every other model
the frozen vectors go to a logistic regression, whose penalty the validation split chooses:

    sentences   [x1, x2, x1 * x2, |x1 - x2|], each argument encoded by itself
    pair        the vector of both arguments encoded as one input
"""

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

COLUMNS = ("arg1", "arg2")
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
        columns=COLUMNS,
        classes=options.classes,
        max_eval_rows=request.limit,
        empty="warn",
    )
    if "test" not in data.data.splits:
        _ = data.data["test"]  # says which splits are there
    rows = data.tables["test"].num_rows if "test" in data.tables else 0
    need_labels(rows, request.split, f"{data.data.name}@{data.data.config}")
    protocol: dict[str, Any] = {"classes": len(data.labels), "limit": request.limit}
    classifier = _fine_tuned(request.model, data)
    if classifier is not None:
        metrics = {"fine_tuned": _ask(classifier, data, request)}
    else:
        metrics = _frozen(request, options, data)
        protocol["representation"] = options.representation
    task = "marked" if "marked" in data.labels else "implicit"
    outcomes = [
        Outcomes(options.column(task, name), numbered(rows), one.pop("right"))
        for name, one in metrics.items()
    ]
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


def features(encoder: Encoder, data: Labelled, split: str, protocol: str) -> np.ndarray:
    """The frozen features of a split's rows, `[rows, width]`."""
    one, two = data.texts(split)
    if protocol == "pair":
        return encoder.encode_pairs(list(zip(one, two, strict=True)))
    both = encoder.encode([*one, *two])
    x1, x2 = both[: len(one)], both[len(one) :]
    return np.concatenate([x1, x2, x1 * x2, np.abs(x1 - x2)], axis=1)


def _fine_tuned(model: str, data: Labelled) -> PairClassifier | None:
    """The model, if it was trained to give this dataset's labels."""
    if classifier_class(model) is None:
        return None
    classifier = PairClassifier.load(model)
    if set(classifier.labels) & set(data.labels):
        check_labels(classifier.labels, data.labels, f"{data.data.name}@{data.data.config}")
        return classifier
    return None


def _ask(classifier: PairClassifier, data: Labelled, request: Request) -> dict[str, Any]:
    gold = data.gold("test")
    rows = classifier.rows(*data.texts("test"), gold)
    predicted = predict(classifier.model, rows, request.batch_size)
    metrics = report(gold, predicted, data.labels, request.seed)
    return {**metrics, "truncated": rows.truncated, "right": predicted == gold}


def _frozen(request: Request, options: Pdtb, data: Labelled) -> dict[str, Any]:
    encoder = load_encoder(request.model, options.representation, cache=options.cache or None)
    both = options.protocol == "both"
    protocols = ("sentences", "pair") if both else (options.protocol,)
    return {name: _probe(encoder, data, name, request.seed) for name in protocols}


def _probe(encoder: Encoder, data: Labelled, protocol: str, seed: int) -> dict[str, Any]:
    """Logistic regression on standardised frozen features."""
    found = {split: features(encoder, data, split, protocol) for split in data.tables}
    mean, deviation = found["train"].mean(0), found["train"].std(0) + 1e-8
    scaled = {split: (values - mean) / deviation for split, values in found.items()}
    fitted = fit_logistic(
        (scaled["train"], data.gold("train")),
        (scaled["validation"], data.gold("validation")),
        len(data.labels),
        grid=GRID,
        iterations=ITERATIONS,
    )
    gold, predicted = data.gold("test"), fitted.predict(scaled["test"])
    metrics = report(gold, predicted, data.labels, seed)
    probe = {"c": fitted.c, "validation_accuracy": fitted.accuracy, "converged": fitted.converged}
    width = int(found["train"].shape[1])
    return {**metrics, "probe": probe, "width": width, "right": predicted == gold}
