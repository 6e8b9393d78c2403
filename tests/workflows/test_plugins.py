"""A package of plug-ins, as docs/tutorials/plug-in.md shows it, works in builds and models."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from luigi.cmdline import luigi_run

from corpora.declared import Registry
from corpora.errors import ConfigError
from corpora.tasks import BUILDERS
from tests.processes import forked, ran
from tests.workflows.conftest import ROOT, load_libraries, luigi_command, luigi_environment
from zoo.declared import OBJECTIVES
from zoo.evaluate.__main__ import main

PAGE = ROOT / "docs" / "tutorials" / "plug-in.md"
SPEAKERS = ("Anna", "Boris", "Clara")
LINES = (
    "The mill stopped at noon, and nobody came to mend it.",
    "You said so yesterday, but the miller laughed at you.",
    "He laughs whenever it rains, whereas his wife counts the sacks.",
    "I will not go there unless somebody carries the lamp.",
    "The lamp is broken and the road is full of holes.",
    "Then we wait here until the morning, all three of us.",
    "My mother waited for a letter, but it never came.",
    "She burned the table because the winter was so long.",
)


def files_of_the_page() -> dict[str, str]:
    """The blocks of code by the name of the file that stands above each."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(
        r"^`([\w/.]+)`[^\n]*\n(?:[^\n`]+\n|`[^\n]*\n)*\n(?:<!--[^\n]*-->\n)?```\w+\n(.*?)```",
        text,
        re.S | re.M,
    )
    return dict(found)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's package, installed into a folder without the network."""
    folder = tmp_path_factory.mktemp("plugins")
    for name, text in files_of_the_page().items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    target = folder / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", "--target", str(target), str(folder / "source")]
    done = ran(command)
    assert not done.returncode, done.stderr
    return target


@pytest.fixture(scope="module")
def build(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page's build file builds, with two workers."""
    folder = tmp_path_factory.mktemp("build")
    page = PAGE.read_text(encoding="utf-8")
    (text,) = [b for b in re.findall(r"```toml\n(.*?)```", page, re.S) if "[[sources]]" in b]
    (folder / "plays.toml").write_text(text, encoding="utf-8")
    (folder / "plays").mkdir()
    for play in range(24):
        speeches = [
            f"{SPEAKERS[(play + i) % 3]}: {LINES[(play * 3 + i * (1 + play % 5)) % 8]} Day {play}."
            for i in range(9)
        ]
        (folder / "plays" / f"play{play:02d}.play").write_text(
            "\n".join(speeches), encoding="utf-8"
        )
    words = luigi_command(Path("plays.toml"), Path("out"), "--workers", "2", "--no-lock")[3:]

    def main() -> None:
        sys.path.insert(0, str(installed))
        luigi_run(words)

    load_libraries()
    done = forked(main, cwd=folder, env=environment(installed))
    assert not done.returncode, done.stderr
    return folder / "out" / "plays"


def environment(*places: Path) -> dict[str, str]:
    return {**luigi_environment(), "PYTHONPATH": os.pathsep.join(map(str, [*places, ROOT]))}


def test_every_kind_of_plugin_is_in_the_build(build: Path) -> None:
    answers = json.loads((build / "datasets/answers/manifest.json").read_text())
    assert answers["details"]["settings"]["min_words"] == 3
    assert answers["licences"] == {"CC0-1.0": sum(s["rows"] for s in splits(answers))}
    markers = {
        marker: count
        for shard in splits(json.loads((build / "datasets/dissent/manifest.json").read_text()))
        for marker, count in shard["labels"]["label"].items()
        if count
    }
    assert {"whereas", "unless"} <= markers.keys()
    scorer = json.loads((build / "models/scorer/manifest.json").read_text())
    assert scorer["settings"]["objective_settings"] == {"sharpness": 2.0}
    assert {p["requires"] for p in scorer["settings"]["plugins"]} == {"discorpora-plays 0.1"}
    judged = json.loads((build / "evaluations/openings/scorer/results.json").read_text())
    assert judged["suite"] == "openings" and 0 <= judged["metrics"]["accuracy"]["value"] <= 1


def splits(manifest: dict) -> list[dict]:
    configs = manifest["configs"]
    first = configs.get("all") or configs["default"]
    return list(first["splits"].values())


def test_a_model_says_which_plugin_is_missing(build: Path) -> None:
    words = ["permuted", "--model", str(build / "models/scorer"), "--limit", "4"]
    words += ["--data", str(build / "datasets/permuted")]
    done = forked(lambda: sys.exit(main(words)), env=environment(), cwd=ROOT)
    assert not done.returncode, done.stderr  # the weights need no loss
    assert "plays.scorer" in done.stderr and "discorpora-plays" in done.stderr


def test_help_and_errors_come_from_the_declaration(installed: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "zoo.train", "plays.scorer", "--help"]
    done = ran(command, env=environment(installed))
    assert "--objective 'softplus'" in done.stdout
    (tmp_path / "b.toml").write_text(
        'name = "b"\n[[sources]]\nname = "p"\nspec = "play:x"\n'
        "options = { min_speechs = 3 }\ndatasets = []\n"
    )
    command = [sys.executable, "-m", "workflows.cli.app", "plan", "--config", "b.toml"]
    done = ran(command, env=environment(installed), cwd=tmp_path)
    assert "b.toml:5: source p: options" in done.stderr
    assert "did you mean 'min_speeches'" in done.stderr


class _Entry:
    """An entry point of an installed package."""

    def __init__(self, name: str, value: str) -> None:
        self.name, self.value, self.dist = name, value, None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("open('words.txt')", "FileNotFoundError: .*words.txt"),
        ("class", "SyntaxError"),
        ("import no_such_package", "No module named 'no_such_package'"),
    ],
)
def test_what_is_wrong_in_a_plugins_file_is_said(code: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "plug.py"
    path.write_text(code, encoding="utf-8")
    with pytest.raises(ConfigError, match=f"cannot be imported: {said}"):
        BUILDERS.find(f"{path}:Plays")


@pytest.mark.parametrize(("registry", "name"), [(BUILDERS, "bso"), (OBJECTIVES, "contrastive")])
def test_two_plugins_of_one_name_are_an_error(
    registry: Registry, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = (_Entry("mine", "a.b:C"), _Entry("mine", "d.e:F"))
    monkeypatch.setattr("corpora.declared._entry_points", lambda group: entries)
    with pytest.raises(ConfigError, match=r"two .*s are called 'mine': a.b:C and d.e:F"):
        registry.find(name)
    monkeypatch.setattr("corpora.declared._entry_points", lambda group: (_Entry(name, "a.b:C"),))
    with pytest.raises(ConfigError, match=f"are called '{name}'"):
        registry.find(name)
