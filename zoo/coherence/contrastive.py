"""Recipe: the scorer by pairwise or contrastive ranking (Jwalapuram et al. 2022, 3.2 and 3.3).

The full model shares the data and the model (`prepare`), and the end (`evaluate_and_save`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedTokenizerBase

from corpora.outside import split_config
from corpora.store.atomic import write_json
from zoo.backbones import backbone_of, set_attention, tokenizer_for, training_attention
from zoo.coherence.data import Documents, instances, intrusion_tables, mapped_documents, usable_rows
from zoo.coherence.modeling import CoherenceScorer, score_orders
from zoo.coherence.objectives import ranking_accuracy
from zoo.coherence.scoring import REFERENCE, Reference
from zoo.evaluate.scores import Ranking
from zoo.training.data import SPLITS, Dataset, evenly, open_dataset, spread
from zoo.training.finishing import finish, ranking_headline
from zoo.training.job import Job, is_main_process
from zoo.training.mapped import rows_of
from zoo.training.trainer import KEEP_BEST, fit, history, trainer_over

if TYPE_CHECKING:
    from zoo.coherence.recipes import Contrastive, ScorerRecipe


@dataclass
class Prepared:
    """A scorer to train, its documents (by split, as token ids), and the rows that name them."""

    tokenizer: PreTrainedTokenizerBase
    model: CoherenceScorer
    dataset: Dataset
    documents: dict[str, Documents]
    rows: dict[str, pa.Table]
    """By split: "train" has the rows to train on, "validation" those that choose the weights."""
    pairs: dict[str, pa.Table]
    """By split: rows of one document and one permutation, with which every recipe is tested."""
    batch_tokens: int
    """The number of tokens in `eval_batch_size` texts of maximum length."""
    dropped: dict[str, int] = field(default_factory=dict)
    """By split: the number of rows whose negatives became equal to the document by the cut."""

    @property
    def cut(self) -> dict[str, int]:
        """The number of documents in each split that were cut at the maximum length."""
        return {split: documents.encoder.cut for split, documents in self.documents.items()}

    def ranking(self, split: str, scorer: Any = None) -> Ranking:
        """Score the `pairs` of a split with `scorer`, by default the model. `scorer` is an object
        with a method `score_ids`."""
        documents, pairs = self.documents[split], self.pairs[split]
        return score_orders(scorer or self.model, documents, pairs, self.batch_tokens)


def train(recipe: Contrastive, job: Job) -> None:
    """Train into `job.folder`: data, model, objective, Trainer, evaluation, card."""
    # Data and model
    prepared, loss = prepare(recipe), recipe.loss
    negatives, pad_id = loss.negatives or recipe.negatives, prepared.tokenizer.pad_token_id
    rows = {
        split: instances(prepared.documents[split], prepared.rows[split], negatives, pad_id)
        for split in ("train", "validation")
    }
    prepared.dropped = {split: part.dropped for split, part in rows.items()}
    note_cuts(job, prepared)

    # Objective and Trainer
    objective = loss.module()
    trainer = trainer_over(
        job,
        prepared.model,
        rows,
        arguments={**KEEP_BEST, "adam_epsilon": recipe.adam_epsilon},
        schedule=lambda optimizer, _: annealing_schedule(recipe, optimizer),
        compute_loss_func=lambda outputs, labels, **_: objective(outputs.scores),
        compute_metrics=partial(ranking_accuracy, above_all=recipe.development == "all"),
    )
    with training_attention(prepared.model.backbone, recipe):
        state = fit(trainer, patience=recipe.patience)
    if not is_main_process():
        return

    # Evaluation and card
    evaluate_and_save(job, prepared, history(state))


def prepare(recipe: ScorerRecipe) -> Prepared:
    """Read the recipe's dataset, and make the tokenizer and the model.

    A dataset of permuted documents has a table of documents, and rows that refer to it; the rows of
    the intrusion task contain their texts.
    """
    # Data: documents, and rows that refer to them
    folder, config = split_config(recipe.dataset, recipe.dataset_config)
    dataset = open_dataset(folder, config or recipe.configuration())
    documents: dict[str, pa.Table] = {}
    orders: dict[str, pa.Table] = {}
    if {"pos", "neg"} <= set(dataset["train"].column_names):
        dataset.need("doc", "position")
        for split in SPLITS:
            documents[split], orders[split] = intrusion_tables(dataset[split])
        pairs, text_dataset = orders, dataset
    else:
        dataset.need("document", "orders")
        text_dataset = open_dataset(folder, "documents").need("id", "sentences")
        pairwise = open_dataset(folder, "pairwise").need("document", "orders")
        documents, orders, pairs = (
            {split: part[split] for split in SPLITS} for part in (text_dataset, dataset, pairwise)
        )
    # Tokenizer and model
    training = rows_of(documents["train"], ("sentences",))
    sentences = (sentence for row in training for sentence in row["sentences"])
    tokenizer = tokenizer_for(recipe, sentences, recipe.max_tokens)
    torch.manual_seed(recipe.seed)
    model = CoherenceScorer.from_backbone(
        backbone_of(recipe, tokenizer),
        recipe.max_tokens,
        tokenizer.pad_token_id,
        recipe.vector,
        quotes=dataset.quotes,
    )
    set_attention(model.backbone, recipe.attention)
    # Data as model input
    limit, eval_rows = model.config.max_tokens, recipe.max_eval_rows
    tokenizer.model_max_length = limit
    encoded = mapped_documents(recipe, text_dataset, documents, tokenizer, limit)
    rows = {
        split: spread(orders[split], recipe.max_train_rows if split == "train" else eval_rows)
        for split in SPLITS[:2]
    }
    evaluated = {split: spread(pairs[split], eval_rows) for split in ("validation", "test")}
    for split, table in evaluated.items():  # raises before the training, not after it
        usable_rows(encoded[split], table, 1, split=split)
    batch_tokens = recipe.eval_batch_size * limit
    return Prepared(tokenizer, model, dataset, encoded, rows, evaluated, batch_tokens)


def annealing_schedule(recipe: ScorerRecipe, optimizer: Optimizer) -> LambdaLR:
    """Return a schedule in which the learning rate falls in equal steps to `final_learning_rate`.

    It does what `torch.optim.swa_utils.SWALR` does with linear annealing, if that is called once
    every `anneal_every` instances (table 5; the authors' code).
    """
    fall = 1 - recipe.final_learning_rate / recipe.learning_rate

    def factor(step: int) -> float:
        calls = min(step * recipe.batch_size // recipe.anneal_every, recipe.anneal_calls)
        return 1 - fall * calls / recipe.anneal_calls

    return LambdaLR(optimizer, factor)


def note_cuts(job: Job, prepared: Prepared) -> None:
    """Note for the card how many documents were cut, and how many rows were therefore dropped."""
    job.note_counts(f"documents cut to {prepared.model.config.max_tokens} tokens", prepared.cut)
    reason = "rows dropped, whose negatives the cut made equal to the document"
    job.note_counts(reason, prepared.dropped)


def evaluate_and_save(job: Job, prepared: Prepared, training: Mapping[str, Any]) -> None:
    """Evaluate the trained model, and write it with its card and results. `training` is the run's
    history for the results. Also writes the scores of validation documents, to which a scored text
    is compared."""
    seed = job.recipe.seed
    metrics = {split: prepared.ranking(split).metrics(seed) for split in prepared.pairs}
    # Percentiles are relative to the validation documents in their original order.
    documents = prepared.documents["validation"]
    names = np.array([*documents.numbers], object)
    sample = names[evenly(len(names), job.recipe.max_eval_rows)]
    texts = [documents.original(name) for name in sample]
    scores = prepared.model.score_ids(texts, prepared.batch_tokens)
    description = f"{prepared.dataset.name}, validation documents"
    write_json(job.folder / REFERENCE, asdict(Reference.among(description, scores)))
    finish(
        job,
        prepared.model,
        prepared.tokenizer,
        prepared.dataset,
        headline=("test accuracy, one text against one", ranking_headline(job, metrics)),
        metrics=metrics,
        data={"cut": prepared.cut, "dropped": prepared.dropped},
        training=dict(training),
    )
