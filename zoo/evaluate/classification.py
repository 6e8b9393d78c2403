"""Models that predict the label of two texts, and their figures.

The class of a pair classifier is registered with `AutoModelForSequenceClassification` and has a
method `encode_pairs(first, second, tokenizer, limit, labels) -> EncodedPairs`. If `AutoTokenizer`
cannot read its vocabulary, the class also has `read_tokenizer(folder, config)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from accelerate.utils import send_to_device
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from corpora.errors import InputError
from corpora.progress import track
from zoo.evaluate import scores
from zoo.evaluate.encoders import class_with
from zoo.evaluate.in_hand import folder_of
from zoo.evaluate.scores import accuracy, confusion_matrix, finite, macro_f1
from zoo.loading import load_tokenizer, model_type
from zoo.modeling import best_device, label_count


class EncodedPairs(Protocol):
    """Encoded pairs of texts, with their lengths and a method that makes batches of them.

    `truncated` counts the texts that were cut.
    """

    @property
    def truncated(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, row: int) -> Any: ...
    def lengths(self) -> np.ndarray: ...
    def collate(self, rows: Sequence[Any]) -> dict[str, Any]: ...


@dataclass(frozen=True)
class PairClassifier:
    """A model object that predicts the label of two texts, and its tokenizer.

    `folder` is the folder or Hub id that it was loaded from.
    """

    model: Any
    tokenizer: Any
    folder: str = ""
    batch_size: int = 64

    @classmethod
    def load(cls, folder: str | Path, batch_size: int = 64) -> PairClassifier:
        """Load a model folder or a Hub id. Raises `InputError` for a model of another type."""
        kind = classifier_class(folder)
        if kind is None:
            raise InputError(
                f"holds a model of type {model_type(str(folder))!r}, which classifies no pairs of "
                "sentences",
                where=str(folder),
                hint="train one with the recipes dissent/...",
            )
        model = kind.from_pretrained(str(folder)).to(best_device())
        read_tokenizer = getattr(kind, "read_tokenizer", load_tokenizer)
        return cls(model, read_tokenizer(str(folder), model.config), str(folder), batch_size)

    @property
    def model_type(self) -> str:
        """The `model_type` of the model's configuration."""
        return str(self.model.config.model_type)

    @property
    def labels(self) -> list[str]:
        """The names of the labels, in the order of their numbers."""
        return [self.model.config.id2label[i] for i in range(label_count(self.model.config))]

    def rows(
        self, first: Sequence[str], second: Sequence[str], labels: np.ndarray | None = None
    ) -> EncodedPairs:
        """Encode the pairs of texts `first[i], second[i]`, perhaps with `labels [pairs]`."""
        limit, encode = getattr(self.tokenizer, "model_max_length", 0), self.model.encode_pairs
        rows: EncodedPairs = encode(first, second, self.tokenizer, limit, labels=labels)
        return rows

    def predict(self, rows: EncodedPairs) -> np.ndarray:
        """The number of the most probable label of each row, `[rows]`."""
        return predict(self.model, rows, self.batch_size)

    def probabilities(
        self, pairs: Sequence[tuple[str, str]], batch_size: int | None = None
    ) -> np.ndarray:
        """The probability of each label, `[pairs, labels]`; a row sums to 1."""
        rows = self.rows([first for first, _ in pairs], [second for _, second in pairs])
        scores = logits(self.model, rows, batch_size or self.batch_size)
        return torch.from_numpy(scores).double().softmax(-1).numpy()


def as_classifier(model: Any) -> PairClassifier | None:
    """Convert a model object to a classifier of two texts; None if it cannot classify them.

    A model of this zoo gets the tokenizer of the folder or Hub id that it was loaded from.
    """
    if isinstance(model, PairClassifier):
        return model
    if not hasattr(model, "encode_pairs"):
        return None
    read_tokenizer, folder = getattr(model, "read_tokenizer", load_tokenizer), folder_of(model)
    return PairClassifier(model, read_tokenizer(folder, model.config), folder)


def classifier_class(folder: str | Path) -> Any:
    """The class of the model in `folder` if it predicts the label of two texts, or else None."""
    return class_with("encode_pairs", AutoModelForSequenceClassification, str(folder))


def predict(model: PreTrainedModel, rows: EncodedPairs, batch_size: int = 256) -> np.ndarray:
    """The number of the most probable class of each row, `[rows]`."""
    return logits(model, rows, batch_size).argmax(-1)


@torch.inference_mode()
def logits(model: PreTrainedModel, rows: EncodedPairs, batch_size: int = 256) -> np.ndarray:
    """The model's logits of each row, `[rows, classes]`; batches hold rows of similar length.

    Raises `InputError` if a logit is NaN or infinite, since the first class would be answered.
    """
    model.eval()
    values = np.zeros((len(rows), label_count(model.config)), np.float32)
    for numbers, batch in batches_of(rows, batch_size, next(model.parameters()).device):
        batch.pop("labels", None)
        values[numbers] = model(**batch).logits.float().cpu().numpy()
    return finite(values, "the model gives logits", hint="its weights are damaged: train it anew")


def batches_of(
    rows: EncodedPairs, size: int, device: torch.device
) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    """Yield all rows in batches of `size` rows of similar length, the longest first.

    Yields the numbers of a batch's rows, and the model's input on `device`.
    """
    order = np.argsort(-rows.lengths(), kind="stable")
    starts = range(0, len(order), size)
    for start in track(starts, "batches", total=len(starts)):
        numbers = order[start : start + size]
        batch = rows.collate([rows[int(row)] for row in numbers])
        yield numbers, send_to_device(batch, device)


def report(
    gold: np.ndarray, predicted: np.ndarray, names: Sequence[str], seed: int
) -> dict[str, Any]:
    """The metrics of a classifier from the classes `gold [rows]` and `predicted [rows]`.

    Accuracy and unweighted F1 (the mean over the classes that occur in `gold`) have bootstrap
    intervals over rows. Each class has its own scores. The majority baseline answers the most
    frequent class of `gold` for every row.
    """
    confusion = confusion_matrix(gold, predicted, len(names))
    most_frequent = int(confusion.sum(1).argmax())
    majority = np.zeros_like(confusion)
    majority[:, most_frequent] = confusion.sum(1)
    return {
        "rows": len(gold),
        "accuracy": scores.figure_of_confusion(confusion, accuracy, seed, "accuracy"),
        "f1": scores.figure_of_confusion(confusion, macro_f1, seed, "f1"),
        "per_class": scores.per_class(confusion, names),
        "weighted_average": scores.weighted_average(confusion),
        "majority": {
            "class": names[most_frequent],
            "accuracy": float(accuracy(majority)),
            "f1": float(macro_f1(majority)),
        },
        "confusion": {"classes": list(names), "gold_by_predicted": confusion.tolist()},
        "resampled": "rows",
    }
