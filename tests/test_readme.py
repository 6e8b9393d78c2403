"""README's tour: the output that it shows is what the commands print."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOUR = (ROOT / "README.md").read_text(encoding="utf-8").split("## A tour")[1].split("\n## ")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TOUR, re.DOTALL)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a clone and may be written into."""
    (tmp_path / "corpora").symlink_to(ROOT / "corpora")
    (tmp_path / "build").symlink_to(ROOT / "build")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_print_what_it_shows(clone: Path) -> None:
    steps = [step for block in blocks("console") for step in re.split(r"^\$ ", block, flags=re.M)]
    shown = [step.partition("\n")[::2] for step in steps if step]
    assert len(shown) >= 2
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, output in shown:
        done = subprocess.run(
            ["bash", "-c", command],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == output, done.stderr


def test_the_python_prints_what_it_shows(clone: Path) -> None:
    text = "".join(blocks("python"))
    if not (clone / "build" / "sample" / "datasets" / "dissent").exists():
        text = text.split(">>> from datasets")[0]  # that part reads what `make run` built
    test = doctest.DocTestParser().get_doctest(text, {}, "README", "README.md", 0)
    assert len(test.examples) >= 2
    said: list[str] = []
    doctest.DocTestRunner().run(test, out=said.append)
    assert not said, "".join(said)
