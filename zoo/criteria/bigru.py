"""Recipe: DiscoEval's learning criteria on a BiGRU (Chen, Chu and Gimpel 2019, section 4)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from corpora.errors import ConfigError
from corpora.tasks.pretraining import DEEPEST
from zoo.criteria.data import NO_HEADING, SentenceContexts, open_contexts, texts
from zoo.criteria.modeling import CriteriaConfig, CriteriaModel
from zoo.evaluate.classification import batches_of, report
from zoo.evaluate.scores import ratio_interval
from zoo.training.data import SPLITS, evenly, open_dataset
from zoo.training.finishing import finish
from zoo.training.job import Job, is_main_process
from zoo.training.trainer import fit, history, trainer_over, validations
from zoo.vocabularies import load_vectors, words_for

if TYPE_CHECKING:
    from zoo.criteria.recipes import Bigru

MODEL_SETTINGS = {
    *("embedding_size", "hidden_size", "decoder_size", "decoder_layers"),
    *("bins", "train_embeddings"),
}
"""The settings that are also in the model's configuration."""


def train(recipe: Bigru, job: Job) -> None:
    """Train into `job.folder`: data, model, objective and Trainer, evaluation, card."""
    # Data
    dataset = open_dataset(recipe.dataset, recipe.dataset_config, streamed=True)
    rows = {split: dataset[split] for split in SPLITS}  # each must have rows
    tokenizer = words_for(recipe, texts(rows["train"]))
    config = CriteriaConfig(
        vocab_size=len(tokenizer),
        criteria=list(recipe.criteria),
        levels=DEEPEST,
        pad_token_id=tokenizer.pad_token_id,
        unk_token_id=tokenizer.unk_token_id,
        **recipe.model_dump(include=MODEL_SETTINGS),
    )
    contexts = open_contexts(recipe, dataset, tokenizer, config)
    for split, part in contexts.items():
        last_bin = int(part.labels[:, 1:].max()) + 1
        if "spp" in recipe.criteria and last_bin > recipe.bins:
            raise ConfigError(
                f"bins = {recipe.bins}, but {split} has positions up to bin {last_bin}",
                where=recipe.dataset,
                hint="set --bins to the number that the dataset was built with",
                field="bins",
            )
        limit = recipe.max_train_rows if split == "train" else recipe.max_eval_rows
        contexts[split] = replace(part, rows=evenly(len(part), limit))
    truncated = {split: part.truncated for split, part in contexts.items()}
    job.note_counts(f"sentences cut at {recipe.max_tokens} tokens", truncated)
    for column, name in enumerate(("section", "title")):
        if name in config.bags and (contexts["train"].over[:, column] == NO_HEADING).all():
            job.note(f"no training sentence has a {name}: nothing is learnt from it")

    # Model
    torch.manual_seed(recipe.seed)
    model = CriteriaModel(config)
    if recipe.vectors:
        table = model.encoder.embeddings
        job.note(load_vectors(table, tokenizer, Path(recipe.vectors), config.embedding_std))

    # Objective (the model's sum of criteria) and Trainer
    trainer = trainer_over(
        job,
        model,
        contexts,
        arguments={"lr_scheduler_type": recipe.schedule},
        compute_metrics=lambda prediction: part_losses(prediction.predictions[0], config),
    )
    state = fit(trainer)
    if not is_main_process():
        return

    # Evaluation
    frequency = np.zeros(len(tokenizer), np.int64)
    words = contexts["train"].sentences.ids
    for start in range(0, len(words), 1 << 24):  # in parts: numpy counts a copy in 64 bits
        frequency += np.bincount(words[start : start + (1 << 24)], minlength=len(tokenizer))
    metrics = {
        split: evaluate(model, contexts[split], frequency, recipe.seed, recipe.eval_batch_size)
        for split in SPLITS[1:]
    }

    # Card, with the losses at each validation
    figure = metrics["test"]["nats_a_word"]["next"]
    title = "test, nats a word of the next sentence (by frequency alone)"
    finish(
        job,
        model,
        tokenizer,
        dataset,
        headline=(title, f"{figure['value']:.3f} ({figure['by_frequency']:.3f})"),
        metrics=metrics,
        data={
            "sentences": {split: len(part) for split, part in contexts.items()},
            "truncated": truncated,
            "vocabulary": len(tokenizer),
        },
        training={**history(state), "validations": validations(state, "loss|.*_loss")},
    )


def part_losses(losses: np.ndarray, config: CriteriaConfig) -> dict[str, float]:
    """Return the mean of each column of `losses [sentences, parts]` by its name, without NaN."""
    columns = zip((*config.bags, *config.classes), losses.T, strict=True)
    parts = {name: column[~np.isnan(column)] for name, column in columns}
    return {f"{name}_loss": float(part.mean()) for name, part in parts.items() if len(part)}


@torch.inference_mode()
def evaluate(
    model: CriteriaModel,
    contexts: SentenceContexts,
    frequency: np.ndarray,
    seed: int,
    batch_size: int = 256,
) -> dict[str, Any]:
    """Measure a model: nats per word of each predicted text, and the figures of classifications.

    The nats have bootstrap intervals over documents. The baseline predicts each word by its count
    in training, `frequency [vocabulary]`.
    """
    config = model.eval().config
    # Losses and predicted classes of all sentences; a loss is nan where there is no text
    losses = np.zeros((len(contexts), len(config.bags) + len(config.classes)), np.float32)
    classes = np.zeros((len(contexts), len(config.classes)), np.int64)
    for rows, batch in batches_of(contexts, batch_size, model.device):
        outputs = model(**batch)
        losses[rows] = outputs.parts.float().cpu().numpy()
        classes[rows] = outputs.predicted.cpu().numpy()

    # The baseline
    counts = frequency.copy()
    counts[[contexts.pad_id, config.unk_token_id]] = 0
    # Add-one smoothing: words of headings may be in no sentence.
    nats = -np.log((counts + 1) / (counts + 1).sum())
    metrics: dict[str, Any] = {"sentences": len(contexts), "nats_a_word": {}, "classes": {}}
    for column, name in enumerate(config.bags):
        with_text = np.flatnonzero(~np.isnan(losses[:, column]))
        if not len(with_text):
            continue
        values = losses[with_text, column]
        bags = contexts.bags_of(name, contexts.rows[with_text])
        by_frequency = [float(nats[bag[bag != config.unk_token_id]].mean()) for bag in bags]
        _, documents = np.unique(contexts.documents()[with_text], return_inverse=True)
        sums, sizes = np.bincount(documents, values), np.bincount(documents)
        metrics["nats_a_word"][name] = {
            "sentences": len(with_text),
            "value": float(values.mean()),
            **ratio_interval(sums, sizes, seed, f"criteria.{name}"),
            "by_frequency": sum(by_frequency) / len(with_text),
        }
    # Classifications
    gold = contexts.labels[contexts.rows][:, contexts.columns].astype(np.int64)
    for column, (name, size) in enumerate(config.classes.items()):
        first = 1 if name == "level" else 0
        names = [str(number) for number in range(first, first + size)]
        metrics["classes"][name] = report(gold[:, column], classes[:, column], names, seed)
    return metrics
