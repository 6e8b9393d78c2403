"""Backbones of eight families through the recipes that take one, and those that are refused.

In CI each family goes through DisSent's transformer, and through CONPONO or one of the scorer's
recipes; all of them are a nightly campaign.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BartConfig, BartModel, ViTConfig, ViTModel

import zoo
from corpora import schemas
from corpora.errors import ConfigError, InputError
from zoo.backbones import load_backbone
from zoo.coherence import CoherenceScorer
from zoo.conpono import ConponoModel
from zoo.dissent import predict
from zoo.evaluate.encoders import load_encoder

from .conftest import (
    MARKERS,
    STORY,
    SUBJECTS,
    VERBS,
    WORDS,
    orders_of,
    pair_rows,
    story_documents,
    write_dataset,
    write_tiny_bert,
)
from .conpono.conftest import CRAFTS, DEEDS, rows
from .families import CONFIGS, write_family

Run = Callable[..., tuple[int, str]]
KNOWN = [*STORY, *SUBJECTS, *VERBS, *CRAFTS, *DEEDS, *(w for part in WORDS.values() for w in part)]
SPLITS = {"train": 6, "validation": 3, "test": 3}

RECIPES: dict[str, tuple[str, list[str]]] = {
    "dissent": ("dissent.transformer", ["--max_tokens", "64"]),
    "conpono": ("conpono.conpono", ["--candidates", "6", "--vector", "mean"]),
    "pairwise": ("coherence.contrastive", ["--objective", "pairwise"]),
    "contrastive": ("coherence.contrastive", []),
    "full": ("coherence.full", ["--candidates", "6", "--mine_every", "4"]),
}
SCORERS = ("pairwise", "contrastive", "full")
NO_MASK = ("gpt2", "qwen", "t5")
"""Families whose tokenizers have no mask token."""


def runs() -> Iterator[Any]:
    """Each family with each recipe; what CI leaves out is nightly."""
    for number, family in enumerate(CONFIGS):
        other = SCORERS[number // 2 % len(SCORERS)] if number % 2 else "conpono"
        for recipe in RECIPES:
            quick = recipe in ("dissent", other)
            yield pytest.param(family, recipe, marks=() if quick else pytest.mark.nightly)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A few rows for each recipe."""
    folder = tmp_path_factory.mktemp("data")
    parts: dict[tuple[str, str], tuple[Any, Any]] = {}
    for seed, (split, size) in enumerate(SPLITS.items()):
        documents = story_documents(size, seed)
        parts["documents", split] = documents, schemas.PERMUTED_DOCUMENTS
        parts["pairwise", split] = orders_of(documents, 1), schemas.PERMUTED_PAIRWISE
        parts["contrastive", split] = orders_of(documents, 5), schemas.PERMUTED_ORDERS
        parts["ranked", split] = orders_of(documents, 6), schemas.PERMUTED_ORDERS
    stories = write_dataset(folder / "permuted", "permuted", parts)
    pairs = {
        ("all", split): (pair_rows(2 * size, seed), schemas.dissent(MARKERS))
        for seed, (split, size) in enumerate(SPLITS.items())
    }
    texts = {
        ("default", split): (rows(size, 1, 9, split), schemas.CONPONO)
        for split, size in SPLITS.items()
    }
    return dict.fromkeys(SCORERS, stories) | {
        "dissent": write_dataset(folder / "dissent", "dissent", pairs),
        "conpono": write_dataset(folder / "conpono", "conpono", texts),
    }


@pytest.fixture(scope="module")
def backbones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("backbones")
    return {family: write_family(folder / family, family, KNOWN) for family in CONFIGS}


@pytest.mark.parametrize(("family", "recipe"), [*runs()])
def test_a_family_trains_and_loads_again(
    family: str,
    recipe: str,
    data: dict[str, Path],
    backbones: dict[str, Path],
    train_cli: Run,
    tmp_path: Path,
) -> None:
    name, options = RECIPES[recipe]
    options = ["--max_steps", "2", "--batch_size", "2", "--max_tokens", "120", *options]
    if family == "gpt2":
        options += ["--pad_token", "<|endoftext|>"]
    if recipe == "conpono" and family in NO_MASK:
        options += ["--mlm", "false"]
    output = tmp_path / "model"
    where = ["--dataset", data[recipe], "--output", output, "--backbone", backbones[family]]
    code, message = train_cli(name, *where, *options)
    assert code == 0, message
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert results["training"]["steps"] == 2
    # A short text has the same vector beside a long one.
    if recipe == "dissent":
        two = [("Anna sang.", "Bela left."), (" ".join(STORY), "Hans slept.")]
        together, alone = predict(output, two)[0], predict(output, two[:1])[0]
        assert together == pytest.approx(alone, abs=1e-4)
        # Something stands between the texts, as the folder's own tokenizer says too.
        read = AutoTokenizer.from_pretrained(output)
        alone = [read(text, add_special_tokens=False)["input_ids"] for text in two[0]]
        both = read(*two[0])["input_ids"]
        assert both[both.index(alone[0][-1]) + 1] not in alone[1]
    elif recipe == "conpono":
        zoo.register()
        model = AutoModel.from_pretrained(output)
        assert isinstance(model, ConponoModel) and model.relations.weight.shape == (4, 16, 16)
    else:
        scorer = CoherenceScorer.from_pretrained(output)
        texts = [" ".join(STORY), STORY[0]]
        assert scorer.score(texts)[1] == pytest.approx(scorer.score(texts[1:])[0], abs=1e-4)


