"""Recipe: a pretrained encoder fine-tuned on pairs of texts (Nie et al. 2019, section 3.2).

The labels are DisSent's markers, NLI's as in the paper's comparison (table 7), or those of the PDTB
tasks of its section 6. The backbone may be a model that was trained on one of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from zoo.backbones import backbone_of, pooling_of, set_attention, tokenizer_for, training_attention
from zoo.dissent.data import mapped_pairs
from zoo.dissent.finishing import leave
from zoo.dissent.modeling import PairTransformer
from zoo.labelled import load_for
from zoo.training.job import Job, is_main_process
from zoo.training.trainer import (
    KEEP_BEST,
    class_accuracy,
    fit,
    history,
    most_probable,
    trainer_over,
)

if TYPE_CHECKING:
    from zoo.dissent.recipes import Transformer


def train(recipe: Transformer, job: Job) -> None:
    """Fine-tune an encoder, and write the model with its results and its card to `job.folder`."""
    # Data
    data = load_for(
        recipe,
        job,
        splits={"validation": recipe.validation_split, "test": recipe.test_split},
        classes=recipe.classes,
        max_validation_rows=recipe.max_validation_rows,
    )
    tokenizer = tokenizer_for(recipe, data.all_texts("train"), recipe.max_tokens)

    # Model: the backbone with a classifier of the dataset's labels on top
    torch.manual_seed(recipe.seed)
    backbone = backbone_of(recipe, tokenizer)
    auto = pooling_of(backbone.config, tokenizer)
    model = PairTransformer.from_backbone(
        backbone,
        recipe.max_tokens,
        tokenizer.pad_token_id,
        pooling=auto if recipe.pooling == "auto" else recipe.pooling,
        dropout=recipe.dropout,
        **data.names,
    )
    set_attention(model.backbone, recipe.attention)
    limit = tokenizer.model_max_length = model.config.max_tokens

    # Data as model input
    rows = mapped_pairs(recipe, data, tokenizer, limit, sides=1)
    data.free_texts()
    truncated = {split: part.truncated for split, part in rows.items()}
    job.note_counts(f"pairs cut at {limit} tokens", truncated)

    # Objective (the model's cross-entropy) and Trainer
    trainer = trainer_over(
        job,
        model,
        rows,
        arguments={**KEEP_BEST, "warmup_steps": recipe.warmup},
        compute_metrics=class_accuracy,
        preprocess_logits_for_metrics=most_probable,
    )
    with training_attention(model.backbone, recipe):
        state = fit(trainer, patience=recipe.patience)
    if not is_main_process():
        return

    # Evaluation (the Trainer has validated already) and card
    details, steps = {"truncated": truncated}, history(state)
    batch = recipe.eval_batch_size
    leave(job, data, model, tokenizer, rows, details=details, training=steps, batch_size=batch)
