"""Recipe: the scorer by pairwise or contrastive ranking (Jwalapuram et al. 2022, 3.2 and 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from zoo.backbones import training_attention
from zoo.callbacks import EarlyStop
from zoo.coherence.data import instances
from zoo.coherence.objectives import OBJECTIVES
from zoo.coherence.setup import ScorerSettings, leave, prepare, say_cut
from zoo.job import Job, is_main_process
from zoo.schedules import anneal
from zoo.settings import Count
from zoo.trainer import ZooTrainer, fit, history, training_arguments


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
    trainer = ZooTrainer(
        prepared.model,
        training_arguments(job, metric_for_best_model="accuracy", load_best_model_at_end=True),
        job=job,
        lengths=rows["train"].lengths(),
        schedule=lambda optimizer, _: anneal(
            optimizer, s.learning_rate, s.final_learning_rate, s.anneal_steps
        ),
        data_collator=rows["train"].collate,
        train_dataset=rows["train"],
        eval_dataset=rows["validation"],
        compute_loss_func=lambda outputs, labels, **_: objective(outputs.scores),
        compute_metrics=_accuracy,
    )
    with training_attention(prepared.model.backbone, s):
        state = fit(trainer, early_stop=EarlyStop("accuracy", s.patience))
    if not is_main_process():
        return

    # Evaluation and card; bfloat16 was for training, users' scores are float32
    trainer.accelerator.unwrap_model(prepared.model, keep_fp32_wrapper=False)
    leave(job, prepared, history(state), dropped)


def _accuracy(prediction: Any) -> dict[str, float]:
    """The share of negatives scored below their original; ties count as wrong."""
    scores = prediction.predictions
    return {"accuracy": float((scores[:, :1] > scores[:, 1:]).mean())}
