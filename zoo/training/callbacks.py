"""Callbacks that every recipe's Trainer shares."""

from __future__ import annotations

import logging
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from corpora.store.atomic import write_json
from zoo.training import flops
from zoo.training.schedules import AccuracySchedule

log = logging.getLogger("zoo")


class EarlyStop(TrainerCallback):
    """Stops after `patience` validations without a new best value of `metric`.

    All it knows it reads from the state's log, which is part of every checkpoint.
    """

    def __init__(self, metric: str, patience: int) -> None:
        self.metric, self.patience = f"eval_{metric}", patience

    def reached(self, state: TrainerState) -> bool:
        """Whether training has stopped, or must stop, at this state."""
        values = [entry[self.metric] for entry in state.log_history if self.metric in entry]
        if self.patience <= 0 or not values:
            return False
        return len(values) - 1 - values.index(max(values)) >= self.patience

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self.reached(state):
            control.should_training_stop = True


class AccuracyFalls(TrainerCallback):
    """Tells an `AccuracySchedule` an epoch's accuracy, before the checkpoint is written."""

    def __init__(self, metric: str = "eval_accuracy") -> None:
        self.metric = metric

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        schedule = kwargs.get("lr_scheduler")
        schedule = getattr(schedule, "scheduler", schedule)  # accelerate may wrap it
        metrics = kwargs.get("metrics") or {}
        at_end = float(state.epoch or 0).is_integer()
        if at_end and isinstance(schedule, AccuracySchedule) and self.metric in metrics:
            schedule.validated(metrics[self.metric])


class SaveInside(TrainerCallback):
    """Asks for a checkpoint, or a validation and a checkpoint, every so many steps of an epoch.

    Not at an epoch's last step: there the validation comes first, and with it a change of the
    learning rate that a checkpoint made before it would lose.
    """

    def __init__(self, save_steps: int, eval_steps: int) -> None:
        self.save_steps, self.eval_steps = save_steps, eval_steps

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if float(state.epoch or 0).is_integer():
            return
        if self.eval_steps > 0 and state.global_step % self.eval_steps == 0:
            control.should_evaluate = control.should_save = True
        if self.save_steps > 0 and state.global_step % self.save_steps == 0:
            control.should_save = True


class LogLines(TrainerCallback):
    """One log line for what the Trainer reports, in place of its printed dictionaries."""

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict | None = None, **kwargs: Any
    ) -> None:
        if state.is_world_process_zero and logs and "train_runtime" not in logs:
            log.info("step %d: %s", state.global_step, _line(logs))


def _line(logs: Mapping[str, Any]) -> str:
    skipped = ("_runtime", "_per_second", "total_flos", "epoch")
    shown = {key: value for key, value in logs.items() if not key.endswith(skipped)}
    values = {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in shown.items()}
    return ", ".join(f"{key} {value}" for key, value in values.items())


class Throughput(TrainerCallback):
    """Writes the speed of training (validation left out) to `path`.

    Examples/s, real tokens/s and, on a GPU, the share of its peak operations
    (`zoo.training.flops`), of this process. A token is real if its attention mask is 1; padding is
    not counted. What changes from run to run (seconds, memory, host) stands in this file and
    nowhere in the model folder.
    """

    def __init__(self, path: Path, recipe: str) -> None:
        self.path, self.recipe = path, recipe
        self.seconds, self.examples, self.steps = 0.0, 0, 0
        self.tokens: int | torch.Tensor = 0
        self._since = time.perf_counter()

    def count(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """Count one training batch: its rows, and the ones of its attention masks.

        The sum stays where the masks are: reading it would wait for a GPU at every step.
        """
        self.examples += len(next(iter(inputs.values())))
        masks = (mask for name, mask in inputs.items() if name.endswith("attention_mask"))
        self.tokens += sum(mask.sum() for mask in masks)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._since = time.perf_counter()

    # Validating and saving end with a new start of the clock: they are no part of training.
    on_evaluate = on_save = on_epoch_begin

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._add_time(control.should_evaluate or control.should_save)
        self.steps += 1

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._add_time(wait=True)

    def _add_time(self, wait: bool) -> None:
        """Add the time since the last step; with `wait` until a GPU has done what it was given."""
        if wait and torch.accelerator.is_available():
            torch.accelerator.synchronize()
        now = time.perf_counter()
        self.seconds, self._since = self.seconds + now - self._since, now

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        seconds = max(self.seconds, 1e-9)
        tokens = int(self.tokens)
        operations = flops.operations(kwargs["model"], self.examples, tokens)
        share = flops.share_of_peak(operations, seconds, bool(args.bf16 or args.fp16))
        write_json(
            self.path,
            {
                "recipe": self.recipe,
                "steps": self.steps,
                "seconds": round(self.seconds, 3),
                "examples_per_second": round(self.examples / seconds, 1),
                "real_tokens_per_second": round(tokens / seconds, 1),
                "tflops": round(operations / seconds / 1e12, 4),
                "share_of_peak_flops": None if share is None else round(share, 4),
                "processes": args.world_size,
                "device": str(args.device),
                "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "",
                "threads": torch.get_num_threads(),
                "host": platform.node(),
            },
        )
