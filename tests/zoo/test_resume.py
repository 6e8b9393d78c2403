"""A run that is killed and started again ends as the undisturbed one, bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zoo.train import train
from zoo.training import checkpoints, job

ROOT = Path(__file__).resolve().parents[2]
PAIRS = ["dissent/bilstm_tiny", "--epochs", "4", "--save_steps", "2", "--patience", "0"]
TEXTS = ["coherence/contrastive_tiny", "--epochs", "2", "--save_steps", "3"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def killed(run: Callable[[], Any]) -> None:
    """Run in a child process, which must die by SIGKILL."""
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def kill_at(monkeypatch: pytest.MonkeyPatch, target: Any, name: str, count: int) -> None:
    """The `count`-th call of `target.name` kills the process."""
    original, calls = getattr(target, name), []

    def counting(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)

    monkeypatch.setattr(target, name, counting)


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, pairs_folder: Path, permuted_folder: Path
) -> dict[str, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    train([*PAIRS, "--dataset", str(pairs_folder), "--output", str(folder / "pairs")])
    train([*TEXTS, "--dataset", str(permuted_folder), "--output", str(folder / "texts")])
    return {name: contents(folder / name) for name in ("pairs", "texts")}


@pytest.mark.parametrize(
    ("module", "name", "count"),
    [
        ("zoo.training.trainer.ZooTrainer", "training_step", 5),  # inside the first epoch
        ("zoo.training.trainer.ZooTrainer", "training_step", 15),  # inside the third
        ("zoo.training.trainer.ZooTrainer", "evaluate", 3),  # at an epoch's end
        ("zoo.training.trainer.ZooTrainer", "_save_rng_state", 4),  # a checkpoint is half written
        ("zoo.training.checkpoints", "seal", 6),  # a checkpoint is written, not sealed
        ("zoo.training.finishing", "save_model", 1),  # trained, nothing written
        ("zoo.training.card", "write_text", 1),  # the weights are written, not the card
        ("zoo.training.job", "_finish", 1),  # finished, not renamed
    ],
)
def test_a_killed_run_goes_on_to_the_same_bytes(
    module: str,
    name: str,
    count: int,
    pairs_folder: Path,
    undisturbed: dict[str, dict[str, bytes]],
    tmp_path: Path,
) -> None:
    output = tmp_path / "pairs"
    command = [*PAIRS, "--dataset", str(pairs_folder), "--output", str(output)]
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, _resolve(module), name, count)
        killed(lambda: train(command))
    assert not output.exists()
    train(command)
    assert contents(output) == undisturbed["pairs"]
    assert not output.with_name("pairs.partial").exists()


@pytest.mark.parametrize("step", [4, 10])
def test_the_scorer_resumes_to_the_same_bytes(
    step: int, permuted_folder: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    output = tmp_path / "texts"
    command = [*TEXTS, "--dataset", str(permuted_folder), "--output", str(output)]
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, _resolve("zoo.training.trainer.ZooTrainer"), "training_step", step)
        killed(lambda: train(command))
    train(command)
    assert contents(output) == undisturbed["texts"]


def test_a_run_that_had_stopped_early_is_not_trained_further(
    pairs_folder: Path, tmp_path: Path
) -> None:
    options = [*PAIRS, "--patience", "1", "--epochs", "12", "--dataset", str(pairs_folder)]
    train([*options, "--output", str(tmp_path / "whole")])
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, _resolve("zoo.training.finishing"), "save_model", 1)
        killed(lambda: train([*options, "--output", str(tmp_path / "killed")]))
    train([*options, "--output", str(tmp_path / "killed")])
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


@pytest.mark.slow
def test_kill_from_outside_at_any_moment(
    pairs_folder: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    output = tmp_path / "pairs"
    command = [*PAIRS, "--dataset", str(pairs_folder), "--output", str(output)]
    process = subprocess.Popen(
        [sys.executable, "-m", "zoo.train", *command], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    folder = output.with_name("pairs.partial") / "checkpoints"
    while process.poll() is None and checkpoints.newest(folder) is None:
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert not output.exists()
    train(command)
    assert contents(output) == undisturbed["pairs"]


@pytest.mark.slow
def test_accelerate_launch_needs_no_configuration(
    pairs_folder: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    launch = ["accelerate.commands.launch", "--quiet", "--num_processes", "1"]
    launch += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    launch += ["--num_cpu_threads_per_process", "1", "--cpu", "-m", "zoo.train"]
    command = [*PAIRS, "--dataset", str(pairs_folder), "--output", str(tmp_path / "pairs")]
    subprocess.run(
        [sys.executable, "-m", *launch, *command],
        cwd=ROOT,
        env={**os.environ, "HF_HOME": str(tmp_path / "home")},
        check=True,
        capture_output=True,
    )
    assert contents(tmp_path / "pairs") == undisturbed["pairs"]


def test_the_same_command_again_does_nothing(
    pairs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*PAIRS, "--dataset", str(pairs_folder), "--output", str(tmp_path / "model")]
    train(command)
    monkeypatch.setattr(job, "working", None)
    train(command)


def test_a_checkpoint_with_a_file_cut_short_does_not_count(tmp_path: Path) -> None:
    for step in (2, 4):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"weights")
        checkpoints.seal(folder)
    (tmp_path / "checkpoint-4" / "model.safetensors").write_bytes(b"weig")
    assert checkpoints.newest(tmp_path) == tmp_path / "checkpoint-2"
    checkpoints.clear_broken(tmp_path)
    assert not (tmp_path / "checkpoint-4").exists()


def _resolve(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(import_module(module), attribute)
