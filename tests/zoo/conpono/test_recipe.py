"""The recipe from the dataset to the model folder: variants, losses, interrupted runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel

import zoo
from corpora.errors import ConfigError
from corpora.store.atomic import write_json
from tests.bench import measure_conpono as measure
from tests.zoo.test_resume import learns_the_same_shared_out, train_together
from zoo.conpono import ConponoModel
from zoo.conpono.training import ConponoTrainer
from zoo.evaluate.results import write_outcomes
from zoo.evaluate.scores import Outcomes, independent_units
from zoo.options import parse_flags
from zoo.presets import catalogue, read_preset
from zoo.train import train

TINY = ["conpono/tiny", "--max_train_rows", "12", "--max_eval_rows", "4", "--vocab_size", "300"]
SMALL = ["--backbone_config.hidden_size", "16", "--backbone_config.intermediate_size", "32"]
ISOLATED = ["--encoder", "isolated"]
Cli = Callable[..., tuple[int, str]]


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def run(data: Path, output: Path, *options: str) -> dict[str, Any]:
    train([*TINY, *SMALL, "--dataset", str(data), "--output", str(output), *options])
    return json.loads((output / "results.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, paragraphs_folder: Path) -> Path:
    output = tmp_path_factory.mktemp("undisturbed") / "model"
    run(paragraphs_folder, output, "--epochs", "2", "--logging_steps", "2")
    return output


def test_folder_has_model_figures_and_plot(undisturbed: Path) -> None:
    results = json.loads((undisturbed / "results.json").read_text(encoding="utf-8"))
    figures = results["metrics"]["test_clean"]
    assert set(figures) == {"accuracy", *(f"accuracy_k{k:+d}" for k in (-2, -1, 1, 2))}
    assert figures["accuracy"]["n"] == sum(
        entry["n"] for key, entry in figures.items() if key != "accuracy"
    )
    validations = results["training"]["parts"]
    assert [entry["step"] for entry in validations] == [3, 6]
    assert {"objective_loss", "mlm_loss", "accuracy_k-1"} <= set(validations[0])
    assert (undisturbed / "accuracy.svg").is_file()


def test_losses_and_speed_stand_beside_the_folder(undisturbed: Path) -> None:
    speed = json.loads(undisturbed.with_name("model.train.json").read_text(encoding="utf-8"))
    # Every second step, and the end of an epoch: it has three steps.
    assert [entry["step"] for entry in speed["losses"]] == [2, 3, 4, 6]
    for entry in speed["losses"]:
        assert entry["loss"] == pytest.approx(entry["objective_loss"] + entry["mlm_loss"], abs=2e-3)
    assert speed["real_token_share"] > 0.9
    assert 0 < speed["seconds_waiting_for_data"] < speed["seconds"]


@pytest.mark.slow
@pytest.mark.skipif(torch.accelerator.is_available(), reason="two processes on the CPU")
def test_losses_are_those_of_all_processes(paragraphs_folder: Path, tmp_path: Path) -> None:
    """The loss is a mean over two processes, and so are its parts: they add up to it."""
    output = tmp_path / "model"
    command = [*TINY, *SMALL, "--batch_size", "2", "--max_steps", "3", "--logging_steps", "1"]
    command += ["--dataset", str(paragraphs_folder), "--output", str(output)]
    train_together(command)
    told = json.loads(output.with_name("model.train.json").read_text(encoding="utf-8"))
    assert told["processes"] == 2 and len(told["losses"]) == 3
    for entry in told["losses"]:
        assert entry["loss"] == pytest.approx(entry["objective_loss"] + entry["mlm_loss"], abs=2e-3)


def test_a_model_that_is_shared_out_learns_the_same(
    paragraphs_folder: Path, tmp_path: Path
) -> None:
    learns_the_same_shared_out("conpono/tiny", paragraphs_folder, tmp_path)


def test_workers_and_checkpoints_change_no_byte(
    undisturbed: Path, paragraphs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Stopped after its first epoch by an error, started again with the same command.
    step, calls = ConponoTrainer.training_step, []

    def failing(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(0)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return step(self, *args, **kwargs)

    monkeypatch.setattr(ConponoTrainer, "training_step", failing)
    options = ["--epochs", "2", "--logging_steps", "2"]
    with pytest.raises(KeyboardInterrupt):
        run(paragraphs_folder, tmp_path / "model", *options)
    monkeypatch.undo()
    run(paragraphs_folder, tmp_path / "model", *options)
    assert contents(tmp_path / "model") == contents(undisturbed)

    run(paragraphs_folder, tmp_path / "workers", *options, "--workers", "1")
    weights = (tmp_path / "workers" / "model.safetensors").read_bytes()
    assert weights == contents(undisturbed)["model.safetensors"]


def test_a_run_stopped_inside_an_epoch_goes_on_from_there(
    undisturbed: Path, paragraphs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--epochs", "2", "--logging_steps", "2", "--save_steps", "2"]
    step, seen = ConponoTrainer.training_step, []

    def failing(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(self.state.global_step)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return step(self, *args, **kwargs)

    monkeypatch.setattr(ConponoTrainer, "training_step", failing)
    with pytest.raises(KeyboardInterrupt):
        run(paragraphs_folder, tmp_path / "model", *options)
    # Epochs end after steps 3 and 6: what is gone on from lies in the middle of the second.
    results = run(paragraphs_folder, tmp_path / "model", *options)
    assert seen == [0, 1, 2, 3, 4, 5, 4, 5]
    assert weights(tmp_path / "model") == weights(undisturbed)
    expected = json.loads((undisturbed / "results.json").read_text(encoding="utf-8"))
    assert results["metrics"] == expected["metrics"]
    assert results["training"] == expected["training"]


@pytest.fixture
def recomputes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each training step, whether it recomputes."""
    seen = []
    forward = ConponoModel.forward

    def watched(self: ConponoModel, *args: Any, **inputs: Any) -> Any:
        if self.training:
            seen.append(self.backbone.is_activation_checkpointing)
        return forward(self, *args, **inputs)

    monkeypatch.setattr(ConponoModel, "forward", watched)
    return seen


