"""Recipe: SIF sentence vectors and logistic regression (Nie et al. 2019, appendix A.5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from corpora.errors import ConfigError
from corpora.rng import stream
from zoo.dissent.data import Pairs, encode_texts
from zoo.dissent.pmi import pmi_vectors
from zoo.dissent.results import leave
from zoo.dissent.sif_modeling import SifConfig, SifForMarkers, SifModel
from zoo.glove import read_glove
from zoo.labelled import load_for
from zoo.logistic import Fitted, fit_logistic
from zoo.training.job import Job, is_main_process
from zoo.vocabularies import train_words

if TYPE_CHECKING:
    from zoo.dissent.recipes import Sif

BATCH = 1024


def train(recipe: Sif, job: Job) -> None:
    """Train into `job.folder`: data, model, objective (scikit-learn), evaluation, card."""
    if not is_main_process():
        return

    # Data
    data = load_for(recipe, job)
    tokenizer = train_words(
        data.all_texts("train"),
        recipe.vocab_size,
        min_frequency=recipe.min_frequency,
        lower=recipe.lower,
    )
    tokenizer.model_max_length = recipe.max_tokens
    rows = {
        split: encode_texts(*data.texts(split), tokenizer, recipe.max_tokens, data.gold(split))
        for split in data.tables
    }

    # Model
    vectors, origin = _word_vectors(recipe, tokenizer, rows["train"])
    job.note(origin)
    sizes = {"vocab_size": len(tokenizer), "hidden_size": vectors.shape[1]}
    model = SifForMarkers(SifConfig(**sizes, pad_token_id=tokenizer.pad_token_id, **data.names))
    _fill(model.encoder, vectors, rows["train"], recipe)

    # Objective
    fitted = _fit(model, rows, recipe)

    # Evaluation and card
    truncated = rows.get("test", rows["validation"]).truncated
    details = {"vocabulary": len(tokenizer), "truncated": truncated}
    leave(job, data, model, tokenizer, rows, details=details, training=fitted.describe())


def _word_vectors(
    recipe: Sif, tokenizer: PreTrainedTokenizerBase, pairs: Pairs
) -> tuple[np.ndarray, str]:
    """Vectors `[vocabulary, size]`, zero where there is none, and a sentence on their origin."""
    words = len(tokenizer)
    if not recipe.vectors:
        vectors = pmi_vectors(pairs.tokens, pairs.bounds, words, recipe.size, recipe.seed)
        vectors[[tokenizer.pad_token_id, tokenizer.unk_token_id]] = 0
        return vectors, "word vectors: PMI and SVD of the training pairs, no other text"
    ids, found = read_glove(Path(recipe.vectors), tokenizer.get_vocab())
    if not np.isfinite(found).all():
        raise ConfigError("a word vector is not finite", where=recipe.vectors)
    vectors = np.zeros((words, found.shape[1]), np.float32)
    vectors[ids] = found
    return vectors, f"word vectors: {len(ids)} of {words} words are in {Path(recipe.vectors).name}"


@torch.no_grad()
def _fill(encoder: SifModel, vectors: np.ndarray, pairs: Pairs, recipe: Sif) -> None:
    """Set the word vectors, the words' weights, and the first component of the sentences."""
    from sklearn.utils.extmath import randomized_svd

    shares = np.bincount(pairs.tokens, minlength=len(vectors)) / max(len(pairs.tokens), 1)
    weights = recipe.smoothing / (recipe.smoothing + shares) * (vectors != 0).any(1)
    encoder.embeddings.weight.copy_(torch.from_numpy(vectors))
    encoder.word_weight.copy_(torch.from_numpy(weights.astype(np.float32)))
    sentences = np.concatenate([_sentences(encoder, batch) for batch in _batches(pairs)])
    random = int(stream(recipe.seed, "zoo.dissent.sif").integers(2**31))
    _, _, right = randomized_svd(sentences, 1, random_state=random)
    encoder.component.copy_(torch.from_numpy(right[0].astype(np.float32)))


def _sentences(encoder: SifModel, batch: dict[str, torch.Tensor]) -> np.ndarray:
    ids, mask = batch["input_ids"].flatten(0, 1), batch["attention_mask"].flatten(0, 1)
    return encoder(ids, mask).pooler_output.numpy()


@torch.no_grad()
def _features(model: SifForMarkers, pairs: Pairs) -> np.ndarray:
    found = [model.features(b["input_ids"], b["attention_mask"]) for b in _batches(pairs)]
    return torch.cat(found).numpy()


def _batches(pairs: Pairs) -> list[dict[str, torch.Tensor]]:
    starts = range(0, len(pairs), BATCH)
    return [
        pairs.collate([pairs[row] for row in range(start, min(start + BATCH, len(pairs)))])
        for start in starts
    ]


@torch.no_grad()
def _fit(model: SifForMarkers, rows: Mapping[str, Pairs], recipe: Sif) -> Fitted:
    """Fit standardised features; the model gets the weights for features as they are."""
    features = {split: _features(model, rows[split]) for split in ("train", "validation")}
    mean, deviation = features["train"].mean(0), features["train"].std(0) + 1e-8
    fitted = fit_logistic(
        ((features["train"] - mean) / deviation, rows["train"].labels),
        ((features["validation"] - mean) / deviation, rows["validation"].labels),
        model.num_labels,
        grid=recipe.grid,
        iterations=recipe.iterations,
    )
    scaled = fitted.coefficients / deviation
    model.classifier.weight.copy_(torch.from_numpy(scaled.astype(np.float32)))
    bias = fitted.intercept - scaled @ mean
    model.classifier.bias.copy_(torch.from_numpy(bias.astype(np.float32)))
    return fitted
