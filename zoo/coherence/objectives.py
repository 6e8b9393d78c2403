"""The objectives of the coherence scorer, as modules over scores."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


class PairwiseMargin(nn.Module):
    """Margin ranking (section 3.2, equation 1):

        L = max(0, margin - f(d+) + f(d-))

    averaged over the negatives and the batch.
    """

    def __init__(self, margin: float = 0.1) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, scores: Tensor) -> Tensor:
        """The loss of `scores [batch, 1 + negatives]`, the positive text's first."""
        positive, negatives = scores[:, :1], scores[:, 1:]
        return (self.margin - positive + negatives).clamp(min=0).mean()


class ContrastiveMargin(nn.Module):
    """Contrast with several negatives at once (section 3.3, equation 2):

        L = -log( exp f(d+) / (exp f(d+) + sum_j exp(f(d-_j) - margin)) )

    averaged over the batch. The margin is subtracted from the negatives, as the equation has it:
    a positive text counts as told apart a little too early, not too late.
    """

    def __init__(self, margin: float = 0.1) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, scores: Tensor) -> Tensor:
        """The loss of `scores [batch, 1 + negatives]`, the positive text's first."""
        shifted = torch.cat([scores[:, :1], scores[:, 1:] - self.margin], dim=1)
        first = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
        return cross_entropy(shifted, first)


def ranking_accuracy(prediction: Any) -> dict[str, float]:
    """The share of negatives scored below their original; ties count as wrong.

    Scores `[rows, 1 + negatives]` are the Trainer's predictions, or the first of several.
    """
    scores = prediction.predictions
    scores = scores[0] if isinstance(scores, tuple) else scores
    return {"accuracy": float((scores[:, :1] > scores[:, 1:]).mean())}
