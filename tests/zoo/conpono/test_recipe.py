"""The recipe from the dataset to the model folder: variants, losses, interrupted runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModel, AutoTokenizer

import zoo
from zoo.catalogue import catalogue
from zoo.recipe import make_settings, read_recipe
from zoo.train import train

TINY = ["conpono/tiny", "--max_train_rows", "12", "--max_eval_rows", "4", "--vocab_size", "300"]
SMALL = ["--backbone_config.hidden_size", "16", "--backbone_config.intermediate_size", "32"]
Cli = Callable[..., tuple[int, str]]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


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
    assert [entry["step"] for entry in speed["losses"]] == [2, 4, 6]
    for entry in speed["losses"]:
        assert entry["loss"] == pytest.approx(entry["objective_loss"] + entry["mlm_loss"], abs=2e-3)
    assert speed["real_token_share"] > 0.9
    assert 0 < speed["seconds_waiting_for_data"] < speed["seconds"]


def test_backbone_serves_evaluations(undisturbed: Path) -> None:
    zoo.register()
    model = AutoModel.from_pretrained(undisturbed)
    tokenizer = AutoTokenizer.from_pretrained(undisturbed)
    pair = tokenizer("The baker wakes.", "The baker eats.", return_tensors="pt")
    assert model.backbone(**pair).pooler_output.shape == (1, 16)


def test_workers_and_checkpoints_change_no_byte(
    undisturbed: Path, paragraphs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Stopped after its first epoch by an error, started again with the same command.
    from zoo.conpono.training import ConponoTrainer

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


@pytest.mark.parametrize(
    "options",
    [
        ["--objective", "bso"],
        ["--encoder", "isolated", "--k", "1"],
        ["--encoder", "uni", "--mlm", "false"],
        ["--layout", "packed", "--recompute", "true", "--targets", "0"],
    ],
)
def test_variants_train(paragraphs_folder: Path, tmp_path: Path, options: list[str]) -> None:
    results = run(paragraphs_folder, tmp_path / "model", "--max_steps", "1", *options)
    assert 0 <= results["metrics"]["test_clean"]["accuracy"]["value"] <= 1
    zoo.register()
    assert AutoModel.from_pretrained(tmp_path / "model").config.k in (1, 2)


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
    found = read_recipe("conpono/full")
    options = {"dataset": "d", "output": "o"}
    s = make_settings(found, found.load_module().Settings, options)
    assert (s.k, s.targets, s.candidates, s.anchor_sentences, s.target_sentences) == (
        2, 4, 32, 4, 3,
    )  # fmt: skip
    assert (s.max_tokens, s.learning_rate, s.warmup, s.mask_rate) == (512, 5e-5, 0.25, 0.15)
    assert s.batch_size * s.max_steps == 1_600_000 and s.max_eval_rows == 5000
    bso = read_recipe("conpono/bso")
    baseline = make_settings(bso, bso.load_module().Settings, options)
    pairs = baseline.batch_size * baseline.max_steps * baseline.candidates
    assert pairs == s.batch_size * s.max_steps * s.candidates
    small = read_recipe("conpono/small")
    s = make_settings(small, small.load_module().Settings, options)
    assert s.batch_size * s.max_steps == 38_400_000
