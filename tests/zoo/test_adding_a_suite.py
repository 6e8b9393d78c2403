"""The suite that docs/reference/recipes.md shows is one, and so is its recipe of other settings."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from zoo.evaluate.__main__ import main
from zoo.evaluate.compare import compare
from zoo.train import main as train

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "recipes.md"


def block(kind: str, mark: str) -> str:
    page = PAGE.read_text(encoding="utf-8")
    (found,) = [b for b in re.findall(rf"```{kind}\n(.*?)```", page, re.S) if mark in b]
    return found


def test_the_suite_of_the_page_judges_the_recipe_of_the_page(
    pairs_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "calibration.py").write_text(block("python", "Calibration"), encoding="utf-8")
    (tmp_path / "mine.toml").write_text(block("toml", "[about]"), encoding="utf-8")
    model, out = tmp_path / "model", tmp_path / "out.json"
    words = ["--dataset", str(pairs_folder), "--output", str(model)]
    assert train([str(tmp_path / "mine.toml"), *words]) == 0
    assert json.loads((model / "results.json").read_text())["settings"]["longest"] == 2
    suite = f"{tmp_path / 'calibration.py'}:Calibration"
    words = [suite, "--model", str(model), "--data", str(pairs_folder)]
    assert main([*words, "--bins", "5", "--json", str(out)]) == 0
    assert json.loads(out.read_text())["suite"] == "calibration"
    figure = json.loads(out.read_text())["metrics"]["calibration error"]
    assert 0 < figure["value"] < 1
    assert f"| model | {100 * figure['value']:.1f} |" in compare([out]).render("markdown")
    assert main([*words, "--bins", "1"]) == 2
    assert "bins = 1: expected 2 or more" in capsys.readouterr().err
    assert main([suite, "--help"]) == 0
    assert "Bins of equal width" in capsys.readouterr().out
