"""The Hugging Face `Trainer` with our order of data, sealed checkpoints, and our log lines.

A resumed run sees the same examples in the same order as an undisturbed one.
"""

from __future__ import annotations

import logging
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import Sampler
from transformers import (
    EarlyStoppingCallback,
    PreTrainedModel,
    Trainer,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_callback import PrinterCallback, TrainerCallback
from transformers.training_args import ParallelMode

from corpora.errors import DiscorporaError
from corpora.rng import stream
from zoo.backbones import merge_lora
from zoo.declared import StepRecipe
from zoo.modeling import clear_write_errors, float32_products, uses_bf16
from zoo.training import checkpoints
from zoo.training.job import Job
from zoo.training.throughput import Pace, Throughput

log = logging.getLogger("zoo")

Schedule = Callable[[Optimizer, int], LRScheduler]
"""Takes the optimizer and the number of optimizer steps in an epoch."""

WINDOW = 50
"""Batches in one window: rows are sorted inside a window only, so that batches still vary."""

KEEP_BEST = {"metric_for_best_model": "accuracy", "load_best_model_at_end": True}
"""Arguments of a Trainer that ends with the weights of the best validation accuracy."""


def training_arguments(job: Job, **more: Any) -> TrainingArguments:
    """Return the Trainer's arguments for a recipe's settings; `more` are further arguments."""
    recipe = job.steps
    # Beside the output: the Trainer's folder is removed with the checkpoints.
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(job.logs)
    same_names = {"seed", "learning_rate", "weight_decay", "max_grad_norm", "logging_steps"}
    share = recipe.share_of_batch(int(os.environ.get("WORLD_SIZE", "1")))
    values: dict[str, Any] = {
        **recipe.model_dump(include=same_names),
        "output_dir": str(job.checkpoints),
        "num_train_epochs": recipe.epochs,
        "max_steps": recipe.max_steps or -1,  # the Trainer would take one step for 0
        "per_device_train_batch_size": share,
        "per_device_eval_batch_size": recipe.eval_batch_size,
        "gradient_accumulation_steps": recipe.gradient_accumulation,
        "bf16": uses_bf16(recipe.bf16),
        "use_cpu": not torch.accelerator.is_available(),
        "torch_compile": recipe.compile,
        # `ignore_unused` finds once which parameters a step does not use.
        "ddp_find_unused_parameters": False,
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        # So early stopping goes on counting after a resume.
        "restore_callback_states_from_checkpoint": True,
        "report_to": list(recipe.report_to) or "none",
        "disable_tqdm": not sys.stderr.isatty(),
        "log_level": "warning",
        # A loss that is not finite stops the run; it must not be averaged away.
        "logging_nan_inf_filter": False,
        # Our losses are means over the batch, not sums over tokens.
        "average_tokens_across_devices": False,
        "remove_unused_columns": False,
        "label_names": ["labels"],
        # A batch is sent to the GPU while the GPU computes.
        "dataloader_pin_memory": torch.cuda.is_available(),
        "accelerator_config": {"non_blocking": torch.cuda.is_available()},
    }
    arguments = TrainingArguments(**{**values, **more})
    take_one_gpu(arguments, "; all of them: accelerate launch -m zoo.train ...")
    return arguments


def take_one_gpu(arguments: TrainingArguments, others: str = "") -> None:
    """Make a Trainer use one GPU. By default it would divide batches over all (`DataParallel`).

    If the machine has more, a log line says so; `others` is its end.
    """
    if arguments.n_gpu > 1:
        log.info("one of %d GPUs is used%s", arguments.n_gpu, others)
        arguments._n_gpu = 1


class ZooTrainer(Trainer):
    """A `Trainer` that seals its checkpoints and takes rows in the order of `EpochSampler`.

    Rows of similar `lengths` form batches. `schedule` returns the schedule of the learning rate.
    Raises `DiscorporaError` if a loss or a weight is not finite.
    """

    # Every loss here is a mean over its batch.
    loss_is_scaled_for_ga = False
    measure: ClassVar[type[Throughput]] = Throughput
    """The class that measures the speed of training."""

    def __init__(
        self,
        *args: Any,
        job: Job,
        lengths: Sequence[int],
        schedule: Schedule | None = None,
        **kwargs: Any,
    ) -> None:
        """Make the Trainer of `job`; `lengths` has the length of each training row."""
        super().__init__(*args, **kwargs)
        self.job, self.schedule = job, schedule
        job.trained_on = len(lengths)
        self.throughput = self.measure(job.run_file, job.name)
        self.sampler = EpochSampler(lengths, job.steps.batch_size, job.recipe.seed)
        self.remove_callback(PrinterCallback)
        # The throughput's clock comes after the callback that asks for validations.
        for callback in (_DueEvents(self.sampler, job.steps), self.throughput, LogLines()):
            self.add_callback(callback)

    def _get_train_sampler(self, train_dataset: Any = None) -> EpochSampler:
        return self.sampler

    def _get_eval_sampler(self, eval_dataset: Any) -> Any:
        # Longest first, so that rows of similar length are together; the order has no effect.
        return np.argsort(-np.asarray(eval_dataset.lengths()), kind="stable").tolist()

    def create_scheduler(
        self, num_training_steps: int, optimizer: Optimizer | None = None
    ) -> LRScheduler:
        """Return our `schedule` of the learning rate, or the Trainer's if we have none."""
        if num_training_steps == 1 and self.args.get_warmup_steps(1):
            self.job.note(
                "the only step has a learning rate of 0, since it is the warm-up's first: nothing "
                "is learnt; set warmup = 0, or take more steps"
            )
        if self.schedule is None or self.lr_scheduler is not None:
            return super().create_scheduler(num_training_steps, optimizer)
        batches = len(self.get_train_dataloader())
        epoch_steps = max(1, -(-batches // self.args.gradient_accumulation_steps))
        scheduler = self.schedule(optimizer or cast(Optimizer, self.optimizer), epoch_steps)
        self.lr_scheduler = cast(Any, scheduler)
        self._created_lr_scheduler = True
        return scheduler

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        """Return the next batches, and measure the time that training waits for them."""
        begin = time.perf_counter()
        samples = super().get_batch_samples(*args, **kwargs)
        self.throughput.waited += time.perf_counter() - begin
        return samples

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        self.throughput.count(inputs)
        return super().training_step(model, inputs, *args, **kwargs)

    def floating_point_ops(self, inputs: Any) -> int:
        return 0  # `Throughput` counts them at the end; the Trainer would do so at each step

    def log(self, logs: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Log figures, unless the loss is not finite: then raise `DiscorporaError`."""
        # The loss is not read at every step, since that waits for the GPU.
        loss = logs.get("loss", 0.0)
        if not math.isfinite(loss):
            problem = f"the loss is {loss} in the steps up to {self.state.global_step}"
            raise checkpoints.not_finite(self.job, problem)
        super().log(logs, *args, **kwargs)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save and seal a checkpoint if all weights are finite, and remove older checkpoints."""
        if not all(torch.isfinite(p).all() for p in model.parameters()):
            raise checkpoints.not_finite(
                self.job, f"a weight is not finite after step {self.state.global_step}"
            )
        with clear_write_errors(self.job.checkpoints):
            super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()  # each process writes its own random state
        if self.args.should_save:
            folder = self.job.checkpoints
            checkpoints.seal(folder / f"checkpoint-{self.state.global_step}")
            best = self.state.best_model_checkpoint
            checkpoints.rotate(folder, self.job.steps.keep_checkpoints, best)


def trainer_over(
    job: Job,
    model: PreTrainedModel,
    rows: Mapping[str, Any],
    *,
    arguments: Mapping[str, Any] = KEEP_BEST,
    **more: Any,
) -> ZooTrainer:
    """Return a Trainer of `model` on encoded `rows`, a mapping with `train` and `validation`.

    The rows of a split are a torch dataset with the methods `lengths()` and `collate(rows)`.
    `arguments` are for `TrainingArguments`, beside the job's settings; `more` for `ZooTrainer`.
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
    """Return the predicted class of each row, `[rows]`, from `logits [rows, classes]`. The Trainer
    calls it, so that it stores classes, which take less memory than logits."""
    return logits.argmax(-1)


def class_accuracy(prediction: Any) -> dict[str, float]:
    """Return the share of rows whose predicted class is their label, as metrics of the Trainer."""
    return {"accuracy": float((prediction.predictions == prediction.label_ids).mean())}


def ignore_unused(model: nn.Module, loss: Callable[[], torch.Tensor]) -> None:
    """Make DDP ignore the weights that get no gradient, such as those of an unused pooler.

    One backward pass of `loss` finds these weights, so that DDP need not search for them at each
    step. DDP raises an error if a later step gives no gradient to other weights.
    """
    device = next(model.parameters()).device  # the generators of other GPUs stay untouched
    with torch.random.fork_rng([] if device.type == "cpu" else [device], device_type=device.type):
        loss().backward()
    unused = [n for n, p in model.named_parameters() if p.requires_grad and p.grad is None]
    model.zero_grad()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, unused)


def _first_loss(trainer: ZooTrainer) -> torch.Tensor:
    """Return the training loss of a batch of the first and the last row."""
    rows: Any = trainer.train_dataset
    inputs = trainer._prepare_inputs(trainer.data_collator([rows[0], rows[len(rows) - 1]]))
    labels = inputs["labels"]
    model: Any = trainer.model
    with trainer.compute_loss_context_manager():
        outputs = model.train()(**inputs)
        loss = trainer.compute_loss_func(outputs, labels) if trainer.compute_loss_func else None
    return outputs.loss if loss is None else loss


def fit(trainer: ZooTrainer, *, patience: int = 0) -> TrainerState:
    """Train, from the newest sealed checkpoint if there is one, and return the Trainer's state.

    From a checkpoint `Trainer.train` restores weights, optimizer, schedule and random state, and
    skips the batches already seen (`accelerate.skip_first_batches`); `EpochSampler` gives each
    epoch's order. At the end the model has the best weights and computes in float32 again.
    `patience` validations without a new best accuracy stop it (0: never). The state has the steps
    and the log of losses and validation metrics.
    """
    job = trainer.job
    if trainer.args.should_save:
        checkpoints.clear_broken(job.checkpoints)
    trainer.accelerator.wait_for_everyone()
    start = checkpoints.newest(job.checkpoints)
    if patience:
        trainer.add_callback(EarlyStoppingCallback(patience))
    if start is not None:
        log.info("resuming from %s", start)
        state = TrainerState.load_from_json(str(start / "trainer_state.json"))
        control = state.stateful_callbacks.get("TrainerControl", {})
        if control.get("args", {}).get("should_training_stop"):
            # Training had ended, or stopped early, before the run was killed; the Trainer would
            # take one more step.
            best = job.checkpoints / f"checkpoint-{state.best_global_step or state.global_step}"
            trainer.state, state.best_model_checkpoint = state, str(best)
            trainer._load_best_model()
            merge_lora(cast(nn.Module, trainer.model))
            return state
        job.note_processes(start, "rng_state_*.pth", trainer.args.world_size)
    if trainer.args.parallel_mode == ParallelMode.DISTRIBUTED:
        ignore_unused(cast(nn.Module, trainer.model), lambda: _first_loss(trainer))
    with float32_products(tf32=True):
        trainer.train(resume_from_checkpoint=str(start) if start else None)
    if trainer.is_fsdp_enabled:  # each process holds a part of the model only
        raise DiscorporaError(
            "trained with FSDP: what is left takes one process",
            where=job.name,
            hint="run the same command without accelerate launch: it goes on from the last "
            "checkpoint, evaluates and writes the model",
        )
    trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
    merge_lora(cast(nn.Module, trainer.model))
    return trainer.state


def history(state: TrainerState) -> dict[str, Any]:
    """Return the entry `training` of results.json: the steps, losses and validations of a run."""
    entries = [entry for entry in state.log_history if "loss" in entry]
    losses = [(int(entry["step"]), entry["loss"]) for entry in entries]
    return {
        "steps": state.global_step,
        "best_step": state.best_global_step,
        "losses": thinned(losses),
        "validations": validations(state, "loss|accuracy"),
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
    }


def validations(state: TrainerState, names: str) -> list[dict[str, Any]]:
    """Return the step of each validation, with its metrics whose names match a pattern. `names` is
    a regular expression, such as "loss|accuracy"."""
    pattern = re.compile(f"eval_({names})")
    return [
        {"step": entry["step"]}
        | {key.removeprefix("eval_"): entry[key] for key in entry if pattern.fullmatch(key)}
        for entry in state.log_history
        if "eval_loss" in entry
    ]


def thinned(losses: Sequence[tuple[int, float]], most: int = 200) -> list[list[float]]:
    """Return a curve of `losses`, pairs of step and loss, with at most `most` points. A point is
    the mean loss of neighbouring pairs, at the step of the last one."""
    size = max(1, -(-len(losses) // most))
    parts = (losses[first : first + size] for first in range(0, len(losses), size))
    return [[part[-1][0], sum(loss for _, loss in part) / len(part)] for part in parts]


class EpochSampler(Sampler[int]):
    """Yields row numbers in an order in which each batch has rows of similar length.

    `lengths` has the length of each row, `batch_size` counts the rows of a batch over all
    processes, and `seed` with the number of the epoch determines the order. The rows are shuffled,
    cut into windows of 50 batches, and sorted by length inside a window; then the batches are
    shuffled. (`LengthGroupedSampler` of transformers does so too, but with the global generator: a
    run resumed in a later epoch sees another order.) The order does not depend on the number of
    processes. The last rows of an epoch that fill no batch are left out, so that each step sees the
    same rows with any number of processes; they are others in each epoch.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self.lengths = np.asarray(lengths, np.int64)
        self.batch_size, self.seed, self.epoch = batch_size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        """Return the number of rows of an epoch: of full batches, or all rows if they fill none."""
        rows = len(self.lengths)
        return rows // self.batch_size * self.batch_size or rows

    def __iter__(self) -> Iterator[int]:
        return iter(self.order(self.epoch).tolist())

    def order(self, epoch: int) -> np.ndarray:
        """Return the row numbers of an epoch, `[len(self)]`, in the order in which they are used.
        Each row occurs at most once."""
        random = stream(self.seed, "zoo.batches", epoch=epoch)
        rows = random.permutation(len(self.lengths))[: len(self)]
        size = self.batch_size * WINDOW
        for start in range(0, len(rows), size):
            window = rows[start : start + size]
            rows[start : start + size] = window[np.argsort(-self.lengths[window], kind="stable")]
        batches = rows.reshape(-1, min(self.batch_size, len(rows)))
        return random.permutation(batches).ravel()


class _DueEvents(TrainerCallback):
    """Tells the sampler the epoch, and asks for the validations and checkpoints inside an epoch.

    The Trainer tells the epoch too, but not if several processes resume in the middle of one. At
    the last step of an epoch or of the run nothing is asked for: there the Trainer validates by
    itself, before the checkpoint, since a validation may change the learning rate. A checkpoint
    does not have the losses since the last log, so they are logged before it.
    """

    def __init__(self, sampler: EpochSampler, recipe: StepRecipe) -> None:
        self.sampler, self.recipe = sampler, recipe

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.sampler.set_epoch(int(state.epoch or 0))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Ask for the validation or the checkpoint that is due after this step, if any."""
        if float(state.epoch or 0).is_integer() or state.global_step >= state.max_steps:
            return
        recipe, step = self.recipe, state.global_step
        if recipe.eval_steps and step % recipe.eval_steps == 0:
            control.should_evaluate = control.should_save = True
        if recipe.save_steps and step % recipe.save_steps == 0:
            control.should_save = True
        control.should_log = control.should_log or control.should_save

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_log = True


class LogLines(TrainerCallback):
    """Logs the Trainer's reports as one line each, in place of printed dictionaries."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        batch = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        self.pace = Pace(state.max_steps, batch, state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        """Log the figures of a report, except that at the end of the training, with the pace."""
        if not state.is_world_process_zero or not logs or "train_runtime" in logs:
            return
        skipped = ("_runtime", "_per_second", "total_flos", "epoch")
        figures = (
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in logs.items()
            if not key.endswith(skipped)
        )
        log.info("%s: %s", self.pace.line(state.global_step), ", ".join(figures))
