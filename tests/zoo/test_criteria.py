"""DiscoEval's learning criteria: losses by hand, who stands beside whom, a model that learns."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel

import zoo
import zoo.criteria.bigru as bigru
from corpora.errors import ConfigError, InputError
from corpora.schemas import CRITERIA
from tests.zoo.conftest import write_dataset
from zoo.criteria import CriteriaConfig, CriteriaEncoder, CriteriaModel
from zoo.criteria.data import SentenceContexts, open_contexts
from zoo.criteria.modeling import bag_loss
from zoo.criteria.recipes import Bigru
from zoo.evaluate.encoders import load_encoder
from zoo.train import train
from zoo.training.data import open_dataset
from zoo.training.trainer import trainer_over
from zoo.vocabularies import train_words

THINGS = ["lamp", "boat", "clock", "garden", "letter", "bridge"]
TINY = "criteria/bigru_tiny"


def document(number: int) -> dict[str, Any]:
    """Two sections of three sentences; the words say where each sentence stands."""
    thing = THINGS[number % len(THINGS)]
    sentences = [
        f"A {thing} was seen at first.",
        f"Its owner praised the {thing} then.",
        f"Nobody bought the {thing} at last.",
        f"Old {thing}s were made of wood.",
        f"Some of these {thing}s were painted later.",
        f"Few {thing}s survive today.",
    ]
    return {
        "doc": f"d{number}",
        "group": f"g{number}",
        "title": f"The {thing}" if number % 4 else "",
        "sentences": sentences,
        "section": [0, 0, 0, 1, 1, 1],
        "level": [1, 1, 1, 2, 2, 2],
        "headings": ["", "History of making"],
        "paragraph": [0, 0, 0, 1, 1, 1],
        "sentence_position": [0, 1, 2, 0, 1, 2],
        "sentence_bin": [0, 6, 13, 0, 6, 13],
        "paragraph_bin": [0, 0, 0, 10, 10, 10],
    }


def write(folder: Path, sizes: tuple[int, int, int] = (40, 6, 6), **changes: Any) -> Path:
    parts = {}
    start = 0
    for split, size in zip(("train", "validation", "test"), sizes, strict=True):
        rows = [document(number) | changes for number in range(start, start + size)]
        parts["default", split] = (rows, CRITERIA)
        start += size
    return write_dataset(folder, "criteria", parts)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "criteria")


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("made") / "model"
    options = ["--epochs", "12", "--learning_rate", "1e-2"]
    train([TINY, "--dataset", str(data), "--output", str(output), *options])
    return output


def places_of(data: Path, beside: Path, max_tokens: int = 32) -> tuple[SentenceContexts, Any]:
    tokenizer = train_words((s for n in range(40) for s in document(n)["sentences"]), 500)
    config = CriteriaConfig(criteria=["nl", "spp", "sdt"])
    recipe = Bigru(dataset=str(data), output=str(beside), max_tokens=max_tokens)
    places = open_contexts(recipe, open_dataset(str(data), streamed=True), tokenizer, config)
    return places["train"], tokenizer


def test_the_loss_of_a_bag_of_words_by_hand() -> None:
    scores = torch.tensor([[0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0]])
    total = math.log(2 + math.e + math.e**2)
    # Padding (0) and the unknown word (1) are no words; a word that stands twice counts twice.
    words = torch.tensor([[2, 3, 3, 1, 0], [1, 0, 0, 0, 0]])
    found, there = bag_loss(scores, words, (0, 1))
    assert there.tolist() == [True, False]
    assert found[0].item() == pytest.approx(total - (1 + 2 + 2) / 3)
    assert math.isnan(found[1].item())


@pytest.fixture
def model_and_batch() -> tuple[CriteriaModel, dict[str, Any]]:
    """Three sentences: the first has none before it, and none has one after it."""
    torch.manual_seed(0)
    config = CriteriaConfig(
        vocab_size=9, embedding_size=4, hidden_size=3, decoder_size=4, criteria=["nl"]
    )
    model = CriteriaModel(config)
    ids = torch.tensor([[2, 3], [4, 0], [5, 6]])
    bags = {
        "previous": torch.tensor([[0], [7], [8]]),
        "next": torch.zeros(3, 1, dtype=torch.long),
    }
    labels = torch.tensor([[0], [1], [6]])
    mask = (ids > 0).long()
    return model, {"input_ids": ids, "attention_mask": mask, "bags": bags, "labels": labels}


def test_a_part_is_the_mean_over_the_sentences_that_have_it(
    model_and_batch: tuple[CriteriaModel, dict[str, Any]],
) -> None:
    model, batch = model_and_batch
    found = model(**batch)
    previous, nearest, level = found.parts.T
    assert math.isnan(previous[0]) and nearest.isnan().all() and not level.isnan().any()
    assert found.loss.item() == pytest.approx((previous[1:].mean() + level.mean()).item())
    found.loss.backward()
    gradients = {name: w.grad for name, w in model.named_parameters() if w.grad is not None}
    assert all(torch.isfinite(grad).all() for grad in gradients.values())
    assert not gradients["decoders.next.2.weight"].any()
    assert gradients["decoders.previous.2.weight"].any()


@pytest.mark.parametrize("weight", ["encoder.gru.weight_hh_l0", "decoders.previous.0.weight"])
def test_a_model_that_diverged_has_no_finite_loss(
    weight: str, model_and_batch: tuple[CriteriaModel, dict[str, Any]]
) -> None:
    model, batch = model_and_batch
    with torch.no_grad():
        model.get_parameter(weight).fill_(math.nan)
    assert not torch.isfinite(model(**batch).loss)


def test_the_vector_is_the_mean_of_the_states_whatever_the_padding() -> None:
    torch.manual_seed(0)
    encoder = CriteriaEncoder(CriteriaConfig(vocab_size=9, embedding_size=4, hidden_size=3)).eval()
    ids = torch.tensor([[2, 3, 4, 0, 0], [5, 6, 7, 8, 2]])
    vectors = encoder(ids, (ids > 0).long()).pooler_output
    states, _ = encoder.gru(encoder.embeddings(ids[:1, :3]))
    torch.testing.assert_close(vectors[0], states[0].mean(0))


def test_neighbours_and_headings_are_those_of_the_document(data: Path, tmp_path: Path) -> None:
    places, tokenizer = places_of(data, tmp_path / "m")
    assert len(places) == 240
    batch = places.collate([places[row] for row in range(12)])
    assert batch["input_ids"][batch["attention_mask"] == 0].unique().tolist() == [places.pad_id]
    words = {
        name: [tokenizer.decode(ids[ids != places.pad_id]) for ids in padded]
        for name, padded in {"ids": batch["input_ids"], **batch["bags"]}.items()
    }
    sentences = words["ids"]
    for start in (0, 6):
        assert words["previous"][start : start + 6] == ["", *sentences[start : start + 5]]
        assert words["next"][start : start + 6] == [*sentences[start + 1 : start + 6], ""]
        assert words["section"][start : start + 3] == [""] * 3
    assert words["title"][:6] == [""] * 6 and words["title"][6] == "the boat"
    # Counted from 0 here: level 1 is class 0.
    assert batch["labels"][3:5].tolist() == [[1, 0, 10], [1, 6, 10]]
    assert places.documents().tolist()[::6][:3] == [1, 2, 3]
    section = batch["bags"]["section"][3]
    assert (section != places.pad_id).sum() == 3  # "history of making": unknown words, but three


def test_long_sentences_are_cut_and_counted(data: Path, tmp_path: Path) -> None:
    places, _ = places_of(data, tmp_path / "m", max_tokens=6)
    assert places.lengths().max() == 6 and 0 < places.truncated < len(places)
    assert max(map(len, places.bags_of("next", places.rows[:12]))) == 6


def test_a_tiny_model_learns_what_the_words_say(made: Path) -> None:
    found = json.loads((made / "results.json").read_text())["metrics"]["test"]
    assert found["classes"]["level"]["accuracy"]["value"] > 0.95
    assert found["classes"]["sentence_bin"]["accuracy"]["value"] > 0.95
    assert found["classes"]["level"]["majority"]["accuracy"] == 0.5
    for name in ("previous", "next", "section", "title"):
        part = found["nats_a_word"][name]
        assert part["ci"] is None and 0 < part["units"] < 10  # documents
        assert part["value"] < 0.8 * part["by_frequency"], name
    assert found["nats_a_word"]["previous"]["sentences"] == 30


def test_the_encoder_loads_by_itself_and_encodes(made: Path) -> None:
    zoo.register()
    loaded, loading = AutoModel.from_pretrained(made, output_loading_info=True)
    assert isinstance(loaded, CriteriaEncoder) and not loading["unexpected_keys"]
    encoder = load_encoder(str(made))
    assert encoder.representation == "pooled"
    vectors = encoder.encode(
        ["A lamp was seen.", "Few boats survive today, they say.", "A lamp was seen."]
    )
    assert vectors.shape == (3, 128)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01


@pytest.mark.parametrize(
    ("criteria", "decoders"),
    [
        ("", ["previous", "next"]),
        ("sdt", ["previous", "next", "section", "title"]),
        ("spp,nl", ["previous", "next", "sentence_bin", "paragraph_bin", "level"]),
    ],
)
def test_each_row_of_the_papers_table_is_a_setting(
    criteria: str, decoders: list[str], data: Path, tmp_path: Path
) -> None:
    output = tmp_path / "model"
    options = ["--criteria", criteria, "--max_steps", "2", "--output", str(output)]
    train([TINY, "--dataset", str(data), *options])
    assert list(CriteriaModel.from_pretrained(output).decoders) == decoders


def test_the_released_values(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of train/config.py: two hidden layers of 300, and a rate that stays."""
    arguments: list[Any] = []

    def trainer(*given: Any, **more: Any) -> Any:
        made = trainer_over(*given, **more)
        arguments.append(made.args)
        return made

    monkeypatch.setattr(bigru, "trainer_over", trainer)
    options = ["--dataset", str(data), "--max_steps", "2", "--output", str(tmp_path / "model")]
    train(["criteria/bigru_released", *options])
    (used,) = arguments
    assert used.lr_scheduler_type == "constant" and used.max_grad_norm == 0
    assert used.learning_rate == 1e-3 and used.per_device_train_batch_size == 20
    assert used.weight_decay == 0
    model = CriteriaModel.from_pretrained(tmp_path / "model")
    linear = [part for part in model.decoders["level"] if isinstance(part, torch.nn.Linear)]
    widths = [(part.in_features, part.out_features) for part in linear]
    assert widths == [(600, 300), (300, 300), (300, 7)]
    results = json.loads((tmp_path / "model/results.json").read_text())
    assert results["settings"]["max_tokens"] == 200


def test_bad_data_is_named(data, tmp_path):
    output = ["--output", str(tmp_path / "model")]
    with pytest.raises(ConfigError, match=r"bins = 5, but train has positions up to bin 14"):
        train([TINY, "--dataset", str(data), "--bins", "5", *output])
    broken = write(tmp_path / "broken", level=[1, 1])
    with pytest.raises(InputError, match="2 values of 'level' for 6 sentences"):
        train([TINY, "--dataset", str(broken), "--output", str(tmp_path / "other" / "model")])
    with pytest.raises(ConfigError, match="criteria"):
        train([TINY, "--dataset", str(data), "--criteria", "nsp,nl", *output])


def test_a_source_without_headings_is_said(tmp_path: Path) -> None:
    data = write(tmp_path / "plain", (6, 2, 2), title="", headings=["", ""])
    output = tmp_path / "model"
    train([TINY, "--dataset", str(data), "--max_steps", "1", "--output", str(output)])
    found = json.loads((output / "results.json").read_text())
    assert [note.split(":")[0].split("has a ")[1] for note in found["notes"]] == [
        "section",
        "title",
    ]
    assert set(found["metrics"]["test"]["nats_a_word"]) == {"previous", "next"}
