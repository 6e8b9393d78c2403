"""A run that is killed and started again sees and learns what the undisturbed one does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState, DistributedType, PartialState
from safetensors.torch import load_file

from corpora.errors import DiscorporaError
from zoo.train import train
from zoo.training import checkpoints, job
from zoo.training.trainer import ZooTrainer

ROOT = Path(__file__).resolve().parents[2]
PAIRS = ["dissent/bilstm_tiny", "--epochs", "4", "--save_steps", "2", "--patience", "0"]
TEXTS = ["coherence/contrastive_tiny", "--epochs", "2", "--save_steps", "3"]


@dataclass(frozen=True)
class Run:
    """What a run saw and made: by step the batches' contents and losses; results and weights."""

    batches: dict[int, int]
    losses: dict[int, float]
    results: dict[str, Any]
    weights: dict[str, torch.Tensor]


def trained(command: list[str], output: Path) -> Run:
    """Train, or go on training; each step is noted in a file beside the output."""
    notes = output.with_name(f"{output.name}.steps")
    original = ZooTrainer.training_step

    def noting(self: ZooTrainer, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        loss = original(self, model, inputs, *args, **kwargs)
        seen = zlib.crc32(inputs["input_ids"].numpy().tobytes())
        with notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps([self.state.global_step, seen, loss.item()]) + "\n")
        return loss

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ZooTrainer, "training_step", noting)
        train([*command, "--output", str(output)])
    batches: dict[int, int] = {}
    losses: dict[int, float] = {}
    for line in notes.read_text(encoding="utf-8").splitlines():
        step, seen, loss = json.loads(line)
        batches[step], losses[step] = seen, loss  # a step that was taken twice counts once
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    return Run(batches, losses, results, load_file(output / "model.safetensors"))


def assert_alike(one: Run, two: Run) -> None:
    """The same examples in the same order; losses, figures and weights up to rounding."""
    assert one.batches == two.batches
    assert one.losses == pytest.approx(two.losses, abs=1e-5)
    for part in ("training", "metrics"):
        flat = [dict(_flat(run.results[part])) for run in (one, two)]
        assert flat[0] == pytest.approx(flat[1], abs=1e-5)
    for name, weights in one.weights.items():
        torch.testing.assert_close(weights, two.weights[name], atol=1e-5, rtol=1e-4, msg=name)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers of nested tables, by their paths."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from _flat(inner, f"{path}.{key}")
        elif isinstance(inner, int | float):
            yield f"{path}.{key}", inner


