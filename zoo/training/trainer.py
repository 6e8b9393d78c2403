"""The Hugging Face `Trainer`, made exact: whole checkpoints, the same order after a resume."""

from __future__ import annotations

import logging
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers import PreTrainedModel, Trainer, TrainerState, TrainingArguments
from transformers.trainer_callback import PrinterCallback, TrainerCallback

from corpora.errors import ConfigError, DiscorporaError
from zoo.modeling import explained, uses_bf16
from zoo.training import checkpoints
from zoo.training.callbacks import EarlyStop, LogLines, SaveInside, Throughput
from zoo.training.job import Job
from zoo.training.samplers import EpochSampler, LongestFirst

log = logging.getLogger("zoo")

Schedule = Callable[[Optimizer, int], LRScheduler]
"""Takes the optimizer and the number of optimizer steps in an epoch."""

KEEP_BEST = {"metric_for_best_model": "accuracy", "load_best_model_at_end": True}
"""Arguments of a Trainer that ends with the weights of the best validation accuracy."""


def training_arguments(job: Job, **more: Any) -> TrainingArguments:
    """The Trainer's arguments from a recipe's settings; `more` overrides them."""
    recipe = job.recipe
    check_reporters(recipe.report_to)
    # Beside the output: what the Trainer writes into its own folder goes with the checkpoints.
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(job.logs)
    values: dict[str, Any] = {
        "output_dir": str(job.checkpoints),
        "seed": recipe.seed,
        "data_seed": recipe.seed,
        "num_train_epochs": recipe.epochs,
        "max_steps": recipe.max_steps,
        "per_device_train_batch_size": recipe.batch_size,
        "per_device_eval_batch_size": recipe.eval_batch_size,
        "gradient_accumulation_steps": recipe.gradient_accumulation,
        "learning_rate": recipe.learning_rate,
        "weight_decay": recipe.weight_decay,
        "max_grad_norm": recipe.max_grad_norm,
        "bf16": uses_bf16(recipe.bf16),
        "use_cpu": not torch.accelerator.is_available(),
        "torch_compile": recipe.compile,
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "logging_steps": recipe.logging_steps,
        "report_to": list(recipe.report_to) or "none",
        "disable_tqdm": not sys.stderr.isatty(),
        "log_level": "warning",
        # A loss that is not finite stops the run; it must not be averaged away.
        "logging_nan_inf_filter": False,
        # Our losses are means over the batch, not sums over tokens.
        "average_tokens_across_devices": False,
        "remove_unused_columns": False,
        "label_names": ["labels"],
        # A batch is sent while the GPU computes, which it must not wait for.
        "dataloader_pin_memory": torch.cuda.is_available(),
        "accelerator_config": {"non_blocking": torch.cuda.is_available()},
    }
    arguments = TrainingArguments(**{**values, **more})
    take_one_gpu(arguments, "; all of them: accelerate launch -m zoo.train ...")
    return arguments


def take_one_gpu(arguments: TrainingArguments, others: str = "") -> None:
    """Let a Trainer use one GPU of several; `others` says how to use them all.

    By itself it would wrap the model for all of them in one process, which cuts up batches.
    """
    if arguments.n_gpu > 1:
        log.info("one of %d GPUs is used%s", arguments.n_gpu, others)
        arguments._n_gpu = 1


