"""Recipe: DisSent's BiLSTM (Nie, Bennett and Goodman 2019, sections 3.1 and 6)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers import TrainerCallback

from zoo.dissent.data import mapped_pairs
from zoo.dissent.finishing import leave
from zoo.dissent.modeling import BiLstmConfig, BiLstmForMarkers
from zoo.labelled import load_for
from zoo.training.data import SPLITS
from zoo.training.job import Job, is_main_process
from zoo.training.trainer import class_accuracy, fit, history, most_probable, trainer_over
from zoo.vocabularies import load_vectors, words_for

if TYPE_CHECKING:
    from zoo.dissent.recipes import Bilstm

SIZES = {"embedding_size", "hidden_size", "projection_size", "linear_layers", "pooling"}
SIZES |= {"train_embeddings", "drop_unknown"}
"""The settings that are also in the model's configuration."""


def train(recipe: Bilstm, job: Job) -> None:
    """Train a BiLSTM, and write the model with its results and its card to `job.folder`."""
    # Data
    data = load_for(recipe, job, columns=("s1", "s2"))
    data.data.labels()  # raises for a row without a label
    tokenizer = words_for(recipe, data.all_texts("train"), ends=recipe.sentence_ends)
    limit = recipe.max_tokens
    rows = mapped_pairs(recipe, data, tokenizer, limit, sides=2)
    data.free_texts()
    truncated = {split: part.truncated for split, part in rows.items()}
    job.note_counts(f"sentences cut at {limit} tokens", truncated)

    # Model, with the word vectors of a file or random ones
    torch.manual_seed(recipe.seed)
    model = BiLstmForMarkers(
        BiLstmConfig(
            vocab_size=len(tokenizer),
            pad_token_id=tokenizer.pad_token_id,
            **recipe.model_dump(include=SIZES),
            **data.names,
        )
    )
    if recipe.vectors:
        table = model.encoder.embeddings
        std, drop = model.config.embedding_std, recipe.drop_unknown
        job.note(load_vectors(table, tokenizer, Path(recipe.vectors), std, drop_unknown=drop))

    weight = model.encoder.embeddings.weight.detach()
    # With `drop_unknown`, words whose vector is zero (it stays zero) do not count.
    counted = (weight != 0).any(1) if recipe.drop_unknown else torch.ones(len(weight)).bool()
    for part in rows.values():
        part.counted = counted.numpy()

    # Objective (the model's cross-entropy) and Trainer
    trainer = trainer_over(
        job,
        model,
        rows,
        schedule=partial(AccuracySchedule, decay=recipe.decay, shrink=recipe.shrink),
        optimizer_cls_and_kwargs=(torch.optim.SGD, {"lr": recipe.learning_rate}),
        compute_metrics=class_accuracy,
        preprocess_logits_for_metrics=most_probable,
        callbacks=[AccuracyFalls()],
    )
    state = fit(trainer, patience=recipe.patience)
    if not is_main_process():
        return

    # Evaluation and card
    leave(
        job,
        data,
        model,
        tokenizer,
        rows,
        details={"truncated": truncated, "vocabulary": len(tokenizer)},
        training=history(state),
        batch_size=recipe.eval_batch_size,
        splits=SPLITS[1:],
    )


class AccuracySchedule(LRScheduler):
    """DisSent's schedule of the learning rate (section 6; the decay is from the released code).

        lr(epoch) = lr(0) * decay^epoch / shrink^falls

    where `falls` counts the epochs whose validation accuracy was below that of the previous epoch.
    `steps` is the number of optimizer steps in an epoch; `step()` is called after each of them.
    torch and transformers have no schedule of this kind.
    """

    def __init__(
        self, optimizer: Optimizer, steps: int, decay: float = 0.99, shrink: float = 5.0
    ) -> None:
        self.steps, self.decay, self.shrink = steps, decay, shrink
        self.falls, self.previous = 0, float("-inf")
        super().__init__(optimizer)

    def get_lr(self) -> list[float | Tensor]:
        """Return the current learning rate of each group of parameters."""
        factor = self.decay ** (self.last_epoch // self.steps) / self.shrink**self.falls
        return [rate * factor for rate in self.base_lrs]

    def validated(self, accuracy: float) -> None:
        """Record an epoch's validation accuracy; if it fell, lower the learning rates at once."""
        self.falls += accuracy < self.previous
        self.previous = float(accuracy)
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate


class AccuracyFalls(TrainerCallback):
    """Passes each epoch's accuracy to an `AccuracySchedule`, before the checkpoint is written."""

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Give the schedule the validation accuracy at the end of each epoch."""
        scheduler = kwargs["lr_scheduler"]
        schedule = getattr(scheduler, "scheduler", scheduler)  # accelerate may wrap it
        if float(state.epoch or 0).is_integer():
            schedule.validated(kwargs["metrics"]["eval_accuracy"])
