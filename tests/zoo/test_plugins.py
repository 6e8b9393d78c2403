"""Recipes and objectives of others: by reference, in a preset, recorded in the model folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import zoo
from corpora.errors import ConfigError, InputError
from corpora.store.atomic import write_json
from tests.processes import ran
from zoo.coherence import CoherenceScorer
from zoo.presets import read_preset

Run = Callable[..., tuple[int, str]]
NEEDED = {"dataset": "data", "output": "out"}
LOSS = '''
"""A loss of a plug-in."""
from __future__ import annotations
from typing import Any
from zoo.declared import AtLeast0, Objective

class Softplus(Objective):
    """log(1 + exp(s- - s+)), a margin that is soft."""

    margin: AtLeast0 = 0.1
    """Added to the negatives' scores."""
    steepness: float = 1.0
    """Of the curve."""

    def module(self) -> Any:
        import torch

        class Loss(torch.nn.Module):
            def forward(module, scores):
                gap = scores[:, 1:] - scores[:, :1] + self.margin
                return torch.nn.functional.softplus(self.steepness * gap).mean()

        return Loss()
'''
RECIPE = '''
"""A recipe of a plug-in: ours with another learning rate."""
from __future__ import annotations
from zoo.coherence.recipes import Contrastive
from zoo.declared import Above0

class Quick(Contrastive):
    """The scorer, quickly."""

    paper = "none"
    learning_rate: Above0 = 1e-3
    max_tokens: int = 64

    def train(self, job):
        from zoo.coherence.contrastive import train
        train(self, job)
'''
TINY = """
[settings]
vocab_size = 400
max_steps = 2
backbone_config = { model_type = "bert", hidden_size = 16, num_hidden_layers = 1, \
num_attention_heads = 2, intermediate_size = 16, max_position_embeddings = 64 }
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable package with a loss and a recipe; its name."""
    folder = tmp_path / "site" / "plugged_in"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("", encoding="utf-8")
    (folder / "loss.py").write_text(LOSS, encoding="utf-8")
    (folder / "recipe.py").write_text(RECIPE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder.parent))
    yield "plugged_in"
    for name in [name for name in sys.modules if name.partition(".")[0] == "plugged_in"]:
        del sys.modules[name]


def test_a_loss_and_a_recipe_of_a_package_train(
    package: str, permuted_folder: Path, tmp_path: Path, train_cli: Run
) -> None:
    preset = tmp_path / "quick.toml"
    preset.write_text(
        f'recipe = "{package}.recipe:Quick"\n{TINY}objective = "{package}.loss:Softplus"\n'
        "[settings.objective_settings]\nsteepness = 2.0\n",
        encoding="utf-8",
    )
    output = tmp_path / "model"
    code, message = train_cli(preset, "--dataset", permuted_folder, "--output", output)
    assert code == 0, message
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert results["recipe"] == f"{package}/quick"
    assert results["settings"]["objective"] == f"{package}.loss:Softplus"
    manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    kinds = {plugin["kind"]: plugin["name"] for plugin in manifest["settings"]["plugins"]}
    assert kinds == {
        "recipe": f"{package}.recipe:Quick",
        "objective": f"{package}.loss:Softplus",
    }


def test_a_file_is_found_beside_the_preset(
    permuted_folder: Path, tmp_path: Path, train_cli: Run
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "loss.py").write_text(LOSS, encoding="utf-8")
    (folder / "quick.py").write_text(RECIPE, encoding="utf-8")
    preset = folder / "mine.toml"
    text = f'recipe = "quick.py:Quick"\n{TINY}objective = "loss.py:Softplus"\n'
    preset.write_text(text, encoding="utf-8")
    output = tmp_path / "model"
    code, message = train_cli(preset, "--dataset", permuted_folder, "--output", output)
    assert code == 0, message
    for file in ("results.json", "manifest.json", "README.md"):
        assert str(tmp_path) not in (output / file).read_text(encoding="utf-8")
    (folder / "loss.py").write_text(LOSS.replace("softplus", "relu"), encoding="utf-8")
    # Another loss of the same name is another run: it is told in a process that has not loaded it.
    words = [str(preset), "--dataset", str(permuted_folder), "--output", str(output)]
    found = ran([sys.executable, "-m", "zoo.train", *words])
    assert found.returncode == 2 and "a run with other settings is there (plugins" in found.stderr


def test_a_recipe_by_reference_takes_settings_from_the_command_line(package: str) -> None:
    made = read_preset(f"{package}.recipe:Quick").recipe({**NEEDED, "margin": "0.5"})
    assert (made.learning_rate, made.loss.margin) == (1e-3, 0.5)
    assert read_preset("coherence.contrastive").recipe(NEEDED).negatives == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "contrastiv"}, "no objective 'contrastiv'; did you mean 'contrastive'"),
        ({"objective": "no.such:Loss"}, "no.such:Loss: cannot be imported"),
        ({"objective": "none.py:Loss"}, "no file 'none.py'"),
        (
            {"objective": "zoo.coherence.recipes:Contrastive"},
            "is not a subclass of zoo.declared.Objective",
        ),
        ({"objective_settings": {"width": 3}}, "unknown key 'width'"),
        ({"objective_settings": {"margin": 1}}, "margin is a setting of the recipe"),
    ],
)
def test_a_wrong_objective_is_told_before_torch_is_loaded(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read_preset("coherence/contrastive_tiny").recipe({**NEEDED, **options})


PLUGIN = {"kind": "objective", "name": "gone.loss:Gone", "requires": "gone 1.2", "code": ""}


@pytest.mark.parametrize("known", [True, False])
def test_a_model_whose_plug_in_is_missing_says_so(
    known: bool, tmp_path: Path, tiny_bert: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Weights of a type that is known load all the same."""
    kind = "bert" if known else "gone-scorer"
    write_json(tmp_path / "config.json", {"model_type": kind})
    write_json(tmp_path / "manifest.json", {"settings": {"plugins": [PLUGIN]}})
    if known:
        zoo.register(tmp_path)
        assert "the objective gone.loss:Gone that trained it is not installed" in caplog.text
    else:
        with pytest.raises(InputError, match=r"pip install 'gone==1.2'"):
            zoo.register(tmp_path)


@pytest.mark.parametrize(
    ("manifest", "config", "problem"),
    [
        ({"settings": {"plugins": [{"name": "a.b:C"}]}}, {}, "manifest.json: is no manifest: "),
        ({"settings": {"plugins": [PLUGIN]}}, {"model_type": []}, "config.json: is no config: "),
    ],
)
def test_a_damaged_file_of_a_model_is_called_by_its_kind(
    manifest: dict[str, object], config: dict[str, object], problem: str, tmp_path: Path
) -> None:
    write_json(tmp_path / "manifest.json", manifest)
    write_json(tmp_path / "config.json", config)
    with pytest.raises(InputError, match=problem):
        zoo.register(tmp_path)


def test_the_lazy_packages_have_their_names_and_no_others() -> None:
    import zoo.coherence

    assert zoo.coherence.CoherenceScorer is CoherenceScorer
    with pytest.raises(AttributeError, match="no attribute 'Scorer'"):
        zoo.coherence.Scorer  # noqa: B018
