"""The suite `ratings`: rank correlation of a scorer's scores with people's ratings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from corpora.schemas import RATED
from tests.zoo.conftest import write_dataset
from tests.zoo.opened import evaluate
from zoo.evaluate.__main__ import main
from zoo.evaluate.compare import compare
from zoo.evaluate.ratings import Ratings, rho_of, spearman


def rated(number: int, sentences: int, *ratings: float) -> dict[str, object]:
    text = " ".join(f"Boat {number} passed pier {i}." for i in range(sentences))
    about = {"id": f"t{number}", "group": f"g{number}", "title": "", "text": text}
    return about | {"ratings": list(ratings), "rating": float(np.mean(ratings or [0]))}


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand correlations of each rule are most of this module's time."""
    monkeypatch.setattr("zoo.evaluate.scores.RESAMPLES", 100)


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
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["ratings", "--model", "baseline:longer", "--data", str(folder)]
    assert main([*arguments, "--split", "validation"]) == 2
    assert "no configuration has rated texts" in capsys.readouterr().err
    parts = {("x", "test"): ([rated(i, 3) for i in range(3)], RATED)}
    write_dataset(tmp_path / "unrated", "rated", parts)
    assert main([*arguments[:-1], str(tmp_path / "unrated")]) == 2
    assert "no configuration has rated texts" in capsys.readouterr().err


def test_texts_need_no_ids(tmp_path: Path) -> None:
    rows = [rated(i, 1 + i, i / 10, i / 5) for i in range(12)]
    for row in rows:
        del row["id"]
    schema = RATED.remove(RATED.get_field_index("id"))
    data = write_dataset(tmp_path / "mine", "mine", {("x", "test"): (rows, schema)})
    found = evaluate(Ratings(), "baseline:longer", data).metrics["sets"]["x"]
    assert found["rho"]["value"] == pytest.approx(1)


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


def test_classes_are_learnt_of_each_domain_on_the_training_split(tmp_path: Path) -> None:
    """In one domain long texts are good, in the other short ones; a pooled threshold is blind."""

    def texts(split: str, count: int) -> list[dict[str, object]]:
        rows = []
        for number in range(count):
            size = 1 + number % 9
            high = 1 + (size - 1) // 3
            for domain, rating in (("Boats", high), ("Piers", 4 - high)):
                row = rated(number, size, rating, rating)
                rows.append(
                    row | {"id": f"{domain}_{split}:{number}", "group": f"{domain}{number}"}
                )
        return rows

    sizes = {"train": 60, "test": 18}
    parts = {("gcdc", split): (texts(split, count), RATED) for split, count in sizes.items()}
    loose = [row | {"rating": 1.5} for row in texts("x", 12)]
    parts |= {("summeval", split): (loose, RATED) for split in sizes}
    data, out = write_dataset(tmp_path / "rated", "rated", parts), tmp_path / "out.json"
    assert (
        main(["ratings", "--model", "baseline:longer", "--data", str(data), "--json", str(out)])
        == 0
    )
    sets = json.loads(out.read_text())["metrics"]["sets"]
    found = sets["gcdc"]["accuracy"]
    assert found["value"] >= 0.85 and found["trained_on"] == 120
    assert found["ci"][0] <= found["value"] <= found["ci"][1]
    assert min(found["domains"].values()) >= 0.85 and {*found["domains"]} == {"Boats", "Piers"}
    assert sets["gcdc"]["accuracies"]["majority"]["value"] == pytest.approx(1 / 3, abs=0.01)
    assert sets["gcdc"]["accuracies"]["shorter"]["value"] == found["value"]
    assert abs(sets["gcdc"]["rho"]["value"]) < 0.2  # the domains cancel each other out
    assert "accuracy" not in sets["summeval"]  # no classes: means of ratings
    (table,) = compare([out]).tables
    assert "gcdc accuracy" in table.columns
    # Judged on its own training split a set has no accuracy.
    words = ["ratings", "--model", "baseline:longer", "--data", str(data), "--split", "train"]
    assert main([*words, "--json", str(out)]) == 0
    assert "accuracy" not in json.loads(out.read_text())["metrics"]["sets"]["gcdc"]
