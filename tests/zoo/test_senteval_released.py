"""SentEval by its own protocol: the folder, the folds, the choices, the columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict

from corpora.errors import ConfigError, InputError
from corpora.readers import open_source
from tests.miniature.prose import INSIDE
from tests.miniature.released import write_senteval
from zoo.evaluate import Vectors
from zoo.evaluate.encoders import load_encoder
from zoo.evaluate.senteval import COLUMNS, TASKS, SentEval
from zoo.evaluate.senteval_released import bins, by_folds, examples, relatedness, rows

CUES = [*INSIDE, "then", "also", "still", "the", "gate", "boat", "keeper", "baker"]


def bag(texts: Sequence[Any]) -> np.ndarray:
    """How often each cue stands in a text."""
    counts = [Counter(str(text).lower().split()) for text in texts]
    return np.array([[count[cue] for cue in CUES] for count in counts], np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("senteval")
    write_senteval(folder, examples=12)
    return folder / "SentEval"


@pytest.mark.nightly
def test_every_task_and_column_of_a_folder(folder: Path) -> None:
    suite = SentEval()
    result = suite.evaluate(Vectors(bag, "bag"), suite.read(str(folder)))
    cells = SentEval.rows(result)[""]
    assert list(cells) == [*COLUMNS, *(task.name for task in TASKS)]
    tasks = result.metrics["tasks"]
    probing = [tasks[task.name]["value"] for task in TASKS if task.column == "Probing"]
    assert np.isclose(cells["Probing"].value, 100 * np.mean(probing))
    assert set(tasks["MR"]["l2"]) <= {1e-5, 1e-4, 1e-3, 1e-2} and len(tasks["MR"]["l2"]) == 10
    assert 0 <= tasks["MRPC"]["f1"] <= 1 and len(tasks["STS14"]["sets"]) == 6
    assert cells["SICK-R"].digits == 3  # a correlation, not per cent


def test_chosen_tasks_and_only_whole_columns(folder: Path) -> None:
    names = ("STS14", "SICK-R", "SICK-E", "STS-B", "MRPC", "Length")
    suite = SentEval(tasks=names)
    result = suite.evaluate(Vectors(bag, "bag"), suite.read(str(folder / "data")))
    cells, tasks = SentEval.rows(result)[""], result.metrics["tasks"]
    assert set(cells) == {"SSS", *names}
    parts = [tasks[name]["value"] for name in ("STS-B", "SICK-R", "SICK-E")]
    assert np.isclose(cells["SSS"].value, 100 * np.mean(parts))
    assert 0 <= tasks["MRPC"]["f1"] <= 1 and len(tasks["STS14"]["sets"]) == 6
    assert cells["SICK-R"].digits == 3  # a correlation, not per cent


def logistic(train: Any, held: Any, classes: int, settings: Any, seed: int) -> Any:
    """scikit-learn in the classifier's place; all examples train the one that is tested."""
    if len(settings.l2) == 1:
        train = [np.concatenate(both) for both in zip(train, held, strict=True)]
    models = {l2: LogisticRegression(C=1e-4 / l2).fit(*train) for l2 in settings.l2}
    grid = {l2: model.score(*held) for l2, model in models.items()}
    return SimpleNamespace(grid=grid, predict=models[settings.l2[0]].predict)


def test_folds_and_choices_are_those_of_a_few_lines_of_scikit_learn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zoo.evaluate.discoeval.probe.fit", logistic)
    monkeypatch.setattr("zoo.evaluate.senteval_released.FOLDS", 5)  # ten take four times as long
    random = np.random.default_rng(3)
    y = random.integers(0, 2, 90)
    x = random.normal(size=(90, 12)).astype(np.float32)
    x[:, 0] += y
    folds = StratifiedKFold(5, shuffle=True, random_state=1111)
    grid = {"C": [1e-4 / l2 for l2 in (1e-5, 1e-4, 1e-3, 1e-2)]}
    search = GridSearchCV(LogisticRegression(), grid, cv=folds)
    right, about = by_folds(x, y, seed=1111)
    assert (right == (cross_val_predict(search, x, y, cv=folds) == y)).all()
    chosen = [search.fit(x[train], y[train]).best_params_["C"] for train, _ in folds.split(x, y)]
    assert np.allclose([1e-4 / l2 for l2 in about["l2"]], chosen)
    assert len(set(chosen)) > 1


def test_too_few_examples_for_ten_folds_are_said() -> None:
    with pytest.raises(InputError, match="fewer than 10 examples of every class"):
        by_folds(np.ones((8, 1), np.float32), np.arange(8) % 2, seed=0)


def test_a_score_is_divided_between_the_two_bins_around_it() -> None:
    shares = bins(np.array([1.0, 2.25, 5.0, 0.4]))
    assert np.allclose(shares[0], [1, 0, 0, 0, 0])
    assert np.allclose(shares[1], [0, 0.75, 0.25, 0, 0])
    assert np.allclose(shares[2], [0, 0, 0, 0, 1])
    assert np.allclose(shares[3], [0.4, 0, 0, 0, 0])  # STS-B begins at 0


def test_relatedness_learns_a_score_that_the_features_tell() -> None:
    random = np.random.default_rng(7)
    y = {part: random.uniform(1, 5, 80) for part in ("train", "validation", "test")}
    x = {part: np.stack([s - 3, np.ones(80)], 1).astype(np.float32) for part, s in y.items()}
    found = relatedness(x, y, seed=0)
    assert found["value"] > 0.9 and found["ci"][0] < found["value"] < found["ci"][1]


def test_examples_are_sorted_by_length_before_they_are_divided(tmp_path: Path) -> None:
    lines = [("1", "a b c"), ("0", "a"), ("0", "a b")]
    found = examples(tmp_path, iter(lines), int)
    assert found.first == ["a", "a b", "a b c"] and found.gold.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [("1\tonly one", "2 fields; expected 3"), ("x\tone\ttwo", "bad label or score 'x'")],
)
def test_a_bad_line_names_its_place(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=problem) as error:
        examples(path, rows(path, 0, 1, 2), float)
    assert str(path) in str(error.value)


def test_another_folder_and_what_it_would_ignore_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no folder downstream/"):
        SentEval().read(str(tmp_path))
    suite = SentEval()
    with pytest.raises(ConfigError, match="--limit 5"):
        suite.evaluate(Vectors(bag), suite.read(str(folder)), limit=5)
    with pytest.raises(ConfigError, match="did you mean 'MR'"):
        SentEval.of({"tasks": ("MRR",)})
    with pytest.raises(InputError, match="no document"):  # it is the suite's
        list(open_source(f"senteval:{folder}"))


def test_layers_are_judged_by_column(folder: Path, tiny_bert: Path, tmp_path: Path) -> None:
    years = tuple(task.name for task in TASKS if task.column == "USS")
    suite = SentEval(tasks=years, layers=True)
    encoder = load_encoder(str(tiny_bert))
    result = suite.evaluate(encoder, suite.read(str(folder)))
    layers = result.metrics["layers"]
    assert layers["layers"] == [*range(1, encoder.layers + 1)] and [*layers["accuracy"]] == ["USS"]
    assert layers["best"] == {"USS": 1 + int(np.argmax(layers["accuracy"]["USS"]))}
    assert layers["mean_best"] == layers["best"]["USS"]
    suite.write_files(result, tmp_path / "out")
    assert (tmp_path / "out.layers.csv").read_text().startswith("layer,USS")
    with pytest.raises(ConfigError, match="no layers to look at"):
        suite.evaluate(Vectors(bag, "bag"), suite.read(str(folder)))
