"""Every type of DisSent model: trained, saved, loaded, asked and evaluated in the same way."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from transformers import AutoModel, AutoModelForSequenceClassification

import zoo
from corpora.errors import ConfigError, InputError
from zoo.backbones import config_from, load_backbone
from zoo.coherence import CoherenceConfig, CoherenceScorer
from zoo.dissent import PairClassifier, predict, predictions, read_pairs
from zoo.dissent.data import NgramVocabulary, encode_ngrams
from zoo.evaluate.__main__ import main
from zoo.train import main as train

from .conftest import MARKERS

Run = Callable[..., tuple[int, str]]
NAMES = ("bilstm_tiny", "transformer_tiny", "ngram", "sif")
LEARNS = ("bilstm_tiny", "ngram", "sif")
"""The transformer is drawn at random: 18 steps teach it little."""
PAIRS = [
    ("Anna sang.", "It was late and cold outside."),
    ("Bela slept.", "Nobody heard the small bell."),
    ("Carl read.", "We took our coats and went home."),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_probabilities_of_a_pair(name: str, dissent_models: dict[str, Path]) -> None:
    found = predict(dissent_models[name], PAIRS)
    assert len(found) == 3
    for row in found:
        assert set(row) == set(MARKERS) and sum(row.values()) == pytest.approx(1)
        assert list(row.values()) == sorted(row.values(), reverse=True)
    if name in LEARNS:
        assert [next(iter(row)) for row in found] == MARKERS
    # Neither the batch nor the order of the pairs matters.
    again = list(predictions(dissent_models[name], reversed(PAIRS), batch_size=1))[::-1]
    for one, two in zip(found, again, strict=True):
        assert one == pytest.approx(two, abs=1e-5)
    assert PairClassifier.load(dissent_models[name]).probabilities([]).shape == (0, 3)


class Frequent(PairClassifier):
    """Gives every pair the probabilities .9, .1 and 0."""

    labels = property(lambda self: ["and", "because", "so"])  # type: ignore[assignment]

    def probabilities(self, pairs: Sequence[tuple[str, str]], batch_size: int = 64) -> np.ndarray:
        return np.array([[0.9, 0.1, 0.0]] * len(pairs))


def test_markers_are_equally_frequent_unless_the_corpus_is_asked_for(tmp_path: Path) -> None:
    model = Frequent(None, None, str(tmp_path))
    [learnt] = predict(model, PAIRS[:1], prior="corpus")
    assert learnt == pytest.approx({"and": 0.9, "because": 0.1, "so": 0})
    with pytest.raises(InputError, match="how many training pairs each marker had"):
        predict(model, PAIRS)
    rows = {"and": 900, "because": 10, "so": 0}  # "so" was never seen
    results = json.dumps({"data": {"train_labels": rows}})
    (tmp_path / "results.json").write_text(results, encoding="utf-8")
    [equal] = predict(model, PAIRS[:1])
    assert list(equal) == ["because", "and", "so"]
    assert equal == pytest.approx({"because": 10 / 11, "and": 1 / 11, "so": 0})
    # A model whose logits assume other frequencies than those of its training pairs
    data = {
        "train_labels": {"and": 60, "because": 20, "so": 20},
        "assumed_shares": {"and": 0.9, "because": 0.05, "so": 0.05},
    }
    (tmp_path / "results.json").write_text(json.dumps({"data": data}), encoding="utf-8")
    [equal] = predict(model, PAIRS[:1])
    assert equal == pytest.approx({"because": 2 / 3, "and": 1 / 3, "so": 0})
    [corpus] = predict(model, PAIRS[:1], prior="corpus")
    assert corpus == pytest.approx({"and": 0.6, "because": 0.4, "so": 0})
    with pytest.raises(ConfigError, match="no prior 'flat'"):
        predict(model, PAIRS, prior="flat")


@pytest.mark.parametrize("name", NAMES)
def test_the_suite_repeats_the_figures_of_training(
    name: str, dissent_models: dict[str, Path], pairs_folder: Path, tmp_path: Path
) -> None:
    out, model = tmp_path / "out.json", str(dissent_models[name])
    assert main(["dissent", "--model", model, "--data", str(pairs_folder), "--json", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    trained = json.loads((dissent_models[name] / "results.json").read_text(encoding="utf-8"))
    assert found["metrics"] == trained["metrics"]["test"]
    assert found["model"]["type"] == trained["model_type"]
    assert (tmp_path / "out.confusion.png").read_bytes().startswith(b"\x89PNG")
    if name in LEARNS:
        assert found["metrics"]["accuracy"]["value"] > 0.8


@pytest.mark.parametrize("name", NAMES)
def test_a_model_folder_holds_no_pickle_and_loads_by_the_auto_classes(
    name: str, dissent_models: dict[str, Path]
) -> None:
    files = {path.name for path in dissent_models[name].iterdir()}
    assert {"config.json", "model.safetensors", "README.md", "results.json"} <= files
    assert not {path for path in files if path.endswith((".pkl", ".bin", ".pt", ".joblib"))}
    zoo.register()
    model = AutoModelForSequenceClassification.from_pretrained(dissent_models[name])
    assert [model.config.id2label[i] for i in range(3)] == MARKERS
    if name != "ngram":  # a bag of n-grams has no sentence vector
        encoder, loading = AutoModel.from_pretrained(dissent_models[name], output_loading_info=True)
        assert not loading["unexpected_keys"]  # else transformers prints them
        ids = torch.ones(2, 4, dtype=torch.long)
        assert encoder(input_ids=ids, attention_mask=ids).last_hidden_state.shape[:2] == (2, 4)


@pytest.mark.parametrize("name", ["ngram", "sif"])
def test_a_baseline_comes_out_the_same_again(
    name: str, dissent_models: dict[str, Path], pairs_folder: Path, train_cli: Run, tmp_path: Path
) -> None:
    made = json.loads((dissent_models[name] / "results.json").read_text(encoding="utf-8"))
    words = ["--grid", json.dumps(made["settings"]["grid"])]
    if name == "sif":
        words += ["--size", "20", "--min_frequency", "1"]
    output = tmp_path / "again"
    code, message = train_cli(
        f"dissent/{name}", "--dataset", pairs_folder, "--output", output, *words
    )
    assert code == 0, message
    for file in sorted(output.iterdir()):
        assert file.read_bytes() == (dissent_models[name] / file.name).read_bytes(), file.name


def test_the_card_has_the_languages_of_the_data(
    pairs_folder: Path, dissent_models: dict[str, Path], tmp_path: Path
) -> None:
    card = ModelCard.load(dissent_models["ngram"] / "README.md")
    assert card.data.language == ["en"]
    data = shutil.copytree(pairs_folder, tmp_path / "data")
    manifest = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
    (data / "manifest.json").write_text(json.dumps({**manifest, "languages": ["nl", "no"]}))
    words = ["dissent/ngram", "--dataset", str(data), "--output", str(tmp_path / "model")]
    assert train([*words, "--min_texts", "1"]) == 0
    assert ModelCard.load(tmp_path / "model" / "README.md").data.language == ["nl", "no"]


def test_a_backbone_goes_from_one_model_to_the_next(dissent_models: dict[str, Path]) -> None:
    first = PairClassifier.load(dissent_models["transformer_tiny"]).model
    backbone = load_backbone(str(dissent_models["transformer_tiny"]), {})
    assert backbone.config.model_type == "bert"
    for name, weights in first.backbone.state_dict().items():
        assert torch.equal(weights, backbone.state_dict()[name]), name


def test_a_model_without_backbone_is_named(
    dissent_models: dict[str, Path], pairs_folder: Path, train_cli: Run, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('recipe = "dissent.transformer"\n', encoding="utf-8")
    options = ["--dataset", pairs_folder, "--output", tmp_path / "m"]
    code, message = train_cli(recipe, *options, "--backbone", dissent_models["bilstm_tiny"])
    assert code != 0 and "has no backbone to start from" in message
    code, message = train_cli(recipe, *options)
    assert code != 0


def test_a_model_of_another_class(pairs_folder: Path, tmp_path: Path) -> None:
    table = {"model_type": "bert", "hidden_size": 8, "num_attention_heads": 2}
    table |= {"num_hidden_layers": 1, "intermediate_size": 8, "vocab_size": 50}
    scorer = CoherenceScorer(CoherenceConfig(backbone_config=config_from(table)))
    scorer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="discorpora-coherence-scorer"):
        PairClassifier.load(tmp_path)
    with pytest.raises(ConfigError, match="there is no such folder"):
        PairClassifier.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.tsv", "s1\ts2\nIt rained.\tWe left.\n\nHe\tran\n"),
        ("p.tsv", "It rained.\tWe left.\nHe\tran\n"),
        ("p.tsv", "\ufeffs1\ts2\r\nIt rained.\tWe left.\r\nHe\tran\r\n"),
        ("p.jsonl", '{"s1": "It rained.", "s2": "We left."}\n{"s1": "He", "s2": "ran"}\n'),
        ("p.jsonl", '\ufeff{"s1": "It rained.", "s2": "We left."}\n{"s1": "He", "s2": "ran"}\n'),
    ],
)
def test_pairs_from_a_file(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    expected = [("It rained.", "We left."), ("He", "ran")]
    assert list(read_pairs(tmp_path / name)) == expected
    packed = tmp_path / f"{name.upper()}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert list(read_pairs(packed)) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("p.tsv", "a\tb\nc\n", "two columns"),
        ("p.tsv", "a\tb\nc\t \n", "not empty"),
        ("p.jsonl", '{"s1": "a", "s2": "b"}\n{"s1": "a"}\n', '"s1" and "s2"'),
        ("p.jsonl", '{"s1": "a", "s2": "b"}\n[1]\n', '"s1" and "s2"'),
    ],
)
def test_a_line_that_is_no_pair(name: str, text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        list(read_pairs(tmp_path / name))
    assert f"{name}:2" in str(caught.value) and expected in str(caught.value)


@pytest.mark.parametrize(("name", "text"), [("p.tsv", ""), ("p.tsv", "s1\ts2\n"), ("p.jsonl", "")])
def test_a_file_without_a_pair(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"{name}: holds no pair\n.*expected"):
        list(read_pairs(tmp_path / name))


def test_pairs_in_another_encoding_and_very_long_ones(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_bytes("Ein Café.\tSchön.\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        list(read_pairs(tmp_path / "p.tsv"))
    (tmp_path / "p.tsv").write_text(f"{'a' * 100_000}\tb\n", encoding="utf-8")
    assert [len(s1) for s1, _ in read_pairs(tmp_path / "p.tsv")] == [100_000]
    (tmp_path / "p.tsv").write_text(f"{'a' * 100_001}\tb\n", encoding="utf-8")
    with pytest.raises(InputError, match="100,000 characters at most"):
        list(read_pairs(tmp_path / "p.tsv"))


@pytest.mark.parametrize("texts", [["It rained.", "We left"], ["It rained."], ["", " "]])
def test_texts_that_share_no_ngram_are_an_error(texts: list[str]) -> None:
    with pytest.raises(InputError, match="no n-gram is in 2 texts or more") as caught:
        NgramVocabulary.fit(texts, 2, min_texts=2, limit=9)
    assert "--min_texts" in str(caught.value)


def test_the_ngrams_of_a_pair() -> None:
    vocabulary = NgramVocabulary.fit(["It rained.", "It rained!"], 2, min_texts=2, limit=9)
    assert vocabulary.ngrams == ("it", "it rained", "rained")
    pairs = encode_ngrams(["It, it rained.", "Well."], ["Rained it", "It"], vocabulary)
    assert [sequences[0].tolist() for sequences, *_ in pairs] == [[0, 1, 2, 3, 5], [3]]
    batch = pairs.collate([pairs[0], pairs[1]])
    assert batch["input_ids"].tolist() == [[0, 1, 2, 3, 5], [3, 6, 6, 6, 6]]
    assert batch["attention_mask"].sum(1).tolist() == [5, 1]
