"""Suite `dissent`: predicting the marker that joined two sentences (tables 5 and 8 to 10)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from zoo.evaluate import Request
from zoo.evaluate.classification import PairClassifier, need_labels, predict, report
from zoo.evaluate.outcomes import Outcomes, numbered
from zoo.evaluate.results import Result
from zoo.labelled import columns_of
from zoo.training.data import Dataset, check_labels, open_dataset, spread


def evaluate(request: Request) -> Result:
    """Accuracy, F1, each marker's scores, majority baseline and confusion matrix.

    For every type of DisSent model, and for other pairs with a label (NLI, PDTB) that such a
    model was trained on. Raises `InputError` if the model's labels are not the dataset's, or if
    the model classifies no pairs.
    """
    data = open_dataset(request.data, splits={"test": request.split})
    classifier = PairClassifier.load(request.model)
    check_labels(classifier.labels, data.labels(hidden=True), data.where)
    return score(classifier, data, spread(data["test"], request.limit), request)


def score(classifier: PairClassifier, data: Dataset, table: pa.Table, request: Request) -> Result:
    """The result of `evaluate` on the rows of `table` that have a label."""
    gold = table["label"].to_numpy().astype(np.int64)
    table, gold = table.filter(pa.array(gold >= 0)), gold[gold >= 0]
    need_labels(len(gold), request.split, data.where)
    one, two = (table[name].to_pylist() for name in columns_of(table, (), data.name))
    rows = classifier.rows(one, two, gold)
    predicted = predict(classifier.model, rows, request.batch_size)
    about, units = data.describe(), numbered(len(gold))
    return Result(
        model={"name": Path(request.model).name, "type": classifier.model_type},
        dataset=about,
        protocol={"limit": request.limit},
        examples=len(rows),
        metrics=report(gold, predicted, classifier.labels, request.seed),
        outcomes=[
            Outcomes(f"{about['config']} F1", units, gold=gold, predicted=predicted),
            Outcomes(f"{about['config']} accuracy", units, right=gold == predicted),
        ],
        more={"truncated": rows.truncated},
    )