@pytest.mark.parametrize("family", ["xlnet", "gpt2", "qwen", "t5"])
def test_a_text_that_does_not_begin_with_cls_has_no_such_vector(
    family: str, data: dict[str, Path], backbones: dict[str, Path], train_cli: Run, tmp_path: Path
) -> None:
    where = ["--dataset", data["conpono"], "--output", tmp_path / "m"]
    pad = ["--pad_token", "<|endoftext|>"] if family == "gpt2" else []
    code, message = train_cli("conpono.conpono", *where, "--backbone", backbones[family], *pad)
    assert code == 2 and "do not begin with [CLS]" in message and "--vector mean" in message


def test_of_a_t5_the_encoder_is_taken(backbones: dict[str, Path]) -> None:
    encoder = load_backbone(str(backbones["t5"]), {})
    whole = AutoModel.from_pretrained(backbones["t5"])
    ids = torch.tensor([[3, 4, 5]])
    expected = whole.encoder(input_ids=ids).last_hidden_state
    assert torch.equal(encoder(input_ids=ids).last_hidden_state, expected)
    assert not any("decoder" in name for name, _ in encoder.named_parameters())


def test_a_t5_is_evaluated_by_its_encoder(backbones: dict[str, Path]) -> None:
    encoder = load_encoder(str(backbones["t5"]), "mean")
    whole = AutoModel.from_pretrained(backbones["t5"]).eval()
    ids = encoder.tokenizer(STORY[0], return_tensors="pt")["input_ids"]
    with torch.no_grad():
        states = whole.encoder(input_ids=ids.to(whole.device)).last_hidden_state
    assert encoder.encode(STORY[:1])[0] == pytest.approx(states[0].mean(0).numpy(), abs=1e-5)


def test_a_decoder_that_transformers_cannot_leave_out_is_refused(tmp_path: Path) -> None:
    heads = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 20}
    BartModel(BartConfig(**sizes, **heads)).save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="bart has a decoder"):
        load_backbone(str(tmp_path), {})


# Folders that hold no backbone


def test_a_model_of_pictures(tmp_path: Path) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    ViTModel(ViTConfig(**sizes, intermediate_size=8, image_size=32)).save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="vit reads pixel_values, not texts"):
        load_backbone(str(tmp_path), {})


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config.cfg": "[nlp]", "meta.json": "{}"}, "no config.json"),  # spaCy
        ({"model.safetensors": None, "config.json": "{}"}, "not the configuration"),
        ({"model.safetensors": None, "config.json": '{"model_type": "gliner"}'}, "gliner"),
        ({"adapter_model.safetensors": None, "adapter_config.json": "{}"}, "config.json"),  # peft
        ({"config.json": "{", "model.safetensors": None}, "config.json"),
    ],
)
def test_a_folder_of_another_library(
    files: dict[str, str | None], said: str, tmp_path: Path, train_cli: Run, data: dict[str, Path]
) -> None:
    from safetensors.torch import save_file

    backbone = tmp_path / "backbone"
    backbone.mkdir()
    for name, text in files.items():
        if text is None:
            save_file({"weight": torch.ones(2)}, backbone / name)
        else:
            (backbone / name).write_text(text, encoding="utf-8")
    with pytest.raises((ConfigError, InputError), match=said) as caught:
        load_backbone(str(backbone), {})
    assert str(backbone) in str(caught.value)
    where = ["--dataset", data["dissent"], "--output", tmp_path / "m", "--backbone", backbone]
    code, message = train_cli("dissent.transformer", *where)
    assert code == 2 and message.startswith("error: ")
    assert not (tmp_path / "m").exists()


def test_weights_of_other_names_are_not_drawn_at_random(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    file = write_tiny_bert(tmp_path, STORY) / "model.safetensors"
    save_file({f"bert_model.{name}": value for name, value in load_file(file).items()}, file)
    with pytest.raises(InputError, match=r"no weights for \d+ parts of Bert"):
        load_backbone(str(tmp_path), {})


@pytest.mark.parametrize("kept", [0, 0.5])
def test_weights_that_are_cut_in_half(
    kept: float, tmp_path: Path, train_cli: Run, data: dict[str, Path]
) -> None:
    file = write_tiny_bert(tmp_path / "b", STORY) / "model.safetensors"
    file.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
    where = ["--dataset", data["dissent"], "--output", tmp_path / "m", "--backbone", tmp_path / "b"]
    code, message = train_cli("dissent.transformer", *where)
    assert code == 2 and "damaged or cut short" in message and "again" in message
