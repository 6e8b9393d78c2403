"""Suites `dissent` and `pdtb`: predicting the marker or the relation between two texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from corpora.errors import InputError
from zoo.declared import CLASSIFIES, ENCODES, LABELLED, Count, Form, Suite
from zoo.evaluate import in_hand
from zoo.evaluate.encoders import AUTO, SentenceEncoder, Text, as_encoder, load_encoder
from zoo.evaluate.results import Result, finished
from zoo.evaluate.scores import Outcomes, independent_units
from zoo.evaluate.table import Cells, Rows, percent
from zoo.labelled import Labelled, load
from zoo.logistic import fit_logistic
from zoo.training.data import as_dataset, check_labels, spread, text_columns

GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""The inverse penalties that the logistic regression tries."""
ITERATIONS = 200
"""The most iterations of the logistic regression."""
ANNOTATED = "marked, as annotated"
"""The task `pdtb_marked` with `arguments = "annotated"`: all relations, as in DisSent's table 7."""


class DisSent(Suite):
    """Predicting the marker that joined two sentences."""

    name = "dissent"
    paper = "Nie, Bennett and Goodman 2019, tables 5 and 8 to 10"
    needs = frozenset({CLASSIFIES})
    reads = LABELLED

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Measure accuracy, F1, each marker's scores, majority baseline and confusion matrix.

        Other pairs with a label (NLI, PDTB) are judged too, by models that were trained on them.
        Rows without a label are left out. Raises `InputError` if the model's labels are not the
        dataset's, if the model classifies no pairs, or if a row lacks a text.
        """
        from zoo.evaluate.classification import as_classifier, report

        data, classifier = as_dataset(data).judged_on(split), as_classifier(model)
        if classifier is None:
            raise self.unfit(model)
        check_labels(classifier.labels, data.labels(hidden=True), data.where)
        texts = text_columns(data["test"], (), data.name)
        table = spread(data.need(*texts)["test"], limit)
        gold = table["label"].to_numpy().astype(np.int64)
        table, gold = table.filter(pa.array(gold >= 0)), gold[gold >= 0]
        need_labels(len(gold), split, data.where)
        first, second = (table[name].to_pylist() for name in texts)
        rows = classifier.rows(first, second, gold)
        predicted = classifier.predict(rows)
        about, units = data.describe(), independent_units(len(gold))
        labels = sorted({classifier.labels[label] for label in predicted.tolist()})
        result = Result(
            model=in_hand.about(classifier),
            dataset=about,
            protocol={"limit": limit},
            examples=len(rows),
            metrics=report(gold, predicted, classifier.labels, seed),
            notes=[f"the model predicts {labels[0]!r} for every row"] if len(labels) == 1 else [],
            outcomes=[
                Outcomes(f"{about['config']} F1", units, gold=gold, predicted=predicted),
                Outcomes(f"{about['config']} accuracy", units, right=gold == predicted),
            ],
            more={"truncated": rows.truncated},
        )
        return finished(self, result, classifier, split, seed)

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """The rows of the model and of the majority class: columns of F1 and accuracy."""
        metrics, config = result.metrics, result.dataset["config"]

        def cells(figures: Mapping[str, Any]) -> Cells:
            n = metrics.get("rows")
            shown = (("F1", "f1"), ("accuracy", "accuracy"))
            return {f"{config} {name}": percent(figures[key], n) for name, key in shown}

        return {"": cells(metrics), "rule: majority": cells(metrics["majority"])}

    def write_files(self, result: Result, stem: Path) -> None:
        """Write the confusion matrix as `STEM.confusion.csv`, `.svg` and `.png`."""
        from zoo.evaluate.confusions import write_confusion

        write_confusion(stem.with_name(f"{stem.name}.confusion"), result.metrics["confusion"])


class Pdtb(Suite):
    """Implicit relations, and marked against unmarked ones.

    The dataset decides the task: `pdtb_implicit` (the 11 most frequent senses) or `pdtb_marked`
    (whether a relation is marked, with an explicit connective, or not).
    A model that was fine-tuned on it (recipe `dissent/pdtb`) predicts the labels itself. For other
    models, a logistic regression on frozen vectors predicts, with the best penalty on validation.
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

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Measure accuracy, F1 and each class's scores under each protocol.

        Raises `InputError` for a model that has neither sentence vectors nor the dataset's labels,
        and for a split without a labelled row.
        """
        from zoo.evaluate.classification import as_classifier, report

        pairs = load(
            as_dataset(data).judged_on(split),
            columns=("arg1", "arg2"),
            classes=self.classes,
            max_eval_rows=limit,
            empty="warn",
        )
        _ = pairs.data["test"]  # raises an error with the names of the splits if there is none
        rows = pairs.tables["test"].num_rows if "test" in pairs.tables else 0
        need_labels(rows, split, pairs.data.where)
        protocol: dict[str, Any] = {"classes": len(pairs.labels), "limit": limit}
        # Predictions of a fine-tuned classifier, or of probes on sentence vectors
        answers: dict[str, tuple[np.ndarray, dict[str, Any]]]
        classifier = as_classifier(model)
        if classifier and set(classifier.labels) & set(pairs.labels):
            check_labels(classifier.labels, pairs.labels, pairs.data.where)
            texts = classifier.rows(*pairs.texts("test"), pairs.gold("test"))
            answers = {"fine_tuned": (classifier.predict(texts), {"truncated": texts.truncated})}
        else:
            protocol["representation"] = self.representation
            encoder = self._encoder(model)
            names = ("sentences", "pair") if self.protocol == "both" else (self.protocol,)
            answers = {name: probe(encoder, pairs, name, self.representation) for name in names}
        gold, task = pairs.gold("test"), task_of(pairs)
        result = Result(
            model=in_hand.about(model),
            dataset=pairs.data.describe(),
            protocol=protocol,
            examples=rows,
            metrics={
                name: {**report(gold, predicted, pairs.labels, seed), **about}
                for name, (predicted, about) in answers.items()
            },
            notes=pairs.notes,
            outcomes=[
                Outcomes(self.column(task, name), independent_units(rows), predicted == gold)
                for name, (predicted, _) in answers.items()
            ],
            more={"task": task},
        )
        return finished(self, result, model, split, seed)

    def _encoder(self, model: Any) -> SentenceEncoder:
        """The frozen encoder of a model object; a classifier's folder is loaded as an encoder."""
        from zoo.evaluate.classification import PairClassifier

        if isinstance(model, PairClassifier) and model.folder:
            return load_encoder(model.folder, self.representation, cache=self.cache or None)
        encoder = as_encoder(model)
        if encoder is None:
            raise self.unfit(model)
        return encoder

    @staticmethod
    def column(task: str, protocol: str) -> str:
        """The table column of a task under a protocol, named as in the paper if it has the task.

        The task `implicit` is IMP, the marked task with all relations is MVU. The marked task with
        rows matched in length and form, which the paper does not have, is `marked`.
        """
        name = {"implicit": "IMP", ANNOTATED: "MVU"}.get(task, "marked")
        return name + (" (pair)" if protocol == "pair" else "")

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """The rows of the model and of the majority class: a column for each protocol."""
        task, metrics = result.more["task"], result.metrics
        model = {
            cls.column(task, protocol): percent(figures["accuracy"], figures.get("rows"))
            for protocol, figures in metrics.items()
        }
        majority = percent(next(iter(metrics.values()))["majority"]["accuracy"])
        return {"": model, "rule: majority": dict.fromkeys(model, majority)}

    def write_files(self, result: Result, stem: Path) -> None:
        """Write the confusion matrix of each protocol: `STEM.PROTOCOL.csv`, `.svg`, `.png`."""
        from zoo.evaluate.confusions import write_confusion

        for name, metrics in result.metrics.items():
            write_confusion(stem.with_name(f"{stem.name}.{name}"), metrics["confusion"])


