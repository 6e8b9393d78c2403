"""Recipe: DisSent's BiLSTM (Nie, Bennett and Goodman 2019, sections 3.1 and 6)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from corpora.errors import ConfigError
from zoo.dissent.data import Pairs, encode, texts
from zoo.dissent.modeling import BiLstmConfig, BiLstmForMarkers
from zoo.dissent.results import headline
from zoo.evaluate.classification import predict, report
from zoo.glove import load_vectors
from zoo.labelled import class_counts, empty_classes, named
from zoo.training.callbacks import AccuracyFalls, EarlyStop
from zoo.training.data import SPLITS, open_dataset, spread
from zoo.training.finishing import finish
from zoo.training.job import Job, is_main_process
from zoo.training.schedules import AccuracySchedule
from zoo.training.settings import Above0, AtLeast0, Count, Positive, Words
from zoo.training.settings import Settings as SharedSettings
from zoo.training.trainer import class_accuracy, fit, history, most_probable, trainer_over
from zoo.vocabularies import train_words

USAGE = """
import zoo; zoo.register()
from transformers import AutoModelForSequenceClassification, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(FOLDER)
model = AutoModelForSequenceClassification.from_pretrained(FOLDER)
pair = tokenizer(["It rained all day.", "We stayed inside."], padding=True, return_tensors="pt")
ids, mask = pair["input_ids"][None], pair["attention_mask"][None]    # [1, 2, tokens]
probabilities = model(ids, mask).logits.softmax(-1)
"""


@dataclass(frozen=True, kw_only=True)
class Settings(SharedSettings):
    """The paper's values; what it does not say is from the released code."""

    batch_size: Positive = 64
    eval_batch_size: Positive = 256
    epochs: Above0 = 20
    learning_rate: Above0 = 0.1
    max_grad_norm: AtLeast0 = 5.0
    decay: Above0 = 0.99
    """The learning rate's factor of each epoch (released code)."""
    shrink: Annotated[float, Field(ge=1)] = 5.0
    """The learning rate is divided by it when validation accuracy falls."""
    patience: Count = 5
    """Stop after so many validations without a new best validation accuracy (0: never)."""
    vectors: str = ""
    """A GloVe text file; without one the embeddings are trained from scratch."""
    train_embeddings: bool = True
    embedding_size: Positive = 300
    hidden_size: Positive = 2048
    projection_size: Positive = 512
    pooling: Literal["max", "mean"] = "max"
    vocab_size: Words = 50000
    min_frequency: Positive = 2
    lower: bool = True
    max_tokens: Positive = 64
    empty_classes: Literal["error", "warn"] = "error"


def train(job: Job) -> None:
    """Train into `job.folder`: data, model, objective and Trainer, evaluation, card."""
    s: Settings = job.settings  # type: ignore[assignment]
    _check_embeddings(job)

    # Data
    data = open_dataset(s.dataset, s.dataset_config).need("s1", "s2", "label")
    limits = {"train": s.max_train_rows}
    tables = {split: spread(data[split], limits.get(split, s.max_eval_rows)) for split in SPLITS}
    labels = data.labels()
    empty = empty_classes(class_counts(tables["train"], labels), s.empty_classes, data.name)
    if empty:
        job.note(f"labels without a training row: {', '.join(empty)}")
    tokenizer = train_words(
        texts(tables["train"]), s.vocab_size, min_frequency=s.min_frequency, lower=s.lower
    )
    tokenizer.model_max_length = s.max_tokens
    pairs = {split: encode(tables[split], tokenizer, s.max_tokens) for split in SPLITS}
    truncated = {split: part.truncated for split, part in pairs.items()}
    job.note_counts(f"sentences cut at {s.max_tokens} tokens", truncated)

    # Model
    model = _model(job, tokenizer, labels)

    # Objective (the model's cross-entropy) and Trainer
    trainer = trainer_over(
        job,
        model,
        pairs,
        schedule=lambda optimizer, steps: AccuracySchedule(optimizer, steps, s.decay, s.shrink),
        optimizer_cls_and_kwargs=(torch.optim.SGD, {"lr": s.learning_rate}),
        compute_metrics=class_accuracy,
        preprocess_logits_for_metrics=most_probable,
        callbacks=[AccuracyFalls()],
    )
    state = fit(trainer, early_stop=EarlyStop("accuracy", s.patience))
    if not is_main_process():
        return

    # Evaluation
    metrics = {split: _report(model, pairs[split], labels, s) for split in SPLITS[1:]}

    # Card
    finish(
        job,
        model,
        tokenizer,
        data,
        USAGE,
        headline=headline("test", metrics["test"]),
        metrics=metrics,
        data={"truncated": truncated, "empty_classes": empty, "vocabulary": len(tokenizer)},
        training=history(state),
    )


def _check_embeddings(job: Job) -> None:
    """Raise `ConfigError` for embeddings that would stay as they were drawn."""
    s: Settings = job.settings  # type: ignore[assignment]
    if not s.vectors and not s.train_embeddings:
        raise ConfigError(
            "train_embeddings = false, but there are no word vectors",
            where=job.recipe.name,
            hint="give --vectors glove.840B.300d.txt, or --train_embeddings true",
        )


def _model(job: Job, tokenizer: PreTrainedTokenizerBase, labels: list[str]) -> BiLstmForMarkers:
    """With the word vectors that the settings name, or drawn at random."""
    s: Settings = job.settings  # type: ignore[assignment]
    sizes = ("embedding_size", "hidden_size", "projection_size", "pooling", "train_embeddings")
    torch.manual_seed(s.seed)
    model = BiLstmForMarkers(
        BiLstmConfig(
            vocab_size=len(tokenizer),
            pad_token_id=tokenizer.pad_token_id,
            **{name: getattr(s, name) for name in sizes},
            **named(labels),
        )
    )
    if s.vectors:
        table = model.encoder.embeddings
        job.note(load_vectors(table, tokenizer, Path(s.vectors), model.config.embedding_std))
    return model


def _report(
    model: BiLstmForMarkers, pairs: Pairs, labels: list[str], s: Settings
) -> dict[str, Any]:
    return report(pairs.labels, predict(model, pairs, s.eval_batch_size), labels, s.seed)
