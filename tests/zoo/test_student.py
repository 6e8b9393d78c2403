"""The shipped marker predictor, and how it is made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from corpora import schemas
from tests.zoo.conftest import MARKERS, pair_rows, write_dataset, write_tiny_bert
from zoo.dissent import SHIPPED, PairClassifier, ship

PAIRS = [
    ("It rained all day.", "We stayed inside."),
    ("The road was long and the night was cold, and nobody had a lamp.", "He sang."),
    ("Go.", "She opened the letter that her brother had sent her from the coast in May."),
]


def test_the_shipped_predictor_is_small_and_better_than_the_most_frequent_marker() -> None:
    size = sum(path.stat().st_size for path in SHIPPED.iterdir())
    test = json.loads((SHIPPED / "results.json").read_text(encoding="utf-8"))["metrics"]["test"]
    assert size <= 6e6
    assert test["accuracy"]["ci"][0] > test["majority"]["accuracy"]
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    assert f"{100 * test['accuracy']['value']:.1f} [" in card


def test_padding_and_batches_change_nothing() -> None:
    model = PairClassifier.load(SHIPPED)
    together = model.probabilities(PAIRS)
    alone = np.concatenate([model.probabilities([pair]) for pair in PAIRS])
    assert together == pytest.approx(alone, abs=1e-5)
    assert np.isfinite(model.probabilities([("", "a")])).all()


@pytest.mark.slow
def test_a_predictor_learns_from_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ship, "BATCH", 16)
    sizes = {"train": 800, "validation": 60, "test": 60}
    parts = {
        ("books8", split): (pair_rows(size, seed), schemas.dissent(MARKERS))
        for seed, (split, size) in enumerate(sizes.items())
    }
    data = write_dataset(tmp_path / "dissent", "dissent", parts)
    texts = [text for row in pair_rows(60, 3) for text in (row["s1"], row["s2"])]
    encoder = write_tiny_bert(tmp_path / "bert", texts, num_hidden_layers=3)
    words = [str(data), "--backbone", str(encoder)]
    assert ship.main([*words, "--output", str(tmp_path / "made")]) == 0
    results = json.loads((tmp_path / "made" / "results.json").read_text(encoding="utf-8"))
    test = results["metrics"]["test"]
    assert test["accuracy"]["value"] > test["majority"]["accuracy"] + 0.1
    assert PairClassifier.load(tmp_path / "made").labels == list(MARKERS)
