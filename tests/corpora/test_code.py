"""The hash of the code that makes an output: what changes it and what does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAIN = '''"""Makes rows."""
from __future__ import annotations
from house.parts import twice
def rows(n: int) -> list[int]:
    """All rows."""
    from house import late
    return [twice(n), late.VALUE, f"{n:>3}"]
'''
PARTS = 'def twice(n):\n    """Two of it."""\n    return 2 * n\n'
LATE = "VALUE = 1\n"


def hash_of(folder: Path, python: str = sys.executable) -> str:
    """Of a house of which nothing is imported: planning may not load torch."""
    code = "import sys; from corpora.code import code_hash; print(code_hash('house.main'))"
    code += "; assert not {'house', 'house.late'} & sys.modules.keys()"
    done = subprocess.run(
        [python, "-c", code],
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def house(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    folder.mkdir()
    for name, text in (("__init__", ""), ("main", MAIN), ("parts", PARTS), ("late", LATE)):
        (folder / f"{name}.py").write_text(text)
    (folder / "unused.py").write_text("VALUE = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("main", "Makes rows.", "Makes many rows."),
        ("main", "n: int", "n: float"),
        ("parts", "Two of it.", "Twice the number."),
        ("parts", "    return", "    # the double\n\n    return"),
        ("unused", "1", "2"),
    ],
)
def test_what_does_not_run_does_not_count(house: Path, name: str, old: str, new: str) -> None:
    before = hash_of(house)
    path = house / "house" / f"{name}.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert hash_of(house) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("parts", "2 * n", "3 * n"), ("late", "1", "2"), ("late", "1", "True"), ("main", ">3", ">4")],
)
def test_an_edit_of_what_is_called_changes_it(house: Path, name: str, old: str, new: str) -> None:
    before = hash_of(house)
    path = house / "house" / f"{name}.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert hash_of(house) != before


def test_a_query_beside_a_module_counts(house: Path) -> None:
    before = hash_of(house)
    (house / "house" / "parts.sql").write_text("select 1")
    assert hash_of(house) != before


def test_every_python_at_hand_gives_the_same(house: Path) -> None:
    here = hash_of(house)
    versions = Path.home() / ".pyenv" / "versions"
    others = [p for v in ("3.12", "3.13", "3.14") for p in versions.glob(f"{v}.*/bin/python")]
    others += [
        Path(p) for v in ("3.12", "3.13") if (p := shutil.which(f"python{v}", path="/usr/bin"))
    ]
    if not others:
        pytest.skip("no other Python on this machine")
    for python in others:
        assert hash_of(house, str(python)) == here
