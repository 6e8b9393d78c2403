"""Figures of predictions: of a confusion matrix `[gold, predicted]`, and of ranked texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpora.errors import InputError
from corpora.rng import stream
from zoo.evaluate import bootstrap


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


def finite(scores: np.ndarray, where: str) -> np.ndarray:
    """`scores` as they are. Raises `InputError` if one is NaN or infinite: it would just lose."""
    if not np.isfinite(scores).all():
        raise InputError("the model gives scores that are not finite", where=where)
    return scores


def ranked(
    coherent: np.ndarray, other: np.ndarray, units: Sequence[str], seed: int, name: str
) -> dict[str, Any]:
    """How often `coherent[i] > other[i]`; a tie is wrong, and reported.

    `units[i]` is what pair `i` came from (a document): pairs of one unit are not independent,
    so the interval draws whole units.
    """
    wins, ties = coherent > other, coherent == other
    return {
        "value": float(wins.mean()),
        **bootstrap.of_groups(wins, np.asarray(units), seed, name),
        "ties": int(ties.sum()),
    }


@dataclass(frozen=True)
class Ranking:
    """The scores of `documents[pair]` and of a permutation of each, and the lengths of both.

    `identical` counts the permutations that do not differ from their document: left out.
    """

    documents: Sequence[str]
    coherent: np.ndarray
    permuted: np.ndarray
    lengths: tuple[np.ndarray, np.ndarray]
    identical: int = 0

    def __post_init__(self) -> None:
        if not self.documents:
            problem = "no document differs from its permutations"
            raise InputError(problem, hint="it needs two sentences")
        finite(self.coherent, "permuted")
        finite(self.permuted, "permuted")

    def metrics(self, seed: int) -> dict[str, Any]:
        """Accuracy, and that of the rules `random`, `longer` and `shorter`."""
        names, (longer, other) = self.documents, self.lengths
        drawn = stream(seed, "zoo.evaluate.random").random((2, len(names)))
        return {
            "accuracy": ranked(self.coherent, self.permuted, names, seed, "permuted"),
            "pairs": len(names),
            "documents": len(set(names)),
            "identical": self.identical,
            "baselines": {
                "random": ranked(drawn[0], drawn[1], names, seed, "random"),
                "longer": ranked(longer, other, names, seed, "longer"),
                "shorter": ranked(-longer, -other, names, seed, "shorter"),
            },
            "resampled": "documents",
        }
