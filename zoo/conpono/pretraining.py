"""Recipe: CONPONO, its encoders and ablations, and the ordering baseline (Iter et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from corpora.errors import ConfigError
from zoo.backbones import backbone_of, pooling_of, set_attention, tokenizer_for, training_attention
from zoo.conpono.accuracy import accuracies, count_hits, hits, validation_metrics, write_plot
from zoo.conpono.examples import Candidates, Collator, Examples, Orderings
from zoo.conpono.modeling import ConponoModel, load_heads
from zoo.conpono.segments import Geometry, Masking, Template
from zoo.conpono.tokens import TokenStore, token_stores
from zoo.conpono.training import PARTS, ConponoTrainer
from zoo.training.data import SPLITS, evenly, open_dataset
from zoo.training.finishing import finish
from zoo.training.job import Job, is_main_process
from zoo.training.mapped import rows_of
from zoo.training.trainer import fit, history, training_arguments, validations

if TYPE_CHECKING:
    from zoo.conpono.recipes import Conpono

WORKERS = 4
"""Default number of processes that sample examples while a GPU computes."""
MODEL_KEYS = {"objective", "encoder", "k", "anchor_sentences", "target_sentences", "mlm", "vector"}
"""The settings that are also in the model's configuration."""
VALIDATED = "|".join(("accuracy_k.*", *PARTS))
"""A regular expression for the figures of a validation that go into results.json."""


def train(recipe: Conpono, job: Job) -> None:
    """Train into `job.folder`: data, model, objective, Trainer, evaluation, card."""
    # Data
    dataset = open_dataset(recipe.dataset, recipe.dataset_config, streamed=True)
    rows = {split: dataset[split] for split in SPLITS}  # each must have rows
    texts = (text for row in rows_of(rows["train"], ("sentences",)) for text in row["sentences"])
    tokenizer = tokenizer_for(recipe, texts, recipe.max_tokens)
    geometry = Geometry(recipe.anchor_sentences, recipe.target_sentences, recipe.k)
    stores = token_stores(dataset, tokenizer, geometry, recipe.output, recipe.workers)

    # Model: the backbone with new heads or, for a CONPONO model, its heads
    torch.manual_seed(recipe.seed)
    backbone = backbone_of(recipe, tokenizer)
    if recipe.vector == "cls" and pooling_of(backbone.config, tokenizer) != "first":
        raise ConfigError(
            f"texts of {backbone.config.model_type} do not begin with [CLS]",
            hint='set vector = "mean", or use a backbone such as BERT',
            field="vector",
        )
    model = ConponoModel.from_backbone(
        backbone,
        recipe.max_tokens,
        tokenizer.pad_token_id,
        **recipe.model_dump(include=MODEL_KEYS),
    )
    for note in load_heads(model, recipe.backbone) if recipe.backbone else ():
        job.note(note)
    limit = tokenizer.model_max_length = model.config.max_tokens
    if limit < recipe.max_tokens:
        job.note(f"max_tokens lowered from {recipe.max_tokens} to {limit}: the backbone's limit")
    set_attention(model.backbone, recipe.attention)
    if recipe.compile:
        model.backbone.compile()

    # Data as model input
    masking = Masking.of(tokenizer, recipe.mask_rate if recipe.mlm else 0.0)
    parts = {"template": Template.of(tokenizer, limit), "masking": masking, "geometry": geometry}
    examples = {split: make_examples(recipe, job, split, stores, **parts) for split in SPLITS}
    evaluated = {
        split: replace(part, rows=evenly(len(part), recipe.max_eval_rows))
        for split, part in examples.items()
        if split != "train"
    }
    rows_used = evenly(len(examples["train"]), recipe.max_train_rows)
    training = replace(examples["train"], rows=rows_used)
    for split, part in evaluated.items() if is_main_process() else ():
        cut, total = count_cut_texts(part)
        if cut:
            job.note(f"{split}: {cut} of {total} texts and pairs were cut to {limit} tokens")
    collator = Collator(tokenizer.pad_token_id, recipe.block_tokens, recipe.shortest_row)

    # Trainer, with the objective inside the model
    arguments = training_arguments(
        job,
        lr_scheduler_type="linear",
        warmup_steps=recipe.warmup,
        dataloader_num_workers=worker_count(recipe.workers),
        torch_compile=False,  # the backbone alone is compiled
    )
    hits_of: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def validate(prediction: Any) -> dict[str, float]:
        hits_of["validation_masked"] = hits(prediction.predictions[0], prediction.label_ids)
        return validation_metrics(prediction, geometry.distances)

    trainer = ConponoTrainer(
        model,
        arguments,
        job=job,
        lengths=np.broadcast_to(np.int64(1), len(training)),
        data_collator=collator,
        train_dataset=training,
        eval_dataset=evaluated["validation"],
        compute_metrics=validate,
    )
    with training_attention(model.backbone, recipe):
        state = fit(trainer)

    # Evaluation, with words masked as in training (the paper's figure 2), and with none masked; in
    # the precision of the training. All processes share it, since candidates make long batches. If
    # a step was taken, the last validation has counted the masked validation split already.
    workers, bf16 = arguments.dataloader_num_workers, arguments.bf16
    metrics = {}
    for split, part in evaluated.items():
        for name, rate in {"masked": masking.rate, "clean": 0.0}.items():
            key = f"{split}_{name}"
            if key not in hits_of:
                masked = replace(part, masking=replace(masking, rate=rate))
                hits_of[key] = count_hits(model, masked, collator, workers=workers, bf16=bf16)
            metrics[key] = accuracies(
                *hits_of[key], geometry.distances, recipe.seed, f"{split}.{name}"
            )
    if not is_main_process():
        return
    if recipe.objective == "conpono":
        write_plot(job.folder / "accuracy.svg", metrics)

    # Card: the parts of the loss and the accuracies at each validation, too
    what = "target among its candidates" if recipe.objective == "conpono" else "swapped or not"
    finish(
        job,
        model,
        tokenizer,
        dataset,
        headline=(f"test accuracy, {what}", f"{metrics['test_clean']['accuracy']['value']:.3f}"),
        metrics=metrics,
        data={split: {"examples": len(part)} for split, part in examples.items()},
        training={**history(state), "parts": validations(state, VALIDATED)},
    )


