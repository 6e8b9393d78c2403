"""Learning-rate schedules whose whole state is in their `state_dict`, so that a resume is exact."""

from __future__ import annotations

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler


class AccuracySchedule(LRScheduler):
    """DisSent's schedule (section 6, and the released code for the decay).

        lr(epoch) = lr(0) * decay^epoch / shrink^falls

    where `falls` counts the epochs whose validation accuracy was below the epoch's before.
    `steps` is the number of optimizer steps in an epoch; `step()` is called after each of them.
    """

    def __init__(
        self, optimizer: Optimizer, steps: int, decay: float = 0.99, shrink: float = 5.0
    ) -> None:
        self.steps, self.decay, self.shrink = steps, decay, shrink
        self.falls, self.previous = 0, float("-inf")
        super().__init__(optimizer)

    def get_lr(self) -> list[float]:
        factor = self.decay ** (self.last_epoch // self.steps) / self.shrink**self.falls
        return [rate * factor for rate in self.base_lrs]

    def validated(self, accuracy: float) -> None:
        """Take note of one epoch's validation accuracy; a fall acts at once."""
        self.falls += accuracy < self.previous
        self.previous = float(accuracy)
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate


def anneal(optimizer: Optimizer, first: float, last: float, steps: int) -> LambdaLR:
    """From `first` to `last` in a straight line over `steps` optimizer steps, then `last`.

    The optimizer's learning rate is `first`.
    """

    def factor(step: int) -> float:
        return 1 + (last / first - 1) * min(step / max(steps, 1), 1.0)

    return LambdaLR(optimizer, factor)
