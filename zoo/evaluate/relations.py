"""Suites `dissent` and `pdtb`: which marker joined two sentences, which relation they have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from corpora.errors import InputError
from zoo.declared import CLASSIFIES, ENCODES, LABELLED, Count, Form, Suite
from zoo.evaluate import Request
from zoo.evaluate.encoders import SentenceEncoder, load_encoder
from zoo.evaluate.results import Result
from zoo.evaluate.scores import Outcomes, numbered
from zoo.evaluate.table import Cells, Rows, percent
from zoo.labelled import Labelled, load
from zoo.logistic import fit_logistic
from zoo.training.data import check_labels, open_dataset, spread, text_columns

GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Inverse penalties of the logistic regression."""
ITERATIONS = 200


class DisSent(Suite):
    """Predicting the marker that joined two sentences."""

    name = "dissent"
    paper = "Nie, Bennett and Goodman 2019, tables 5 and 8 to 10"
    needs = frozenset({CLASSIFIES})
    reads = LABELLED

    def evaluate(self, request: Request) -> Result:
        """Accuracy, F1, each marker's scores, majority baseline, confusion matrix.

        For every type of DisSent model, and for other pairs with a label (NLI, PDTB) that such a
        model was trained on. Raises `InputError` if the model's labels are not the dataset's, or
        if the model classifies no pairs, or a row lacks a text. Rows without a label are left out.
        """
        from zoo.evaluate.classification import PairClassifier, predict, report

        data = open_dataset(request.data, splits={"test": request.split})
        classifier = PairClassifier.load(request.model)
        check_labels(classifier.labels, data.labels(hidden=True), data.where)
        texts = text_columns(data["test"], (), data.name)
        table = spread(data.need(*texts)["test"], request.limit)
        gold = table["label"].to_numpy().astype(np.int64)
        table, gold = table.filter(pa.array(gold >= 0)), gold[gold >= 0]
        need_labels(len(gold), request.split, data.where)
        one, two = (table[name].to_pylist() for name in texts)
        rows = classifier.rows(one, two, gold)
        predicted = predict(classifier.model, rows, request.batch_size)
        about, units = data.describe(), numbered(len(gold))
        said = sorted({classifier.labels[label] for label in predicted.tolist()})
        return Result(
            model={"name": Path(request.model).name, "type": classifier.model_type},
            dataset=about,
            protocol={"limit": request.limit},
            examples=len(rows),
            metrics=report(gold, predicted, classifier.labels, request.seed),
            notes=[f"the model predicts {said[0]!r} for every row"] if len(said) == 1 else [],
            outcomes=[
                Outcomes(f"{about['config']} F1", units, gold=gold, predicted=predicted),
                Outcomes(f"{about['config']} accuracy", units, right=gold == predicted),
            ],
            more={"truncated": rows.truncated},
        )

    @classmethod
    def rows(cls, result: Result) -> Rows:
        metrics, config = result.metrics, result.dataset["config"]

        def cells(figures: Mapping[str, Any]) -> Cells:
            n = metrics.get("rows")
            shown = (("F1", "f1"), ("accuracy", "accuracy"))
            return {f"{config} {name}": percent(figures[key], n) for name, key in shown}

        return {"": cells(metrics), "rule: majority": cells(metrics["majority"])}

    def write_files(self, result: Result, stem: Path) -> None:
        """`STEM.confusion.csv`, `.svg` and `.png`."""
        from zoo.evaluate.confusions import write

        write(stem.with_name(f"{stem.name}.confusion"), result.metrics["confusion"])


