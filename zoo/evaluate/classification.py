"""Models that predict the label of two texts, and the suites `dissent` and `pdtb`.

Such a model's class is registered with `AutoModelForSequenceClassification` and has
`encode_pairs(one, two, tokenizer, limit, labels) -> Rows`; where `AutoTokenizer` does not read its
vocabulary, also `read_tokenizer(folder, config)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import torch
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from corpora.errors import InputError
from corpora.progress import track
from zoo.evaluate import Request, scores
from zoo.evaluate.encoders import Encoder, class_with, load_encoder
from zoo.evaluate.outcomes import Outcomes, numbered
from zoo.evaluate.results import Result
from zoo.evaluate.scores import accuracy, confusion_matrix, macro_f1
from zoo.labelled import Labelled, load
from zoo.loading import load_tokenizer, model_type
from zoo.logistic import fit_logistic
from zoo.modeling import best_device, label_count
from zoo.training.data import check_labels, open_dataset, spread, text_columns
from zoo.training.finishing import finish
from zoo.training.job import Job

if TYPE_CHECKING:
    from zoo.evaluate.suites import Pdtb


GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Inverse penalties of the logistic regression."""
ITERATIONS = 200


class Rows(Protocol):
    """Encoded rows that know their lengths and how to become a batch.

    `truncated` counts the texts that were cut.
    """

    truncated: int

    def __len__(self) -> int: ...
    def __getitem__(self, row: int) -> Any: ...
    def lengths(self) -> np.ndarray: ...
    def collate(self, rows: Sequence[Any]) -> dict[str, Any]: ...


@dataclass(frozen=True)
class PairClassifier:
    """A loaded model that predicts the label of two texts, with what turns texts into its input."""

    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, folder: str | Path) -> PairClassifier:
        """Load a model folder or a Hub id. Raises `InputError` for a model of another type."""
        kind = classifier_class(folder)
        if kind is None:
            extra = AutoModelForSequenceClassification._model_mapping._extra_content
            types = [c.model_type for c, known in extra.items() if hasattr(known, "encode_pairs")]
            raise InputError(
                f"holds a model of type {model_type(str(folder))!r}, which classifies no pairs of "
                "sentences",
                where=str(folder),
                hint=f"the types that do: {', '.join(types)}",
            )
        model = kind.from_pretrained(str(folder)).to(best_device())
        read_tokenizer = getattr(kind, "read_tokenizer", load_tokenizer)
        return cls(model, read_tokenizer(str(folder), model.config))

    @property
    def model_type(self) -> str:
        return str(self.model.config.model_type)

    @property
    def labels(self) -> list[str]:
        return [self.model.config.id2label[i] for i in range(label_count(self.model.config))]

    def rows(
        self, one: Sequence[str], two: Sequence[str], labels: np.ndarray | None = None
    ) -> Rows:
        """Pairs of sentences as the model takes them; `truncated` counts those that were cut."""
        limit = getattr(self.tokenizer, "model_max_length", 0)
        rows: Rows = self.model.encode_pairs(one, two, self.tokenizer, limit, labels=labels)
        return rows

    def probabilities(self, pairs: Sequence[tuple[str, str]], batch_size: int = 64) -> np.ndarray:
        """The probability of each label, `[pairs, labels]`; a row sums to 1."""
        one, two = [s1 for s1, _ in pairs], [s2 for _, s2 in pairs]
        scores = logits(self.model, self.rows(one, two), batch_size)
        return torch.from_numpy(scores).double().softmax(-1).numpy()


def evaluate(request: Request) -> Result:
    """The suite `dissent`: accuracy, F1, each marker's scores, majority baseline, confusion matrix.

    For every type of DisSent model, and for other pairs with a label (NLI, PDTB) that such a
    model was trained on. Raises `InputError` if the model's labels are not the dataset's, or if
    the model classifies no pairs. Rows without a label are left out.
    """
    data = open_dataset(request.data, splits={"test": request.split})
    classifier = PairClassifier.load(request.model)
    check_labels(classifier.labels, data.labels(hidden=True), data.where)
    table = spread(data["test"], request.limit)
    gold = table["label"].to_numpy().astype(np.int64)
    table, gold = table.filter(pa.array(gold >= 0)), gold[gold >= 0]
    need_labels(len(gold), request.split, data.where)
    one, two = (table[name].to_pylist() for name in text_columns(table, (), data.name))
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


