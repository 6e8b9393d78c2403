"""The scorer that comes with the package, run by ONNX Runtime (`zoo.packed`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, NonNegativeInt, PositiveInt

from corpora.prose import Quotes
from zoo.evaluate.scores import finite
from zoo.packed import DAMAGED_WEIGHTS, Encoder, PackedModel
from zoo.texts import Text, TextEncoder, as_sentences, batches_by_length, check_texts, windows
from zoo.windows import years_ascend

BATCH_TOKENS = 512
"""Tokens that are encoded at once: with 2,048 ONNX Runtime takes a fifth longer."""


class PackedConfig(BaseModel):
    """The parts of config.json that the scorer needs; `LinkConfig` explains them."""

    model_type: Literal["discorpora-link-scorer"]
    reaches: tuple[float, ...]
    others: float
    years: float
    order: float
    order_rank: NonNegativeInt
    order_tokens: PositiveInt
    max_tokens: PositiveInt
    quotes: Quotes


class PackedScorer(PackedModel[PackedConfig]):
    """Gives the scores that the `LinkScorer` of its folder gives, up to rounding."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder, PackedConfig)
        self.sentence_encoder = self.encoder()
        self.cut = 0
        """Number of sentences cut at `max_tokens`."""

    @cached_property
    def ranker(self) -> Encoder:
        """The encoder of the model of order."""
        return self.encoder(self.change)

    def change(self, name: str) -> np.ndarray:
        """Return the difference of a weight of the model of order (`zoo.modeling_links`)."""
        key = name.replace(".", "-").replace("backbone-", "changes.", 1)
        if key in self.weights:
            return self.weights[key]
        return self.weight(f"{key}-up") @ self.weight(f"{key}-down")

    def score(self, texts: Sequence[Text]) -> list[float]:
        """Return a score for each text, the higher the more coherent.

        A text may be a list of sentences; it may have any length. Raises `InputError` for a text
        without words.
        """
        check_texts(texts)
        sentences = [as_sentences(text, self.config.quotes) or [""] for text in texts]
        return [score for score, _ in self.score_windows(sentences)]

    def score_windows(self, texts: Sequence[Sequence[str]]) -> list[tuple[float, int]]:
        """Return for each text (a list of sentences) its score and the number of its windows, which
        only the model of order reads."""
        if not texts:
            return []
        years = np.array([years_ascend(text) for text in texts])
        scores = self.similarities(texts) + self.config.years * years
        counts = [1] * len(texts)
        if self.config.order_rank:
            order, counts = self.ordered(texts)
            scores += self.config.order * order
        finite(scores, "the model gives scores", self.folder, DAMAGED_WEIGHTS)
        return list(zip(scores.tolist(), counts, strict=True))

    def similarities(self, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Return the cosines' part of the scores, `[texts]`. Equal sentences are encoded once."""
        rows: dict[str, int] = {}
        numbered = [[rows.setdefault(s, len(rows)) for s in text] for text in texts]
        limit, ids = self.config.max_tokens, self.tokenizer(rows)["input_ids"]
        self.cut += sum(len(sentence) > limit for sentence in ids)
        ids = [[*row[: limit - 1], row[-1]] if len(row) > limit else row for row in ids]
        vectors = self.encoded(self.sentence_encoder, ids)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.array([self.weighted_cosines(vectors[text]) for text in numbered])

    def weighted_cosines(self, sentences: np.ndarray) -> float:
        """Return the cosines' part of a text's score from its sentences' vectors of length 1."""
        count, score = len(sentences), 0.0
        for reach, weight in enumerate(self.config.reaches, 1):
            cosines = (sentences[:-reach] * sentences[reach:]).sum()
            score += weight * cosines / max(count - reach, 1)
        # The square of a sum of vectors holds the products of all pairs, and of each with itself.
        total = sentences.sum(0)
        pairs = total @ total - (sentences * sentences).sum()
        return score + self.config.others * pairs / max(count * (count - 1), 1)

    def ordered(self, texts: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[int]]:
        """Return the scores of the model of order, `[texts]`, and the numbers of windows."""
        weight, bias = self.weight("order_head.weight"), self.weight("order_head.bias")
        encoder = TextEncoder(self.tokenizer, self.config.order_tokens)
        by_text = [windows(encoder, text) for text in texts]
        counts = [len(text) for text in by_text]
        ids = [encoder.assemble(pieces) for text in by_text for pieces, _ in text]
        scores = self.encoded(self.ranker, ids) @ weight[0] + bias
        numbers = np.repeat(np.arange(len(texts)), counts)
        return np.bincount(numbers, scores, len(texts)) / counts, counts

    def encoded(self, encoder: Encoder, texts: Sequence[Any]) -> np.ndarray:
        """Return the vectors `[texts, size]` of texts as token ids."""
        lengths = [len(text) for text in texts]
        return encoder.vectors(texts, batches_by_length(lengths, BATCH_TOKENS))
