"""Recipe: DisSent's BiLSTM (Nie, Bennett and Goodman 2019, sections 3.1 and 6)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from corpora.errors import ConfigError
from zoo import card
from zoo.callbacks import AccuracyFalls, EarlyStop
from zoo.data import SPLITS, open_dataset, spread
from zoo.dissent.data import class_counts, empty_classes, encode, texts
from zoo.dissent.modeling import BiLstmConfig, BiLstmForMarkers
from zoo.evaluate.classification import predict, report
from zoo.glove import load_vectors
from zoo.job import Job, is_main_process
from zoo.modeling import parameter_count, save_model
from zoo.schedules import AccuracySchedule
from zoo.settings import Above0, AtLeast0, Count, Positive, Words
from zoo.settings import Settings as SharedSettings
from zoo.trainer import ZooTrainer, fit, history, training_arguments
from zoo.vocabularies import train_words

log = logging.getLogger("zoo")

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

    if not s.vectors and not s.train_embeddings:
        raise ConfigError(
            "train_embeddings = false, but there are no word vectors",
            where=job.recipe.name,
            hint="give --vectors glove.840B.300d.txt, or --train_embeddings true",
        )

    # Data
    data = open_dataset(s.dataset, s.dataset_config).need("s1", "s2", "label")
    tables = {split: data[split] for split in SPLITS}
    for split in tables:
        limit = s.max_train_rows if split == "train" else s.max_eval_rows
        tables[split] = spread(tables[split], limit)
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
    if any(truncated.values()):
        cut = ", ".join(f"{split} {count}" for split, count in truncated.items())
        job.note(f"sentences cut at {s.max_tokens} tokens: {cut}")

    # Model
    torch.manual_seed(s.seed)
    model = BiLstmForMarkers(_config(s, tokenizer, labels))
    if s.vectors:
        table = model.encoder.embeddings
        job.note(load_vectors(table, tokenizer, Path(s.vectors), model.config.embedding_std))

    # Objective (the model's cross-entropy) and Trainer
    trainer = ZooTrainer(
        model,
        training_arguments(job, metric_for_best_model="accuracy", load_best_model_at_end=True),
        job=job,
        lengths=pairs["train"].lengths(),
        schedule=lambda optimizer, steps: AccuracySchedule(optimizer, steps, s.decay, s.shrink),
        optimizer_cls_and_kwargs=(torch.optim.SGD, {"lr": s.learning_rate}),
        data_collator=pairs["train"].collate,
        train_dataset=pairs["train"],
        eval_dataset=pairs["validation"],
        compute_metrics=_accuracy,
        preprocess_logits_for_metrics=lambda logits, _: logits.argmax(-1),
        callbacks=[AccuracyFalls()],
    )
    state = fit(trainer, early_stop=EarlyStop("accuracy", s.patience))
    if not is_main_process():
        return

    # Evaluation
    metrics = {}
    for split in ("validation", "test"):
        predicted = predict(model, pairs[split], s.eval_batch_size)
        metrics[split] = report(pairs[split].labels, predicted, labels, s.seed)

    # Card
    save_model(model, tokenizer, job.folder)
    test = metrics["test"]
    results: dict[str, Any] = {
        "model_type": model.config.model_type,
        "dataset": data.describe(),
        "parameters": parameter_count(model),
        "metrics": metrics,
        "data": {"truncated": truncated, "empty_classes": empty, "vocabulary": len(tokenizer)},
        "training": history(state),
        "headline_name": "test accuracy, unweighted F1",
        "headline": f"{test['accuracy']['value']:.3f}, {test['f1']['value']:.3f}",
    }
    card.finish(job, results, USAGE)


def _config(s: Settings, tokenizer: PreTrainedTokenizerBase, labels: list[str]) -> BiLstmConfig:
    return BiLstmConfig(
        vocab_size=len(tokenizer),
        embedding_size=s.embedding_size,
        hidden_size=s.hidden_size,
        projection_size=s.projection_size,
        pooling=s.pooling,
        train_embeddings=s.train_embeddings,
        pad_token_id=tokenizer.pad_token_id,
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
    )


def _accuracy(prediction: Any) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions == prediction.label_ids).mean())}
