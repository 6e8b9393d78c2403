"""Logistic regression by scikit-learn, with the penalty chosen on the validation split."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from corpora.errors import InputError

log = logging.getLogger("zoo")


@dataclass(frozen=True)
class Fitted:
    """A fitted regression: `coefficients [classes, features]` and `intercept [classes]`.

    `c` is its inverse penalty, and `accuracy` has the validation accuracy of each value tried.
    """

    coefficients: np.ndarray
    intercept: np.ndarray
    c: float
    accuracy: dict[str, float]
    iterations: int
    converged: bool

    def describe(self) -> dict[str, Any]:
        """Return what `results.json` says about the training."""
        return {
            "c": self.c,
            "validation_accuracy": self.accuracy,
            "iterations": self.iterations,
            "converged": self.converged,
        }

    def predict(self, features: Any) -> np.ndarray:
        """Return the most probable class of each row of `features [rows, width]`, `[rows]`."""
        return np.asarray(features @ self.coefficients.T + self.intercept).argmax(1)


def fit_logistic(
    train: tuple[Any, np.ndarray],
    validation: tuple[Any, np.ndarray],
    classes: int,
    *,
    grid: Sequence[float],
    iterations: int,
) -> Fitted:
    """Fit one regression for each inverse penalty in `grid`; return the best in validation.

    Each split is `(features [rows, width], labels [rows])`, with dense or sparse features. A class
    without training rows gets zero weights and an intercept that is never the largest. Among equal
    accuracies the strongest penalty is chosen. Raises `InputError` for a training split of one
    class.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(train[1])) < 2:
        raise InputError(
            "the training split has rows of one label only",
            hint="give a dataset with training rows of two labels or more",
        )
    fits: list[Fitted] = []
    accuracies: list[float] = []
    for c in sorted(grid):
        model = LogisticRegression(C=c, max_iter=iterations, tol=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported by `converged`
            model.fit(*train)
        coefficients = np.zeros((classes, train[0].shape[1]), np.float32)
        intercept = np.full(classes, -1e4, np.float32)
        if len(model.classes_) == 2:  # scikit-learn has only the second class's weights
            coefficients[model.classes_[1]] = model.coef_[0]
            intercept[model.classes_] = [0.0, model.intercept_[0]]
        else:
            coefficients[model.classes_] = model.coef_
            intercept[model.classes_] = model.intercept_
        steps = int(np.max(model.n_iter_))
        fits.append(Fitted(coefficients, intercept, c, {}, steps, steps < iterations))
        accuracies.append(float((fits[-1].predict(validation[0]) == validation[1]).mean()))
        log.info("penalty C %g: validation accuracy %.4f, %d iterations", c, accuracies[-1], steps)
    best = fits[accuracies.index(max(accuracies))]
    by_fit = zip(fits, accuracies, strict=True)
    return replace(best, accuracy={f"{fit.c:g}": round(value, 5) for fit, value in by_fit})
