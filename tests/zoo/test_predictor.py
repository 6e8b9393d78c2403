"""The shipped marker predictor, and how it is made."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from corpora import schemas
from corpora.errors import InputError
from tests.zoo.conftest import MARKERS, pair_rows, write_dataset
from workflows.config import load_build
from zoo.compact import pack, rounded, scales_of, unpack
from zoo.dissent import SHIPPED, PairClassifier, predict, ship
from zoo.dissent.data import EncodedPairs
from zoo.dissent.packed import PackedClassifier
from zoo.dissent.prediction import load_classifier
from zoo.evaluate.scores import calibration_error
from zoo.packed import unpack as unpack_arrays
from zoo.training.mapped import Texts

from .test_ship import word_pieces

PAIRS = [
    ("It rained all day.", "We stayed inside."),
    ("The road was long and the night was cold, and nobody had a lamp.", "He sang."),
    ("Go.", "She opened the letter that her brother had sent her from the coast in May."),
]


def test_the_shipped_predictor_is_small_and_better_than_the_most_frequent_marker() -> None:
    size = sum(path.stat().st_size for path in SHIPPED.iterdir())
    test = json.loads((SHIPPED / "results.json").read_text(encoding="utf-8"))["metrics"]["test"]
    assert size <= 8e6
    assert test["f1"]["ci"][0] > 2 * test["majority"]["f1"]
    assert min(part["recall"] for part in test["equal"]["per_class"].values()) >= 0.1
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    assert f"**{100 * test['f1']['value']:.1f} [" in card


def test_onnx_runtime_gives_the_probabilities_that_torch_gives() -> None:
    packed, loaded = load_classifier(SHIPPED), PairClassifier.load(SHIPPED)
    assert isinstance(packed, PackedClassifier) and packed.labels == loaded.labels
    pairs = [*PAIRS, (200 * "Naïve, 1848. ", "“Hä?” 你好 \x00"), ("", "a")]
    assert packed.probabilities(pairs) == pytest.approx(loaded.probabilities(pairs), abs=1e-5)
    assert packed.probabilities([]).shape == (0, len(loaded.labels))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("config.json", b"{", "is not JSON"),
        ("config.json", b'{"model_type": "bert"}', "model_type"),
        ("config.json", (SHIPPED / "config.json").read_bytes().replace(b'"7"', b'"6"'), "7 labels"),
        ("model.safetensors", b"0" * 99, "its weights are damaged or cut short"),
        ("encoder.onnx", b"0" * 99, "ONNX Runtime cannot load it"),
        ("tokenizer.json", b"{}", "tokenizers library cannot load it"),
        ("tokenizer.json", None, "tokenizers library cannot load it"),
    ],
)
def test_a_damaged_file_is_named(
    name: str, content: bytes | None, problem: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(SHIPPED, tmp_path / "copy")
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=problem) as error:
        predict(folder, PAIRS)
    assert name in str(error.value)


@pytest.mark.parametrize("lost", ["classifier.bias", "backbone.embeddings.LayerNorm.bias"])
def test_a_lost_weight_is_named(lost: str, tmp_path: Path) -> None:
    folder = shutil.copytree(SHIPPED, tmp_path / "copy")
    weights = load_file(folder / "model.safetensors")
    del weights[lost]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(InputError, match=lost.removesuffix(".bias")):
        predict(folder, PAIRS)


def test_padding_and_batches_change_nothing() -> None:
    model = load_classifier(SHIPPED)
    together = model.probabilities(PAIRS)
    alone = np.concatenate([model.probabilities([pair]) for pair in PAIRS])
    assert together == pytest.approx(alone, abs=1e-5)
    assert np.isfinite(model.probabilities([("", "a")])).all()


def test_a_build_file_of_novels_with_whole_novels_in_a_split(tmp_path: Path) -> None:
    words = []
    for split, name in zip(ship.SPLITS, ("ada_north", "ben_south", "cleo_east"), strict=True):
        novel = tmp_path / f"{name}.jsonl"
        rows = [
            {"book": name, "chapter_id": part, "chapter": "", "paragraph": 0, "text": "It rained."}
            for part in "12"
        ]
        novel.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        words += [f"--{split}", str(novel)]
    assert ship.main(["novels", *words, "--output", str(tmp_path / "out")]) == 0
    build = load_build(str(tmp_path / "out" / "novels.toml"))
    assert [source.name for source in build.sources] == ["north", "south", "east"]
    assert [source.datasets for source in build.sources] == [("dissent",)] * 3
    table = Path(build.splits.table).read_text(encoding="utf-8").splitlines()
    assert table[2:4] == ["validation\tben_south/1", "validation\tben_south/2"]


def test_rounding_in_training_is_the_rounding_of_the_folder() -> None:
    weight = torch.randn(6, 64, generator=torch.Generator().manual_seed(0))
    packed = pack({"matrix": weight, "vector": weight[0]})
    stored = unpack(packed)
    by_numpy = unpack_arrays({name: part.numpy() for name, part in packed.items()})
    assert {name: part.tolist() for name, part in by_numpy.items()} == {
        name: part.tolist() for name, part in stored.items()
    }
    assert torch.equal(rounded(weight, scales_of(weight)), stored["matrix"])
    assert torch.equal(stored["vector"], weight[0])
    assert 0 < (stored["matrix"] - weight).abs().max() < weight.abs().max() / 13


def test_rare_labels_are_drawn_as_often_as_asked_and_all_rows_of_a_label_in_turn() -> None:
    labels = np.array([0] * 900 + [1] * 100)
    texts = Texts.of([5] * (1 + number % 9) for number in range(len(labels)))
    rows = EncodedPairs(texts, None, labels, pad_id=0, sides=1, truncated=0)
    drawn = list(islice(ship.batches(rows, np.array([0.5, 0.5]), 1), 4 * ship.POOL))
    numbers = np.concatenate(drawn)
    assert abs(labels[numbers].mean() - 0.5) < 0.05
    counts = np.bincount(numbers, minlength=len(labels))
    assert np.ptp(counts[:900]) <= 1 and np.ptp(counts[900:]) <= 1
    assert np.mean([np.ptp(rows.lengths()[batch]) for batch in drawn]) < 2


def test_the_temperature_and_the_weight_of_the_frequencies() -> None:
    random, shares = np.random.default_rng(0), np.array([0.8, 0.15, 0.05])
    gold = random.choice(3, 4000, p=shares)
    scores = random.normal(0, 1, (4000, 3)) + 2 * np.eye(3)[gold]  # the right logits are 2 times it
    log_shares = np.log(shares)
    assert ship.fit_temperature(3 * 2 * scores, gold, log_shares) == pytest.approx(3, abs=0.2)
    assert 0 < ship.fit_weight(2 * scores, gold, log_shares) <= 1
    values = np.exp(ship.log_probabilities(2 * scores, 1, log_shares))
    assert calibration_error(values, gold) < 0.03 < 0.1 < calibration_error(values**4, gold)
    sure = np.array([[0.9, 0.1]] * 30)
    assert calibration_error(sure, np.array([0] * 27 + [1] * 3), bins=1) == pytest.approx(0)
    halves = np.array([0] * 15 + [1] * 15)  # bins of two: 7 right, one of both, 7 wrong
    assert calibration_error(sure, halves) == pytest.approx((7 * 0.1 + 0.4 + 7 * 0.9) / 15)


@pytest.mark.slow
def test_a_predictor_learns_from_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"LAYERS": 2, "PIECES": 120, "TOKENS": 32, "STEPS": 120, "ROUNDED": 20, "RATE": 3e-3}
    for name, value in small.items():
        monkeypatch.setattr(ship, name, value)
    sizes = {"train": 800, "validation": 60, "test": 60}
    parts = {
        ("books8", split): (pair_rows(size, seed), schemas.dissent(MARKERS))
        for seed, (split, size) in enumerate(sizes.items())
    }
    data = write_dataset(tmp_path / "dissent", "dissent", parts)
    texts = [text for row in pair_rows(60, 3) for text in (row["s1"], row["s2"])]
    encoder, folder = word_pieces(tmp_path / "bert", texts), tmp_path / "made"
    words = ["ship", str(data), "--backbone", str(encoder), "--output", str(folder)]
    assert ship.main(words) == 0
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    test = results["metrics"]["test"]
    assert test["accuracy"]["value"] > test["majority"]["accuracy"] + 0.1
    assert PairClassifier.load(folder).labels == list(MARKERS)
    # Both priors give what the folder's figures say
    pairs = [(row["s1"], row["s2"]) for row in pair_rows(60, 2)]
    gold = [MARKERS[row["label"]] for row in pair_rows(60, 2)]
    for prior in ("equal", "corpus"):
        first = [next(iter(found)) for found in predict(folder, pairs, prior=prior)]
        right = np.mean([one == other for one, other in zip(first, gold, strict=True)])
        assert right == pytest.approx(test[prior]["accuracy"]["value"])
