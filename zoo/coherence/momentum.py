"""The momentum encoder and its queue of negatives (section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


class MomentumEncoder:
    """A backbone that follows another one slowly (equation 4):

        theta_m = m theta_m + (1 - m) theta

    With m = 0.9999999 a step moves a weight by less than float32 can hold beside it, and in bf16
    m itself is 1. So what is kept is the start `theta_0` and the *difference* from it,

        D = theta_m - theta_0,    D <- D + (1 - m) ((theta - theta_0) - D)

    both in float32, whose relative error stays that of a float32 sum. The encoder's own weights
    are `theta_0 + D`, rounded once. No gradient ever reaches them. A checkpoint holds D alone: a
    resumed run starts from the same backbone, which its job makes sure of.
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
        for theta, start, difference in zip(
            encoder.parameters(), self.start, self.difference, strict=True
        ):
            difference.lerp_(theta.float() - start, 1 - self.momentum)
        self._follow()

    def _follow(self) -> None:
        moved = zip(self.encoder.parameters(), self.start, self.difference, strict=True)
        for own, start, difference in moved:
            own.copy_(start + difference)

    def state_dict(self) -> dict[str, Any]:
        return {"difference": self.difference}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for kept, stored in zip(self.difference, state["difference"], strict=True):
            kept.copy_(stored)
        self._follow()


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

    def __call__(self) -> Tensor:
        """The vectors that are in the queue, `[filled, dim]`, each of length one, in no order."""
        return self.vectors[: self.filled]

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.vectors.copy_(state["vectors"])
        self.next, self.filled = state["next"], state["filled"]
