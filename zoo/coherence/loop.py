"""The loop of the full model: hard negatives, momentum encoder (Jwalapuram et al. 2022, 3.4).

The data depend on the model, so the loop is written by hand. A round is 200 instances: their
hardest negatives are mined with the current model, then used in training. Checkpoints are made
between rounds, so that a resumed run mines the same negatives.

Several processes divide the mining, the batches and the validation; the queue takes the negatives
of all, so that the result is that of one process. The last batch of a round may be too small to be
divided: all processes then compute it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, DistributedType
from accelerate.utils import gather_object
from safetensors.torch import load_model
from torch import Tensor

from corpora.errors import ConfigError, within_memory
from corpora.rng import stream
from corpora.store.atomic import write_json
from zoo.backbones import merge_lora, training_attention
from zoo.coherence.contrastive import Prepared, annealing_schedule
from zoo.coherence.data import Documents, Row, on_device, pad, usable_rows
from zoo.coherence.modeling import CoherenceScorer
from zoo.coherence.objectives import (
    ContrastiveMargin,
    MomentumContrast,
    MomentumEncoder,
    NegativeQueue,
)
from zoo.modeling import clear_write_errors, float32_products, uses_bf16
from zoo.training import checkpoints
from zoo.training.job import Job, is_main_process
from zoo.training.throughput import Pace
from zoo.training.trainer import ignore_unused, thinned

if TYPE_CHECKING:
    from zoo.coherence.recipes import Full

log = logging.getLogger("zoo")

LOWER = {
    "mining": "mining_tokens",
    "training": "batch_size",
    "validation": "eval_batch_size",
    "checkpoints": "batch_size",
}
"""By part of the loop, the setting to lower if the GPU runs out of memory."""

logging.getLogger("accelerate").setLevel(logging.WARNING)  # it names every file of a checkpoint


@dataclass
class Progress:
    """The progress of a run; part of every checkpoint.

    `seen` counts instances, `saved` is the step of the last checkpoint. `log` holds the validations
    in order, `losses` pairs of a step and the mean training loss since the pair before.

    `seconds` (by part of the loop), `tokens` (of the training steps) and `mined` (scored texts) are
    sums over all parts of an interrupted run.
    """

    step: int = 0
    round: int = 0
    seen: int = 0
    best: float = -1.0
    best_step: int = 0
    saved: int = 0
    log: list[dict[str, float]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LOWER, 0.0))
    tokens: int = 0
    mined: int = 0
    losses: list[tuple[int, float]] = field(default_factory=list)

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)


class FullTraining:
    """Trains a scorer with hard negatives and, if the recipe has one, a momentum encoder.

    `prepared` has the model, the tokenizer and the encoded documents; `rows` are the training rows,
    each a document with permuted orders of its sentences. The record of the run goes to `job`.
    """

    def __init__(self, recipe: Full, job: Job, prepared: Prepared, rows: list[Row]) -> None:
        # What to train, on what
        self.recipe, self.job, self.prepared, self.rows = recipe, job, prepared, rows
        self.progress = Progress()
        self.documents: Documents = prepared.documents["train"]
        self.bf16 = uses_bf16(recipe.bf16)
        # The processes and devices
        job.trained_on = len(rows)
        # As the Trainer does: an earlier run of this process may have had another precision.
        AcceleratorState._reset_state(reset_partial_state=True)
        self.accelerator = Accelerator(
            mixed_precision="bf16" if self.bf16 else "no",
            cpu=not torch.accelerator.is_available(),
            log_with=list(recipe.report_to) or None,
            project_dir=job.logs,
            # The schedule counts the steps of all processes together.
            step_scheduler_with_optimizer=False,
        )
        if self.accelerator.distributed_type == DistributedType.FSDP:
            raise ConfigError(
                "the full model does not support FSDP",
                hint="leave out --use_fsdp: each process then has the whole model",
            )
        self.processes = self.accelerator.num_processes
        recipe.share_of_batch(self.processes)  # raises if the batch cannot be divided
        # Model, optimizer and schedule
        prepared.model.to(self.accelerator.device)
        optimizer = torch.optim.AdamW(
            prepared.model.parameters(),
            lr=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            eps=recipe.adam_epsilon,
            fused=self.accelerator.device.type == "cuda",
        )
        if self.processes > 1:
            ids, mask, padded = self._padded(self.documents.row_texts(rows[0]))

            def loss() -> Tensor:
                return prepared.model(ids, mask, padded=padded).scores.sum()

            ignore_unused(prepared.model, loss)
        self.parallel, self.optimizer, self.schedule = self.accelerator.prepare(
            prepared.model, optimizer, annealing_schedule(recipe, optimizer)
        )
        # Only training uses bfloat16 here; validation scores like the saved model.
        self.model: CoherenceScorer = self.accelerator.unwrap_model(
            self.parallel, keep_fp32_wrapper=False
        )
        # Objective, with the momentum encoder if the recipe has one
        self.contrast = ContrastiveMargin(recipe.margin)
        self.momentum_contrast = MomentumContrast(recipe.margin)
        self.losses: list[Tensor] = []
        self.momentum: MomentumEncoder | None = None
        stateful: list[Any] = [self.progress]
        if recipe.momentum_weight > 0:
            width = self.model.config.backbone_config.hidden_size
            self.momentum = MomentumEncoder(self.model.backbone, recipe.momentum)
            self.queue = NegativeQueue(recipe.queue_size, width, self.accelerator.device)
            stateful += [self.momentum, self.queue]
        self.accelerator.register_for_checkpointing(*stateful)
        if recipe.compile:
            self.model.backbone.compile()
            if self.momentum is not None:
                self.momentum.encoder.compile()
        # The last step; `max_steps` replaces the epochs.
        self.rounds_an_epoch = math.ceil(len(rows) / recipe.mine_every)
        self.max_rounds: float = max(1, round(recipe.epochs * self.rounds_an_epoch))
        self.max_steps = math.inf
        if recipe.max_steps > 0:
            self.max_rounds, self.max_steps = math.inf, recipe.max_steps

    def run(self) -> dict[str, Any]:
        """Train from the start or the newest complete checkpoint; the model gets the best weights.

        Returns the run's history for results.json. A file beside the output has seconds by part,
        instances/s and the share of mining; share and rates leave out validation and checkpoints.
        """
        # Resume from the newest checkpoint.
        progress, folder = self.progress, self.job.checkpoints
        if is_main_process():
            checkpoints.clear_broken(folder)
        self.accelerator.wait_for_everyone()
        start = checkpoints.newest(folder)
        if start is not None:
            log.info("resuming from %s", start)
            self.accelerator.load_state(str(start))
            self.job.note_processes(start, "random_states_*.pkl", self.processes)
        # Count the steps, for the display of progress.
        steps = self.max_steps
        if math.isinf(steps):
            bounds = [*range(0, len(self.rows), self.recipe.mine_every), len(self.rows)]
            round_steps = [math.ceil(n / self.recipe.batch_size) for n in np.diff(bounds).tolist()]
            rounds = range(int(self.max_rounds))
            steps = sum(round_steps[number % self.rounds_an_epoch] for number in rounds)
        self.pace = Pace(int(steps), self.recipe.batch_size, progress.step)
        if self.recipe.report_to:
            self.accelerator.init_trackers(self.job.name.replace("/", "-"))
        with float32_products(tf32=True):
            while not self._is_finished():
                self._train_round()
        # Record the speed.
        mining, training = progress.seconds["mining"], max(progress.seconds["training"], 1e-9)
        figures = {
            "recipe": self.job.name,
            "seconds": {name: round(value, 3) for name, value in progress.seconds.items()},
            "mining_share": round(mining / (mining + training), 3),
            "instances_per_second": round(progress.seen / (mining + training), 3),
            "real_tokens_per_second": round(progress.tokens / training),  # of this process
            "texts_mined": progress.mined,
            "processes": self.processes,
            "device": str(self.accelerator.device),
        }
        if is_main_process():
            write_json(self.job.run_file, figures)
        # Load the best weights.
        best = self.checkpoint(progress.best_step) / "model.safetensors"
        if best.is_file():
            load_model(self.model, best)
        merge_lora(self.model)
        self.accelerator.wait_for_everyone()  # the checkpoints are removed when the run ends
        self.accelerator.end_training()
        return {
            "steps": progress.step,
            "best_step": progress.best_step,
            "losses": thinned(progress.losses),
            "validations": progress.log,
            "rounds": progress.round,
            "processes": self.processes,
        }

    def _is_finished(self) -> bool:
        return self.progress.round >= self.max_rounds or self.progress.step >= self.max_steps

    def _train_round(self) -> None:
        """Mine the hardest negatives of the next rows, and train on them; validate and save if due.
        In the first round, before the model has learnt anything, negatives are chosen at random."""
        progress, recipe = self.progress, self.recipe
        # The rows of this round, in the epoch's random order
        epoch, place = divmod(progress.round, self.rounds_an_epoch)
        shuffle = stream(recipe.seed, "zoo.coherence.rounds", epoch=epoch)
        start = place * recipe.mine_every
        numbers = shuffle.permutation(len(self.rows))[start : start + recipe.mine_every].tolist()
        rows = [self.rows[number] for number in numbers]
        # Negatives for each row
        with self._timed("mining"):
            if progress.round:
                progress.mined += sum(len(orders) for _, orders in rows)
                settings = recipe.negatives, recipe.mining_tokens, self.bf16
                with self.accelerator.split_between_processes(rows) as share:
                    hardest = hardest_negatives(self.model, self.documents, share, *settings)
                rows = gather_object(hardest)
            else:
                rows = [
                    random_negatives(row, recipe.negatives, recipe.seed, number)
                    for row, number in zip(rows, numbers, strict=True)
                ]
        # Train.
        self.model.train()
        with self._timed("training"), training_attention(self.model.backbone, recipe):
            # Batches of similar length, in random order.
            lengths = np.array([self.documents.length(name) for name, _ in rows])
            longest_first = np.argsort(-lengths, kind="stable")
            starts = np.arange(0, len(rows), recipe.batch_size)
            random = stream(recipe.seed, "zoo.coherence.batches", epoch=progress.round)
            for start in random.permutation(starts):
                if progress.step < self.max_steps:
                    batch = longest_first[start : start + recipe.batch_size]
                    self._train_step([rows[index] for index in batch])
            self._check_losses()
        progress.round += 1
        # Validate.
        last_validation = progress.log[-1]["step"] if progress.log else -math.inf
        if progress.step - last_validation >= recipe.eval_steps or self._is_finished():
            with self._timed("validation"):
                accuracy = self._accuracy()
            progress.log.append({"step": progress.step, "accuracy": accuracy})
            log.info("%s: validation accuracy %.4f", self.pace.line(progress.step), accuracy)
            self.accelerator.log({"eval_accuracy": accuracy}, step=progress.step)
            if accuracy > progress.best:
                progress.best, progress.best_step = accuracy, progress.step
        # Save a checkpoint.
        is_best = progress.best_step == progress.step
        if is_best or self._is_finished() or progress.step - progress.saved >= recipe.save_steps:
            progress.saved = progress.step
            with self._timed("checkpoints"):
                self._save_checkpoint()

    def _accuracy(self) -> float:
        """Return the validation accuracy: of pairs or, by `development`, of whole rows."""
        recipe, prepared = self.recipe, self.prepared
        if recipe.development == "each":
            return float(
                prepared.ranking("validation", self).metrics(recipe.seed)["accuracy"]["value"]
            )
        documents, table = prepared.documents["validation"], prepared.rows["validation"]
        rows = usable_rows(documents, table, recipe.negatives, split="validation")
        texts = [text for row in rows for text in documents.row_texts(row)]
        scores = np.array(self.score_ids(texts, prepared.batch_tokens))
        ends = np.cumsum([1 + len(orders) for _, orders in rows])
        return float(np.mean([row[0] > row[1:].max() for row in np.split(scores, ends[:-1])]))

    def score_ids(self, texts: Sequence[Any], batch_tokens: int) -> list[float]:
        """Score texts (token ids) with the model; processes share the work, and get all scores."""
        process, processes = self.accelerator.process_index, self.processes
        by_process = gather_object(self.model.score_ids(texts[process::processes], batch_tokens))
        scores = np.empty(len(texts))  # in the order of the texts again
        scores[np.argsort(np.arange(len(texts)) % processes, kind="stable")] = by_process
        return scores.tolist()

    def _save_checkpoint(self) -> None:
        """Save a checkpoint and remove old ones. Raises `DiscorporaError` if a weight is NaN."""
        folder = self.checkpoint(self.progress.step)
        if not all(torch.isfinite(p).all() for p in self.model.parameters()):
            problem = f"a weight is not finite after step {self.progress.step}"
            raise checkpoints.not_finite(self.job, problem)
        with clear_write_errors(folder):
            self.accelerator.save_state(str(folder))
        self.accelerator.wait_for_everyone()  # each process writes its own random state
        if is_main_process():
            checkpoints.seal(folder)
            best = self.checkpoint(self.progress.best_step).name
            checkpoints.rotate(self.job.checkpoints, self.recipe.keep_checkpoints, best)

    def checkpoint(self, step: int) -> Path:
        return self.job.checkpoints / f"checkpoint-{step}"

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Add the seconds of the block, the part `name` of the loop, to the run's progress. If
        memory runs out in it, the error names the setting to lower."""
        start, setting = time.perf_counter(), LOWER[name]
        value = getattr(self.recipe, setting)
        hint = f"lower {setting} (now {value}) or max_tokens; and use another --output"
        with within_memory(f"{self.job.name}, {name}", hint):
            yield
        self.progress.seconds[name] += time.perf_counter() - start

    def _train_step(self, batch: list[Row]) -> None:
        """Update the weights, the momentum encoder and the schedule with the loss of a batch."""
        progress = self.progress
        with self.accelerator.autocast():
            loss = self.loss(batch)
        self.losses.append(loss.detach())
        self.accelerator.backward(loss)
        if self.recipe.max_grad_norm > 0:
            self.accelerator.clip_grad_norm_(self.model.parameters(), self.recipe.max_grad_norm)
        if self.momentum is not None:
            self.momentum.update(self.model.backbone)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()
        progress.step += 1
        progress.seen += len(batch)
        if progress.step % self.recipe.logging_steps == 0:
            log.info("%s: loss %.4g", self.pace.line(progress.step), self._check_losses())
            self.accelerator.log({"loss": loss.item()}, step=progress.step)

    def _check_losses(self) -> float:
        """Record the mean loss of the steps since the last check, and return the last loss. Raises
        `DiscorporaError` for a loss that is not finite. It is not called at each step, since
        reading a loss waits for the GPU."""
        if not self.losses:
            return math.nan
        losses = torch.stack(self.losses).tolist()
        first = self.progress.step - len(losses) + 1
        self.losses.clear()
        for step, loss in enumerate(losses, first):
            if not math.isfinite(loss):
                problem = f"the loss is {loss} at step {step}"
                raise checkpoints.not_finite(self.job, problem)
        self.progress.losses.append((self.progress.step, sum(losses) / len(losses)))
        return losses[-1]

    def loss(self, batch: list[Row]) -> Tensor:
        """Return the loss of a batch by equation 5: (1 - weight) * contrastive + weight * momentum.

        Several processes divide the batch; if they cannot, each computes the loss of all of it.
        """
        first = 0  # the place of this process's first row in the batch
        shared = self.processes > 1 and len(batch) % self.processes == 0
        if shared:
            size = len(batch) // self.processes
            first = size * self.accelerator.process_index
            batch = batch[first : first + size]
        texts = [text for row in batch for text in self.documents.row_texts(row)]
        ids, mask, padded = self._padded(texts)
        outputs = self.parallel(ids, mask, with_vectors=True, padded=padded)
        scores = outputs.scores.view(len(batch), -1)
        loss: Tensor = self.contrast(scores.float())
        if self.momentum is None:
            return loss
        by_row = (*scores.shape, -1)  # in each row the document, then its negatives
        negative_ids, negative_mask = (
            tensor.view(by_row)[:, 1:].flatten(0, 1) for tensor in (ids, mask)
        )
        slices = [
            document_slice(self.documents, name, self.recipe, self.progress.seen + i)
            for i, (name, _) in enumerate(batch, first)
        ]
        with torch.no_grad():
            encoder = self.momentum.encoder
            negatives = self.model.vectors(negative_ids, negative_mask, encoder, padded)
            self.queue.push(self.accelerator.gather(negatives) if shared else negatives)
            slice_ids, slice_mask, padded = self._padded(slices)
            momentum_vectors = self.model.vectors(slice_ids, slice_mask, encoder, padded)
        vectors, weight = outputs.vectors.view(by_row)[:, 0], self.recipe.momentum_weight
        momentum_loss = self.momentum_contrast(vectors, momentum_vectors, self.queue())
        return (1 - weight) * loss + weight * momentum_loss

    def _padded(self, texts: list[Any]) -> tuple[Tensor, Tensor, bool]:
        """Return ids and mask `[texts, tokens]` on the device, and whether a text is padded."""
        ids, mask = pad(texts, self.prepared.model.config.pad_token_id or 0)
        tokens = int(mask.sum())
        self.progress.tokens += tokens
        ids, mask = on_device(self.accelerator.device, ids, mask)
        return ids, mask, tokens < mask.numel()


