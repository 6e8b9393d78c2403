"""The objectives of the coherence scorer, as modules over scores and vectors (equations 1 to 3).

The third one uses the momentum encoder (equation 4) and its queue of negatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from zoo.evaluate.scores import wins


class PairwiseMargin(nn.Module):
    """Margin ranking (section 3.2, equation 1):

        L = max(0, margin - f(d+) + f(d-))

    averaged over the negatives and the batch.
    """

    def __init__(self, margin: float = 0.1) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, scores: Tensor) -> Tensor:
        """Return the loss of `scores [batch, 1 + negatives]`, the positive text's first."""
        positive, negatives = scores[:, :1], scores[:, 1:]
        return (self.margin - positive + negatives).clamp(min=0).mean()


class ContrastiveMargin(nn.Module):
    """Contrast with several negatives at once (section 3.3, equation 2):

        L = -log( exp f(d+) / (exp f(d+) + sum_j exp(f(d-_j) - margin)) )

    averaged over the batch. The margin is subtracted from the negatives, as in the equation, so
    that a positive text counts as separated a little too early, not too late.
    """

    def __init__(self, margin: float = 0.1) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, scores: Tensor) -> Tensor:
        """Return the loss of `scores [batch, 1 + negatives]`, the positive text's first."""
        shifted = torch.cat([scores[:, :1], scores[:, 1:] - self.margin], dim=1)
        return cross_entropy(shifted, torch.zeros_like(scores[:, 0], dtype=torch.long))


class MomentumContrast(nn.Module):
    """The document's two vectors against the queue (equation 3), by cosine similarity s:

        L = -log( exp s(z, z_m) / (exp s(z, z_m) + sum_j exp(s(z, q_j) - margin)) )

    averaged over the batch: z from the encoder in training, z_m from the momentum encoder,
    q_j the negatives in the queue, of this step and of those before it. Computed in float32,
    also under autocast: bfloat16 resolves cosines near 1 only to 1 / 256.
    """

    def __init__(self, margin: float = 0.1) -> None:
        super().__init__()
        self.contrast = ContrastiveMargin(margin)

    def forward(self, vectors: Tensor, momentum_vectors: Tensor, queue: Tensor) -> Tensor:
        """Return the loss of two vectors of each document, `[batch, dim]`, and a `queue [n, dim]`.

        The queue's vectors have length one already.
        """
        with torch.autocast(vectors.device.type, enabled=False):
            anchors = normalize(vectors.float(), dim=-1)
            positive = (anchors * normalize(momentum_vectors.float(), dim=-1)).sum(-1, keepdim=True)
            loss: Tensor = self.contrast(torch.cat([positive, anchors @ queue.T], dim=1))
        return loss


class MomentumEncoder:
    """A backbone that follows another one slowly (equation 4):

        theta_m = m theta_m + (1 - m) theta

    With m = 0.9999999 a step changes a weight by less than float32 can represent beside it, and in
    bf16 m itself is 1. So the start `theta_0` and the *difference* from it are stored,

        D = theta_m - theta_0,    D <- D + (1 - m) ((theta - theta_0) - D)

    both in float32, whose relative error stays that of a float32 sum. The encoder's own weights are
    `theta_0 + D`, rounded once. They get no gradient. A checkpoint has only D: a resumed run starts
    from the same backbone, which its job checks. As in the authors' code the encoder keeps its
    dropout, and is updated before the optimizer's step.
    """

    def __init__(self, encoder: nn.Module, momentum: float) -> None:
        # The averaged weights are `start + difference`: float32 holds a small difference exactly.
        self.momentum = momentum
        self.encoder = deepcopy(encoder).train().requires_grad_(False)
        self.start = [p.detach().float().clone() for p in encoder.parameters()]
        self.difference = [torch.zeros_like(p) for p in self.start]

    @torch.no_grad()
    def update(self, encoder: nn.Module) -> None:
        """Apply equation 4 with the weights of `encoder`, once before each optimizer step."""
        theta = [parameter.float() for parameter in encoder.parameters()]
        change = torch._foreach_sub(theta, self.start)
        torch._foreach_lerp_(self.difference, change, 1 - self.momentum)
        self._update_weights()

    def _update_weights(self) -> None:
        """Set the encoder's weights to `start + difference`."""
        weights: list[Tensor] = list(self.encoder.parameters())
        torch._foreach_copy_(weights, torch._foreach_add(self.start, self.difference))

    def state_dict(self) -> dict[str, Any]:
        return {"difference": self.difference}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for difference, stored in zip(self.difference, state["difference"], strict=True):
            difference.copy_(stored)
        self._update_weights()


class NegativeQueue:
    """The vectors of the latest negatives, in one tensor `[size, dim]`; the oldest are replaced
    first.
    """

    def __init__(self, size: int, dim: int, device: torch.device | str = "cpu") -> None:
        self.vectors = torch.zeros(size, dim, device=device)
        self.next, self.filled = 0, 0

    @torch.no_grad()
    def push(self, vectors: Tensor) -> None:
        """Add `vectors [n, dim]`, each scaled to length one, in place of the oldest."""
        size = len(self.vectors)
        vectors = normalize(vectors[-size:].float(), dim=-1)
        places = (self.next + torch.arange(len(vectors), device=vectors.device)) % size
        self.vectors[places] = vectors
        self.next = (self.next + len(vectors)) % size
        self.filled = min(size, self.filled + len(vectors))

    def __call__(self) -> Tensor:
        """Return the vectors in the queue, `[filled, dim]`, each of length one, unordered."""
        return self.vectors[: self.filled]

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.vectors.copy_(state["vectors"])
        self.next, self.filled = state["next"], state["filled"]


def ranking_accuracy(prediction: Any, *, above_all: bool = False) -> dict[str, float]:
    """Return the share of negatives scored below their original; a tie counts one half.

    With `above_all`, return the share of originals scored above all of their negatives.
    `prediction` is the Trainer's: its predictions are scores `[rows, 1 + negatives]`, its labels
    `[rows]` the number of each row's first negatives that count. The others repeat them.
    """
    scores, counts = prediction.predictions, prediction.label_ids
    if above_all:  # repeated negatives change no maximum
        return {"accuracy": float((scores[:, 0] > scores[:, 1:].max(axis=1)).mean())}
    counted = np.arange(scores.shape[1] - 1) < counts[:, None]
    return {"accuracy": float(wins(scores[:, :1], scores[:, 1:])[counted].mean())}
