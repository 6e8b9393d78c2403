"""The build files of the papers run over made-up corpora, from `plan` to every cell of a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pytest import mark

from tests.miniature.__main__ import write_all
from tests.miniature.builds import (
    CHANGEABLE,
    OVERLAYS,
    absences,
    keys_of,
    overlaid,
    overlay,
    run_to_tables,
    shipped,
    write_build,
)
from zoo.evaluate import confusions

PAPERS = sorted(path.stem for path in OVERLAYS.glob("*.toml"))
SMALLEST = "dissent"
"""The build that CI runs, without pictures: half a minute of a core. All are for the night."""
PLANS = """
import json, sys
from typer.testing import CliRunner
from workflows.cli.app import app

for paper in sys.argv[1:]:
    done = CliRunner().invoke(app, ["plan", "--config", f"papers/{paper}", "--json"])
    print(json.dumps([done.exit_code, json.loads(done.stdout)["missing"]]))
assert "torch" not in sys.modules
"""


@pytest.fixture(scope="session")
def corpora_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("miniature")
    write_all(folder)
    return folder


@mark.parametrize("paper", PAPERS)
def test_an_overlay_changes_paths_backbones_sizes_steps_and_numbers_of_rows(paper: str) -> None:
    changes = overlay(paper)
    assert {keys[-1] for keys in keys_of(changes)} <= CHANGEABLE
    assert overlaid(shipped(paper), changes) != shipped(paper)


def test_plan_names_what_is_missing_and_how_to_get_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLANS, *PAPERS],
        env={**os.environ, "DISCORPORA_DATA": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for paper, line in zip(PAPERS, done.stdout.splitlines(), strict=True):
        status, missing = json.loads(line)
        assert status == 1 and len(missing) > 3, paper
        assert [entry for entry in missing if not entry["get"]] == [], paper
        # What several models and their seeds lack is named once.
        names = [entry["input"].split()[-1] for entry in missing]
        assert len({*names}) == len(names), paper


@mark.parametrize(
    "paper",
    [pytest.param(p, marks=mark.slow if p == SMALLEST else mark.nightly) for p in PAPERS],
)
def test_every_row_and_column_is_there(
    paper: str, corpora_folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--nightly"):  # no table reads a picture: half of the time
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr(confusions, "save_pictures", lambda *_, **__: None)
    tables = run_to_tables(write_build(paper, corpora_folder, tmp_path), tmp_path / "out")
    assert tables and absences(tables) == []
