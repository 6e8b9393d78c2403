"""What runs on a lent GPU machine runs here too; and the lowest versions that are declared work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
GPU = ROOT / "tests" / "gpu"


def script(name: str) -> Any:
    loader = SourceFileLoader(name, str(GPU / name))
    module = module_from_spec(spec_from_loader(name, loader) or pytest.fail(name))
    sys.dont_write_bytecode, former = True, sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = former
    return module


@pytest.fixture
def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script over a small repository with a folder of 60 kB that the run does not need."""
    module = script("prepare")
    folder = tmp_path / "tree"
    for name, size in (("docs/long.md", 60_000), ("code.py", 2_000)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x" * size)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True)
    monkeypatch.setattr(module, "ROOT", folder)
    monkeypatch.setattr(module, "CARRIED", folder / "build")
    monkeypatch.setattr(module, "LIMIT", 50_000)
    return module


def carry(prepare: Any, size: int) -> None:
    prepare.CARRIED.mkdir()
    (prepare.CARRIED / "data").write_text("x" * size)
    (prepare.ROOT / ".git" / "info" / "exclude").write_text("/build/")


def test_what_the_run_does_not_need_leaves_the_tree_and_comes_back(prepare: Any) -> None:
    carry(prepare, 10_000)
    assert prepare.fit(sparse=True) == 12_000
    assert not (prepare.ROOT / "docs").exists()
    prepare.back()
    assert (prepare.ROOT / "docs" / "long.md").stat().st_size == 60_000


@pytest.mark.parametrize(("sparse", "size"), [(False, 10_000), (True, 49_000)])
def test_a_tree_that_is_too_large_is_refused_and_whole(
    prepare: Any, sparse: bool, size: int
) -> None:
    carry(prepare, size)
    with pytest.raises(SystemExit, match="would travel"):
        prepare.fit(sparse=sparse)
    assert (prepare.ROOT / "docs" / "long.md").is_file()


def test_the_tree_comes_back_after_an_error(prepare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    carry(prepare, 10_000)
    sizes = iter([60_000])
    monkeypatch.setattr(prepare, "travelling", lambda: next(sizes))
    with pytest.raises(StopIteration):
        prepare.fit(sparse=True)
    assert (prepare.ROOT / "docs" / "long.md").is_file()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = script("run")
    monkeypatch.setattr(module, "as_on_the_machine", lambda: None)
    monkeypatch.setattr(module, "unpacked", lambda folder: folder)
    return module


def test_finished_items_are_skipped_and_an_error_ends_no_other(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.gpu import parts

    asked = []

    def item(name: str, folder: Path) -> dict[str, float]:
        asked.append(name)
        return {"of": {"one": 1, "two": 0}[name] / (name == "one")}

    names = ("done", "two", "one")
    monkeypatch.setitem(
        parts.PARTS, "rates", lambda _: ((name, lambda f, n=name: item(n, f)) for name in names)
    )
    (tmp_path / "results.jsonl").write_text('{"part": "rates", "item": "done"}\n')
    assert run.part("rates", tmp_path, cpu=True) == 1
    rows = [json.loads(row) for row in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert asked == ["two", "one"]
    assert "ZeroDivisionError" in rows[1]["error"] and rows[2]["of"] == 1


def test_a_part_that_takes_too_long_is_stopped(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", "--cpu", "--output", str(tmp_path), "--only", "recipes", "--seconds", "1"]
    monkeypatch.setattr(sys, "argv", words)
    assert run.main() == 1
    assert json.loads((tmp_path / "results.jsonl").read_text())["stopped_at"] == 1


def made_venv(folder: Path, requirements: Sequence[str]) -> Path:
    """A virtual environment with these packages; torch goes first, as in the Makefile."""
    pinned = (ROOT / "constraints.txt").read_text().splitlines()
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    for each in ([next(pin for pin in pinned if pin.startswith("torch=="))], requirements):
        subprocess.run([python, "-m", "pip", "install", "--quiet", *each], check=True)
    return python


def lowest() -> list[str]:
    """The lowest version of each package that `pyproject.toml` declares, but for torch."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = table["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["zoo"]]
    bounds = (re.match(r"([\w.-]+)>=([\d.]+)", each) for each in declared)
    return [f"{each[1]}=={each[2]}" for each in bounds if each and each[1] != "torch"]


@pytest.mark.nightly
def test_the_sample_builds_and_trains_with_the_lowest_versions(tmp_path: Path) -> None:
    python = made_venv(tmp_path / "venv", lowest())
    words = ["-m", "discorpora", "build", "--config", "sample", "--output", tmp_path / "build"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    subprocess.run([python, *words], cwd=ROOT, env=environment, check=True)


@pytest.mark.nightly
def test_the_gpu_run_is_green_on_a_cpu_with_what_the_machine_has(tmp_path: Path) -> None:
    subprocess.run([sys.executable, GPU / "prepare"], cwd=ROOT, check=True)
    python = made_venv(tmp_path / "venv", ["-r", str(GPU / "machine.txt")])
    packed = ["pydantic", "pydantic_core", "pyarrow"]  # which others may have asked for
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "-y", *packed], check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    words = [GPU / "run", "--cpu", "--output", tmp_path]
    subprocess.run([python, *words], env=environment, check=True)
