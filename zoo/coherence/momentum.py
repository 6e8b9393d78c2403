"""The momentum encoder, its queue of negatives, and their objective (section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from corpora.errors import DiscorporaError


class MomentumEncoder:
    """A backbone that follows another one slowly (equation 4):

        theta_m = m theta_m + (1 - m) theta

    With m = 0.9999999 a step moves a weight by less than float32 can hold beside it, and in bf16
    m itself is 1. So what is kept is the start `theta_0` and the *difference* from it,

        D = theta_m - theta_0,    D <- D + (1 - m) ((theta - theta_0) - D)

    both in float32, whose relative error stays that of a float32 sum. The encoder's own weights
    are `theta_0 + D`, rounded once. No gradient ever reaches them.
    """

    def __init__(self, encoder: nn.Module, momentum: float) -> None:
        self.momentum = momentum
        self.encoder = deepcopy(encoder).eval().requires_grad_(False)
        self.start = [p.detach().float().clone() for p in encoder.parameters()]
        self.difference = [torch.zeros_like(p) for p in self.start]

    @torch.no_grad()
    def update(self, encoder: nn.Module) -> None:
        """Equation 4, to be called once after each optimizer step.

        The authors' code updates before the step, and so lags by one; here the momentum encoder
        has seen the weights that the next step starts from, as MoCo does it.
        """
        pairs = zip(self.encoder.parameters(), encoder.parameters(), strict=True)
        for (own, theta), start, difference in zip(pairs, self.start, self.difference, strict=True):
            difference.lerp_(theta.float() - start, 1 - self.momentum)
            own.copy_(start + difference)

    @cached_property
    def _digest(self) -> str:
        """The SHA-256 of the start, by which a resumed run knows that it starts from the same."""
        digest = sha256()
        for start in self.start:
            digest.update(start.cpu().numpy().tobytes())
        return digest.hexdigest()

    def state_dict(self) -> dict[str, Any]:
        return {"start": self._digest, "difference": self.difference}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises `DiscorporaError` if the encoder that it was made with is another one now."""
        if state["start"] != self._digest:
            raise DiscorporaError(
                "the backbone's weights are not those that this run started from",
                hint="put the backbone back, or train to another --output",
            )
        for kept, stored in zip(self.difference, state["difference"], strict=True):
            kept.copy_(stored)
        for own, start, difference in zip(
            self.encoder.parameters(), self.start, self.difference, strict=True
        ):
            own.copy_(start + difference)


class NegativeQueue:
    """The vectors of the latest negatives, in one tensor `[size, dim]`; the oldest go first."""

    def __init__(self, size: int, dim: int, device: torch.device | str = "cpu") -> None:
        self.vectors = torch.zeros(size, dim, device=device)
        self.next, self.filled = 0, 0

    @torch.no_grad()
    def push(self, vectors: Tensor) -> None:
        """Put `vectors [n, dim]` in, each scaled to length one, in the place of the oldest."""
        size = len(self.vectors)
        vectors = normalize(vectors[-size:].float(), dim=-1)
        places = (self.next + torch.arange(len(vectors), device=vectors.device)) % size
        self.vectors[places] = vectors
        self.next = (self.next + len(vectors)) % size
        self.filled = min(size, self.filled + len(vectors))

    def __len__(self) -> int:
        return self.filled

    def __call__(self) -> Tensor:
        """The vectors that are in the queue, `[filled, dim]`, each of length one."""
        return self.vectors[: self.filled]

    def in_order(self) -> Tensor:
        """The same, the oldest first."""
        if self.filled < len(self.vectors):
            return self()
        return self.vectors.roll(-self.next, 0)

    def state_dict(self) -> dict[str, Any]:
        return {"vectors": self.vectors, "next": self.next, "filled": self.filled}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.vectors.copy_(state["vectors"])
        self.next, self.filled = int(state["next"]), int(state["filled"])


class MomentumContrast(nn.Module):
    """The document's two vectors against the queue (equation 3), by cosine similarity s:

        L = -log( exp s(z, z_m) / (exp s(z, z_m) + sum_j exp(s(z, q_j) - margin)) )

    averaged over the batch: z from the encoder in training, z_m from the momentum encoder,
    q_j the negatives in the queue, of this step and of those before it. Computed in float32,
    also under autocast: bfloat16 tells cosines near 1 apart by 1 / 256 only.
    """

    def __init__(self, margin: float = 0.1) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, vectors: Tensor, momentum_vectors: Tensor, queue: Tensor) -> Tensor:
        """The loss of `vectors [batch, dim]`, `momentum_vectors [batch, dim]`, `queue [n, dim]`.

        The queue's vectors have length one already.
        """
        with torch.autocast(vectors.device.type, enabled=False):
            own = normalize(vectors.float(), dim=-1)
            positive = (own * normalize(momentum_vectors.float(), dim=-1)).sum(-1, keepdim=True)
            negatives = own @ queue.T - self.margin
            first = torch.zeros(len(own), dtype=torch.long, device=own.device)
            return cross_entropy(torch.cat([positive, negatives], dim=1), first)
