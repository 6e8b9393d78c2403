"""Recipe: the scorer by pairwise or contrastive ranking (Jwalapuram et al. 2022, 3.2 and 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from zoo.backbones import training_attention
from zoo.coherence.data import instances
from zoo.coherence.objectives import OBJECTIVES, ranking_accuracy
from zoo.coherence.setup import ScorerSettings, leave, prepare, say_cut
from zoo.training.callbacks import EarlyStop
from zoo.training.job import Job, is_main_process
from zoo.training.schedules import anneal
from zoo.training.settings import Count
from zoo.training.trainer import fit, history, trainer_over


@dataclass(frozen=True, kw_only=True)
class Settings(ScorerSettings):
    """The configurations `documents` and `objective` of the dataset are read."""

    objective: Literal["contrastive", "pairwise"] = "contrastive"
    patience: Count = 0


def train(job: Job) -> None:
    """Train into `job.folder`: data, model, objective, Trainer, evaluation, card."""
    s: Settings = job.settings  # type: ignore[assignment]

    # Data and model
    prepared = prepare(s, s.dataset_config or s.objective)
    negatives = s.negatives if s.objective == "contrastive" else 1
    pad_id = prepared.tokenizer.pad_token_id
    rows = {
        split: instances(prepared.texts[split], prepared.chosen[split], negatives, pad_id)
        for split in ("train", "validation")
    }
    dropped = {split: part.dropped for split, part in rows.items()}
    say_cut(job, prepared, dropped)

    # Objective
    objective = OBJECTIVES[s.objective](s.margin)

    # Trainer
    trainer = trainer_over(
        job,
        prepared.model,
        rows,
        schedule=lambda optimizer, _: anneal(
            optimizer, s.learning_rate, s.final_learning_rate, s.anneal_steps
        ),
        compute_loss_func=lambda outputs, labels, **_: objective(outputs.scores),
        compute_metrics=ranking_accuracy,
    )
    with training_attention(prepared.model.backbone, s):
        state = fit(trainer, early_stop=EarlyStop("accuracy", s.patience))
    if not is_main_process():
        return

    # Evaluation and card; bfloat16 was for training, users' scores are float32
    trainer.accelerator.unwrap_model(prepared.model, keep_fp32_wrapper=False)
    leave(job, prepared, history(state), dropped)
