"""DisSent's learning-rate schedule: neither torch nor transformers has one of this kind."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers import TrainerCallback


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

    def get_lr(self) -> list[float | Tensor]:
        factor = self.decay ** (self.last_epoch // self.steps) / self.shrink**self.falls
        return [rate * factor for rate in self.base_lrs]

    def validated(self, accuracy: float) -> None:
        """Take note of one epoch's validation accuracy; a fall acts at once."""
        self.falls += accuracy < self.previous
        self.previous = float(accuracy)
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate


class AccuracyFalls(TrainerCallback):
    """Tells an `AccuracySchedule` an epoch's accuracy, before the checkpoint is written."""

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        schedule = kwargs["lr_scheduler"]
        schedule = getattr(schedule, "scheduler", schedule)  # accelerate may wrap it
        if float(state.epoch or 0).is_integer():
            schedule.validated(kwargs["metrics"]["eval_accuracy"])
