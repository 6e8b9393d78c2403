"""Recipe: the scorer by pairwise or contrastive ranking (Jwalapuram et al. 2022, 3.2 and 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.backbones import training_attention
from zoo.coherence.data import instances
from zoo.coherence.objectives import ranking_accuracy
from zoo.coherence.setup import annealed, leave, prepare, say_cut
from zoo.training.job import Job, is_main_process
from zoo.training.trainer import fit, history, trainer_over

if TYPE_CHECKING:
    from zoo.coherence.recipes import Contrastive


def train(recipe: Contrastive, job: Job) -> None:
    """Train into `job.folder`: data, model, objective, Trainer, evaluation, card."""
    # Data and model
    loss = recipe.loss
    prepared = prepare(recipe)
    negatives = loss.negatives or recipe.negatives
    pad_id = prepared.tokenizer.pad_token_id
    rows = {
        split: instances(prepared.texts[split], prepared.chosen[split], negatives, pad_id)
        for split in ("train", "validation")
    }
    dropped = {split: part.dropped for split, part in rows.items()}
    say_cut(job, prepared, dropped)

    # Objective
    objective = loss.module()

    # Trainer
    trainer = trainer_over(
        job,
        prepared.model,
        rows,
        schedule=lambda optimizer, _: annealed(recipe, optimizer),
        compute_loss_func=lambda outputs, labels, **_: objective(outputs.scores),
        compute_metrics=ranking_accuracy,
    )
    with training_attention(prepared.model.backbone, recipe):
        state = fit(trainer, patience=recipe.patience)
    if not is_main_process():
        return

    # Evaluation and card; bfloat16 was for training, users' scores are float32
    trainer.accelerator.unwrap_model(prepared.model, keep_fp32_wrapper=False)
    leave(recipe, job, prepared, history(state), dropped)
