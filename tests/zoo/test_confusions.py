"""Confusion matrices of an unbalanced and a balanced model, side by side (A.4)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress

from corpora.errors import InputError
from zoo.evaluate.confusions import compare, compare_files, write_confusion
from zoo.evaluate.scores import weighted_average

NAMES = ["and", "but", "if", "then"]


def matrices(noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Counts of two models that share their confusions but for the markers' frequencies."""
    random = np.random.default_rng(seed)
    shared = random.normal(size=(4, 4)) + 2 * np.eye(4)
    rows = np.array([8000, 4000, 1000, 500])
    found = []
    for weight in (1.0, 0.0):
        logits = shared + weight * np.log(rows) + noise * random.normal(size=(4, 4))
        shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        found.append(np.rint(shares * rows[:, None]).astype(int))
    for counts in found:
        counts[:, 0] += rows - counts.sum(1)
    return found[0], found[1]


def result(counts: np.ndarray, name: str) -> dict:
    confusion = {"classes": NAMES, "gold_by_predicted": counts.tolist()}
    return {"model": {"name": name}, "metrics": {"confusion": confusion}}


def test_shared_confusions_are_found_under_the_frequencies() -> None:
    found = compare(*matrices(noise=0), NAMES)
    assert found.r2 > 0.6 and found.p < 1e-3 and found.freedom == (1, 14)
    unrelated = matrices(0, seed=1)[0], matrices(0, seed=2)[1]
    assert compare(*unrelated, NAMES).r2 < found.r2


def test_the_figures_of_the_line_agree_with_scipy() -> None:
    found = compare(*matrices(noise=0.3), NAMES)
    line = linregress(found.residuals, found.balanced)
    assert found.r2 == pytest.approx(line.rvalue**2)
    assert found.p == pytest.approx(line.pvalue, rel=1e-6)
    # The residuals keep nothing of the frequency that they were freed of.
    assert np.sum(found.residuals) == pytest.approx(0, abs=1e-9)


def test_the_command_writes_the_figures(tmp_path: Path) -> None:
    for name, counts in zip(("a", "b"), matrices(0.1), strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(result(counts, name)), encoding="utf-8")
    compare_files(tmp_path / "a.json", tmp_path / "b.json", tmp_path / "out")
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert found["models"] == ["a", "b"] and found["markers"] == NAMES
    assert len((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()) == 17
    assert "R² = 0." in (tmp_path / "out.svg").read_text(encoding="utf-8")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_results_that_do_not_belong_together(tmp_path: Path) -> None:
    one, two = matrices(0)
    other = {**result(two, "b"), "metrics": {"confusion": {**result(two, "b")["metrics"]}}}
    other["metrics"]["confusion"] = {"classes": NAMES[::-1], "gold_by_predicted": two.tolist()}

    def compare_results(first: dict, second: dict) -> None:
        for name, value in (("a", first), ("b", second)):
            (tmp_path / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
        compare_files(tmp_path / "a.json", tmp_path / "b.json", tmp_path / "o")

    with pytest.raises(InputError, match="label sets"):
        compare_results(result(one, "a"), other)
    with pytest.raises(InputError, match="different rows"):
        compare_results(result(one, "a"), result(two * 2, "b"))
    judged = [{**result(one, name), "dataset": {"revision": name}} for name in ("r1", "r2")]
    with pytest.raises(InputError, match=r"revision r1.*revision r2.*different rows"):
        compare_results(*judged)
    for content, message in (
        (b'{"metrics": {}}', "metrics.confusion: is no confusion"),
        (
            b'{"metrics": {"confusion": {"classes": ["a"], "gold_by_predicted": [[1, 2]]}}}',
            "1 rows",
        ),
        (
            b'{"metrics": {"confusion": {"classes": [], "gold_by_predicted": []}}}',
            "is no confusion",
        ),
        (b"[1]", "is no result"),
        (b"\xff", "is not JSON"),
    ):
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(InputError, match=message):
            compare_files(tmp_path / "a.json", tmp_path / "a.json", tmp_path / "o")


def test_markers_of_one_frequency_say_nothing_of_it() -> None:
    equal = np.array([[8, 1, 1], [2, 7, 1], [1, 3, 6]])
    with pytest.raises(InputError, match="every marker has as many rows"):
        compare(equal, equal, NAMES)


def test_a_marker_without_rows_is_left_out() -> None:
    one, two = matrices(0.1)
    one[3], two[3] = 0, 0
    assert compare(one, two, NAMES).markers == NAMES[:3]


def test_the_same_matrix_gives_the_same_files(tmp_path: Path) -> None:
    counts = matrices(0.1)[0]
    matrix = {"gold_by_predicted": counts.tolist(), "classes": NAMES}
    for name in ("a", "b"):
        write_confusion(tmp_path / name, matrix)
    for kind in ("csv", "svg", "png"):
        one, two = (tmp_path / f"{name}.{kind}" for name in ("a", "b"))
        assert one.read_bytes() == two.read_bytes()


def test_the_weighted_average_of_recall_is_accuracy() -> None:
    counts = matrices(0.2)[0]
    found = weighted_average(counts)
    assert found["recall"] == pytest.approx(np.trace(counts) / counts.sum())
