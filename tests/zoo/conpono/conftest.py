"""A small made-up corpus of numbered steps, and stores and models over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import BertConfig, BertModel, PreTrainedTokenizerBase

from corpora.schemas import CONPONO
from tests.zoo.conftest import write_dataset
from zoo.conpono import ConponoModel
from zoo.conpono.examples import Candidates
from zoo.conpono.segments import Geometry, Masking, Template
from zoo.conpono.tokens import TokenStore, token_stores
from zoo.training.data import open_dataset
from zoo.vocabularies import train_subwords

CRAFTS = ["baker", "miller", "tailor", "potter", "weaver", "cooper", "smith", "mason"]
DEEDS = ["wakes", "eats", "walks", "greets", "works", "rests", "returns", "reads", "sleeps"]


def rows(documents: int, paragraphs: int, sentences: int, split: str) -> list[dict[str, Any]]:
    """Documents in which every sentence occurs once, and tells its craft and its place."""
    made = []
    for number in range(documents):
        lines = [
            f"The {CRAFTS[number % len(CRAFTS)]} {split}{number} {DEEDS[at % len(DEEDS)]} "
            f"at {at} on day {part}."
            for part in range(paragraphs)
            for at in range(sentences)
        ]
        bounds = list(range(0, len(lines) + 1, sentences))
        row = {"doc": f"{split}-{number}", "group": split, "sentences": lines, "bounds": bounds}
        made.append(row)
    return made


@pytest.fixture(scope="session")
def paragraphs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 documents of 8 paragraphs of 9 sentences to train on, 4 and 4 of 2 to hold out."""
    sizes = {"train": (8, 8), "validation": (4, 2), "test": (4, 2)}
    parts = {
        ("default", split): (rows(documents, number, 9, split), CONPONO)
        for split, (documents, number) in sizes.items()
    }
    return write_dataset(tmp_path_factory.mktemp("data") / "conpono", "conpono", parts)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerBase:
    texts = [text for row in rows(8, 8, 9, "train") for text in row["sentences"]]
    return train_subwords(texts, 400, max_length=128)


@pytest.fixture(scope="session")
def store(
    tmp_path_factory: pytest.TempPathFactory,
    paragraphs_folder: Path,
    tokenizer: PreTrainedTokenizerBase,
) -> TokenStore:
    """The training split as its tokens."""
    beside = tmp_path_factory.mktemp("runs") / "model"
    return token_stores(
        open_dataset(str(paragraphs_folder), streamed=True), tokenizer, Geometry(), beside
    )["train"]


@pytest.fixture
def candidates(store: TokenStore, tokenizer: PreTrainedTokenizerBase) -> Callable[..., Candidates]:
    """Examples over the training split; settings given by name."""

    def make(mask_rate: float = 0.0, max_tokens: int = 128, **settings: Any) -> Candidates:
        chosen = {"geometry": Geometry(), "candidates": 8, "seed": 5, **settings}
        masking = Masking.of(tokenizer, mask_rate)
        return Candidates(store, store, Template.of(tokenizer, max_tokens), masking, **chosen)

    return make


@pytest.fixture
def tiny_model(tokenizer: PreTrainedTokenizerBase) -> Callable[..., ConponoModel]:
    """A small model drawn at random, without dropout unless asked for."""

    def make(
        dropout: float = 0.0, width: int = 32, initializer_range: float = 0.02, **settings: Any
    ) -> ConponoModel:
        import torch

        torch.manual_seed(1)
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=width,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=2 * width,
            max_position_embeddings=128,
            pad_token_id=tokenizer.pad_token_id,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            initializer_range=initializer_range,
        )
        return ConponoModel.from_backbone(BertModel(config), max_tokens=128, **settings)

    return make


def sequences(example: Any) -> list[np.ndarray]:
    """The ids of each sequence of an example."""
    return np.split(example.ids, np.cumsum(example.lengths)[:-1])


def texts(example: Any, tokenizer: PreTrainedTokenizerBase) -> Sequence[tuple[str, str]]:
    """The two texts of each sequence (the second empty where there is one text)."""
    found = []
    for ids, second in zip(sequences(example), example.seconds, strict=True):
        parts = ids[:second], ids[second:]
        found.append(tuple(tokenizer.decode(p, skip_special_tokens=True).strip() for p in parts))
    return found