def random_negatives(row: Row, keep: int, seed: int, number: int) -> Row:
    """Return `row` with a sample of `keep` negatives, drawn by the seed and the row's `number`."""
    document, orders = row
    random = stream(seed, "zoo.coherence.negatives", str(number))
    sample = random.choice(len(orders), keep, replace=len(orders) < keep)
    return document, [orders[index] for index in sample.tolist()]


def hardest_negatives(
    model: CoherenceScorer,
    documents: Documents,
    rows: Sequence[Row],
    keep: int,
    batch_tokens: int = 16384,
    bf16: bool = False,
) -> list[Row]:
    """Return each row with its `keep` hardest negatives, the hardest first (algorithm 1).

    The hardest negatives have the highest scores by `model`; if scores are equal, the earlier one
    counts as harder. If a row has fewer negatives, they are repeated. All orders of a document have
    the same number of tokens, so that batches of at most `batch_tokens` have almost no padding.
    """
    if not rows:  # one of several processes may get none
        return []
    texts = [documents.permuted(name, order) for name, orders in rows for order in orders]
    scores = np.array(model.score_ids(texts, batch_tokens, bf16=bf16))
    ends = np.cumsum([len(orders) for _, orders in rows])
    hardest = []
    for (name, orders), row_scores in zip(rows, np.split(scores, ends[:-1]), strict=True):
        ranked = np.argsort(-row_scores, kind="stable").tolist()
        hardest.append((name, [orders[ranked[i % len(ranked)]] for i in range(keep)]))
    return hardest


def document_slice(documents: Documents, name: str, recipe: Full, step: int) -> np.ndarray:
    """Return the token ids of a slice of a document, the momentum encoder's input.

    The slice has at least `shortest_slice` sentences and begins at random (the paper's footnote 3)
    or with the document (`slices = "prefix"`, the authors' code). Equal for equal seed and `step`.
    """
    size = documents.size(name)
    random = stream(recipe.seed, "zoo.coherence.slices", name, step)
    length = int(random.integers(min(recipe.shortest_slice, size), size + 1))
    start = 0 if recipe.slices == "prefix" else int(random.integers(size - length + 1))
    return documents.encoder.assemble(documents.sentences(name)[start : start + length])
