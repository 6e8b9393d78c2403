"""Recipe: CONPONO, its encoders and ablations, and the ordering baseline (Iter et al. 2020)."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from zoo import card
from zoo.backbones import (
    backbone_of,
    max_positions,
    set_attention,
    tokenizer_of,
    training_attention,
)
from zoo.conpono.accuracy import accuracies, held_out, hits, write_plot
from zoo.conpono.backbones import load_heads
from zoo.conpono.masking import Masking
from zoo.conpono.modeling import ConponoModel
from zoo.conpono.prepare import (
    cut_texts,
    make_collator,
    make_examples,
    sentences,
    spread,
    worker_count,
)
from zoo.conpono.segments import Geometry
from zoo.conpono.settings import Settings
from zoo.conpono.texts import Template
from zoo.conpono.tokens import token_stores
from zoo.conpono.training import PARTS, ConponoTrainer
from zoo.data import SPLITS
from zoo.job import Job, is_main_process
from zoo.modeling import parameter_count, save_model
from zoo.rows import open_streamed
from zoo.trainer import fit, history, training_arguments

log = logging.getLogger("zoo")

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
VECTORS = {"cls": "pooler_output", "mean": "last_hidden_state.mean(1)"}


def train(job: Job) -> None:
    """Train into `job.folder`: data, model, objective, Trainer, evaluation, card."""
    s: Settings = job.settings  # type: ignore[assignment]

    # Data
    dataset = open_streamed(s.dataset, s.dataset_config)
    texts = sentences(dataset)
    tokenizer = tokenizer_of(
        s.backbone,
        texts,
        pad_token=s.pad_token,
        vocab_size=s.vocab_size,
        lower=s.lower,
        limit=s.max_tokens,
    )
    geometry = Geometry(s.anchor_sentences, s.target_sentences, s.k)
    stores = token_stores(dataset, tokenizer, geometry, Path(s.output))

    # Model
    torch.manual_seed(s.seed)
    backbone = backbone_of(s, tokenizer)
    limit = min(s.max_tokens, max_positions(backbone.config) or s.max_tokens)
    model = ConponoModel.from_backbone(
        backbone,
        objective=s.objective,
        encoder=s.encoder,
        k=s.k,
        anchor_sentences=s.anchor_sentences,
        target_sentences=s.target_sentences,
        max_tokens=limit,
        mlm=s.mlm,
        vector=s.vector,
        pad_token_id=tokenizer.pad_token_id,
    )
    for note in load_heads(model, s.backbone) if s.backbone else ():
        job.note(note)
    if limit < s.max_tokens:
        job.note(f"max_tokens lowered from {s.max_tokens} to {limit}: the backbone takes no more")
    set_attention(model.backbone, s.attention)
    model.recompute = s.recompute
    tokenizer.model_max_length = limit
    if s.compile:
        model.backbone.compile()

    # Data as the model takes it
    masking = Masking.of(tokenizer, s.mask_rate if s.mlm else 0.0)
    template = Template.of(tokenizer, limit)
    drawn = {
        split: make_examples(
            job, split, stores, template=template, masking=masking, geometry=geometry
        )
        for split in SPLITS
    }
    shown = {split: spread(drawn[split], s.max_eval_rows) for split in ("validation", "test")}
    for split, part in shown.items() if is_main_process() else ():
        cut, total = cut_texts(part)
        if cut:
            job.note(f"{split}: {cut} of {total} texts and pairs are cut to {limit} tokens")
    collator = make_collator(s, backbone, tokenizer.pad_token_id, limit)

    # Trainer, with the objective inside the model
    training = spread(drawn["train"], s.max_train_rows)
    trainer = ConponoTrainer(
        model,
        training_arguments(
            job,
            lr_scheduler_type="linear",
            warmup_steps=s.warmup,
            dataloader_num_workers=worker_count(s.workers),
            torch_compile=False,  # the backbone alone is compiled
        ),
        job=job,
        lengths=np.broadcast_to(np.int64(1), len(training)),
        data_collator=collator,
        train_dataset=training,
        eval_dataset=shown["validation"],
        compute_metrics=lambda found: _metrics(found, geometry),
    )
    with training_attention(model.backbone, s):
        state = fit(trainer)
    if not is_main_process():
        return

    # Evaluation: with words hidden as in training (the paper's figure 2), and with none hidden
    metrics, curves = {}, {}
    for split, part in shown.items():
        for name, rate in {"masked": masking.rate, "clean": 0.0}.items():
            examples = replace(part, masking=replace(masking, rate=rate))
            right, asked = held_out(model, examples, collator, workers=worker_count(s.workers))
            curves[f"{split}, {name}"] = found = accuracies(
                right, asked, geometry.distances, s.seed, f"{split}.{name}"
            )
            metrics[f"{split}_{name}"] = found

    # Card
    save_model(model, tokenizer, job.folder)
    if s.objective == "conpono":
        write_plot(job.folder / "accuracy.svg", curves)
    results: dict[str, Any] = {
        "model_type": model.config.model_type,
        "dataset": dataset.describe(),
        "parameters": parameter_count(model),
        "metrics": metrics,
        "data": {split: {"examples": len(part)} for split, part in drawn.items()},
        "training": {**history(state), "parts": _validations(state.log_history)},
        "headline_name": "test accuracy, target among its candidates",
        "headline": f"{metrics['test_clean']['accuracy']['value']:.3f}",
    }
    if s.objective == "bso":
        results["headline_name"] = "test accuracy, swapped or not"
    card.finish(job, results, USAGE.replace("{vector}", VECTORS[s.vector]), "feature-extraction")


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
