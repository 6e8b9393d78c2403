"""Small dataset folders made on the spot, in the layout that the builders write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from corpora import schemas
from corpora.store.atomic import staged
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

MARKERS = ["because", "but", "so"]
WORDS = {
    "because": ["it", "was", "late", "and", "cold", "outside", "the", "old", "house"],
    "but": ["nobody", "heard", "the", "small", "bell", "ring", "at", "noon"],
    "so": ["we", "took", "our", "coats", "and", "went", "home", "early"],
}
SUBJECTS = ["Anna", "Bela", "Carl", "Dora", "Emil", "Fritz", "Gerda", "Hans"]
VERBS = ["waited", "sang", "left", "slept", "worked", "read"]
STORY = [
    "First {} opened the door of the shop.",
    "Then {} looked at the long shelves.",
    "After that {} chose a red book.",
    "Next {} paid at the counter.",
    "At last {} walked home with it.",
]


@pytest.fixture(scope="package", autouse=True)
def process_settings() -> Iterator[None]:
    """Training sets the process's threads and kernels: put them back after this room."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)


def write_tiny_bert(folder: Path, texts: Sequence[str], **changes: int) -> Path:
    """A BERT of random weights with a tokenizer of 200 lower-case pieces trained on `texts`."""
    import torch
    from transformers import BertConfig, BertModel

    from zoo.vocabularies import train_subwords

    tokenizer = train_subwords(texts, 200, lower=True, max_length=64)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 32, **changes}
    config = BertConfig(
        vocab_size=len(tokenizer),
        num_attention_heads=2,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        **sizes,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def write_dataset(
    folder: Path, name: str, parts: dict[tuple[str, str], tuple[list[dict[str, Any]], Any]]
) -> Path:
    """A dataset folder of `(config, split)` -> rows and schema."""
    card = Card(name, "made by a test", "none", {}, "none")
    stage = Stage(name, 1, f"hash-of-{name}", sources=[{"spec": "test", "licence": "CC0-1.0"}])
    with staged(folder) as partial, DatasetFolder(partial, name, stage, card) as dataset:
        for (config, split), (rows, schema) in parts.items():
            dataset.writer(config, split, schema).extend(rows)
            dataset.licences["CC0-1.0"] += len(rows)
        dataset.finish()
    return folder


def pair_rows(count: int, seed: int, markers: Sequence[str] = MARKERS) -> list[dict[str, Any]]:
    """Pairs whose second half shows the marker; lengths vary."""
    random = np.random.default_rng(seed)
    rows = []
    for index in range(count):
        label = index % len(markers)
        clue = WORDS[markers[label]]
        s1 = [str(random.choice(SUBJECTS)), *random.choice(VERBS, random.integers(1, 6))]
        s2 = random.choice(clue, random.integers(2, len(clue) + 1), replace=False)
        rows.append(
            {
                "doc": f"d{index % 7}",
                "group": f"g{index % 3}",
                "marker_start": 0,
                "s1": " ".join(s1) + ".",
                "s2": " ".join(s2) + ".",
                "label": label,
                "position": "same_sentence",
                "order": "s1_first",
                "s2_added": "",
                "confidence": 0.75,
            }
        )
    return rows


@pytest.fixture(scope="session")
def pairs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DisSent with three markers: 96 training pairs, 24 for validation, 24 for the test."""
    schema = schemas.dissent(MARKERS)
    sizes = {"train": 96, "validation": 24, "test": 24}
    parts = {
        ("all", split): (pair_rows(size, seed), schema)
        for seed, (split, size) in enumerate(sizes.items())
    }
    return write_dataset(tmp_path_factory.mktemp("data") / "dissent", "dissent", parts)


def story_documents(count: int, seed: int) -> list[dict[str, Any]]:
    """Documents whose order can be told from the first words of their sentences."""
    random = np.random.default_rng(seed)
    return [
        {
            "id": f"s{seed}-{index}",
            "group": f"g{seed}",
            "sentences": [line.format(random.choice(SUBJECTS)) for line in STORY],
        }
        for index in range(count)
    ]


def orders_of(
    documents: list[dict[str, Any]], negatives: int, repetitions: int = 1
) -> list[dict[str, Any]]:
    """Rows of `pairwise` or `contrastive`: distinct orders, none the original."""
    random = np.random.default_rng(7)
    rows = []
    for document in documents:
        size = len(document["sentences"])
        seen = {tuple(range(size))}
        for repetition in range(repetitions):
            orders: list[list[int]] = []
            while len(orders) < negatives:
                order = tuple(int(i) for i in random.permutation(size))
                if order not in seen:
                    seen.add(order)
                    orders.append(list(order))
            rows.append({"document": document["id"], "repetition": repetition, "orders": orders})
    return rows


@pytest.fixture(scope="session")
def permuted_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Permuted documents: 16 to train on, 6 for validation (one is shorter), 6 for the test."""
    parts: dict[tuple[str, str], tuple[list[dict[str, Any]], Any]] = {}
    for seed, (split, size) in enumerate({"train": 16, "validation": 6, "test": 6}.items()):
        documents = story_documents(size, seed)
        if split == "validation":
            documents[0]["sentences"].pop()
        parts["documents", split] = documents, schemas.PERMUTED_DOCUMENTS
        parts["pairwise", split] = orders_of(documents, 1, 4), schemas.PERMUTED_PAIRWISE
        parts["contrastive", split] = orders_of(documents, 5, 2), schemas.PERMUTED_ORDERS
    return write_dataset(tmp_path_factory.mktemp("data") / "permuted", "permuted", parts)


@pytest.fixture
def train_cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run the training command line in this process; its exit code and what it wrote."""

    def run(recipe: str | Path, *options: object) -> tuple[int, str]:
        from zoo.train import main

        code = main([str(recipe), *(str(option) for option in options)])
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def on_two_gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], None]:
    """Lets a module's `TrainingArguments` say that the machine has two GPUs."""

    def pretend(module: ModuleType) -> None:
        made = module.TrainingArguments

        def arguments_of(**values: Any) -> Any:
            arguments = made(**values)
            arguments._n_gpu = 2
            return arguments

        monkeypatch.setattr(module, "TrainingArguments", arguments_of)

    return pretend


@pytest.fixture(scope="session")
def dissent_models(tmp_path_factory: pytest.TempPathFactory, pairs_folder: Path) -> dict[str, Path]:
    """One small trained model of each DisSent type, by the name of its recipe."""
    from zoo.train import train

    folder = tmp_path_factory.mktemp("dissent")
    options = {
        "bilstm_tiny": ["--epochs", "4", "--hidden_size", "32"],
        "transformer_tiny": ["--vocab_size", "400", "--backbone_config.hidden_size", "32"],
        "ngram": ["--grid", "[1.0, 10.0]"],
        "sif": ["--size", "20", "--min_frequency", "1"],
    }
    for name, own in options.items():
        words = ["--dataset", str(pairs_folder), "--output", str(folder / name), *own]
        train([f"dissent/{name}", *words])
    return {name: folder / name for name in options}


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of two layers and 16 units for 64 tokens, with a pooler and its tokenizer."""
    import torch
    from transformers import BertConfig, BertModel

    from zoo.vocabularies import train_subwords

    folder = tmp_path_factory.mktemp("models") / "bert"
    tokenizer = train_subwords([*SUBJECTS, *VERBS, *STORY], 320, max_length=64)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(
        vocab_size=len(tokenizer), intermediate_size=32, max_position_embeddings=64, **sizes
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
