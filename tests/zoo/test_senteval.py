"""Which of SentEval's tasks mteb has, and what its scores say in the paper's columns."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corpora.errors import ConfigError, DiscorporaError
from tests.zoo.opened import evaluate
from zoo.evaluate import Vectors
from zoo.evaluate.senteval import COLUMNS, TASKS, SentEval, columns_of, notes_of, run


def test_every_task_of_the_paper_is_mapped_or_said_to_be_absent() -> None:
    counts = {column: sum(task.column == column for task in TASKS) for column in COLUMNS}
    assert counts == {"USS": 5, "SSS": 3, "SC": 7, "Probing": 10}
    assert len({task.name for task in TASKS}) == len(TASKS)
    for task in TASKS:
        assert (not task.note) == (task.column == "USS")
        assert task.mteb or task.note


def test_a_column_has_a_value_only_when_all_its_tasks_are_measured_alike() -> None:
    scores = {f"STS{year}": year / 20 for year in range(12, 17)} | {"STS-B": 0.8, "SICK-R": 0.7}
    found = columns_of(scores)
    assert math.isclose(found["USS"]["value"], 14 / 20) and found["USS"]["complete"]
    assert "value" not in found["SSS"]
    assert found["SSS"]["missing"] == ["STS-B", "SICK-R", "SICK-E"]
    assert len(found["Probing"]["missing"]) == 10
    del scores["STS14"]
    assert columns_of(scores)["USS"] == {"complete": False, "missing": ["STS14"]}
    assert "USS: STS14: not run" in notes_of(scores)


def test_scores_are_taken_from_the_librarys_results(monkeypatch: pytest.MonkeyPatch) -> None:
    def result(name: str, score: float) -> Any:
        rows = [{"cosine_pearson": score, "cosine_spearman": 0.0}]
        return SimpleNamespace(task_name=name, dataset_revision="abc", scores={"test": rows})

    asked: dict[str, Any] = {}

    def evaluate(model: Any, tasks: Any, **options: Any) -> Any:
        asked.update(options, tasks=tasks)
        return SimpleNamespace(task_results=[result("STS12", 0.5), result("STSBenchmark", 0.6)])

    pytest.importorskip("mteb", reason="the extra mteb is not installed")
    monkeypatch.setattr("mteb.evaluate", evaluate)
    scores, revisions = run(object())
    assert scores == {"STS12": 0.5, "STS-B": 0.6}
    assert revisions == {"STS12": "abc", "STS-B": "abc"}
    names = {task.metadata.name for task in asked["tasks"]}
    assert asked["cache"] is None and names == {task.mteb for task in TASKS if task.mteb}


def test_the_result_says_the_model_s_type(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mteb", reason="the extra mteb is not installed")
    monkeypatch.setattr("zoo.evaluate.senteval.run", lambda *_: ({"STS12": 0.5}, {"STS12": "abc"}))
    model = evaluate(SentEval(), tiny_bert, "hub").model
    assert (model["name"], model["type"]) == (tiny_bert.name, "bert")


def test_without_the_extra_it_is_named() -> None:
    if find_spec("mteb") is not None:
        pytest.skip("mteb is installed here")
    with pytest.raises(DiscorporaError) as error:
        SentEval().evaluate(Vectors(len), "hub")
    assert "discorpora[mteb]" in str(error.value)


def test_a_folder_is_no_data_for_it() -> None:
    with pytest.raises(ConfigError, match="data 'folder'"):
        SentEval().evaluate(Vectors(len), "folder")


def test_what_mteb_would_ignore_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--limit .*--split"):
        SentEval().evaluate(Vectors(len), "hub", limit=5)
    with pytest.raises(ConfigError, match=r"--limit .*--split"):
        SentEval().evaluate(Vectors(len), "hub", split="validation")
