"""The installed package, away from the checkout: nothing may be missing from the wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from zoo import EXTRA

ROOT = Path(__file__).resolve().parent.parent

CHECK = """
import json, sys
from pathlib import Path
import corpora, discorpora, extract, zoo, workflows
from extract.embedded import trained_documents
from typer.testing import CliRunner
from workflows.cli.app import app
from workflows.config import load_build
from workflows.report.page import ASSETS, TEMPLATES
from zoo.presets import shipped
assert Path(discorpora.__file__).parent == Path(sys.argv[1])
for room in (corpora, extract, zoo, workflows):
    assert str(Path(room.__file__)).startswith(sys.argv[1]), room.__file__
    assert (Path(room.__file__).parent / "py.typed").is_file(), room
assert {path.name for path in ASSETS.iterdir()} == {"report.css", "report.js"}
assert {path.name for path in TEMPLATES.iterdir()} == {"build.toml", "examples.html", "page.html"}
assert not CliRunner().invoke(app, ["plan", "--config", "sample"]).exit_code
json.dump([load_build("sample").name, sorted(shipped()), len(trained_documents())], sys.stdout)
"""

OFFLINE = """
import socket
def refuse(*_, **__): raise OSError("no network")
socket.socket.connect = refuse
from workflows.cli.app import main
main()
"""


PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
CORE_BYTES = 980_000_000
"""Maximum size of the core with all that it needs, unpacked, without byte code."""
CORE_BUILD = """
name = "mine"
[[sources]]
name = "stories"
spec = "sample:stories"
datasets = ["dissent", "bso"]
[datasets.dissent]
[datasets.bso]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # A copy, because setuptools works in `build/`, where our own output lies.
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "discorpora.py"):
        shutil.copy(ROOT / name, source)
    ignored = shutil.ignore_patterns("__pycache__")
    for room in ("extract", "corpora", "zoo", "workflows"):
        shutil.copytree(ROOT / room, source / room, ignore=ignored)
    command = [sys.executable, *PIP, "wheel", "--no-deps", "-w", folder, source]
    subprocess.run(command, check=True, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """A folder that holds the package as pip installs it from the wheel."""
    target = wheel.parent / "site"
    install = [*PIP, "install", "--no-deps", "--target", target, wheel]
    subprocess.run([sys.executable, *install], check=True)
    return target


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=environment,
    )


@pytest.mark.slow
def test_the_wheel_holds_everything(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "-c", CHECK, str(installed))
    name, recipes, seen = json.loads(done.stdout)
    assert name == "sample"
    assert {"dissent/bilstm", "coherence/contrastive"} <= set(recipes)
    assert seen > 100


@pytest.mark.slow
def test_the_installed_command_extracts(installed: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    run(installed, tmp_path, "-m", "workflows.cli.app", "extract", "sample:stories", "-o", str(out))
    assert len(out.read_text(encoding="utf-8").splitlines()) > 50


@pytest.mark.slow
def test_the_installed_scorer_needs_no_network(installed: Path, tmp_path: Path) -> None:
    draft = tmp_path / "draft.txt"
    draft.write_text("She opened the door. It was dark inside. She lit a lamp.", encoding="utf-8")
    done = run(installed, tmp_path, "-c", OFFLINE, "score", str(draft), "--json")
    [row] = [json.loads(line) for line in done.stdout.splitlines()]
    assert row["sentences"] == 3 and 0 <= row["percentile"] <= 100


@pytest.mark.slow
def test_one_stage_of_the_sample_runs_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    command = ("-m", "luigi", "--module", "workflows", "Dataset", "--name", "sp")
    run(installed, tmp_path, *command, "--local-scheduler")
    assert list((tmp_path / "build").rglob("dataset/sp/*/manifest.json"))


@pytest.mark.nightly
def test_the_core_is_small_and_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "core"], check=True)
    python = tmp_path / "core" / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    install = [*PIP, "install", "--no-compile", "-c", constraints, wheel]
    subprocess.run([python, *install], check=True)
    (site,) = (tmp_path / "core" / "lib").glob("*/site-packages")
    tools = {"pip", "setuptools", "pkg_resources", "__pycache__"}  # not of the core
    files = (path for path in site.rglob("*") if not tools & {*path.relative_to(site).parts})
    assert sum(path.stat().st_size for path in files if path.is_file()) <= CORE_BYTES
    for name in (*EXTRA, "statsmodels"):
        assert not (site / name).exists()
    (tmp_path / "mine.toml").write_text(CORE_BUILD, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for line in (
        "extract sample:stories -o pairs.jsonl",
        "build --config mine.toml",
        "audit build/mine/datasets/bso",
        "report build/mine",
        "predict-marker Rain. Home.",
    ):
        command = [python.with_name("discorpora"), *line.split()]
        subprocess.run(command, check=True, cwd=tmp_path, env=environment)
    assert (tmp_path / "build" / "mine" / "report" / "index.html").is_file()


@pytest.mark.nightly
def test_uv_installs_and_runs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """`uv tool install` and `uvx`, with uv from the package index."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "uv"], check=True)
    programs = tmp_path / "uv" / "bin"
    subprocess.run([programs / "python", *PIP, "install", "uv"], check=True)
    (tmp_path / "book.txt").write_text("We stayed inside because it rained.", encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "UV_PYTHON": sys.executable,
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
    }
    words = ["discorpora", "extract", "text:book.txt", "-o"]
    for command in (
        [programs / "uvx", "--from", wheel, *words, "pairs.csv"],
        [programs / "uv", "tool", "install", wheel],
        [tmp_path / "bin" / words[0], *words[1:], "again.csv"],
    ):
        subprocess.run(command, check=True, cwd=tmp_path, env=environment)
    header, row = (tmp_path / "pairs.csv").read_text(encoding="utf-8").splitlines()
    assert header.startswith("doc,") and "We stayed inside.,It rained." in row
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "pairs.csv").read_bytes()


@pytest.mark.nightly
def test_the_index_would_take_the_wheel(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "twine"], check=True)
    programs = tmp_path / "twine" / "bin"
    subprocess.run([programs / "python", *PIP, "install", "twine"], check=True)
    subprocess.run([programs / "twine", "check", "--strict", wheel], check=True)