def task_of(pairs: Labelled) -> str:
    """The task of a PDTB dataset: "implicit", "marked", or `ANNOTATED`, which is the paper's."""
    if "marked" not in pairs.labels:
        return "implicit"
    settings = pairs.data.manifest.get("details", {}).get("settings", {})
    return ANNOTATED if settings.get("arguments") == "annotated" else "marked"


def need_labels(rows: int, split: str, where: str) -> None:
    """Raise `InputError` if the number of labelled `rows` in a split of the data `where` is 0."""
    if not rows:
        raise InputError(
            f"no row of the split {split!r} has a label",
            where=where,
            hint="take a split that has labels, such as --split validation",
        )


def probe(
    encoder: SentenceEncoder, data: Labelled, protocol: str, representation: str = AUTO
) -> tuple[np.ndarray, dict[str, Any]]:
    """Train a logistic regression on frozen vectors of pairs, and predict the test split's labels.

    Returns the predictions, `[rows]`, and facts about the classifier for the result. The protocol
    `pair` encodes both texts as one input; `sentences` combines the vectors x1 and x2 of both to
    [x1, x2, x1 * x2, |x1 - x2|]. Features are standardised.
    """
    # Features
    name = encoder.representation if representation == AUTO else encoder.named(representation)
    features = {}

    def encode(texts: Sequence[Text]) -> np.ndarray:
        return encoder.vectors(texts, [name])[name]

    for split in data.tables:
        first, second = data.texts(split)
        if protocol == "pair":
            features[split] = encode(list(zip(first, second, strict=True)))
        else:
            x1, x2 = np.split(encode([*first, *second]), 2)
            features[split] = np.concatenate([x1, x2, x1 * x2, np.abs(x1 - x2)], axis=1)
    # Regression on standardised features
    mean, deviation = features["train"].mean(0), features["train"].std(0) + 1e-8
    scaled = {split: (values - mean) / deviation for split, values in features.items()}
    regression = fit_logistic(
        (scaled["train"], data.gold("train")),
        (scaled["validation"], data.gold("validation")),
        len(data.labels),
        grid=GRID,
        iterations=ITERATIONS,
    )
    about = {
        "c": regression.c,
        "validation_accuracy": regression.accuracy,
        "converged": regression.converged,
    }
    return regression.predict(scaled["test"]), {"probe": about, "width": len(mean)}
