"""The suite `ratings`: rank correlation of a scorer's scores with people's ratings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from corpora.schemas import RATED
from tests.zoo.conftest import write_dataset
from zoo.evaluate.__main__ import main
from zoo.evaluate.ratings import rho_of, spearman


def rated(number: int, sentences: int, *ratings: float) -> dict[str, object]:
    text = " ".join(f"Boat {number} passed pier {i}." for i in range(sentences))
    about = {"id": f"t{number}", "group": f"g{number}", "title": "", "text": text}
    return about | {"ratings": list(ratings), "rating": float(np.mean(ratings or [0]))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # The longer a text, the better it is rated.
    rows = [rated(i, 1 + i, i / 10, i / 5) for i in range(12)]
    parts = {("gcdc", "test"): ([*rows, rated(99, 3)], RATED), ("gcdc", "train"): (rows, RATED)}
    return write_dataset(tmp_path / "rated", "rated", parts)


def test_rules_are_scored_beside_the_model(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    arguments = ["ratings", "--model", "baseline:longer", "--data", str(folder)]
    assert main([*arguments, "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    gcdc = found["metrics"]["sets"]["gcdc"]
    assert gcdc["rho"]["value"] == pytest.approx(1)
    assert gcdc["baselines"]["shorter"]["value"] == pytest.approx(-1)
    assert set(gcdc["baselines"]) == {"random", "longer", "shorter", "tfidf"}
    assert (gcdc["texts"], gcdc["groups"]) == (12, 12)  # one has no rating
    low, high = gcdc["baselines"]["random"]["ci"]
    assert low < gcdc["baselines"]["random"]["value"] < high


def test_a_split_without_rated_texts_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["ratings", "--model", "baseline:longer", "--data", str(folder)]
    assert main([*arguments, "--split", "validation"]) == 2
    assert "no configuration has rated texts" in capsys.readouterr().err


def test_texts_of_one_group_are_drawn_together() -> None:
    scores = np.array([1.0, 2, 3, 4] * 5)
    ratings = np.array([1.0, 2, 3, 4] * 5)
    found = rho_of(scores, ratings, np.repeat(np.arange(5), 4), 0, "x")
    assert (found["value"], found["ci"], found["units"]) == (pytest.approx(1), None, 5)
    apart = rho_of(scores, ratings[::-1], np.arange(20), 0, "x")
    assert apart["value"] == pytest.approx(-1) and apart["units"] == 20


def test_scores_that_order_nothing_have_no_correlation() -> None:
    assert spearman(np.ones(3), np.arange(3.0)) == 0
    assert spearman(np.arange(3.0), np.array([1.0, 3, 2])) == pytest.approx(0.5)
