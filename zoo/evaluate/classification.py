"""Predicting and scoring classes: what DisSent's tables 5 and 8 report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch

from corpora.errors import InputError
from zoo.evaluate import bootstrap


class Rows(Protocol):
    """Encoded rows that know their lengths and how to become a batch."""

    def __len__(self) -> int: ...
    def __getitem__(self, row: int) -> Any: ...
    def lengths(self) -> np.ndarray: ...
    def collate(self, rows: Sequence[Any]) -> dict[str, Any]: ...


def need_labels(rows: int, split: str, where: str) -> None:
    """Raise `InputError` if a split has no labelled row, as hidden test sets do."""
    if not rows:
        raise InputError(
            f"no row of the split {split!r} has a label",
            where=where,
            hint="take a split that has labels, such as --split validation",
        )


def predict(model: torch.nn.Module, rows: Rows, batch_size: int = 256) -> np.ndarray:
    """The most probable class of each row, `[rows]`."""
    return logits(model, rows, batch_size).argmax(-1)


@torch.inference_mode()
def logits(model: torch.nn.Module, rows: Rows, batch_size: int = 256) -> np.ndarray:
    """The model's logits of each row, `[rows, classes]`; batches hold rows of like length.

    Raises `InputError` if one is NaN: the first class would be answered.
    """
    model.eval()
    device = next(model.parameters()).device
    order = np.argsort(-rows.lengths(), kind="stable")
    found = np.zeros((len(rows), model.config.num_labels), np.float32)
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
    majority = np.zeros_like(confusion)
    majority[:, int(confusion.sum(1).argmax())] = confusion.sum(1)
    averages = weighted_average(confusion)
    return {
        "rows": len(gold),
        "accuracy": _with_interval(confusion, accuracy, seed, "accuracy"),
        "f1": _with_interval(confusion, macro_f1, seed, "f1"),
        "per_class": per_class(confusion, names),
        "weighted_average": averages,
        "majority": {
            "class": names[int(confusion.sum(1).argmax())],
            "accuracy": accuracy(majority),
            "f1": macro_f1(majority),
        },
        "confusion": {"classes": list(names), "gold_by_predicted": confusion.tolist()},
        "resampled": "rows",
    }


def confusion_matrix(gold: np.ndarray, predicted: np.ndarray, classes: int) -> np.ndarray:
    """Counts `[gold, predicted]`."""
    cells = np.bincount(gold * classes + predicted, minlength=classes * classes)
    return cells.reshape(classes, classes)


def accuracy(confusion: np.ndarray) -> float:
    return float(np.trace(confusion) / max(confusion.sum(), 1))


def macro_f1(confusion: np.ndarray) -> float:
    """The mean F1 over the classes with gold rows; a class never predicted has F1 0."""
    *_, f1 = _scores(confusion)
    present = confusion.sum(1) > 0
    return float(f1[present].mean()) if present.any() else 0.0


def per_class(confusion: np.ndarray, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each class (0 where undefined), with its rows."""
    precision, recall, f1 = _scores(confusion)
    return {
        name: {
            "precision": float(precision[i]),
            "recall": float(recall[i]),
            "f1": float(f1[i]),
            "gold": int(confusion[i].sum()),
            "predicted": int(confusion[:, i].sum()),
        }
        for i, name in enumerate(names)
    }


def weighted_average(confusion: np.ndarray) -> dict[str, float]:
    """Precision and recall averaged over the rows' classes: the line `Avg` of tables 8 to 10."""
    precision, recall, _ = _scores(confusion)
    shares = confusion.sum(1) / max(confusion.sum(), 1)
    return {"precision": float(shares @ precision), "recall": float(shares @ recall)}


def _scores(confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    right = np.diag(confusion).astype(float)
    precision = right / np.maximum(confusion.sum(0), 1)
    recall = right / np.maximum(confusion.sum(1), 1)
    return precision, recall, 2 * precision * recall / np.maximum(precision + recall, 1e-12)


def _with_interval(confusion: np.ndarray, statistic: Any, seed: int, name: str) -> dict[str, Any]:
    return {
        "value": statistic(confusion),
        **bootstrap.of_confusion(confusion, statistic, seed, name),
    }
