"""Recipe: DisSent's BiLSTM (Nie, Bennett and Goodman 2019, sections 3.1 and 6)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedTokenizerBase

from zoo.dissent.data import Pairs, encode, texts
from zoo.dissent.modeling import BiLstmConfig, BiLstmForMarkers
from zoo.dissent.results import headline
from zoo.evaluate.classification import predict, report
from zoo.glove import load_vectors
from zoo.labelled import class_counts, empty_classes, named
from zoo.training.data import SPLITS, open_dataset, spread
from zoo.training.finishing import finish
from zoo.training.job import Job, is_main_process
from zoo.training.schedules import AccuracyFalls, AccuracySchedule
from zoo.training.trainer import class_accuracy, fit, history, most_probable, trainer_over
from zoo.vocabularies import train_words

if TYPE_CHECKING:
    from zoo.dissent.recipes import Bilstm

USAGE = """
import zoo; zoo.register()
from transformers import AutoModelForSequenceClassification, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(FOLDER)
model = AutoModelForSequenceClassification.from_pretrained(FOLDER)
pair = tokenizer(["It rained all day.", "We stayed inside."], padding=True, return_tensors="pt")
ids, mask = pair["input_ids"][None], pair["attention_mask"][None]    # [1, 2, tokens]
probabilities = model(ids, mask).logits.softmax(-1)
"""


def train(recipe: Bilstm, job: Job) -> None:
    """Train into `job.folder`: data, model, objective and Trainer, evaluation, card."""
    # Data
    data = open_dataset(recipe.dataset, recipe.dataset_config).need("s1", "s2", "label")
    limits = {"train": recipe.max_train_rows}
    tables = {
        split: spread(data[split], limits.get(split, recipe.max_eval_rows)) for split in SPLITS
    }
    labels = data.labels()
    empty = empty_classes(class_counts(tables["train"], labels), recipe.empty_classes, data.name)
    if empty:
        job.note(f"labels without a training row: {', '.join(empty)}")
    tokenizer = train_words(
        texts(tables["train"]),
        recipe.vocab_size,
        min_frequency=recipe.min_frequency,
        lower=recipe.lower,
    )
    tokenizer.model_max_length = recipe.max_tokens
    pairs = {split: encode(tables[split], tokenizer, recipe.max_tokens) for split in SPLITS}
    truncated = {split: part.truncated for split, part in pairs.items()}
    job.note_counts(f"sentences cut at {recipe.max_tokens} tokens", truncated)

    # Model
    model = _model(recipe, job, tokenizer, labels)

    # Objective (the model's cross-entropy) and Trainer
    trainer = trainer_over(
        job,
        model,
        pairs,
        schedule=lambda optimizer, steps: AccuracySchedule(
            optimizer, steps, recipe.decay, recipe.shrink
        ),
        optimizer_cls_and_kwargs=(torch.optim.SGD, {"lr": recipe.learning_rate}),
        compute_metrics=class_accuracy,
        preprocess_logits_for_metrics=most_probable,
        callbacks=[AccuracyFalls()],
    )
    state = fit(trainer, patience=recipe.patience)
    if not is_main_process():
        return

    # Evaluation
    metrics = {split: _report(model, pairs[split], labels, recipe) for split in SPLITS[1:]}

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


def _model(
    recipe: Bilstm, job: Job, tokenizer: PreTrainedTokenizerBase, labels: list[str]
) -> BiLstmForMarkers:
    """With the word vectors that the settings name, or drawn at random."""
    sizes = ("embedding_size", "hidden_size", "projection_size", "pooling", "train_embeddings")
    torch.manual_seed(recipe.seed)
    model = BiLstmForMarkers(
        BiLstmConfig(
            vocab_size=len(tokenizer),
            pad_token_id=tokenizer.pad_token_id,
            **{name: getattr(recipe, name) for name in sizes},
            **named(labels),
        )
    )
    if recipe.vectors:
        table = model.encoder.embeddings
        job.note(load_vectors(table, tokenizer, Path(recipe.vectors), model.config.embedding_std))
    return model


def _report(
    model: BiLstmForMarkers, pairs: Pairs, labels: list[str], recipe: Bilstm
) -> dict[str, Any]:
    return report(pairs.labels, predict(model, pairs, recipe.eval_batch_size), labels, recipe.seed)
