"""What a user sees when something is wrong: one short message, and nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.workflows.conftest import TINY
from workflows.tables import SAMPLE

SOURCE = """
name = "bad"
[[sources]]
name = "texts"
spec = "{spec}"
datasets = ["sp"]
[datasets.sp]
"""

CLOZE = """
[[sources]]
name = "cloze"
spec = "storycloze:{path}"
datasets = ["coherence_tests"]
[datasets.coherence_tests]
"""


def finished_targets(folder: Path) -> list[Path]:
    return sorted(folder.rglob("manifest.json")) if folder.exists() else []


def assert_short_error(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode != 0
    message = done.stdout + done.stderr
    assert "Traceback" not in message, message
    assert len(message.splitlines()) < 15, message
    for word in words:
        assert word in message, f"{word!r} is not in: {message}"


CONFIG_ERRORS = {
    "an unknown key": ("sede = 3\n" + TINY, ("sede", "did you mean 'seed'")),
    "a setting that its dataset refuses": (
        TINY.replace("[datasets.dissent]", "[datasets.dissent]\nvalidation = -0.1"),
        ("datasets.dissent.validation: validation = -0.1",),
    ),
    "a dataset whose name leaves the output": (
        TINY.replace("[datasets.sp]", '[datasets.sp]\n[datasets."../../escape"]'),
        ("datasets", "'../../escape' cannot be a name"),
    ),
    "a model whose name leaves the output": (
        TINY + '[models."../m"]\nrecipe = "dissent/bilstm_tiny"\ndataset = "dissent"\n',
        ("models", "'../m' cannot be a name"),
    ),
    "no TOML": ("name = \n", ("not valid TOML", "line 1")),
}


@pytest.mark.parametrize("case", CONFIG_ERRORS)
def test_a_wrong_build_file_is_refused_before_anything_runs(
    case: str, write_config: Callable, run_luigi: Callable, tmp_path: Path
) -> None:
    text, words = CONFIG_ERRORS[case]
    assert_short_error(run_luigi(write_config(text)), *words)
    assert not finished_targets(tmp_path / "out")


def test_a_build_file_that_is_not_there(run_luigi: Callable, tmp_path: Path) -> None:
    assert_short_error(run_luigi(tmp_path / "none.toml"), "none.toml", "sample")


def make_source(kind: str, folder: Path) -> str:
    """A bad source of some `kind`; returns its spec."""
    if kind == "missing path":
        return f"text:{folder / 'nowhere'}"
    if kind == "name not UTF-8":
        (folder / os.fsdecode(b"caf\xe9.txt")).write_text("One. Two.", encoding="utf-8")
        return f"text:{folder}"
    (folder / "a.jsonl").write_text("This is prose, not JSON.\n", encoding="utf-8")
    return f"jsonl:{folder / 'a.jsonl'}"


@pytest.mark.parametrize("kind", ["missing path", "wrong format", "name not UTF-8"])
def test_a_bad_source_is_named(
    kind: str, write_config: Callable, run_luigi: Callable, tmp_path: Path
) -> None:
    spec = make_source(kind, tmp_path)
    done = run_luigi(write_config(SOURCE.format(spec=spec)))
    assert_short_error(done, spec.split(":", 1)[1])
    assert not finished_targets(tmp_path / "out")


def test_a_dataset_made_from_its_source_takes_no_more_bad_records_than_allowed(
    write_config: Callable, run_luigi: Callable, tmp_path: Path
) -> None:
    sample = (SAMPLE / "tests" / "storycloze.csv").read_text(encoding="utf-8")
    (tmp_path / "cloze.csv").write_text(sample + "short,One.\n" * 60, encoding="utf-8")
    text = 'name = "bad"\n{}' + CLOZE.replace("{path}", str(tmp_path / "cloze.csv"))
    assert not run_luigi(write_config(text.format("max_bad_share = 0.9\n"))).returncode
    done = run_luigi(write_config(text.format("max_bad_share = 0.5\n")))
    assert_short_error(done, "cloze.csv", "60 bad records", "max_bad_share")


def test_an_output_that_cannot_be_written(
    write_config: Callable, run_luigi: Callable, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    done = run_luigi(write_config(TINY), output=tmp_path / "file")
    assert_short_error(done, "file")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a file system of its own, with mount options; skips where a test may not."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(options: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this machine does not let a test mount a file system")
        return disk

    yield mount
    subprocess.run(["umount", str(disk)], capture_output=True, check=False)


def test_no_permission_to_write(
    write_config: Callable, run_luigi: Callable, small_disk: Callable[[str], Path]
) -> None:
    done = run_luigi(write_config(TINY), output=small_disk("ro") / "out")
    assert_short_error(done, "out", "read-only")


@pytest.mark.parametrize("size", ["256k", "400k"])  # full before the first stage, and in it
def test_a_full_disk(
    size: str, write_config: Callable, run_luigi: Callable, small_disk: Callable[[str], Path]
) -> None:
    disk = small_disk(f"size={size}")
    done = run_luigi(write_config(TINY), output=disk)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "disk is full" in done.stderr or "No space" in done.stderr
    for manifest in finished_targets(disk):
        assert json.loads(manifest.read_text(encoding="utf-8"))


def test_the_traceback_is_there_when_asked_for(write_config: Callable, run_luigi: Callable) -> None:
    done = run_luigi(write_config("sede = 3\n" + TINY), "--discorpora-debug")
    assert done.returncode != 0
    assert "Traceback" in done.stderr
