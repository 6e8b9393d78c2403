"""Recipe: the unified coherence model, UNC (Moon et al. 2019), the scorer's baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerBase

from zoo.coherence.modeling import pad
from zoo.coherence.objectives import PairwiseMargin, ranking_accuracy
from zoo.coherence.unc_modeling import UncConfig, UncModel, UncOutput, pad_rows, word_ids
from zoo.evaluate.permuted import permuted_pairs, text_accuracy
from zoo.training.callbacks import EarlyStop
from zoo.training.data import SPLITS, open_dataset, split_spec, spread
from zoo.training.finishing import finish
from zoo.training.job import Job, is_main_process
from zoo.training.settings import Above0, AtLeast0, Count, Positive, Words
from zoo.training.settings import Settings as SharedSettings
from zoo.training.trainer import fit, history, trainer_over
from zoo.vocabularies import train_words

USAGE = """
from zoo.coherence.unc_modeling import UncModel
scorer = UncModel.from_pretrained(FOLDER)
scorer.score(["She opened the door. It was dark inside.", "It was dark inside. She opened it."])
"""


@dataclass(frozen=True, kw_only=True)
class Settings(SharedSettings):
    """The configurations `documents` and `pairwise` of the dataset are read."""

    batch_size: Positive = 8
    eval_batch_size: Positive = 32
    learning_rate: Above0 = 1e-3
    margin: AtLeast0 = 5.0
    """Moon et al. rank with a wide margin: their scores are sums of unbounded layers."""
    language_weight: AtLeast0 = 0.1
    """The language-model loss beside the ranking loss."""
    patience: Count = 3
    embedding_size: Positive = 300
    hidden_size: Positive = 256
    bilinear_size: Positive = 32
    kernel_size: Positive = 5
    kernel_heads: Positive = 8
    vocab_size: Words = 30000
    max_words: Positive = 64


class Ranked(TorchDataset):
    """A document and one permutation a row; a batch's sentences are encoded once each."""

    def __init__(
        self,
        sentences: Mapping[str, list[list[int]]],
        table: pa.Table,
        tokenizer: PreTrainedTokenizerBase,
    ) -> None:
        self.sentences, self.pad_id = sentences, tokenizer.pad_token_id
        self.rows = [
            (name, order)
            for name, orders in zip(
                table["document"].to_pylist(), table["orders"].to_pylist(), strict=True
            )
            for order in orders[:1]
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> tuple[list[list[int]], list[int]]:
        """The document's sentences as word ids, and the order of its permutation."""
        name, order = self.rows[row]
        return self.sentences[name], order

    def lengths(self) -> list[int]:
        """The sentences of each row's document."""
        return [len(self.sentences[name]) for name, _ in self.rows]

    def collate(self, rows: Sequence[tuple[list[list[int]], list[int]]]) -> dict[str, Tensor]:
        """`input_ids`, `attention_mask` `[sentences, words]`; `texts [batch, 2, sentences]`."""
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
            "labels": torch.zeros(len(rows), dtype=torch.long),
        }


def encode(
    documents: pa.Table, tokenizer: PreTrainedTokenizerBase, most: int
) -> dict[str, list[list[int]]]:
    """The word ids of each document's sentences, by document id."""
    ids, texts = documents["id"].to_pylist(), documents["sentences"].to_pylist()
    return {name: word_ids(tokenizer, text, most) for name, text in zip(ids, texts, strict=True)}


def train(job: Job) -> None:
    """Train into `job.folder`: data, model, objective, Trainer, evaluation, card."""
    s: Settings = job.settings  # type: ignore[assignment]

    # Data
    folder, config = split_spec(s.dataset, s.dataset_config)
    documents = open_dataset(folder, "documents").need("id", "sentences")
    orders = open_dataset(folder, config or "pairwise").need("document", "orders")
    sentences = (text for row in documents["train"]["sentences"].to_pylist() for text in row)
    tokenizer = train_words(sentences, s.vocab_size)
    limits = {"train": s.max_train_rows}
    chosen = {split: spread(orders[split], limits.get(split, s.max_eval_rows)) for split in SPLITS}
    rows = {
        split: Ranked(encode(documents[split], tokenizer, s.max_words), chosen[split], tokenizer)
        for split in ("train", "validation")
    }

    # Model
    torch.manual_seed(s.seed)
    model = UncModel(_config(s, tokenizer), tokenizer)

    # Objective and Trainer
    trainer = trainer_over(
        job,
        model,
        rows,
        compute_loss_func=_objective(s.margin, s.language_weight),
        compute_metrics=ranking_accuracy,
    )
    state = fit(trainer, early_stop=EarlyStop("accuracy", s.patience))
    if not is_main_process():
        return

    # Evaluation
    metrics = {
        split: text_accuracy(model, permuted_pairs(documents[split], chosen[split]), s.seed)
        for split in SPLITS[1:]
    }

    # Card
    value = metrics["test"]["accuracy"]["value"]
    finish(
        job,
        model,
        tokenizer,
        orders,
        USAGE,
        headline=("test accuracy, document against permutation", f"{value:.3f}"),
        metrics=metrics,
        data={"vocabulary": len(tokenizer)},
        training=history(state),
    )


def _config(s: Settings, tokenizer: PreTrainedTokenizerBase) -> UncConfig:
    sizes = ("embedding_size", "hidden_size", "bilinear_size", "kernel_size", "kernel_heads")
    return UncConfig(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        max_words=s.max_words,
        **{name: getattr(s, name) for name in sizes},
    )


def _objective(margin: float, language_weight: float) -> Callable[..., Tensor]:
    """The ranking loss and, weighted, that of the language model where the batch has one."""
    ranking = PairwiseMargin(margin)

    def objective(outputs: UncOutput, labels: Tensor, **_: Any) -> Tensor:
        language = outputs.language_loss
        loss = ranking(outputs.scores)
        return loss if language is None else loss + language_weight * language

    return objective