def classifier_class(folder: str | Path) -> Any:
    """The class of a model that predicts the label of two texts; None for any other model."""
    return class_with("encode_pairs", AutoModelForSequenceClassification, str(folder))


def need_labels(rows: int, split: str, where: str) -> None:
    """Raise `InputError` if a split has no labelled row, as hidden test sets do."""
    if not rows:
        raise InputError(
            f"no row of the split {split!r} has a label",
            where=where,
            hint="take a split that has labels, such as --split validation",
        )


def predict(model: PreTrainedModel, rows: Rows, batch_size: int = 256) -> np.ndarray:
    """The most probable class of each row, `[rows]`."""
    return logits(model, rows, batch_size).argmax(-1)


@torch.inference_mode()
def logits(model: PreTrainedModel, rows: Rows, batch_size: int = 256) -> np.ndarray:
    """The model's logits of each row, `[rows, classes]`; batches hold rows of like length.

    Raises `InputError` if one is NaN: the first class would be answered.
    """
    model.eval()
    device = next(model.parameters()).device
    order = np.argsort(-rows.lengths(), kind="stable")
    found = np.zeros((len(rows), label_count(model.config)), np.float32)
    starts = range(0, len(order), batch_size)
    for start in track(starts, "batches", total=len(starts)):
        batch = order[start : start + batch_size]
        inputs = rows.collate([rows[int(row)] for row in batch])
        inputs.pop("labels", None)
        scores = model(**{name: value.to(device) for name, value in inputs.items()}).logits
        found[batch] = scores.float().cpu().numpy()
    if np.isnan(found).any():
        raise InputError("the model gives NaN", hint="its weights are damaged: train it anew")
    return found


def report(
    gold: np.ndarray, predicted: np.ndarray, names: Sequence[str], seed: int
) -> dict[str, Any]:
    """Accuracy and unweighted F1 with bootstrap intervals (over rows), and each class's scores.

    The unweighted F1 is the mean over the classes that occur in `gold`. Beside them stands the
    majority baseline: the most frequent class of `gold` for every row.
    """
    confusion = confusion_matrix(gold, predicted, len(names))
    often = int(confusion.sum(1).argmax())
    majority = np.zeros_like(confusion)
    majority[:, often] = confusion.sum(1)
    figures = {
        name: {
            "value": statistic(confusion),
            **scores.of_confusion(confusion, statistic, seed, name),
        }
        for name, statistic in (("accuracy", accuracy), ("f1", macro_f1))
    }
    return {
        "rows": len(gold),
        **figures,
        "per_class": scores.per_class(confusion, names),
        "weighted_average": scores.weighted_average(confusion),
        "majority": {
            "class": names[often],
            "accuracy": accuracy(majority),
            "f1": macro_f1(majority),
        },
        "confusion": {"classes": list(names), "gold_by_predicted": confusion.tolist()},
        "resampled": "rows",
    }


# The suite `pdtb`: implicit relations, and marked against unmarked.


def evaluate_pdtb(options: Pdtb, request: Request) -> Result:
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


# The end of a training.


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
    metrics = report(rows[split].labels, predicted, data.labels, job.recipe.seed)
    finish(
        job,
        model,
        tokenizer,
        data.data,
        headline=headline(split, metrics),
        labels=data.labels,
        metrics={split: metrics},
        data={**details, "empty_classes": data.empty_classes},
        training=training,
    )


def headline(split: str, metrics: Mapping[str, Any]) -> tuple[str, str]:
    """The name and the text of a classifier's first figures."""
    figures = f"{metrics['accuracy']['value']:.3f}, {metrics['f1']['value']:.3f}"
    return f"{split} accuracy, unweighted F1", figures
