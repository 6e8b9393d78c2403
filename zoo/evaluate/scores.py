"""Scores of a confusion matrix `[gold, predicted]` of counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


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