class ZooTrainer(Trainer):
    """A `Trainer` whose resumed run equals the undisturbed one.

    `lengths` (one a training row) groups rows of like length into batches. `schedule` makes the
    learning rate's schedule. Raises `DiscorporaError` on a loss or weight that is not finite.
    """

    # Every loss here is a mean over its batch.
    loss_is_scaled_for_ga = False

    def __init__(
        self,
        *args: Any,
        job: Job,
        lengths: Sequence[int],
        schedule: Schedule | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.job, self.schedule = job, schedule
        job.trained_on = len(self.train_dataset)
        self.throughput = Throughput(job.run_file, job.name)
        self.sampler = EpochSampler(
            lengths, self.args.train_batch_size * self.args.world_size, job.recipe.seed
        )
        self.add_callback(_EpochOfSampler(self.sampler))
        self.add_callback(SaveInside(job.recipe.save_steps, job.recipe.eval_steps))
        self.add_callback(self.throughput)
        self.remove_callback(PrinterCallback)
        self.add_callback(LogLines())

    def _get_train_sampler(self, train_dataset: Any = None) -> EpochSampler:
        return self.sampler

    def _get_eval_sampler(self, eval_dataset: Any) -> LongestFirst:
        return LongestFirst(eval_dataset.lengths())

    def create_scheduler(
        self, num_training_steps: int, optimizer: Optimizer | None = None
    ) -> LRScheduler:
        if self.schedule is None or self.lr_scheduler is not None:
            return super().create_scheduler(num_training_steps, optimizer)
        batches = len(self.get_train_dataloader())
        steps = max(1, -(-batches // self.args.gradient_accumulation_steps))
        self.lr_scheduler = self.schedule(optimizer or self.optimizer, steps)
        self._created_lr_scheduler = True
        return self.lr_scheduler

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        self.throughput.count(inputs)
        loss = super().training_step(model, inputs, *args, **kwargs)
        # Looking at it would wait for a GPU at every step: there `log` looks at the mean.
        if loss.device.type == "cpu":
            self._check_finite(loss.item(), f"at step {self.state.global_step + 1}")
        return loss

    def log(self, logs: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        self._check_finite(logs.get("loss", 0.0), f"in the steps up to {self.state.global_step}")
        super().log(logs, *args, **kwargs)

    def _check_finite(self, loss: float, where: str) -> None:
        if not math.isfinite(loss):
            raise checkpoints.not_finite(self.job, f"the loss is {loss} {where}")

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if not all(torch.isfinite(p).all() for p in self.model.parameters()):
            raise checkpoints.not_finite(
                self.job, f"a weight is not finite after step {self.state.global_step}"
            )
        with explained(self.job.checkpoints):
            super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()  # each process writes its own random state
        if self.args.should_save:
            folder = self.job.checkpoints
            checkpoints.seal(folder / f"checkpoint-{self.state.global_step}")
            best = self.state.best_model_checkpoint
            checkpoints.rotate(folder, self.job.recipe.keep_checkpoints, best)


def trainer_over(
    job: Job,
    model: PreTrainedModel,
    rows: Mapping[str, Any],
    *,
    arguments: Mapping[str, Any] = KEEP_BEST,
    **more: Any,
) -> ZooTrainer:
    """A Trainer of `model` on the splits `train` and `validation` of encoded `rows`.

    Rows know their `lengths()` and how to `collate` a batch. `arguments` are the Trainer's
    besides those of the settings, `more` is `ZooTrainer`'s own.
    """
    return ZooTrainer(
        model,
        training_arguments(job, **arguments),
        job=job,
        lengths=rows["train"].lengths(),
        data_collator=rows["train"].collate,
        train_dataset=rows["train"],
        eval_dataset=rows["validation"],
        **more,
    )


def most_probable(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The class of each row, `[rows]`, which is all that is kept of a validation's logits."""
    return logits.argmax(-1)


def class_accuracy(prediction: Any) -> dict[str, float]:
    """The share of rows whose `most_probable` class is their label."""
    return {"accuracy": float((prediction.predictions == prediction.label_ids).mean())}


def fit(trainer: ZooTrainer, *, early_stop: EarlyStop | None = None) -> TrainerState:
    """Train, or go on from the newest whole checkpoint; the best weights end in the model.

    Returns the Trainer's state: steps, the log of losses and validation metrics.
    """
    job = trainer.job
    if trainer.args.should_save:
        for broken in checkpoints.clear_broken(job.checkpoints):
            log.warning("%s is not whole (the run was killed while it was written)", broken.name)
    trainer.accelerator.wait_for_everyone()
    start = checkpoints.newest(job.checkpoints)
    if early_stop is not None:
        trainer.add_callback(early_stop)
    if start is not None:
        log.info("resuming from %s", start)
        if trainer.args.should_save:
            _move_best(start, job.checkpoints)
        trainer.accelerator.wait_for_everyone()
        if early_stop is not None and early_stop.reached(_state(start)):
            return _load_stopped(trainer, start)
    try:
        trainer.train(resume_from_checkpoint=str(start) if start else None)
    except torch.cuda.OutOfMemoryError as error:
        raise out_of_memory(job) from error
    return trainer.state


def out_of_memory(job: Job) -> DiscorporaError:
    """What a run that needs more memory than the GPU has can do, with the settings that it has."""
    recipe = job.recipe
    ways = [
        f"lower batch_size (now {recipe.batch_size}) and raise gradient_accumulation by the same "
        "factor to keep the batch"
    ]
    if hasattr(recipe, "block_tokens") and not recipe.recompute:
        ways.append(
            "set recompute = true, which keeps the activations of one block at a time "
            f"(of block_tokens, now {recipe.block_tokens})"
        )
    elif hasattr(recipe, "block_tokens"):
        ways.append(f"lower block_tokens (now {recipe.block_tokens})")
    if hasattr(recipe, "max_tokens"):
        ways.append(f"lower max_tokens (now {recipe.max_tokens})")
    return DiscorporaError(
        "out of memory on the GPU",
        where=job.name,
        hint=f"{'; or '.join(ways)}; the same command then goes to another --output",
    )


def history(state: TrainerState) -> dict[str, Any]:
    """The steps of a run and its validations, in order: what results.json keeps of them."""
    validations = [
        {"step": entry["step"], "loss": entry["eval_loss"], "accuracy": entry["eval_accuracy"]}
        for entry in state.log_history
        if "eval_loss" in entry
    ]
    return {
        "steps": state.global_step,
        "best_step": state.best_global_step,
        "validations": validations,
    }


def check_reporters(names: Sequence[str]) -> None:
    """Raises `ConfigError` for a `report_to` that is not installed."""
    for name in names:
        if find_spec(name) is None:
            extra = "report" if name == "tensorboard" else name
            raise ConfigError(
                f"report_to names {name}, which is not installed",
                hint=f"pip install 'discorpora[{extra}]'",
            )


def _state(checkpoint: Path) -> TrainerState:
    return TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))


def _move_best(checkpoint: Path, folder: Path) -> None:
    """Let the stored path of the best checkpoint follow the folder, if that was moved."""
    state = _state(checkpoint)
    if state.best_model_checkpoint is None:
        return
    best = str(folder / Path(state.best_model_checkpoint).name)
    if best != state.best_model_checkpoint:
        state.best_model_checkpoint = best
        state.save_to_json(str(checkpoint / "trainer_state.json"))
        checkpoints.seal(checkpoint)


def _load_stopped(trainer: ZooTrainer, checkpoint: Path) -> TrainerState:
    """The run had stopped early before it was killed: nothing is left to train."""
    trainer.state = _state(checkpoint)
    trainer._load_from_checkpoint(str(checkpoint))
    if trainer.state.best_model_checkpoint is not None:
        trainer._load_best_model()
    return trainer.state


class _EpochOfSampler(TrainerCallback):
    """Tells the sampler which epoch begins, also after a resume in the middle of one."""

    def __init__(self, sampler: EpochSampler) -> None:
        self.sampler = sampler

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.sampler.set_epoch(int(state.epoch or 0))
