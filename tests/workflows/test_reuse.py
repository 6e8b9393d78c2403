"""Nothing is trained or evaluated twice: what has the rows of a finished stage becomes it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from corpora.store.atomic import MANIFEST, read_json, seal, write_json, write_text
from corpora.store.damage import damages
from workflows import training
from workflows.cli.app import app
from workflows.settings import options
from workflows.tasks import BuildAll, Train
from zoo.options import Assignment
from zoo.presets import read_preset
from zoo.training import job

BUILD = """
name = "b"
threads = 1
[[sources]]
name = "s"
spec = "sample:stories"
datasets = ["permuted"]
[datasets.permuted]
[models.first]
recipe = "coherence/contrastive_tiny"
dataset = "permuted"
config = "contrastive"
suite = "permuted"
settings = { max_steps = 1 }
[models.second]
recipe = "coherence/contrastive_tiny"
dataset = "permuted"
config = "contrastive"
base = "first"
"""
MORE = BUILD.replace('"permuted"]', '"permuted", "intrusion"]') + "[datasets.intrusion]\n"
"""With another dataset the division, and so all hashes, are others; the rows of `permuted` stay."""
LIMIT = BUILD + "[splits]\nlargest_group = 0.5\n"
"""So it is with a limit that is not reached."""

STAGES = ("documents", "sentences", "division", "dataset", "model", "evaluation")
Made = list[tuple[str, dict[str, Any]]]
Built = tuple[list[str], dict[str, Path]]


def program(made: Made) -> Callable[..., list[None]]:
    """A stand-in for the programs that train and evaluate; it notes in `made` what they do."""

    def run(module: str, assignments: Sequence[Assignment], *_: Any, **__: Any) -> list[None]:
        for one in assignments:
            made.append((module, {**one.settings, **one.request}))
            if module == "zoo.evaluate":
                data, _, _ = one.request["data"].partition("@")
                write_json(Path(one.request["json"]), {"dataset": data, "examples": 3})
                continue
            preset = read_preset(one.reference)
            run = job.planned(preset, preset.kind.of(one.settings))
            with job.working(run):
                weights = json.dumps(run.identity["max_steps"])
                (run.folder / "model.safetensors").write_text(weights)
                write_json(run.folder / job.RESULTS, {"data": run.data})
                write_text(run.folder / "README.md", f"on {run.identity['dataset_revision']}\n")
        return [None] * len(assignments)

    return run


def build(
    text: str,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    stages: Sequence[str] = STAGES,
    **how: Any,
) -> Built:
    """Build in this process: what was trained and evaluated, and the folders of all stages."""
    made: Made = []
    monkeypatch.setattr(training, "_run", program(made))
    config = output.parent / "b.toml"
    config.write_text(text)
    with options(str(config), str(output), **how):
        tasks = [task for task in BuildAll(config=str(config)).lineage if task.stage in stages]
        for task in tasks:
            if not task.complete():
                task.run()
    names = [about.get("name") or Path(about["output"]).parent.name for _, about in made]
    return names, {task.title: task.folder for task in tasks}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("first") / "out"
    with pytest.MonkeyPatch.context() as patch:
        assert build(BUILD, output, patch)[0] == ["first", "first", "second"]
        build(LIMIT, output, patch, stages=("division", "dataset"))
    return output


@pytest.fixture
def output(first: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first, tmp_path / "out"))


def reusable(output: Path) -> list[str]:
    """The stages that `plan` says are reused if the rows are equal."""
    arguments = ["plan", "--config", str(output.parent / "b.toml"), "--output", str(output)]
    said = CliRunner().invoke(app, arguments, catch_exceptions=False).output
    return re.findall(r"^(\w+ \w+) .*\n    reused if the rows are equal$", said, re.M)


def test_what_has_the_rows_of_another_is_not_made_again(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, old = build(BUILD, output, monkeypatch)
    (output.parent / "b.toml").write_text(MORE)
    assert reusable(output) == ["model first", "evaluation first", "model second"]
    made, new = build(MORE, output, monkeypatch)
    assert made == []
    data = "dataset permuted"
    assert old[data] != new[data]
    for title in ("model first", "model second", "evaluation first"):
        manifest = read_json(new[title] / MANIFEST)
        by = manifest["made_by"] if "made_by" in manifest else manifest["trained_by"]
        assert by == old[title].relative_to(output / "stages").as_posix()
        for path in (path for path in new[title].iterdir() if path.name != MANIFEST):
            assert not set(_hashes(old)) & set(re.findall(r"[0-9a-f]{16}", path.read_text()))
    for title in ("model first", "model second"):
        weights = [folder[title] / "model.safetensors" for folder in (old, new)]
        assert weights[0].samefile(weights[1])
        settings = read_json(new[title] / MANIFEST)["settings"]
        assert settings["dataset_revision"] == new[data].name
        assert (new[title] / "README.md").read_text() == f"on {new[data].name}\n"
    assert settings["backbone"] == new["model first"].name
    assert not any(True for folder in new.values() for _ in damages(folder))
    for title in ("model first", "model second", "evaluation first"):
        shutil.rmtree(old[title])
    made, last = build(LIMIT, output, monkeypatch)  # what was reused is as good as the first
    assert made == [] and last[data] not in (old[data], new[data])
    manifest = read_json(last["model first"] / MANIFEST)
    assert manifest["trained_by"] == f"model/first/{old['model first'].name}"


def _hashes(folders: dict[str, Path]) -> list[str]:
    return [folder.name for folder in folders.values()]


def edited(folder: Path, **values: Any) -> None:
    """Give a finished model's manifest other values, as another version would have written it."""
    write_json(folder / MANIFEST, read_json(folder / MANIFEST) | values)
    seal(folder)


