"""Builds run as a user runs them: `luigi` in a process of its own, mostly a fork of this one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from luigi.cmdline import luigi_run
from typer.testing import CliRunner

from corpora.code import parse_code
from tests.processes import OURS, forked

ROOT = Path(__file__).resolve().parent.parent.parent

LIBRARIES = (
    *("datasets", "extract.commands", "extract.embedded.component", "extract.pipeline"),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "matplotlib.figure"),
    *("scipy.stats", "sklearn.feature_extraction.text", "sklearn.linear_model"),
    *("sklearn.pipeline", "sklearn.preprocessing", "spacy", "torch"),
)
TINY = """
name = "tiny"
seed = 5
threads = 1

[[sources]]
name = "stories"
spec = "sample:stories"
datasets = ["dissent", "sp", "bso", "permuted"]

[[sources]]
name = "news"
spec = "sample:news"
datasets = ["dissent", "bso", "permuted"]

[[validation]]
name = "sample"
sources = ["stories", "news"]
gold = "pdtb:{sample}/gold"

[datasets.dissent]
[datasets.sp]
[datasets.bso]
[datasets.permuted]
"""

MODELS = """
[models.dissent-bilstm]
recipe = "dissent/bilstm_tiny"
dataset = "dissent"
config = "all"
suite = "dissent"
settings = { epochs = 2, save_steps = 2 }

[models.coherence-contrastive]
recipe = "coherence/contrastive_tiny"
dataset = "permuted"
config = "contrastive"
suite = "permuted"
settings = { max_steps = 6, save_steps = 2 }
"""


def luigi_command(config: Path, output: Path, *more: str, task: str = "BuildAll") -> list[str]:
    options = ("--config", str(config), "--discorpora-output", str(output))
    return [sys.executable, "-m", "luigi", "--module", "workflows", task, *options, *more]


def run_build_file(config: Path, output: Path, *more: str) -> str:
    """Build a file in a process of its own; returns what it says."""
    done = run_forked(luigi_command(config, output, *more), config.parent)
    assert done.returncode == 0, done.stderr
    return done.stderr


def run_forked(
    command: list[str], cwd: Path, *, seconds: float | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of `luigi_command` in a fork; `more` environment variables.

    The fork is killed after `seconds`.
    """
    load_libraries()
    # Luigi takes forks of test processes, whose command lines are equal, for one run started twice.
    words = [*command[3:], "--no-lock"]
    env = luigi_environment() | more
    return forked(lambda: luigi_run(words), env=env, cwd=cwd, seconds=seconds)


@cache
def load_libraries() -> None:
    """Load what most builds load, once for all forks of this process: half of a small build."""
    for name in LIBRARIES:
        import_module(name)
    for name, module in [*sys.modules.items()]:  # the code that a build makes hashes of
        if name.partition(".")[0] in OURS:
            path = Path(str(module.__file__))
            parse_code(path.read_text(encoding="utf-8"), path, name)


def luigi_environment() -> dict[str, str]:
    return {**os.environ, "LUIGI_CONFIG_PATH": str(ROOT / "luigi.cfg"), "HF_HUB_OFFLINE": "1"}


def living(mark: str) -> list[str]:
    """The processes that have `mark` in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (place / "environ").read_bytes():
                found.append(place.name)
        except OSError:
            continue
    return found


def until(true: Callable[[], Any], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def write_config(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "build.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def run_luigi(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a task (BuildAll) on a build file; the output goes to `tmp_path / "out"`."""

    def run(
        config: Path, *more: str, output: Path | None = None, task: str = "BuildAll"
    ) -> subprocess.CompletedProcess[str]:
        return run_forked(
            luigi_command(config, output or tmp_path / "out", *more, task=task), tmp_path
        )

    return run


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `tiny` of a build without models."""
    from workflows.cli.app import app

    folder = tmp_path_factory.mktemp("report")
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    arguments = ["build", "--config", str(folder / "tiny.toml"), "--output", str(folder / "out")]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return folder / "out" / "tiny"
