"""The core, without the extra `zoo`: what it builds, and what it says of models."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from runpy import run_module
from typing import NamedTuple

import pytest

from discorpora import score
from tests.processes import ran
from zoo import EXTRA

WITHOUT_EXTRA = f"""
import json, sys
from importlib.machinery import PathFinder

class Core(PathFinder):
    "Finds what is installed, but nothing of the extra."
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in {(*EXTRA, "stanza")!r}
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Core
"""
COMMANDS = """
import io
from contextlib import redirect_stderr, redirect_stdout
from workflows.cli.app import main

for words in json.load(sys.stdin):
    sys.argv, code = ["discorpora", *words], 0
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""
BUILD = """
name = "mine"
[[sources]]
name = "stories"
spec = "sample:stories"
datasets = ["permuted"]
[datasets.permuted]
"""


class Done(NamedTuple):
    code: int
    out: str
    err: str


def run_without_extra(folder: Path, *commands: tuple[str, ...]) -> list[Done]:
    """Run commands in a fresh interpreter that finds no package of the extra."""
    done = ran(
        [sys.executable, "-c", WITHOUT_EXTRA + COMMANDS], input=json.dumps(commands), cwd=folder
    )
    assert not done.returncode, done.stderr
    return [Done(*json.loads(line)) for line in done.stdout.splitlines()]


def test_the_core_extracts_builds_audits_and_reports(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(BUILD, encoding="utf-8")
    (tmp_path / "draft.txt").write_text("We stayed inside because it rained.", encoding="utf-8")
    built = run_without_extra(
        tmp_path,
        ("extract", "text:draft.txt", "-o", "pairs.jsonl"),
        ("build", "--config", "mine.toml"),
        ("audit", "build/mine/datasets/permuted"),
        ("report", "build/mine"),
        ("init", "other.toml", "sample:stories"),
        ("plan", "--config", "other.toml"),
        ("zoo",),
        ("train", "dissent/bilstm", "--help"),
    )
    assert [done.code for done in built] == [0] * len(built), built
    assert "because" in (tmp_path / "pairs.jsonl").read_text(encoding="utf-8")
    assert Path(tmp_path / built[3].out.strip()).is_file()
    assert "pip install 'discorpora[zoo]'" in (tmp_path / "other.toml").read_text(encoding="utf-8")


def test_what_runs_a_model_names_the_extra_at_once(tmp_path: Path) -> None:
    (tmp_path / "draft.txt").write_text("It rained. We stayed.", encoding="utf-8")
    planned, *others = run_without_extra(
        tmp_path,
        ("plan", "--config", "sample"),
        ("build", "--config", "sample"),
        ("train", "dissent/ngram", "--dataset", "d", "--output", "m"),
        ("evaluate", "dissent", "--model", "m", "--data", "d"),
        ("score", "draft.txt", "--model", "m"),
        ("score", "draft.txt", "--bf16"),
        ("predict-marker", "It rained.", "We stayed.", "--model", "m"),
        ("convert", "coherence", "a.pt", "-o", "m"),
        ("convert", "conpono", "a.ckpt", "-o", "m"),
    )
    assert planned.code == 1 and planned.out.count("discorpora[zoo]") == 1
    for done in others:
        assert done.code and done.err.count("pip install 'discorpora[zoo]'") == 1, done
        assert "torch" in done.err and "Traceback" not in done.err
    assert not (tmp_path / "build").exists()


def test_the_models_that_come_with_the_package_run(tmp_path: Path) -> None:
    draft = tmp_path / "draft.txt"
    draft.write_text("It rained. We stayed inside. The fire was warm. He ate it.", encoding="utf-8")
    (tmp_path / "other.txt").write_text("He ate it. It rained.", encoding="utf-8")
    predicted, scored, ranked = run_without_extra(
        tmp_path,
        ("predict-marker", "It rained all day.", "We stayed inside."),
        ("score", "draft.txt", "--explain", "--json"),
        ("score", "draft.txt", "other.txt", "--rank", "--json"),
    )
    for done in (predicted, scored, ranked):
        assert not done.code and not done.err, done
    assert len(predicted.out.splitlines()) == 9
    [row] = map(json.loads, scored.out.splitlines())
    assert row["percentile"] is not None and len(row["effects"]) == 4
    assert row["score"] == pytest.approx(score(draft.read_text(encoding="utf-8"))[0], abs=1e-5)
    assert [json.loads(line)["rank"] for line in ranked.out.splitlines()] == [1, 2]


@pytest.mark.parametrize(
    "name",
    ["coherence.ship", "dissent.ship", "parser.teacher", "parser.silver", "conpono.compare"],
)
def test_a_command_of_developers_names_the_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "zoo.extra", raising=False)
    for package in EXTRA:
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(SystemExit, match=r"pip install 'discorpora\[zoo\]'"):
        run_module(f"zoo.{name}", run_name="__main__")
