"""Recipe: the unified coherence model, UNC (Moon et al. 2019), the scorer's baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import torch
from torch import Tensor
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerBase

from corpora.errors import InputError
from corpora.outside import split_config
from zoo.coherence.data import pad
from zoo.coherence.objectives import ranking_accuracy
from zoo.coherence.unc_modeling import UncConfig, UncModel, UncOutput, pad_rows, word_ids
from zoo.evaluate.permuted import rank_texts
from zoo.training.data import SPLITS, open_dataset, spread
from zoo.training.finishing import finish, ranking_headline
from zoo.training.job import Job, is_main_process
from zoo.training.trainer import fit, history, trainer_over
from zoo.vocabularies import load_vectors, train_words

if TYPE_CHECKING:
    from zoo.coherence.recipes import Unc


class PermutedDocuments(TorchDataset[tuple[list[list[int]], list[int]]]):
    """Training rows: a document as word ids, and one permutation of its sentences."""

    def __init__(
        self, documents: pa.Table, orders: pa.Table, tokenizer: PreTrainedTokenizerBase, limit: int
    ) -> None:
        """Make rows from `documents` and `orders`, with at most `limit` words of a sentence.

        `tokenizer` turns sentences into word ids.
        """
        self.pad_id = tokenizer.pad_token_id
        sentences = {
            row["id"]: word_ids(tokenizer, row["sentences"], limit) for row in documents.to_pylist()
        }
        rows = [(sentences[row["document"]], row["orders"][0]) for row in orders.to_pylist()]
        self.rows = [(text, order) for text, order in rows if [text[i] for i in order] != text]
        self.dropped = len(rows) - len(self.rows)
        """Number of rows left out, since document and permutation have equal word ids."""
        if not self.rows:
            raise InputError(
                "no document differs from its permutation in its words",
                hint=f"raise max_words (now {limit}), or train on other documents",
                field="max_words",
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> tuple[list[list[int]], list[int]]:
        """Return the document's sentences as word ids, and the order of its permutation."""
        return self.rows[row]

    def lengths(self) -> list[int]:
        """Return the number of sentences of each row's document, `[rows]`."""
        return [len(sentences) for sentences, _ in self.rows]

    def collate(self, rows: Sequence[tuple[list[list[int]], list[int]]]) -> dict[str, Any]:
        """Make a batch: `input_ids`, `attention_mask` `[sentences, words]`.

        `texts [batch, 2, sentences]` are the numbers of the sentences of a document, then of its
        permutation; `packed [sentences]`, an array, counts the words of each sentence.
        """
        words: list[list[int]] = []
        texts: list[list[int]] = []
        for sentences, order in rows:
            start = len(words)
            words += sentences
            texts += [list(range(start, len(words))), [start + i for i in order]]
        ids, mask = pad(words, self.pad_id)
        return {
            "texts": pad_rows(texts).view(len(rows), 2, -1),
            "input_ids": ids,
            "attention_mask": mask,
            "packed": mask.sum(1).numpy(),
            "labels": torch.ones(len(rows), dtype=torch.long),  # one negative a row
        }


def margin_at_positions(outputs: UncOutput, margin: float) -> Tensor:
    """Return the margin ranking loss over the positions i of documents and their permutations:

        L = mean_i max(0, margin - f_i(d+) + f_i(d-))

    averaged over the batch. Both texts have the same sentences, hence the same number of positions.
    """
    assert outputs.local is not None and outputs.counted is not None
    (positive, negative), counted = outputs.local.unbind(1), outputs.counted[:, 0]
    losses = (margin - positive + negative).clamp(min=0) * counted
    return (losses.sum(1) / counted.sum(1)).mean()


def train(recipe: Unc, job: Job) -> None:
    """Train into `job.folder`: data, model, objective, Trainer, evaluation, card."""
    # Data
    folder, dataset_config = split_config(recipe.dataset, recipe.dataset_config)
    documents = open_dataset(folder, "documents").need("id", "sentences")
    orders = open_dataset(folder, dataset_config or recipe.config).need("document", "orders")
    sentences = (text for row in documents["train"]["sentences"].to_pylist() for text in row)
    tokenizer = train_words(sentences, recipe.vocab_size)
    limits = {"train": recipe.max_train_rows}
    chosen = {
        split: spread(orders[split], limits.get(split, recipe.max_eval_rows)) for split in SPLITS
    }
    rows = {
        split: PermutedDocuments(documents[split], chosen[split], tokenizer, recipe.max_words)
        for split in ("train", "validation")
    }
    dropped = {split: part.dropped for split, part in rows.items()}
    job.note_counts("rows dropped, whose two texts have the same words", dropped)

    # Model
    torch.manual_seed(recipe.seed)
    names = {"embedding_size", "hidden_size", "bilinear_size", "kernel_size", "kernel_heads"}
    sizes = recipe.model_dump(include={*names, "max_words"}) | {"vocab_size": len(tokenizer)}
    config = UncConfig(**sizes, pad_token_id=tokenizer.pad_token_id, quotes=documents.quotes)
    model = UncModel(config, tokenizer)
    if recipe.vectors:
        # Words without a vector are drawn from the distribution that torch uses.
        job.note(load_vectors(model.embeddings, tokenizer, Path(recipe.vectors), deviation=1.0))

    # Objective and Trainer
    def objective(outputs: UncOutput, labels: Tensor, **_: Any) -> Tensor:
        """Return the margin loss plus, in training, the weighted loss of the language model."""
        loss = margin_at_positions(outputs, recipe.margin)
        if outputs.language_loss is not None:  # not computed in validation
            loss = loss + recipe.language_weight * outputs.language_loss
        return loss

    trainer = trainer_over(
        job,
        model,
        rows,
        schedule=lambda optimizer, steps: StepLR(
            optimizer, steps * recipe.decay_epochs, recipe.decay
        ),
        compute_loss_func=objective,
        # Only the scores, since the width of the other parts differs from batch to batch.
        preprocess_logits_for_metrics=lambda outputs, _: outputs[0],
        compute_metrics=ranking_accuracy,
    )
    state = fit(trainer, patience=recipe.patience)
    if not is_main_process():
        return

    # Evaluation and card
    metrics = {
        split: rank_texts(model, documents[split], chosen[split]).metrics(recipe.seed)
        for split in SPLITS[1:]
    }
    finish(
        job,
        model,
        tokenizer,
        orders,
        headline=("test accuracy, document against permutation", ranking_headline(job, metrics)),
        metrics=metrics,
        data={"vocabulary": len(tokenizer), "dropped": dropped},
        training=history(state),
    )
