"""What a stage cost is its own: neither earlier stages' memory nor their programs' counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workflows import usage

HELD = 200


def peak(work: str = "") -> float:
    """The peak of a stage that holds `HELD` MiB here, in a child of its own, or nothing."""
    meter = usage.Meter()
    if work == "here":
        held = bytearray(b"x") * (HELD << 20)
        del held
    if work == "child":
        subprocess.run([sys.executable, "-c", f"bytearray(b'x') * ({HELD} << 20)"], check=True)
    if work == "told":
        usage.note_child(HELD << 10)
    return float(meter.read()["peak_memory_mib"])


@pytest.mark.skipif(not os.access(usage.CLEAR_REFS, os.W_OK), reason="the peak cannot be reset")
def test_a_small_stage_after_a_large_one_is_small() -> None:
    before = peak()
    assert peak("here") > before + HELD - 50
    assert peak() < before + 50


@pytest.mark.parametrize("work", ["child", "told"])
def test_a_program_counts_for_its_own_stage(work: str) -> None:
    code = f"from tests.workflows.test_usage import peak; print(peak({work!r}), peak())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    its, later = map(float, done.stdout.split())
    assert its >= HELD and later < HELD


def test_where_the_peak_cannot_be_reset_it_is_still_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    for name in ("CLEAR_REFS", "STATUS"):
        monkeypatch.setattr(usage, name, tmp_path / "none" / name)
    assert peak("here") > HELD


def test_the_commit_of_the_code_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        person = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        return subprocess.check_output(["git", "-C", str(tmp_path), *person, *words], text=True)

    monkeypatch.setattr(usage, "ROOT", tmp_path)
    commit = usage.commit.__wrapped__
    assert commit() == ""  # neither a repository nor installed from one
    git("init", "-q")
    (tmp_path / "code.py").write_text("x = 1\n", encoding="utf-8")
    git("add", "code.py")
    git("commit", "-qm", "one")
    git("tag", "v1")
    head = git("rev-parse", "--short=12", "HEAD").strip()
    assert commit() == head
    (tmp_path / "code.py").write_text("x = 2\n", encoding="utf-8")
    assert commit() == f"{head}-dirty"
    assert set(usage.Meter().read()) >= {"seconds", "commit"}
