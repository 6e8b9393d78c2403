"""Models that predict the label of two texts, and the suite `dissent` (tables 5 and 8 to 10).

Such a model's class is registered with `AutoModelForSequenceClassification` and has
`encode_pairs(one, two, tokenizer, limit, labels) -> Rows`; where `AutoTokenizer` does not read its
vocabulary, also `read_tokenizer(folder)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import torch
from transformers import (
    CONFIG_MAPPING,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
)

import zoo
from corpora.errors import InputError
from zoo.evaluate import Request, scores
from zoo.evaluate.outcomes import Outcomes, numbered
from zoo.evaluate.results import Result
from zoo.evaluate.scores import (
    accuracy,
    confusion_matrix,
    macro_f1,
    per_class,
    weighted_average,
)
from zoo.modeling import best_device, label_count
from zoo.training.data import check_labels, open_dataset, spread, text_columns


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
                f"holds a model of type {model_type(folder)!r}, which classifies no pairs of "
                "sentences",
                where=str(folder),
                hint=f"the types that do: {', '.join(types)}",
            )
        read_tokenizer = getattr(kind, "read_tokenizer", AutoTokenizer.from_pretrained)
        model = kind.from_pretrained(str(folder)).to(best_device())
        return cls(model, read_tokenizer(str(folder)))

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
    zoo.register(folder)
    named = model_type(folder)
    if named not in CONFIG_MAPPING:
        return None
    kind = AutoModelForSequenceClassification._model_mapping.get(CONFIG_MAPPING[named], None)
    return kind if hasattr(kind, "encode_pairs") else None


def model_type(folder: str | Path) -> str:
    """The `model_type` of a model folder or Hub id. Raises `InputError` where there is none."""
    try:
        config, _ = PretrainedConfig.get_config_dict(str(folder))
    except OSError as error:
        raise InputError(
            "no model is there",
            where=str(folder),
            hint="give a model folder (with config.json) or a Hub id that can be reached",
        ) from error
    return str(config.get("model_type", ""))


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
    for start in range(0, len(order), batch_size):
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
        "per_class": per_class(confusion, names),
        "weighted_average": weighted_average(confusion),
        "majority": {
            "class": names[often],
            "accuracy": accuracy(majority),
            "f1": macro_f1(majority),
        },
        "confusion": {"classes": list(names), "gold_by_predicted": confusion.tolist()},
        "resampled": "rows",
    }