@pytest.mark.parametrize(
    ("options", "config"),
    [
        (["--objective", "bso"], {"objective": "bso", "mlm": True}),
        ([*ISOLATED, "--k", "1"], {"encoder": "isolated", "k": 1}),
        (["--encoder", "uni", "--mlm", "false"], {"encoder": "uni", "k": 2, "mlm": False}),
        (
            ["--recompute", "true", "--targets", "0", *ISOLATED],
            {"encoder": "isolated", "k": 2},
        ),
    ],
)
def test_variants_train(
    paragraphs_folder: Path,
    tmp_path: Path,
    recomputes: list[bool],
    options: list[str],
    config: dict[str, Any],
) -> None:
    results = run(paragraphs_folder, tmp_path / "model", "--max_steps", "1", *options)
    assert 0 <= results["metrics"]["test_clean"]["accuracy"]["value"] <= 1
    zoo.register()
    model = AutoModel.from_pretrained(tmp_path / "model")
    assert {key: getattr(model.config, key) for key in config} == config
    assert hasattr(model, "masked_words") is model.config.mlm
    if model.config.objective == "bso":
        assert model.ordering.linear.weight.shape == (1, 16) and not hasattr(model, "relations")
    else:
        one = (16,) if model.config.encoder == "uni" else (16, 16)
        assert model.relations.weight.shape == (2 * model.config.k, *one)

    assert recomputes == ["--recompute" in options]


def test_training_goes_on_from_a_model_of_this_family(
    undisturbed: Path, paragraphs_folder: Path, tmp_path: Path
) -> None:
    words = ["--dataset", str(paragraphs_folder), "--backbone", str(undisturbed)]
    words += ["--max_steps", "1", "--learning_rate", "1e-30", "--max_eval_rows", "4"]
    words += ["--max_tokens", "200", "--batch_size", "2", "--candidates", "8"]
    train(["conpono/minilm", *words, "--output", str(tmp_path / "model")])
    results = json.loads((tmp_path / "model" / "results.json").read_text(encoding="utf-8"))
    assert results["notes"][:2] == [
        "W_k copied from the backbone",
        "max_tokens lowered from 200 to 128: the backbone's limit",
    ]
    assert weights(tmp_path / "model") == weights(undisturbed)


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_cut_texts_and_a_step_that_teaches_nothing_are_said(
    paragraphs_folder: Path, tmp_path: Path
) -> None:
    results = run(paragraphs_folder, tmp_path / "model", "--max_steps", "1", "--max_tokens", "40")
    assert any("the only step has a learning rate of 0" in note for note in results["notes"])
    cut = [note for note in results["notes"] if "were cut to 40 tokens" in note]
    assert [note.partition(":")[0] for note in cut] == ["validation", "test"]
    assert " of 36 texts and pairs" in cut[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--candidates 4", "candidates = 4: they are 4 targets and some random segments"),
        ("--targets 0 --k 3 --candidates 3", "candidates = 3: they are 3 targets"),
        ("--objective bso --candidates 0", "candidates = 0"),
    ],
)
def test_settings_that_do_not_fit_together_are_said(options: str, said: str) -> None:
    found = read_preset("conpono/tiny")
    words = ["--dataset", "d", "--output", "o", *options.split()]
    given = parse_flags(words, "train", found.kind)
    with pytest.raises(ConfigError) as caught:
        found.recipe(given)
    assert said in str(caught.value)


def test_settings_at_their_bounds_are_taken() -> None:
    found = read_preset("conpono/tiny")
    words = "--objective bso --candidates 1 --targets 0 --mask_rate 0 --k 1 --workers -1"
    words += " --attention flash_attention_2"
    words += " --dataset d --output o"
    s = found.recipe(parse_flags(words.split(), "train", found.kind))
    assert (s.candidates, s.targets, s.workers) == (1, 0, -1)


