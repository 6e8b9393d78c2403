"""`kill -9` at any moment, then run again: it goes on, to the same bytes and metrics."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflows.conftest import MODELS, TINY, luigi_command, run_build_file, run_forked


def dataset_bytes(output: Path) -> dict[str, str]:
    """sha256 of every file of every dataset folder."""
    root = output / "tiny" / "datasets"
    return {
        f"{dataset.name}/{path.relative_to(dataset.resolve())}": _sha256(path)
        for dataset in sorted(root.iterdir())
        for path in sorted(dataset.resolve().rglob("*"))
        if path.is_file()
    }


def metrics(output: Path) -> dict[str, object]:
    """What the evaluation of each model says."""
    root = output / "tiny" / "evaluations"
    found = {}
    for path in sorted(root.glob("*/results.json")):
        found[path.parent.name] = json.loads(path.read_text(encoding="utf-8"))["metrics"]
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_and_kill(config: Path, output: Path, seconds: float, *more: str) -> bool:
    """Start the build and kill it after `seconds`; True if it had ended by itself."""
    command = luigi_command(config, output, *more)
    done = run_forked(command, config.parent, seconds=seconds)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode == 0


def check_kills(
    config: Path, run_luigi: Callable, folder: Path, *, seed: int, kills: int, workers: int
) -> None:
    """Build once undisturbed and once with `kills` kills at random moments: the same result."""
    calm, killed, more = folder / "calm", folder / "killed", ("--workers", str(workers))
    start = time.monotonic()
    run_build_file(config, calm, *more)
    whole = time.monotonic() - start

    moments = random.Random(seed)
    made = 0
    while made < kills and not run_and_kill(
        config, killed, moments.uniform(0.05, 0.25) * whole, *more
    ):
        made += 1
    assert made >= min(kills, 3)
    time.sleep(1.5)  # what a killed build started ends by itself within half a second
    done = run_luigi(config, *more, output=killed)
    assert done.returncode == 0, done.stderr

    assert dataset_bytes(killed) == dataset_bytes(calm)
    assert metrics(killed) == metrics(calm)
    assert metrics(calm) or "[models." not in config.read_text(encoding="utf-8")
    assert not list(killed.rglob("*.partial"))


@pytest.mark.slow
def test_a_killed_build_goes_on_to_the_same_result(
    write_config: Callable, run_luigi: Callable, tmp_path: Path
) -> None:
    """Without models: `zoo/test_resume.py` kills trainings, the nightly test builds with both."""
    config = write_config(TINY)
    check_kills(config, run_luigi, tmp_path, seed=20261120, kills=3, workers=1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_many_kills_with_two_workers(
    write_config: Callable, run_luigi: Callable, tmp_path: Path, seed: int
) -> None:
    config = write_config(TINY + MODELS)
    check_kills(config, run_luigi, tmp_path, seed=seed, kills=15, workers=2)
