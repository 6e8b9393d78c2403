"""Recipe: SIF sentence vectors and logistic regression (Nie et al. 2019, appendix A.5)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.utils.extmath import randomized_svd
from torch import Tensor
from torch.utils.data import DataLoader

from corpora.rng import stream
from zoo.dissent.data import EncodedPairs, encode_texts
from zoo.dissent.finishing import leave
from zoo.dissent.modeling import SifConfig, SifForMarkers, SifModel, pair_features
from zoo.labelled import load_for
from zoo.logistic import fit_logistic
from zoo.training.job import Job, is_main_process
from zoo.training.mapped import Texts
from zoo.vocabularies import read_glove, words_for

if TYPE_CHECKING:
    from zoo.dissent.recipes import Sif

BATCH = 1024
WINDOW = 5
"""Size of the context window, in words on each side."""
SMOOTHING = 0.75
"""The exponent of the contexts' frequencies."""
TOKENS_PER_PART = 2_000_000
"""Tokens whose co-occurrences are counted at a time, which limits the memory."""


def train(recipe: Sif, job: Job) -> None:
    """Fit a regression on SIF vectors, and write the model, results and card to `job.folder`."""
    if not is_main_process():
        return

    # Data
    data = load_for(recipe, job)
    tokenizer = words_for(recipe, data.all_texts("train"))
    rows = {
        split: encode_texts(*data.texts(split), tokenizer, recipe.max_tokens, data.gold(split))
        for split in data.tables
    }

    # Word vectors, `[vocabulary, size]`, zero for words without one
    words = len(tokenizer)
    if recipe.vectors:
        ids, file_vectors = read_glove(Path(recipe.vectors), tokenizer.get_vocab())
        vectors = np.zeros((words, file_vectors.shape[1]), np.float32)
        vectors[ids] = file_vectors
        name = Path(recipe.vectors).name
        job.note(f"word vectors: {len(ids)} of {words} words are in {name}")
    else:
        vectors = pmi_vectors(rows["train"].texts, words, recipe.size, recipe.seed)
        vectors[[tokenizer.pad_token_id, tokenizer.unk_token_id]] = 0
        job.note("word vectors: PMI and SVD of the training pairs only")

    # Model
    model = SifForMarkers(
        SifConfig(
            vocab_size=words,
            hidden_size=vectors.shape[1],
            pad_token_id=tokenizer.pad_token_id,
            **data.names,
        )
    )
    encoder, tokens = model.encoder, rows["train"].texts.ids
    shares = np.bincount(tokens, minlength=words) / max(len(tokens), 1)
    weights = recipe.smoothing / (recipe.smoothing + shares) * (vectors != 0).any(1)
    _set_values(encoder.embeddings.weight, vectors)
    _set_values(encoder.word_weight, weights)
    sentences = _sentence_vectors(encoder, rows["train"]).flatten(0, 1).numpy()
    random = int(stream(recipe.seed, "zoo.dissent.sif").integers(2**31))
    _set_values(encoder.component, randomized_svd(sentences, 1, random_state=random)[2][0])

    # Objective, on standardised features; the weights are converted to raw features
    features = {
        split: pair_features(*_sentence_vectors(encoder, rows[split]).unbind(1)).numpy()
        for split in ("train", "validation")
    }
    mean, deviation = features["train"].mean(0), features["train"].std(0) + 1e-8
    fitted = fit_logistic(
        ((features["train"] - mean) / deviation, rows["train"].labels),
        ((features["validation"] - mean) / deviation, rows["validation"].labels),
        model.num_labels,
        grid=recipe.grid,
        iterations=recipe.iterations,
    )
    coefficients = fitted.coefficients / deviation
    _set_values(model.classifier.weight, coefficients)
    _set_values(model.classifier.bias, fitted.intercept - coefficients @ mean)

    # Evaluation and card
    truncated = rows.get("test", rows["validation"]).truncated
    details = {"vocabulary": words, "truncated": truncated}
    leave(job, data, model, tokenizer, rows, details=details, training=fitted.describe())


@torch.no_grad()
def _sentence_vectors(encoder: SifModel, pairs: EncodedPairs) -> Tensor:
    """Return the vectors of both sentences of all pairs, `[rows, 2, size]`."""
    vectors = []
    for batch in DataLoader(pairs, BATCH, collate_fn=pairs.collate):
        ids, mask = batch["input_ids"].flatten(0, 1), batch["attention_mask"].flatten(0, 1)
        vectors.append(encoder(ids, mask).pooler_output)
    return torch.cat(vectors).unflatten(0, (-1, 2))


@torch.no_grad()
def _set_values(parameter: Tensor, values: np.ndarray) -> None:
    parameter.copy_(torch.from_numpy(values.astype(np.float32)))


def pmi_vectors(texts: Texts, vocab_size: int, size: int, seed: int) -> np.ndarray:
    """Return vectors of the words in `texts`, `[vocab_size, size]`.

    They come from positive PMI and a singular value decomposition (Levy, Goldberg and Dagan 2015,
    with their smoothing of the contexts' distribution). A word without co-occurring words has a
    zero vector. At most the first `vocab_size - 1` numbers of a vector are not zero.
    """
    # Counts of two words within `WINDOW` words of each other in a sentence; symmetric.
    tokens, sentence = texts.ids, np.repeat(np.arange(len(texts)), texts.lengths())
    shape = (vocab_size, vocab_size)
    total = csr_matrix(shape, dtype=np.float64)
    for start in range(0, len(tokens), TOKENS_PER_PART):
        places = np.arange(start, min(start + TOKENS_PER_PART, len(tokens)))
        for distance in range(1, WINDOW + 1):
            places = places[places + distance < len(tokens)]
            same_sentence = sentence[places] == sentence[places + distance]
            firsts = places[same_sentence]
            cells = tokens[firsts], tokens[firsts + distance]
            total = total + csr_matrix((np.ones(len(firsts)), cells), shape=shape)
    counts = total + total.T

    # max(0, log p(w, c) / (p(w) p(c)^0.75)); the smoothed p(c)^0.75 are scaled to the sum 1.
    cells = counts.tocoo()
    words = np.asarray(counts.sum(1)).ravel()
    contexts = words**SMOOTHING
    contexts = contexts / max(contexts.sum(), 1e-12)
    pmi = np.log(cells.data / (words[cells.row] * contexts[cells.col]))
    positive = pmi > 0
    positive_cells = cells.row[positive], cells.col[positive]
    weighted = csr_matrix((pmi[positive].astype(np.float32), positive_cells), shape=shape)

    rank = min(size, vocab_size - 1)
    random = int(stream(seed, "zoo.dissent.pmi").integers(2**31))
    left, values, _ = randomized_svd(weighted, rank, n_iter=4, random_state=random)
    vectors = np.zeros((vocab_size, size), np.float32)
    vectors[:, :rank] = left * np.sqrt(values)
    return vectors
