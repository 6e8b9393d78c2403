"""What the recipes of the scorer share: their settings, model and texts, and what they leave."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LinearLR
from transformers import PreTrainedTokenizerBase

from corpora.store.atomic import write_json
from zoo.backbones import backbone_of, set_attention, tokenizer_for
from zoo.coherence.data import Documents, encode_documents, intrusion_tables
from zoo.coherence.modeling import CoherenceScorer
from zoo.coherence.scoring import REFERENCE, quantiles
from zoo.evaluate.permuted import pairwise_accuracy
from zoo.texts import TextEncoder
from zoo.training.data import SPLITS, Dataset, open_dataset, split_spec, spread
from zoo.training.finishing import finish
from zoo.training.job import Job

if TYPE_CHECKING:
    from zoo.coherence.recipes import ScorerRecipe

log = logging.getLogger("zoo")

USAGE = """
from zoo.coherence import CoherenceScorer
scorer = CoherenceScorer.from_pretrained(FOLDER)
scorer.score(["She opened the door. It was dark inside.", "It was dark inside. She opened it."])
"""


Tables = dict[str, pa.Table]


@dataclass
class Prepared:
    """A scorer to train and its texts: the documents of each split as token ids, and the rows."""

    tokenizer: PreTrainedTokenizerBase
    model: CoherenceScorer
    orders: Dataset
    texts: dict[str, Documents]
    chosen: dict[str, pa.Table]
    pairs: dict[str, pa.Table]
    """Each document against one permutation: what every recipe is judged by."""

    @property
    def cut(self) -> dict[str, int]:
        """The documents of each split that lost sentences to the limit of tokens."""
        return {split: part.encoder.cut for split, part in self.texts.items()}

    def batch_tokens(self, recipe: ScorerRecipe) -> int:
        """The tokens of `eval_batch_size` texts that are as long as the model takes."""
        return recipe.eval_batch_size * self.model.config.max_tokens


def read(spec: str, config: str) -> tuple[Dataset, Tables, Tables, Tables]:
    """A dataset's orders with its description, and by split: documents, orders, pairs.

    Permuted documents come with a table of documents; the pairs of the intrusion task hold
    their texts, and are judged by themselves.
    """
    folder, _ = split_spec(spec)
    orders = open_dataset(folder, config)
    if {"pos", "neg"} <= set(orders["train"].column_names):
        orders.need("doc", "position")
        tables = {split: intrusion_tables(orders[split]) for split in SPLITS}
        documents = {split: table for split, (table, _) in tables.items()}
        found = {split: table for split, (_, table) in tables.items()}
        return orders, documents, found, found
    orders.need("document", "orders")
    whole = open_dataset(folder, "documents").need("id", "sentences")
    pairwise = open_dataset(folder, "pairwise").need("document", "orders")
    parts = [{split: part[split] for split in SPLITS} for part in (whole, orders, pairwise)]
    return orders, parts[0], parts[1], parts[2]


def prepare(recipe: ScorerRecipe) -> Prepared:
    """Read the documents and the orders; make the tokenizer and the model."""
    dataset, documents, orders, pairwise = read(recipe.dataset, recipe.configuration())
    sentences = (text for row in documents["train"]["sentences"].to_pylist() for text in row)
    tokenizer = tokenizer_for(recipe, sentences, recipe.max_tokens)
    torch.manual_seed(recipe.seed)
    backbone = backbone_of(recipe, tokenizer)
    model = CoherenceScorer.from_backbone(
        backbone, recipe.max_tokens, tokenizer.pad_token_id, recipe.vector
    )
    set_attention(model.backbone, recipe.attention)
    tokenizer.model_max_length = model.config.max_tokens
    texts = {
        split: encode_documents(documents[split], TextEncoder(tokenizer, model.config.max_tokens))
        for split in SPLITS
    }
    limits = {"train": recipe.max_train_rows}
    chosen = {
        split: spread(orders[split], limits.get(split, recipe.max_eval_rows)) for split in texts
    }
    pairs = {
        split: spread(pairwise[split], recipe.max_eval_rows) for split in ("validation", "test")
    }
    return Prepared(tokenizer, model, dataset, texts, chosen, pairs)


def annealed(recipe: ScorerRecipe, optimizer: Optimizer) -> LinearLR:
    """From `learning_rate` in a straight line to `final_learning_rate`, which then stays."""
    last = recipe.final_learning_rate / recipe.learning_rate
    return LinearLR(optimizer, 1.0, last, recipe.anneal_steps)


def say_cut(job: Job, prepared: Prepared, dropped: Mapping[str, int]) -> None:
    """Note what the limit of the texts' length cost."""
    limit = prepared.model.config.max_tokens
    job.note_counts(f"documents cut to {limit} tokens", prepared.cut)
    lost = "rows dropped, whose negatives the cut made equal to the document"
    job.note_counts(lost, dropped)


def _reference(prepared: Prepared, batch_tokens: int) -> dict[str, Any]:
    """The scores of the validation documents as they stand: what percentiles are taken in."""
    documents = prepared.texts["validation"]
    texts = [documents.original(name) for name in documents.sentences]
    scores = prepared.model.score_ids(texts, batch_tokens)
    name = prepared.orders.name
    return {
        "of": f"{name}, validation documents",
        "texts": len(scores),
        "quantiles": quantiles(scores),
    }


def leave(
    recipe: ScorerRecipe,
    job: Job,
    prepared: Prepared,
    training: Mapping[str, Any],
    dropped: Mapping[str, int],
) -> None:
    """Evaluate the trained model; write it with its card and results.json."""
    model, batch_tokens = prepared.model, prepared.batch_tokens(recipe)
    metrics = {
        split: pairwise_accuracy(model, prepared.texts[split], table, recipe.seed, batch_tokens)
        for split, table in prepared.pairs.items()
    }
    write_json(job.folder / REFERENCE, _reference(prepared, batch_tokens))
    value = metrics["test"]["accuracy"]["value"]
    finish(
        job,
        model,
        prepared.tokenizer,
        prepared.orders,
        USAGE,
        headline=("test accuracy, one text against one", f"{value:.3f}"),
        metrics=metrics,
        data={"cut": prepared.cut, "dropped": dict(dropped)},
        training=dict(training),
    )