def test_what_cannot_be_is_said(train_cli: Cli, paragraphs_folder: Path, tmp_path: Path) -> None:
    where = ["--dataset", paragraphs_folder, "--output", tmp_path / "model"]
    code, said = train_cli("conpono/tiny", *where, "--candidates", "900")
    assert code == 2 and "candidates = 900" in said and "lower candidates" in said
    code, said = train_cli("conpono/tiny", *where, "--encoder", "ful")
    assert code == 2 and "encoder" in said
    code, said = train_cli("conpono/tiny", "--dataset", f"{paragraphs_folder}@all", *where[2:])
    assert code == 2 and "no configuration 'all'" in said


def test_shipped_recipes_have_the_papers_values() -> None:
    named = {entry.name: entry for entry in catalogue() if entry.name.startswith("conpono/")}
    assert set(named) == {f"conpono/{n}" for n in ("full", "bso", "small", "minilm", "tiny")}
    found = read_preset("conpono/full")
    options = {"dataset": "d", "output": "o"}
    s = found.recipe(options)
    assert (s.k, s.targets, s.candidates, s.anchor_sentences, s.target_sentences) == (
        2, 4, 32, 4, 3,
    )  # fmt: skip
    assert (s.max_tokens, s.learning_rate, s.warmup, s.mask_rate) == (512, 5e-5, 0.25, 0.15)
    assert _examples(s) == 1_600_000 and s.max_eval_rows == 5000
    assert s.batch_size == 32
    bso = read_preset("conpono/bso")
    baseline = bso.recipe(options)
    assert _examples(baseline) * baseline.candidates == _examples(s) * s.candidates
    small = read_preset("conpono/small")
    assert _examples(small.recipe(options)) == 38_400_000
    minilm = read_preset("conpono/minilm")
    assert minilm.recipe(options).workers == -1


def _examples(settings: Any) -> int:
    return settings.batch_size * settings.max_steps


def test_measured_evaluations_of_other_settings_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = measure.Place(tmp_path, "data", "discoeval", "models/minilm", "taste")
    figures = dict.fromkeys(measure.TASKS, 0.5)
    for name in ("k2-0", "initial-pairs-mean"):
        write_json(place.evaluation(name), {**place.made_by(name), "tasks": figures})
    assert set(measure.figures(place, 1)) == {"k2", "initialisation, pairs, mean"}

    with pytest.raises(ConfigError, match="another size: taste, now small"):
        measure.figures(replace(place, size="small"), 1)
    with pytest.raises(ConfigError, match="another settings"):
        measure.figures(replace(place, backbone="models/bert"), 1)
    write_json(place.evaluation("k2-0"), figures)  # as the script once wrote them
    with pytest.raises(ConfigError, match="another size: None"):
        measure.figures(place, 1)
    write_json(place.evaluation("k2-0"), {**place.made_by("k2-0"), "tasks": figures})
    monkeypatch.setitem(measure.SIZES["taste"], "max_steps", 800)
    with pytest.raises(ConfigError, match=r"k2-0\.json: made with another settings"):
        measure.evaluated(place, {"mean": "k2-0"}, "no model", "pairs")


def test_measured_gains_are_paired_over_rows_and_join_the_seeds(tmp_path: Path) -> None:
    place = measure.Place(tmp_path, "data", "discoeval", "models/minilm", "taste")
    random = np.random.default_rng(0)
    base = random.random(400)
    shares = {"initial-pairs-mean": 0.4, "initial-single-mean": 0.5, "bso-0": 0.55}
    shares |= {"k2-0": 0.6, "k2-1": 0.7}
    for name, share in shares.items():
        outcomes = [Outcomes(task, independent_units(400), base < share) for task in measure.TASKS]
        figures = {task: float((base < share).mean()) for task in measure.TASKS}
        write_json(place.evaluation(name), {**place.made_by(name), "tasks": figures})
        write_outcomes(place.evaluation(name), outcomes)
    found = measure.figures(place, 2)
    gained = measure.gains(place, found)
    best = "initialisation, single, mean"
    assert set(gained) == {f"bso - {best}", f"k2 - {best}", "k2 - bso"}
    expected = found["k2"]["mean"] - found["bso"]["mean"]
    shown = gained["k2 - bso"]["mean of 3 tasks"]
    assert float(shown.split()[0]) == pytest.approx(expected, abs=0.06) and shown.endswith("*")
    assert f"| k2 - bso | {gained['k2 - bso']['SP']} |" in measure.gain_table(gained)
    # Another seed on other rows: no pairs, so nothing is said of that model.
    write_outcomes(place.evaluation("k2-1"), [Outcomes("SP", independent_units(3), base[:3])])
    assert set(measure.gains(place, found)) == {f"bso - {best}"}