def killed(run: Callable[[], Any], due: Callable[[], Any] | None = None) -> None:
    """Run in a child process, which must die by SIGKILL: its own, or ours as soon as it is due."""
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os._exit(1)
    if due:
        ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while not due() and os.waitid(os.P_PID, child, ended) is None:
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def train_together(command: list[str], *, fsdp: str = "", status: int = 0) -> None:
    """Train in two processes as `torchrun` starts them, but forked: they import nothing.

    Both end with `status`, as `os.waitpid` gives it.
    `fsdp` shares out the model; accelerate does that on GPUs alone, and is told that these
    processes had some. Such a training ends with the error `fsdp`.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            try:
                AcceleratorState._reset_state(reset_partial_state=True)
                place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2}
                place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "ACCELERATE_USE_CPU": 1}
                os.environ.update({name: str(value) for name, value in place.items()})
                if fsdp:
                    _shard_on_the_cpu()
                    with pytest.raises(DiscorporaError, match=fsdp):
                        train(command)
                else:
                    train(command)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [status] * 2


def _shard_on_the_cpu() -> None:
    os.environ |= {
        "ACCELERATE_USE_FSDP": "true",
        "FSDP_VERSION": "2",
        "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
        "FSDP_TRANSFORMER_CLS_TO_WRAP": "BertLayer",
        "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
    }
    torch.distributed.init_process_group("gloo")
    PartialState._prepare_backend = lambda *_, **__: ("gloo", DistributedType.MULTI_GPU)
    PartialState.set_device = lambda state: setattr(state, "device", torch.device("cpu"))


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
) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("undisturbed")
    commands = {
        "pairs": [*PAIRS, "--dataset", str(pairs_folder)],
        "texts": [*TEXTS, "--dataset", str(permuted_folder)],
    }
    return {name: trained(words, folder / name) for name, words in commands.items()}


@pytest.mark.parametrize(
    ("module", "name", "count"),
    [
        ("zoo.training.trainer.ZooTrainer", "training_step", 5),  # inside the first epoch
        ("zoo.training.trainer.ZooTrainer", "training_step", 15),  # inside the third
        ("zoo.training.trainer.ZooTrainer", "evaluate", 3),  # at an epoch's end
        ("zoo.training.trainer.ZooTrainer", "_save_rng_state", 4),  # a checkpoint is half written
        ("zoo.training.checkpoints", "seal", 6),  # a checkpoint is written, not sealed
        ("zoo.training.finishing", "save_model", 1),  # trained, nothing written
        ("zoo.training.finishing", "write_text", 1),  # the weights are written, not the card
        ("zoo.training.job", "code_hash", 1),  # finished, not renamed
    ],
)
def test_a_killed_run_goes_on_as_if_undisturbed(
    module: str,
    name: str,
    count: int,
    pairs_folder: Path,
    undisturbed: dict[str, Run],
    tmp_path: Path,
) -> None:
    output = tmp_path / "pairs"
    command = [*PAIRS, "--dataset", str(pairs_folder)]
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, _resolve(module), name, count)
        killed(lambda: trained(command, output))
    assert not output.exists()
    assert_alike(trained(command, output), undisturbed["pairs"])
    assert not output.with_name("pairs.partial").exists()


def test_the_scorer_resumes_as_if_undisturbed(
    permuted_folder: Path, undisturbed: dict[str, Run], tmp_path: Path
) -> None:
    output = tmp_path / "texts"
    command = [*TEXTS, "--dataset", str(permuted_folder)]
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, _resolve("zoo.training.trainer.ZooTrainer"), "training_step", 10)
        killed(lambda: trained(command, output))
    assert_alike(trained(command, output), undisturbed["texts"])


def test_a_run_that_had_stopped_early_is_not_trained_further(
    pairs_folder: Path, tmp_path: Path
) -> None:
    options = [*PAIRS, "--patience", "1", "--epochs", "12", "--dataset", str(pairs_folder)]
    whole = trained(options, tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, _resolve("zoo.training.finishing"), "save_model", 1)
        killed(lambda: trained(options, tmp_path / "killed"))
    steps = (tmp_path / "killed.steps").read_text(encoding="utf-8")
    assert_alike(trained(options, tmp_path / "killed"), whole)
    assert (tmp_path / "killed.steps").read_text(encoding="utf-8") == steps  # none was added


@pytest.mark.slow
def test_kill_from_outside_at_any_moment(
    pairs_folder: Path, undisturbed: dict[str, Run], tmp_path: Path
) -> None:
    output = tmp_path / "pairs"
    command = [*PAIRS, "--dataset", str(pairs_folder), "--output", str(output)]
    folder = output.with_name("pairs.partial") / "checkpoints"
    killed(lambda: train(command), lambda: checkpoints.newest(folder))
    assert not output.exists()
    train(command)
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    expected = undisturbed["pairs"].results
    for part in ("training", "metrics"):
        assert dict(_flat(results[part])) == pytest.approx(dict(_flat(expected[part])), abs=1e-5)


@pytest.mark.slow
def test_accelerate_launch_needs_no_configuration(
    pairs_folder: Path, undisturbed: dict[str, Run], tmp_path: Path
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
    results = json.loads((tmp_path / "pairs" / "results.json").read_text(encoding="utf-8"))
    found, expected = dict(_flat(results["metrics"])), undisturbed["pairs"].results["metrics"]
    assert found == pytest.approx(dict(_flat(expected)), abs=1e-5)


@pytest.mark.nightly
def test_torchrun_starts_two_processes(
    pairs_folder: Path, undisturbed: dict[str, Run], tmp_path: Path
) -> None:
    """The other tests fork the processes that `torchrun` starts."""
    launch = ["torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m", "zoo.train"]
    command = [*PAIRS, "--dataset", str(pairs_folder), "--output", str(tmp_path / "pairs")]
    subprocess.run(
        [sys.executable, "-m", *launch, *command],
        cwd=ROOT,
        env={**os.environ, "ACCELERATE_USE_CPU": "true"},
        check=True,
        capture_output=True,
    )
    results = json.loads((tmp_path / "pairs" / "results.json").read_text(encoding="utf-8"))
    assert results["metrics"].keys() == undisturbed["pairs"].results["metrics"].keys()


def test_two_processes_learn_what_one_does(pairs_folder: Path, tmp_path: Path) -> None:
    """Without dropout on a CPU: the same batches, halved; the results say how many there were."""
    settings = ["--max_steps", "6", "--save_steps", "2", "--batch_size", "8"]
    command = [*PAIRS, *settings, "--dataset", str(pairs_folder), "--output"]
    train([*command, str(tmp_path / "one")])
    train_together([*command, str(tmp_path / "two")])
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, weight in one.items():
        torch.testing.assert_close(weight, two[name], atol=1e-5, rtol=1e-4)
    results = json.loads((tmp_path / "two" / "results.json").read_text(encoding="utf-8"))
    assert results["training"]["processes"] == 2


def test_one_process_goes_on_where_two_stopped(pairs_folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "model"
    command = [*PAIRS, "--dataset", str(pairs_folder), "--output", str(output)]
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, ZooTrainer, "training_step", 5)  # after the second checkpoint
        train_together(command, status=signal.SIGKILL)
    assert not output.exists()
    train(command)
    (note,) = json.loads((output / "results.json").read_text(encoding="utf-8"))["notes"]
    assert note.startswith("2 processes began, 1 went on from checkpoint-")


def learns_the_same_shared_out(recipe: str, data: Path, folder: Path) -> None:
    """Two processes with a part of the model each (FSDP) against two with the whole model."""
    settings = ["--max_steps", "4", "--save_steps", "2", "--max_eval_rows", "4"]
    command = [recipe, *settings, "--dataset", str(data), "--output"]
    train_together([*command, str(folder / "whole")])
    train_together([*command, str(folder / "shared")], fsdp="trained with FSDP")
    assert not (folder / "shared").exists()
    train([*command, str(folder / "shared")])
    one, two = (load_file(folder / name / "model.safetensors") for name in ("whole", "shared"))
    for name, weight in one.items():
        if name.endswith(("score_head.bias", "key.bias")):
            continue  # softmax and a loss of differences give it no gradient but rounding
        torch.testing.assert_close(weight, two[name], atol=1e-5, rtol=1e-4, msg=name)


def test_a_model_that_is_shared_out_learns_the_same(
    pairs_folder: Path, permuted_folder: Path, tmp_path: Path
) -> None:
    learns_the_same_shared_out("dissent/transformer_tiny", pairs_folder, tmp_path / "pairs")
    learns_the_same_shared_out("coherence/contrastive_tiny", permuted_folder, tmp_path / "texts")


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
