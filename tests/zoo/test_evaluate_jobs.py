"""Several evaluations in one process: `python -m zoo.evaluate FILE.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from zoo.evaluate.__main__ import main
from zoo.options import Assignment, Fault, assigned, faults_in


def test_an_assignment_that_fails_leaves_the_others(
    dissent_models: dict[str, Path], pairs_folder: Path, tmp_path: Path
) -> None:
    model = str(dissent_models["ngram"])

    def place(name: str) -> Path:
        return tmp_path / name / "results.json"

    def job(name: str, data: Path, suite: str = "dissent", **more: Any) -> Assignment:
        request = {"model": model, "data": str(data), "json": str(place(name)), **more}
        return Assignment(reference=suite, settings={}, request=request)

    assignments = [
        job("one", pairs_folder),
        job("two", tmp_path / "nothing"),
        job("three", pairs_folder, "senteval"),
        job("four", pairs_folder, limit=6),
        job("five", pairs_folder, limit="six"),
    ]
    with assigned(assignments) as file:
        assert main([str(file)]) == 2
        one, two, three, four, five = faults_in(file)
    assert one is four is None and two and three and five
    assert "no such dataset folder" in two.problem and "data/ of SentEval" in three.hint
    assert five == Fault(problem="limit = 'six': expected a whole number")
    kept = [json.loads(place(name).read_text(encoding="utf-8")) for name in ("one", "four")]
    assert [each["examples"] for each in kept] == [24, 6]
    # The same as by itself.
    words = ["dissent", "--model", model, "--data", str(pairs_folder)]
    assert main([*words, "--json", str(place("alone"))]) == 0
    assert place("one").read_text(encoding="utf-8") == place("alone").read_text(encoding="utf-8")


def test_a_fault_names_the_setting_and_its_value(
    pairs_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from zoo.train import main as train

    settings = {"dataset": str(pairs_folder), "output": str(tmp_path / "m"), "min_texts": 9000}
    with assigned([Assignment(reference="dissent/ngram", settings=settings)]) as file:
        assert train([str(file)]) == 2 and "error: min_texts: no n-gram" in capsys.readouterr().err
        (fault,) = faults_in(file)
        assert fault and (fault.field, fault.value) == ("min_texts", 9000)
        assert "9000 texts or more" in fault.problem
        assert fault.hint == "lower --min_texts, or add training pairs"
        # Of the processes that train one model the first says why: others die of it.
        text = file.read_text(encoding="utf-8").replace('min_texts": 9000', 'min_texts": 8000')
        file.write_text(text, encoding="utf-8")
        assert train([str(file)]) == 2 and "8000 texts" in capsys.readouterr().err
        assert faults_in(file) == [fault]


def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    for text, reason in (('{"metrics": {}}', "is no list"), ("{", "is not JSON")):
        file.write_text(text, encoding="utf-8")
        assert main([str(file)]) == 2
        shown = capsys.readouterr().err
        assert reason in shown and str(file) in shown
