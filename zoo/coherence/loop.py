"""The loop of the full model: its data depend on the model, so it is written out.

A round is 200 instances: their hardest negatives are mined with the model as it stands, then
they train. Checkpoints fall between rounds, so that a resumed run mines what it would have mined.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from safetensors.torch import load_file, save_file
from torch import Tensor

from corpora.errors import ConfigError, DiscorporaError
from corpora.store.atomic import write_json
from zoo.backbones import training_attention
from zoo.coherence.data import Documents, Row, pad
from zoo.coherence.mining import Miner, Rounds, Slices, batches
from zoo.coherence.modeling import CoherenceScorer
from zoo.coherence.momentum import MomentumContrast, MomentumEncoder, NegativeQueue
from zoo.coherence.objectives import ContrastiveMargin
from zoo.coherence.setup import annealed
from zoo.modeling import explained, uses_bf16
from zoo.training import checkpoints
from zoo.training.job import Job

if TYPE_CHECKING:
    from zoo.coherence.recipes import Full

log = logging.getLogger("zoo")

BEST = "best.safetensors"
PARTS = ("mining", "training", "validation", "checkpoints")
LOWER = {"mining": "mining_tokens", "training": "batch_size", "validation": "eval_batch_size"}
"""The setting to lower where a part of the loop needs more memory than the GPU has."""

logging.getLogger("accelerate").setLevel(logging.WARNING)  # it names every file of a checkpoint


@dataclass
class Progress:
    """Where a run stands; part of every checkpoint. `log` holds the validations in order.

    `seconds`, by part of the loop, `tokens` (of the training steps) and `mined` (texts) add up
    over all pieces of a run that was killed and resumed.
    """

    step: int = 0
    round: int = 0
    seen: int = 0
    best: float = -1.0
    best_step: int = 0
    saved: int = 0
    log: list[dict[str, float]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    tokens: int = 0
    mined: int = 0

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)


class FullTraining:
    """Trains a scorer with hard negatives, and with the momentum encoder unless there is none.

    `validate` gives the development accuracy of the model as it stands.
    """

    def __init__(
        self,
        recipe: Full,
        job: Job,
        model: CoherenceScorer,
        documents: Documents,
        rows: list[Row],
        validate: Callable[[], float],
    ) -> None:
        self.recipe, self.job, self.documents, self.validate = recipe, job, documents, validate
        job.trained_on = len(rows)
        bf16 = uses_bf16(recipe.bf16)
        # As the Trainer does: an earlier run of this process may have had another precision.
        AcceleratorState._reset_state(reset_partial_state=True)
        self.accelerator = Accelerator(
            mixed_precision="bf16" if bf16 else "no",
            cpu=not torch.accelerator.is_available(),
            log_with=list(recipe.report_to) or None,
            project_dir=job.logs,
        )
        if self.accelerator.num_processes > 1:
            raise ConfigError(
                "the full model trains in one process: its queue is one",
                where=job.name,
                hint="start it with python -m zoo.train, or with --num_processes 1",
            )
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )
        schedule = annealed(recipe, optimizer)
        model, self.optimizer, self.schedule = self.accelerator.prepare(model, optimizer, schedule)
        # What computes in bfloat16 says so here; validation scores as the users' model does.
        self.model = self.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
        self.rounds = Rounds(len(rows), recipe.mine_every, recipe.seed)
        self.miner = Miner(
            documents, rows, recipe.negatives, recipe.seed, recipe.mining_tokens, bf16
        )
        self.slices = Slices(
            documents, recipe.seed, recipe.shortest_slice, recipe.slices == "prefix"
        )
        self.contrast, self.momentum_contrast = (
            ContrastiveMargin(recipe.margin),
            MomentumContrast(recipe.margin),
        )
        self.progress = Progress()
        self.momentum: MomentumEncoder | None = None
        kept: list[Any] = [self.progress]
        if recipe.momentum_weight > 0:
            width = model.config.backbone_config.hidden_size
            self.momentum = MomentumEncoder(model.backbone, recipe.momentum)
            self.queue = NegativeQueue(recipe.queue_size, width, self.accelerator.device)
            kept += [self.momentum, self.queue]
        self.accelerator.register_for_checkpointing(*kept)

    @property
    def last_round(self) -> float:
        """The number of rounds in all; no limit where `max_steps` is the limit."""
        if self.recipe.max_steps > 0:
            return math.inf
        return max(1, round(self.recipe.epochs * self.rounds.in_epoch))

    def run(self) -> dict[str, Any]:
        """Train from the start or from the newest whole checkpoint; the best weights end up in
        the model. Returns the run's history for results.json."""
        self._resume()
        if self.recipe.report_to:
            self.accelerator.init_trackers(self.job.name.replace("/", "-"))
        progress = self.progress
        while progress.round < self.last_round and not self._enough():
            self._round()
            progress.round += 1
            self._after_round()
        self.accelerator.end_training()
        self._say_throughput()
        best = self.job.checkpoints / BEST
        if best.is_file():
            self.model.load_state_dict(load_file(best, device=str(self.accelerator.device)))
        return {
            "steps": progress.step,
            "best_step": progress.best_step,
            "validations": progress.log,
            "rounds": progress.round,
        }

    def _enough(self) -> bool:
        return 0 < self.recipe.max_steps <= self.progress.step

    def _round(self) -> None:
        """Mine the negatives of one round, and train on them."""
        number = self.progress.round
        rows = self.rounds.rows(number)
        with self._part("mining"):
            before = self.miner.scored
            chosen = self.miner.choose(self.model if number else None, number, rows)
            self.progress.mined += self.miner.scored - before
        self.model.train()
        with self._part("training"), training_attention(self.model.backbone, self.recipe):
            for batch in batches(
                chosen, self.documents, self.recipe.batch_size, self.recipe.seed, number
            ):
                if self._enough():
                    break
                self._step(batch)

    @contextmanager
    def _part(self, name: str) -> Iterator[None]:
        """Add up the time of a part of the loop; say what to lower where memory runs out."""
        began = time.perf_counter()
        try:
            yield
        except torch.cuda.OutOfMemoryError as error:
            key = LOWER.get(name, "batch_size")
            raise DiscorporaError(
                f"out of memory on the GPU ({name})",
                where=self.job.name,
                hint=f"lower {key} (now {getattr(self.recipe, key)}) or max_tokens; "
                "the same command then goes to another --output",
            ) from error
        self.progress.seconds[name] += time.perf_counter() - began

    def _step(self, batch: list[Row]) -> None:
        with self.accelerator.autocast():
            loss = self.loss(batch)
        if not torch.isfinite(loss):
            raise checkpoints.not_finite(
                self.job, f"the loss is {loss.item()} at step {self.progress.step + 1}"
            )
        self.accelerator.backward(loss)
        if self.recipe.max_grad_norm > 0:
            self.accelerator.clip_grad_norm_(self.model.parameters(), self.recipe.max_grad_norm)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()
        if self.momentum is not None:
            self.momentum.update(self.model.backbone)
        self.progress.step += 1
        self.progress.seen += len(batch)
        if self.progress.step % self.recipe.logging_steps == 0:
            log.info("step %d: loss %.4g", self.progress.step, loss.item())
            self.accelerator.log({"loss": loss.item()}, step=self.progress.step)

    def loss(self, batch: list[Row]) -> Tensor:
        """Equation 5 for a batch: (1 - weight) * contrastive + weight * momentum."""
        documents, weight = self.documents, self.recipe.momentum_weight
        texts = [
            text
            for name, orders in batch
            for text in (
                documents.original(name),
                *(documents.permuted(name, order) for order in orders),
            )
        ]
        ids, mask = self._padded(texts)
        vectors = self.model.vectors(ids, mask)
        scores = self.model.heads(vectors).view(len(batch), -1)
        loss = self.contrast(scores.float())
        if self.momentum is None:
            return loss
        rows = (*scores.shape, -1)
        negatives = [each.view(rows)[:, 1:].flatten(0, 1) for each in (ids, mask)]
        slices = [
            self.slices.text(name, self.progress.seen + i) for i, (name, _) in enumerate(batch)
        ]
        with torch.no_grad():
            encoder = self.momentum.encoder
            self.queue.push(self.model.vectors(*negatives, encoder))
            followed = self.model.vectors(*self._padded(slices), encoder)
        own = vectors.view(len(batch), -1, vectors.size(-1))[:, 0]
        return (1 - weight) * loss + weight * self.momentum_contrast(own, followed, self.queue())

    def _padded(self, texts: list[Any]) -> tuple[Tensor, Tensor]:
        ids, mask = pad(texts, self.model.config.pad_token_id or 0)
        self.progress.tokens += int(mask.sum())
        return ids.to(self.accelerator.device), mask.to(self.accelerator.device)

    def _after_round(self) -> None:
        """Validate where it is due, and keep a checkpoint then or where that is due."""
        progress, recipe = self.progress, self.recipe
        ends = progress.round >= self.last_round or self._enough()
        due = not progress.log or progress.step - progress.log[-1]["step"] >= recipe.eval_steps
        if ends or due:
            with self._part("validation"):
                accuracy = self.validate()
            progress.log.append({"step": progress.step, "accuracy": accuracy})
            log.info("step %d: validation accuracy %.4f", progress.step, accuracy)
            self.accelerator.log({"eval_accuracy": accuracy}, step=progress.step)
            if accuracy > progress.best:
                progress.best, progress.best_step = accuracy, progress.step
                with self._part("checkpoints"):
                    self._keep_best()
        if ends or due or progress.step - progress.saved >= recipe.save_steps:
            progress.saved = progress.step
            with self._part("checkpoints"):
                self._save()

    def _keep_best(self) -> None:
        folder = self.job.checkpoints
        folder.mkdir(parents=True, exist_ok=True)
        with explained(folder):
            fresh = folder / f".{BEST}"
            save_file({k: v.contiguous() for k, v in self.model.state_dict().items()}, fresh)
            fresh.replace(folder / BEST)

    def _save(self) -> None:
        folder = self.job.checkpoints / f"checkpoint-{self.progress.step}"
        if not all(torch.isfinite(p).all() for p in self.model.parameters()):
            raise checkpoints.not_finite(
                self.job, f"a weight is not finite after step {self.progress.step}"
            )
        with explained(folder):
            self.accelerator.save_state(str(folder))
        checkpoints.seal(folder)
        checkpoints.rotate(self.job.checkpoints, self.recipe.keep_checkpoints, None)

    def _resume(self) -> None:
        for broken in checkpoints.clear_broken(self.job.checkpoints):
            log.warning("%s is not whole (the run was killed while it was written)", broken.name)
        start: Path | None = checkpoints.newest(self.job.checkpoints)
        if start is not None:
            log.info("resuming from %s", start)
            self.accelerator.load_state(str(start))

    def _say_throughput(self) -> None:
        """Write seconds by part, instances/s and the share of mining beside the output.

        Validation and checkpoints have their seconds, and are no part of share and rates.
        """
        progress, seconds = self.progress, self.progress.seconds
        mining, training = seconds["mining"], max(seconds["training"], 1e-9)
        write_json(
            self.job.run_file,
            {
                "recipe": self.job.name,
                "seconds": {name: round(value, 3) for name, value in seconds.items()},
                "mining_share": round(mining / (mining + training), 3),
                "instances_per_second": round(progress.seen / (mining + training), 3),
                "real_tokens_per_second": round(progress.tokens / training),
                "texts_mined": progress.mined,
                "device": str(self.accelerator.device),
            },
        )
