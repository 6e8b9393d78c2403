"""Recipe: DiscoEval's learning criteria on a BiGRU (Chen, Chu and Gimpel 2019, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedTokenizerBase

from corpora.errors import ConfigError
from corpora.tasks.criteria import DEEPEST
from zoo.criteria.data import Places, open_places, spread, texts, word_counts
from zoo.criteria.evaluation import metrics_of, part_losses
from zoo.criteria.modeling import CriteriaConfig, CriteriaModel
from zoo.training.data import SPLITS, Dataset, open_streamed
from zoo.training.finishing import finish
from zoo.training.job import Job, is_main_process
from zoo.training.trainer import fit, trainer_over
from zoo.vocabularies import load_vectors, train_words

if TYPE_CHECKING:
    from zoo.criteria.recipes import Bigru

USAGE = """
import zoo; zoo.register()
from transformers import AutoModel, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(FOLDER)
encoder = AutoModel.from_pretrained(FOLDER)          # without the decoders
found = tokenizer(["It rained all day.", "We stayed inside."], padding=True, return_tensors="pt")
vectors = encoder(found["input_ids"], found["attention_mask"]).pooler_output
"""


def train(recipe: Bigru, job: Job) -> None:
    """Train into `job.folder`: data, model, objective and Trainer, evaluation, card."""
    # Data
    dataset = open_streamed(recipe.dataset, recipe.dataset_config)
    tokenizer = train_words(
        texts(dataset), recipe.vocab_size, min_frequency=recipe.min_frequency, lower=recipe.lower
    )
    tokenizer.model_max_length = recipe.max_tokens
    config = _config(recipe, tokenizer)
    places = _places(recipe, dataset, tokenizer, config)
    truncated = {split: part.truncated for split, part in places.items()}
    job.note_counts(f"sentences cut at {recipe.max_tokens} tokens", truncated)
    _say_never(job, places["train"])

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
        places,
        arguments={"lr_scheduler_type": "linear"},
        compute_metrics=lambda found: part_losses(found.predictions[0], config),
    )
    state = fit(trainer)
    if not is_main_process():
        return

    # Evaluation
    frequency = word_counts(places["train"], len(tokenizer))
    metrics = {
        split: metrics_of(model, places[split], frequency, recipe.seed, recipe.eval_batch_size)
        for split in SPLITS[1:]
    }

    # Card
    sizes = {split: len(part) for split, part in places.items()}
    finish(
        job,
        model,
        tokenizer,
        dataset,
        USAGE,
        headline=_headline(metrics["test"]),
        pipeline="feature-extraction",
        metrics=metrics,
        data={"sentences": sizes, "truncated": truncated, "vocabulary": len(tokenizer)},
        training={"steps": state.global_step, "validations": _validations(state.log_history)},
    )


def _config(recipe: Bigru, tokenizer: PreTrainedTokenizerBase) -> CriteriaConfig:
    sizes = ("embedding_size", "hidden_size", "decoder_size", "bins", "train_embeddings")
    return CriteriaConfig(
        vocab_size=len(tokenizer),
        criteria=list(recipe.criteria),
        levels=DEEPEST,
        pad_token_id=tokenizer.pad_token_id,
        unk_token_id=tokenizer.unk_token_id,
        **{name: getattr(recipe, name) for name in sizes},
    )


def _headline(test: Mapping[str, Any]) -> tuple[str, str]:
    near = test["nats_a_word"]["next"]
    name = "test, nats a word of the next sentence (by frequency alone)"
    return name, f"{near['value']:.3f} ({near['by_frequency']:.3f})"


def _places(
    recipe: Bigru, dataset: Dataset, tokenizer: PreTrainedTokenizerBase, config: CriteriaConfig
) -> dict[str, Places]:
    """The splits' sentences, as many as the settings ask for."""
    missing = [split for split in SPLITS if split not in dataset.splits]
    if missing:
        raise ConfigError(
            f"the split {missing[0]!r} has no rows",
            where=recipe.dataset,
            hint="the corpus is too small for it: add sources, and build again",
        )
    found = open_places(
        dataset,
        tokenizer,
        Path(recipe.output),
        bags=config.bags,
        classes=tuple(config.classes),
        max_tokens=recipe.max_tokens,
    )
    for split, part in found.items():
        most = int(part.labels[:, 1:].max()) + 1
        if "spp" in recipe.criteria and most > recipe.bins:
            raise ConfigError(
                f"bins = {recipe.bins}, but {split} has positions up to bin {most}",
                where=recipe.dataset,
                hint="set --bins to the number that the dataset was built with",
            )
        limit = recipe.max_train_rows if split == "train" else recipe.max_eval_rows
        found[split] = spread(part, limit)
    return found


def _say_never(job: Job, places: Places) -> None:
    """Note the headings that no sentence has: a source without sections, or without titles."""
    for column, name in enumerate(("section", "title")):
        if name in places.bags and (places.over[:, column] < 0).all():
            job.note(f"no sentence of the training split has a {name}: nothing is learnt from it")


def _validations(entries: list[dict[str, Any]]) -> list[dict[str, float]]:
    """The losses at each validation."""
    return [
        {"step": entry["step"]}
        | {k.removeprefix("eval_"): v for k, v in entry.items() if k.endswith("_loss")}
        for entry in entries
        if "eval_loss" in entry
    ]