CHANGES: dict[str, tuple[Callable[[str], str], Callable[[Path], Any], list[str]]] = {
    "damaged": (str, lambda folder: (folder / "model.safetensors").write_text("2"), ["first"]),
    "card edited": (str, lambda folder: (folder / "README.md").write_text("mine"), ["first"]),
    "no digest": (str, lambda folder: edited(folder, data=[]), ["first"]),
    "other version of its recipe": (str, lambda folder: edited(folder, version=9), ["first"]),
    "other rows": (
        lambda text: text.replace("permuted]\n", "permuted]\ncontrastive = 4\n"),
        Path,
        ["first", "first", "second"],
    ),
    "other quotation marks": (
        lambda text: text.replace("permuted]\n", "permuted]\nquotes = 'keep'\n"),
        Path,
        ["first", "first", "second"],
    ),
    "other licence": (
        lambda text: text.replace('stories"\n', "stories\"\nlicence = 'CC0-1.0'\n"),
        Path,
        ["first", "first", "second"],
    ),
    "other base, other weights": (
        lambda text: text.replace("max_steps = 1", "max_steps = 2"),
        Path,
        ["first", "first", "second"],
    ),
    "other base, equal weights": (
        lambda text: text.replace("max_steps = 1", "max_steps = 1, margin = 0.5"),
        Path,
        ["first", "first"],
    ),
    "other limit of an evaluation": (
        lambda text: text.replace("suite = ", "limit = 2\nsuite = "),
        Path,
        ["first"],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_the_same_is_made_again(
    change: str, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit, harm, expected = CHANGES[change]
    _, old = build(BUILD, output, monkeypatch)
    harm(old["model first"])
    made, new = build(edit(LIMIT), output, monkeypatch)
    assert made == expected
    assert not any(True for folder in new.values() for _ in damages(folder))


def test_retrain_reuses_no_model_of_other_code(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Train, "recipe_code", lambda _: "other")
    assert build(LIMIT, output, monkeypatch, retrain=True)[0] == ["first", "second"]


def test_a_setting_that_changes_no_weight_changes_no_hash(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = BUILD.replace("max_steps = 1", "max_steps = 1, logging_steps = 3")
    assert build(text, output, monkeypatch) == ([], build(BUILD, output, monkeypatch)[1])
