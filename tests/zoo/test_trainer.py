"""The frame around the Trainer: accumulation, what is logged and left."""

from __future__ import annotations

import json
import math
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from corpora.errors import DiscorporaError
from workflows.report.stages import amounts
from zoo.modeling import float32_products
from zoo.presets import read_preset
from zoo.training import trainer
from zoo.training.job import Job
from zoo.training.throughput import Pace, Throughput

NO_DROPOUT = [
    *("--backbone_config.hidden_dropout_prob", "0"),
    *("--backbone_config.attention_probs_dropout_prob", "0"),
]
Run = Callable[..., tuple[int, str]]


@pytest.mark.parametrize(
    ("recipe", "folder", "options"),
    [
        ("dissent/bilstm_tiny", "pairs_folder", []),
        ("coherence/contrastive_tiny", "permuted_folder", NO_DROPOUT),
    ],
)
def test_two_half_batches_accumulated_are_one_batch(
    recipe: str,
    folder: str,
    options: list[str],
    train_cli: Run,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    caplog.set_level("INFO", logger="zoo")
    common = ["--dataset", request.getfixturevalue(folder), "--max_train_rows", "8", *options]
    norms, weights = [], []
    for parts in (1, 2):
        output = tmp_path / f"{parts}"
        sizes = ["--batch_size", 8, "--gradient_accumulation", parts, "--epochs", "1"]
        code, message = train_cli(recipe, *common, *sizes, "--logging_steps", 1, "--output", output)
        assert code == 0, message
        norms.append(float(re.findall(r"grad_norm ([\d.e-]+)", caplog.text)[-1]))
        weights.append(load_file(output / "model.safetensors"))
    assert norms[0] == pytest.approx(norms[1], rel=2e-3)
    # Gradients of the scorer's first step are near rounding, and Adam scales them up to 1e-3.
    for name, one in weights[0].items():
        if name == "score_head.bias":
            continue  # it moves all scores alike: its gradient is zero but for a CPU's rounding
        torch.testing.assert_close(one, weights[1][name], atol=1e-4, rtol=1e-3, msg=name)


def test_a_batch_that_cannot_be_shared_out_is_refused(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    words = ["--dataset", pairs_folder, "--output", tmp_path / "m", "--batch_size", 6]
    code, message = train_cli("dissent/bilstm_tiny", *words, "--gradient_accumulation", 4)
    assert code == 2 and "batch_size = 6 is not a multiple of processes = 1" in message


@pytest.mark.parametrize(
    ("recipe", "folder"),
    [
        ("dissent/transformer_tiny", "pairs_folder"),
        ("coherence/contrastive_tiny", "permuted_folder"),
    ],
)
def test_results_are_computed_in_float32(
    recipe: str,
    folder: str,
    train_cli: Run,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a training in bfloat16 the model computes as the one that is loaded from the folder."""
    kinds: list[torch.dtype] = []
    fit = trainer.fit

    def fitted(made: Any, **settings: Any) -> Any:
        state = fit(made, **settings)
        encoder = next(m for m in made.model.modules() if type(m).__name__ == "BertEncoder")
        encoder.register_forward_hook(lambda *of: kinds.append(of[-1][0].dtype))
        return state

    for room in ("coherence.contrastive", "dissent.transformer"):
        monkeypatch.setattr(f"zoo.{room}.fit", fitted)
    data = request.getfixturevalue(folder)
    words = ["--dataset", data, "--output", tmp_path / "m", "--max_steps", 1, "--bf16", "true"]
    code, message = train_cli(recipe, *words)
    assert code == 0, message
    assert set(kinds) == {torch.float32}


def test_what_a_run_leaves(train_cli: Run, pairs_folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "model"
    code, _ = train_cli(
        "dissent/bilstm_tiny", "--dataset", pairs_folder, "--output", output, "--epochs", "2"
    )
    assert code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"model", "model.train.json"}
    assert "| trained on | 96 examples |" in (output / "README.md").read_text(encoding="utf-8")
    assert {path.name for path in output.iterdir()} == {
        *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
        *("README.md", "results.json", "manifest.json"),
        *("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
        "modeling_discorpora.py",
    }
    speed = json.loads((tmp_path / "model.train.json").read_text(encoding="utf-8"))
    assert speed["steps"] == 12 and speed["examples_per_second"] > 0
    assert speed["real_tokens_per_second"] > speed["examples_per_second"]
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert results["dataset"]["revision"] == "hash-of-dissent"
    assert [entry["step"] for entry in results["training"]["validations"]] == [6, 12]
    assert [step for step, _ in results["training"]["losses"]] == [6, 12]
    assert str(tmp_path) not in (output / "results.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in (output / "config.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("recipe", "folder", "options", "examples"),
    [
        ("dissent/bilstm_tiny", "pairs_folder", ["--epochs", "1"], 40),
        ("dissent/ngram", "pairs_folder", ["--grid", "[1.0]"], 40),
        ("coherence/contrastive_tiny", "permuted_folder", ["--max_steps", "2"], 8),
    ],
)
def test_a_model_says_how_much_it_was_trained_on(
    recipe: str,
    folder: str,
    options: list[str],
    examples: int,
    train_cli: Run,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    data, output = request.getfixturevalue(folder), tmp_path / "model"
    limit = ["--max_train_rows", examples]
    code, message = train_cli(recipe, "--dataset", data, "--output", output, *limit, *options)
    assert code == 0, message
    card = (output / "README.md").read_text(encoding="utf-8")
    assert f"| trained on | {examples} examples |" in card
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert amounts("model", results)[:2] == (examples, "training examples")
    del results["trained_on"]  # models of earlier versions
    assert amounts("model", results)[0] == results["dataset"]["rows"]["train"]


@pytest.mark.parametrize(
    ("options", "steps"),
    [([], [3, 6, 8]), (["--max_steps", "6"], [3, 6])],  # the last one is not validated twice
)
def test_validation_inside_an_epoch(
    options: list[str],
    steps: list[int],
    train_cli: Run,
    permuted_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    saved: list[int] = []
    save = trainer.ZooTrainer._save_checkpoint

    def noting(self: trainer.ZooTrainer, *args: Any) -> None:
        saved.append(self.state.global_step)
        save(self, *args)

    monkeypatch.setattr(trainer.ZooTrainer, "_save_checkpoint", noting)
    caplog.set_level("INFO", logger="zoo")
    output = tmp_path / "model"
    code, _ = train_cli(
        "coherence/contrastive_tiny",
        *("--dataset", permuted_folder, "--output", output, "--eval_steps", "3", *options),
    )
    assert code == 0
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert [entry["step"] for entry in results["training"]["validations"]] == steps == saved
    line = rf"step 3 of {steps[-1]}, [\d.,e+]+ examples/s, \d+ s left: eval_loss"
    assert re.search(line, caplog.text)


def test_the_pace_of_a_resumed_run_counts_its_own_steps() -> None:
    pace = Pace(1500, 6, first=100, start=time.monotonic() - 50)
    assert pace.line(110) == "step 110 of 1,500, 1.2 examples/s, 1 h 56 min left"
    assert pace.line(100) == "step 100 of 1,500"


def test_the_generators_of_other_gpus_stay_untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[Any] = []
    fork = torch.random.fork_rng

    def noting(devices: Any = None, **more: Any) -> Any:
        named.append(devices)
        return fork(devices, **more)

    monkeypatch.setattr(torch.random, "fork_rng", noting)
    model = torch.nn.Linear(2, 1)
    trainer.ignore_unused(model, lambda: model(torch.ones(1, 2)).sum())
    assert named == [[]]


@pytest.mark.parametrize("tf32", [True, False])
def test_products_of_float32_are_set_in_one_place(
    tf32: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As asked for in matrices, convolutions and recurrent layers alike, and put back."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    parts = torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn
    former = [part.fp32_precision for part in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with float32_products(tf32=tf32):
            assert {part.fp32_precision for part in parts} == {"tf32" if tf32 else "ieee"}
    assert [part.fp32_precision for part in parts] == former


def test_the_pairwise_objective_trains_too(
    train_cli: Run, permuted_folder: Path, tmp_path: Path
) -> None:
    code, message = train_cli(
        "coherence/contrastive_tiny",
        *("--dataset", permuted_folder, "--output", tmp_path / "m", "--objective", "pairwise"),
        *("--max_eval_rows", 3),
    )
    assert code == 0, message
    results = json.loads((tmp_path / "m" / "results.json").read_text(encoding="utf-8"))
    assert results["dataset"]["config"] == "pairwise"
    reference = json.loads((tmp_path / "m" / "reference.json").read_text(encoding="utf-8"))
    assert reference["texts"] == results["metrics"]["test"]["pairs"] == 3


def job_of(recipe: str, folder: Path, **options: object) -> Job:
    """A run of a shipped recipe that has not begun."""
    found = read_preset(recipe)
    needed = {"dataset": "d", "output": str(folder / "model"), **options}
    return Job(found.name, found.about, found.recipe(needed), folder / "model.partial")


def test_of_several_gpus_one_process_takes_one(
    tmp_path: Path,
    on_two_gpus: Callable[[ModuleType], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    on_two_gpus(trainer)
    job = job_of("dissent/bilstm_tiny", tmp_path)
    with caplog.at_level("INFO", "zoo"):
        arguments = trainer.training_arguments(job)
    assert arguments.n_gpu == 1
    assert arguments.train_batch_size == job.recipe.batch_size
    assert "one of 2 GPUs" in caplog.text and "accelerate launch -m zoo.train" in caplog.text


@pytest.mark.parametrize(("given", "steps"), [(0, -1), (-1, -1), (7, 7)])
def test_max_steps_of_0_leaves_the_epochs(given: int, steps: int, tmp_path: Path) -> None:
    job = job_of("dissent/bilstm_tiny", tmp_path, max_steps=given)
    assert trainer.training_arguments(job).max_steps == steps


def test_a_step_does_not_wait_for_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on `meta` cannot be read: it stands in for what would have to be waited for."""
    mask = torch.ones(2, 3, dtype=torch.long, device="meta")
    throughput = Throughput(tmp_path / "m.train.json", "r")
    made = SimpleNamespace(throughput=throughput)
    loss = torch.ones((), device="meta")
    monkeypatch.setattr(trainer.Trainer, "training_step", lambda *_: loss)
    monkeypatch.setattr(trainer.ZooTrainer, "__init__", lambda self: vars(self).update(vars(made)))
    assert trainer.ZooTrainer().training_step(None, {"attention_mask": mask}) is loss
    assert throughput.examples == 2
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    job = job_of("dissent/bilstm_tiny", tmp_path, bf16=False)
    arguments = trainer.training_arguments(job)
    assert arguments.accelerator_config.non_blocking


def test_a_mean_loss_that_is_not_finite_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer.ZooTrainer, "__init__", lambda self: None)
    made = trainer.ZooTrainer()
    made.job, made.state = job_of("dissent/bilstm_tiny", tmp_path), SimpleNamespace(global_step=50)
    with pytest.raises(DiscorporaError, match="the loss is nan in the steps up to 50"):
        made.log({"loss": math.nan})


def test_processes_without_a_gpu_each_are_refused(
    train_cli: Run, pairs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 1)
    where = ["--dataset", pairs_folder, "--output", tmp_path / "model"]
    code, message = train_cli("dissent/bilstm_tiny", *where, "--processes", 2)
    assert code == 2 and "processes = 2, and this machine has 1 GPUs" in message


def test_several_processes_are_started_once(
    train_cli: Run, pairs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def run(command: list[str], **more: Any) -> SimpleNamespace:
        started.append(command)
        assert more["env"]["DISCORPORA_LAUNCHED"] == "1"  # they start none themselves
        file = Path(command[-1])
        (assigned,) = json.loads(file.read_text())
        assert assigned["settings"]["processes"] == 2 and assigned["settings"]["epochs"] == 3
        if len(started) == 3:
            assigned["fault"] = {"problem": "a row is bad", "hint": "leave it out"}
            file.write_text(json.dumps([assigned]))
        return SimpleNamespace(returncode=len(started) - 1)

    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr("zoo.train.subprocess.run", run)
    where = ["--dataset", pairs_folder, "--output", tmp_path / "model"]
    words = ["dissent/bilstm_tiny", *where, "--processes", 2, "--epochs", 3]
    assert train_cli(*words)[0] == 0
    assert started[0][1:4] == ["-m", "accelerate.commands.launch", "--multi_gpu"]
    assert started[0][-3:-1] == ["-m", "zoo.train"]
    for reason in ("one of the 2 processes died", "a row is bad\n  leave it out"):
        code, message = train_cli(*words)
        assert code == 2 and reason in message


def test_a_long_curve_keeps_its_end_and_its_mean() -> None:
    losses = [(step, float(step)) for step in range(1, 1001)]
    few = trainer.thinned(losses, most=10)
    assert len(few) == 10 and few[-1] == [1000, 950.5] and few[0] == [100, 50.5]
    assert trainer.thinned(losses[:3], most=10) == [[1, 1.0], [2, 2.0], [3, 3.0]]
