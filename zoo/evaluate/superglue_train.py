"""Fine-tuning an encoder with a linear layer on pairs of texts, by the library's Trainer."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from corpora.errors import DiscorporaError
from zoo.backbones import pooled
from zoo.evaluate.superglue_data import Example, Task
from zoo.training.trainer import LogLines, take_one_gpu

log = logging.getLogger("zoo")


class PairModel(nn.Module):
    """A backbone and one linear layer: `outputs` numbers for each pair of texts."""

    # Keyword arguments of `forward` are the encoded texts: the Trainer must add nothing to them.
    accepts_loss_kwargs = False

    def __init__(self, backbone: PreTrainedModel, pooling: str, outputs: int) -> None:
        super().__init__()
        self.backbone, self.pooling = backbone, pooling
        self.dropout = nn.Dropout(getattr(backbone.config, "hidden_dropout_prob", 0.1))
        self.head = nn.Linear(backbone.config.hidden_size, outputs)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def logits(self, encoded: dict[str, Tensor]) -> Tensor:
        """`[pairs, outputs]` from `input_ids` and `attention_mask [pairs, tokens]`."""
        found = self.backbone(**encoded)
        vectors = getattr(found, "pooler_output", None)
        if vectors is None or self.pooling != "first":
            vectors = pooled(found.last_hidden_state, encoded["attention_mask"], self.pooling)
        return self.head(self.dropout(vectors))

    def forward(self, sizes: Tensor, right: Tensor, **encoded: Tensor) -> dict[str, Tensor]:
        """The mean loss of a batch: `sizes [examples]` pairs each, `right [pairs]` marks.

        With several outputs, `right` is the class of each pair (cross entropy). With one, the
        pairs of an example are its candidates: -log of the share of the softmax that falls on
        right ones.
        """
        logits = self.logits(encoded).float()
        if logits.size(1) > 1:
            return {"loss": nn.functional.cross_entropy(logits, right)}
        losses = [
            torch.logsumexp(scores, 0) - torch.logsumexp(scores[marks > 0], 0)
            for scores, marks in zip(
                logits[:, 0].split(sizes.tolist()), right.split(sizes.tolist()), strict=True
            )
        ]
        return {"loss": torch.stack(losses).mean()}


@dataclass(frozen=True)
class Pairs:
    """Makes batches: pairs of texts as ids; where both are too long, the longer one is cut."""

    tokenizer: PreTrainedTokenizerBase
    max_length: int
    classes: int

    def encode(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        first, second = zip(*(pair for example in examples for pair in example.pairs), strict=True)
        return dict(
            self.tokenizer(
                list(first),
                list(second),
                truncation="longest_first",
                max_length=self.max_length,
                padding=True,
                padding_side="right",  # as `pooled` takes it; XLNet's own side is the left
                return_tensors="pt",
            )
        )

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        marks = [
            example.right[0] if self.classes else int(place in example.right)
            for example in examples
            for place in range(len(example.pairs))
        ]
        sizes = torch.tensor([len(example.pairs) for example in examples])
        return {"sizes": sizes, "right": torch.tensor(marks), **self.encode(examples)}


@torch.inference_mode()
def choose(
    model: PairModel, examples: Sequence[Example], pairs: Pairs, batch_size: int
) -> np.ndarray:
    """The class, or the candidate, that the model prefers in each example, `[examples]`."""
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    flat = [Example((pair,), (0,)) for example in examples for pair in example.pairs]
    order = np.argsort([-len(e.pairs[0][0]) - len(e.pairs[0][1]) for e in flat], kind="stable")
    scores = np.zeros((len(flat), model.head.out_features))
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        encoded = pairs.encode([flat[row] for row in rows])
        inputs = {name: value.to(device) for name, value in encoded.items()}
        scores[rows] = model.logits(inputs).float().cpu().numpy()
    model.train(was_training)
    if np.isnan(scores).any():
        raise DiscorporaError("the model gives NaN", hint="lower --learning_rate, or --bf16 false")
    if pairs.classes:
        return scores.argmax(1)
    ends = np.cumsum([len(example.pairs) for example in examples])
    return np.array([part.argmax() for part in np.split(scores[:, 0], ends[:-1])])


def fine_tune(
    model: PairModel,
    train: Sequence[Example],
    validation: Sequence[Example],
    pairs: Pairs,
    task: Task,
    *,
    seed: int,
    batch_size: int,
    eval_batch_size: int,
    bf16: bool,
) -> list[dict[str, Any]]:
    """Train `model` in place; the validation accuracy at each checkpoint, in order.

    Linear warm-up over the first tenth of the steps, then linear to 0 (BERT's schedule).
    Raises `DiscorporaError` if the GPU's memory does not do.
    """
    at_once = min(task.device_batch, batch_size)
    watch = _Checkpoints(task, validation, pairs, eval_batch_size)
    with TemporaryDirectory(prefix="superglue-") as folder:
        trainer = Trainer(
            model,
            _arguments(Path(folder), task, seed, at_once, batch_size, bf16),
            data_collator=pairs,
            train_dataset=list(train),
            callbacks=[watch, LogLines()],
        )
        trainer.remove_callback(PrinterCallback)
        try:
            trainer.train()
        except torch.cuda.OutOfMemoryError as error:
            raise DiscorporaError(
                "out of memory on the GPU",
                where=f"superglue, {task.name}",
                hint="lower --max_length or --max_candidates",
            ) from error
    return watch.found


def _arguments(
    folder: Path, task: Task, seed: int, at_once: int, batch_size: int, bf16: bool
) -> TrainingArguments:
    arguments = TrainingArguments(
        output_dir=str(folder),
        seed=seed,
        learning_rate=task.learning_rate,
        weight_decay=0.01,
        max_steps=task.max_steps or -1,
        num_train_epochs=task.epochs or 1.0,
        warmup_steps=0.1,
        per_device_train_batch_size=at_once,
        gradient_accumulation_steps=math.ceil(batch_size / at_once),
        bf16=bf16,
        use_cpu=not torch.accelerator.is_available(),
        save_strategy="no",
        eval_strategy="no",
        report_to="none",
        logging_steps=100,
        log_level="warning",
        disable_tqdm=not sys.stderr.isatty(),
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    take_one_gpu(arguments)
    return arguments


class _Checkpoints(TrainerCallback):
    """Measures the accuracy where the paper kept a checkpoint, and at the end."""

    def __init__(
        self, task: Task, examples: Sequence[Example], pairs: Pairs, batch_size: int
    ) -> None:
        self.task, self.examples, self.pairs, self.batch_size = task, examples, pairs, batch_size
        self.found: list[dict[str, Any]] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        at = state.global_step
        if self.task.checkpoint and at % self.task.checkpoint == 0 and at < state.max_steps:
            self._measure(at, kwargs["model"])

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self.task.checkpoint and state.global_step < state.max_steps:
            self._measure(state.global_step, kwargs["model"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._measure(state.global_step, kwargs["model"])

    def _measure(self, step: int, model: PairModel) -> None:
        chosen = choose(model, self.examples, self.pairs, self.batch_size)
        right = [c in e.right for c, e in zip(chosen.tolist(), self.examples, strict=True)]
        self.found.append({"step": step, "accuracy": float(np.mean(right))})
        log.info("%s, step %d: accuracy %.3f", self.task.name, step, np.mean(right))
