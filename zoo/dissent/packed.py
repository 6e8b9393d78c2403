"""The marker predictor that comes with the package, run by ONNX Runtime (`zoo.packed`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, Field

from corpora.errors import InputError
from corpora.progress import track
from zoo.evaluate.scores import finite
from zoo.loading import AGAIN, CONFIG
from zoo.packed import DAMAGED_WEIGHTS, PackedModel

BATCH_SIZE = 16
"""Pairs that are encoded at once: with 64 ONNX Runtime takes a third longer."""


class PackedConfig(BaseModel):
    """The parts of config.json that the predictor needs; `PairTransformerConfig` explains them."""

    model_type: Literal["discorpora-dissent-transformer"]
    id2label: dict[int, str]
    max_tokens: Annotated[int, Field(ge=8, le=1 << 16)]


class PackedClassifier(PackedModel[PackedConfig]):
    """Gives the probabilities that the `PairClassifier` of its folder gives, up to rounding."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder, PackedConfig)
        self.labels = [name for _, name in sorted(self.config.id2label.items())]
        self.matrix, self.bias = self.weight("classifier.weight"), self.weight("classifier.bias")
        if len(self.bias) != len(self.labels):
            problem = f"{len(self.labels)} labels, and {len(self.bias)} in the weights"
            raise InputError(problem, where=f"{folder}/{CONFIG}", hint=AGAIN)
        self.tokenizer.backend.enable_truncation(self.config.max_tokens)
        self.encode = self.encoder()

    def probabilities(
        self, pairs: Sequence[tuple[str, str]], batch_size: int | None = None
    ) -> np.ndarray:
        """Return the probability of each label, `[pairs, labels]`; a row sums to 1."""
        if not pairs:
            return np.zeros((0, len(self.labels)))
        encodings = self.tokenizer.backend.encode_batch(list(pairs))
        order = sorted(range(len(pairs)), key=lambda row: -len(encodings[row].ids))
        size = batch_size or BATCH_SIZE
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        vectors = self.encode.vectors(
            [encoding.ids for encoding in encodings],
            track(batches, "batches", total=len(batches)),
            [encoding.type_ids for encoding in encodings],
        )
        logits = (vectors @ self.matrix.T + self.bias).astype(np.float64)
        finite(logits, "the model gives logits", self.folder, DAMAGED_WEIGHTS)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)
