"""From a recipe's settings to its model, examples and batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from corpora.errors import ConfigError
from zoo.backbones import backbone_of, max_positions, set_attention
from zoo.conpono.backbones import load_heads
from zoo.conpono.batches import Collator
from zoo.conpono.examples import Candidates, Examples, Orderings
from zoo.conpono.masking import Masking
from zoo.conpono.modeling import ConponoModel, first_position
from zoo.conpono.packing import check_packing
from zoo.conpono.segments import Geometry
from zoo.conpono.texts import Template
from zoo.conpono.tokens import TokenStore
from zoo.training.data import SPLITS, Dataset, batches
from zoo.training.job import Job, is_main_process

if TYPE_CHECKING:
    from zoo.conpono.recipes import Conpono

WORKERS = 4
"""Processes that draw examples while a GPU computes, unless a recipe says how many."""


def sentences(dataset: Dataset) -> Iterator[str]:
    """The sentences of the training split, for a tokenizer that is trained on them."""
    for batch in batches(dataset["train"], ("sentences",)):
        for texts in batch["sentences"].to_pylist():
            yield from texts


def make_model(recipe: Conpono, job: Job, tokenizer: PreTrainedTokenizerBase) -> ConponoModel:
    """The backbone with new heads, or those of the model that it is; its limit is noted."""
    torch.manual_seed(recipe.seed)
    backbone = backbone_of(recipe, tokenizer)
    limit = min(recipe.max_tokens, max_positions(backbone.config) or recipe.max_tokens)
    same = ("objective", "encoder", "k", "anchor_sentences", "target_sentences", "mlm", "vector")
    model = ConponoModel.from_backbone(
        backbone,
        max_tokens=limit,
        pad_token_id=tokenizer.pad_token_id,
        **{name: getattr(recipe, name) for name in same},
    )
    for note in load_heads(model, recipe.backbone) if recipe.backbone else ():
        job.note(note)
    if limit < recipe.max_tokens:
        job.note(
            f"max_tokens lowered from {recipe.max_tokens} to {limit}: the backbone takes no more"
        )
    set_attention(model.backbone, recipe.attention)
    model.recompute = recipe.recompute
    tokenizer.model_max_length = limit
    if recipe.compile:
        model.backbone.compile()
    return model


def draw(
    recipe: Conpono,
    job: Job,
    stores: Mapping[str, TokenStore],
    tokenizer: PreTrainedTokenizerBase,
    geometry: Geometry,
) -> dict[str, Examples]:
    """The examples of every split, cut to the length that the tokenizer has been set to."""
    masking = Masking.of(tokenizer, recipe.mask_rate if recipe.mlm else 0.0)
    template = Template.of(tokenizer, tokenizer.model_max_length)
    parts = {"template": template, "masking": masking, "geometry": geometry}
    return {split: make_examples(recipe, job, split, stores, **parts) for split in SPLITS}


def make_examples(
    recipe: Conpono, job: Job, split: str, stores: Mapping[str, TokenStore], **parts: Any
) -> Examples:
    """The examples of one split. A small one takes its random segments from the training split."""
    if split not in stores:
        raise ConfigError(
            f"the split {split!r} has no rows",
            where=recipe.dataset,
            hint="the corpus is too small for it: add sources, and build again",
        )
    store = pool = stores[split]
    shared = {"candidates": recipe.candidates, "seed": recipe.seed, "split": split, **parts}
    if recipe.objective == "bso":
        return Orderings(store, pool, **shared)
    shared |= {"encoder": recipe.encoder, "targets": recipe.targets or recipe.k}
    try:
        return Candidates(store, pool, **shared)
    except ConfigError:
        if split == "train":
            raise
    job.note(f"{split} is too small for {recipe.candidates} candidates: random ones are from train")
    return Candidates(store, stores["train"], **shared)


def make_collator(recipe: Conpono, backbone: PreTrainedModel, pad_id: int, width: int) -> Collator:
    """Lays a batch into blocks, packed rows of `width`; positions as the backbone counts them."""
    if recipe.layout == "packed":
        check_packing(backbone)
    first = first_position(backbone)
    return Collator(pad_id, recipe.layout, recipe.block_tokens, width, recipe.shortest_row, first)


def worker_count(setting: int) -> int:
    """The processes that draw examples: as set, or, for -1, some on a GPU and none on a CPU."""
    if setting >= 0:
        return setting
    return WORKERS if torch.accelerator.is_available() else 0


def note_cut(job: Job, shown: Mapping[str, Examples], limit: int) -> None:
    """Note how many texts of the splits that are judged were cut."""
    for split, part in shown.items() if is_main_process() else ():
        cut, total = cut_texts(part)
        if cut:
            job.note(f"{split}: {cut} of {total} texts and pairs are cut to {limit} tokens")


def cut_texts(examples: Examples) -> tuple[int, int]:
    """How many sequences of the examples were cut, and how many there are."""
    plain = replace(examples, masking=replace(examples.masking, rate=0.0))
    cut = total = 0
    for row in range(len(plain)):
        example = plain[row]
        cut, total = cut + example.cut, total + len(example.lengths)
    return cut, total


def spread(examples: Examples, rows: int) -> Examples:
    """`rows` of the examples, spread evenly over them (0: all)."""
    if not 0 < rows < len(examples):
        return examples
    return replace(examples, rows=np.linspace(0, len(examples) - 1, rows).astype(np.int64))
