"""Recipe: CONPONO, its encoders and ablations, and the ordering baseline (Iter et al. 2020)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo.backbones import tokenizer_for, training_attention
from zoo.conpono.accuracy import evaluate, hits, write_plot
from zoo.conpono.batches import Collator
from zoo.conpono.examples import Examples
from zoo.conpono.modeling import ConponoModel
from zoo.conpono.prepare import (
    draw,
    make_collator,
    make_model,
    note_cut,
    sentences,
    spread,
    worker_count,
)
from zoo.conpono.segments import Geometry
from zoo.conpono.tokens import token_stores
from zoo.conpono.training import PARTS, ConponoTrainer
from zoo.training.data import SPLITS, open_streamed
from zoo.training.finishing import finish
from zoo.training.job import Job, is_main_process
from zoo.training.trainer import fit, history, training_arguments

if TYPE_CHECKING:
    from zoo.conpono.recipes import Conpono

VALIDATED = ("eval_accuracy_k", *(f"eval_{part}" for part in PARTS))
USAGE = """
import zoo; zoo.register()
from transformers import AutoModel, AutoTokenizer
model = AutoModel.from_pretrained(FOLDER)          # W_k and the masked-word head included
tokenizer = AutoTokenizer.from_pretrained(FOLDER)
pair = tokenizer("It was dark.", "She lit the lamp.", return_tensors="pt")
found = model.backbone(**pair)
vector = found.{vector}      # what it was trained with
"""
FIRST = {
    "conpono": "test accuracy, target among its candidates",
    "bso": "test accuracy, swapped or not",
}
"""The name of the figure that stands first."""
VECTORS = {"cls": "pooler_output", "mean": "last_hidden_state.mean(1)"}


def train(recipe: Conpono, job: Job) -> None:
    """Train into `job.folder`: data, model, objective, Trainer, evaluation, card."""
    # Data
    dataset = open_streamed(recipe.dataset, recipe.dataset_config)
    tokenizer = tokenizer_for(recipe, sentences(dataset), recipe.max_tokens)
    geometry = Geometry(recipe.anchor_sentences, recipe.target_sentences, recipe.k)
    stores = token_stores(dataset, tokenizer, geometry, Path(recipe.output))

    # Model
    model = make_model(recipe, job, tokenizer)
    limit = model.config.max_tokens

    # Data as the model takes it
    drawn = draw(recipe, job, stores, tokenizer, geometry)
    shown = {split: spread(drawn[split], recipe.max_eval_rows) for split in SPLITS[1:]}
    note_cut(job, shown, limit)
    collator = make_collator(recipe, model.backbone, tokenizer.pad_token_id, limit)

    # Trainer, with the objective inside the model
    training = spread(drawn["train"], recipe.max_train_rows)
    trainer = _trainer(recipe, job, model, training, shown["validation"], collator)
    with training_attention(model.backbone, recipe):
        state = fit(trainer)
    if not is_main_process():
        return

    # Evaluation
    workers = worker_count(recipe.workers)
    metrics = evaluate(model, shown, collator, geometry.distances, recipe.seed, workers)
    if recipe.objective == "conpono":
        write_plot(job.folder / "accuracy.svg", metrics)

    # Card
    finish(
        job,
        model,
        tokenizer,
        dataset,
        USAGE.replace("{vector}", VECTORS[recipe.vector]),
        headline=(FIRST[recipe.objective], f"{metrics['test_clean']['accuracy']['value']:.3f}"),
        pipeline="feature-extraction",
        metrics=metrics,
        data={split: {"examples": len(part)} for split, part in drawn.items()},
        training={**history(state), "parts": _validations(state.log_history)},
    )


def _trainer(
    recipe: Conpono,
    job: Job,
    model: ConponoModel,
    training: Examples,
    validation: Examples,
    collator: Collator,
) -> ConponoTrainer:
    arguments = training_arguments(
        job,
        lr_scheduler_type="linear",
        warmup_steps=recipe.warmup,
        dataloader_num_workers=worker_count(recipe.workers),
        torch_compile=False,  # the backbone alone is compiled
    )
    return ConponoTrainer(
        model,
        arguments,
        job=job,
        lengths=np.broadcast_to(np.int64(1), len(training)),
        data_collator=collator,
        train_dataset=training,
        eval_dataset=validation,
        compute_metrics=lambda found: _metrics(found, training.geometry),
    )


def _metrics(found: Any, geometry: Geometry) -> dict[str, float]:
    scores, parts = found.predictions
    right, asked = hits(scores, found.label_ids)
    metrics = {"accuracy": float(right.sum() / asked.sum())}
    if right.shape[1] == len(geometry.distances):
        shares = right.sum(0) / np.maximum(asked.sum(0), 1)
        named = zip(geometry.distances, shares.tolist(), strict=True)
        metrics |= {f"accuracy_k{k:+d}": share for k, share in named}
    return metrics | dict(zip(PARTS, parts.mean(0).tolist(), strict=True))


def _validations(entries: list[dict[str, Any]]) -> list[dict[str, float]]:
    """The parts of the loss and the accuracies at each validation."""
    return [
        {"step": entry["step"]}
        | {k.removeprefix("eval_"): v for k, v in entry.items() if k.startswith(VALIDATED)}
        for entry in entries
        if "eval_loss" in entry
    ]