class Pdtb(Suite):
    """Implicit relations, and marked against unmarked ones.

    The dataset says which: `pdtb_implicit` (the 11 most frequent senses) or `pdtb_marked`. A model
    that was fine-tuned on it (recipe `dissent/pdtb`) is asked for its labels. Of every other model
    the frozen vectors go to a logistic regression, whose penalty the validation split chooses.
    """

    name = "pdtb"
    paper = "Nie, Bennett and Goodman 2019, section 6 and table 7"
    needs = frozenset({CLASSIFIES, ENCODES})
    reads = (Form(("arg1", "arg2", "label")),)

    protocol: Literal["sentences", "pair", "both"] = "both"
    """`sentences`: [x1, x2, x1 * x2, |x1 - x2|], each argument encoded by itself; `pair`: the
    vector of both arguments encoded as one input."""
    representation: str = "auto"
    """How the frozen vectors are read off the model: see `zoo.evaluate.encoders`."""
    classes: Count = 11
    """The most labels: those with most training rows (section 6); 0: all."""
    cache: str = ""
    """A folder in which the vectors are kept for the next run."""

    def evaluate(self, request: Request) -> Result:
        """Accuracy, F1 and each class's scores by the protocols; majority class beside them.

        Raises `InputError` for a model that has neither sentence vectors nor the dataset's labels,
        and for a split without a labelled row.
        """
        from zoo.evaluate.classification import PairClassifier, classifier_class, predict, report
        from zoo.loading import model_type

        data = load(
            request.data,
            splits={"test": request.split},
            columns=("arg1", "arg2"),
            classes=self.classes,
            max_eval_rows=request.limit,
            empty="warn",
        )
        _ = data.data["test"]  # if it is not there, the error says which splits are
        rows = data.tables["test"].num_rows if "test" in data.tables else 0
        need_labels(rows, request.split, data.data.where)
        protocol: dict[str, Any] = {"classes": len(data.labels), "limit": request.limit}
        classifier = PairClassifier.load(request.model) if classifier_class(request.model) else None
        answers: dict[str, tuple[np.ndarray, dict[str, Any]]]
        if classifier and set(classifier.labels) & set(data.labels):
            check_labels(classifier.labels, data.labels, data.data.where)
            texts = classifier.rows(*data.texts("test"), data.gold("test"))
            predicted = predict(classifier.model, texts, request.batch_size)
            answers = {"fine_tuned": (predicted, {"truncated": texts.truncated})}
        else:
            protocol["representation"] = self.representation
            encoder = load_encoder(request.model, self.representation, cache=self.cache or None)
            both = ("sentences", "pair") if self.protocol == "both" else (self.protocol,)
            answers = {name: probe(encoder, data, name) for name in both}
        gold, task = data.gold("test"), "marked" if "marked" in data.labels else "implicit"
        return Result(
            model={"name": Path(request.model).name, "type": model_type(request.model)},
            dataset=data.data.describe(),
            protocol=protocol,
            examples=rows,
            metrics={
                name: {**report(gold, predicted, data.labels, request.seed), **about}
                for name, (predicted, about) in answers.items()
            },
            notes=data.notes,
            outcomes=[
                Outcomes(self.column(task, name), numbered(rows), predicted == gold)
                for name, (predicted, _) in answers.items()
            ],
            more={"task": task},
        )

    @staticmethod
    def column(task: str, protocol: str) -> str:
        """Implicit relations (IMP) or marked against unmarked (MVU); `pair`: encoded together."""
        return ("MVU" if task == "marked" else "IMP") + (" (pair)" if protocol == "pair" else "")

    @classmethod
    def rows(cls, result: Result) -> Rows:
        task, metrics = result.more["task"], result.metrics
        own = {
            cls.column(task, name): percent(found["accuracy"], found.get("rows"))
            for name, found in metrics.items()
        }
        majority = percent(next(iter(metrics.values()))["majority"]["accuracy"])
        return {"": own, "rule: majority": dict.fromkeys(own, majority)}

    def write_files(self, result: Result, stem: Path) -> None:
        """The confusion matrix of each protocol: `STEM.PROTOCOL.csv`, `.svg`, `.png`."""
        from zoo.evaluate.confusions import write

        for name, metrics in result.metrics.items():
            write(stem.with_name(f"{stem.name}.{name}"), metrics["confusion"])


def need_labels(rows: int, split: str, where: str) -> None:
    """Raise `InputError` if a split has no labelled row, as hidden test sets do."""
    if not rows:
        raise InputError(
            f"no row of the split {split!r} has a label",
            where=where,
            hint="take a split that has labels, such as --split validation",
        )


def probe(
    encoder: SentenceEncoder, data: Labelled, protocol: str
) -> tuple[np.ndarray, dict[str, Any]]:
    """What a logistic regression on standardised frozen features predicts of the test split."""
    features = {}
    for split in data.tables:
        one, two = data.texts(split)
        if protocol == "pair":
            features[split] = encoder.encode(list(zip(one, two, strict=True)))
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