def make_examples(
    recipe: Conpono, job: Job, split: str, stores: Mapping[str, TokenStore], **parts: Any
) -> Examples:
    """Return the examples of a split for the recipe's objective; `parts` are fields of `Examples`.
    A split may have fewer segments than an example has candidates. Then the random segments are
    sampled from `train`, and a note of `job` says so."""
    store = stores[split]
    shared = {"candidates": recipe.candidates, "seed": recipe.seed, "split": split, **parts}
    if recipe.objective == "bso":
        return Orderings(store, store, **shared)
    largest_document = np.diff(store.segments[store.documents]).max()
    others = int(store.segments[-1] - largest_document)
    small = others < recipe.candidates
    if small and split == "train":
        raise ConfigError(
            f"candidates = {recipe.candidates}, {others} segments are outside the largest document",
            where=split,
            hint="add documents to the dataset, or lower candidates",
            field="candidates",
        )
    if small:
        wanted = f"{recipe.candidates} candidates"
        job.note(f"{split} is too small for {wanted}: random ones are from train")
    pool = stores["train"] if small else store
    targets = recipe.targets or recipe.k
    return Candidates(store, pool, **shared, encoder=recipe.encoder, targets=targets)


def worker_count(setting: int) -> int:
    """Return the number of processes that sample examples; -1: `WORKERS` with a GPU, else none."""
    if setting >= 0:
        return setting
    return WORKERS if torch.accelerator.is_available() else 0


def count_cut_texts(examples: Examples) -> tuple[int, int]:
    """Return the number of cut sequences, and the number of all sequences of the examples."""
    unmasked = replace(examples, masking=replace(examples.masking, rate=0.0))
    samples = [unmasked[row] for row in range(len(unmasked))]
    return sum(sample.cut for sample in samples), sum(len(sample.lengths) for sample in samples)
