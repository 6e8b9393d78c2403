"""The objectives of the coherence scorer, as modules over scores and vectors (equations 1 to 3)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize


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
        return cross_entropy(shifted, torch.zeros_like(scores[:, 0], dtype=torch.long))


class MomentumContrast(nn.Module):
    """The document's two vectors against the queue (equation 3), by cosine similarity s:

        L = -log( exp s(z, z_m) / (exp s(z, z_m) + sum_j exp(s(z, q_j) - margin)) )

    averaged over the batch: z from the encoder in training, z_m from the momentum encoder,
    q_j the negatives in the queue, of this step and of those before it. Computed in float32,
    also under autocast: bfloat16 tells cosines near 1 apart by 1 / 256 only.
    """

    def __init__(self, margin: float = 0.1) -> None:
        super().__init__()
        self.contrast = ContrastiveMargin(margin)

    def forward(self, vectors: Tensor, momentum_vectors: Tensor, queue: Tensor) -> Tensor:
        """The loss of `vectors [batch, dim]`, `momentum_vectors [batch, dim]`, `queue [n, dim]`.

        The queue's vectors have length one already.
        """
        with torch.autocast(vectors.device.type, enabled=False):
            own = normalize(vectors.float(), dim=-1)
            positive = (own * normalize(momentum_vectors.float(), dim=-1)).sum(-1, keepdim=True)
            loss: Tensor = self.contrast(torch.cat([positive, own @ queue.T], dim=1))
        return loss


def ranking_accuracy(prediction: Any) -> dict[str, float]:
    """The share of negatives scored below their original; ties count as wrong.

    Scores `[rows, 1 + negatives]` are the Trainer's predictions, or the first of several.
    """
    scores = prediction.predictions
    scores = scores[0] if isinstance(scores, tuple) else scores
    return {"accuracy": float((scores[:, :1] > scores[:, 1:]).mean())}
