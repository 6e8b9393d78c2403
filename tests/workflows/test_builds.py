"""What a second build does: results that were removed, settings that went back, exit codes."""

from __future__ import annotations

import importlib.util
import logging
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import luigi
import pytest

from corpora.errors import DiscorporaError
from corpora.store.atomic import MANIFEST, replacing
from corpora.store.copies import is_linked
from tests.processes import ran
from tests.workflows.conftest import MODELS, TINY, luigi_command, luigi_environment, until
from workflows import stage
from workflows.results import stage_folder
from workflows.settings import options
from workflows.tasks import BuildAll, Evaluate, Sentences, Train, models
from workflows.tasks.build import LOCK, lock_output, remove_outdated, run_build, unlock_output

SMALL = """
name = "small"

[[sources]]
name = "stories"
spec = "sample:stories"
datasets = ["sp"]

[datasets.sp]
"""


@pytest.fixture
def build(write_config: Callable[[str], Path], tmp_path: Path) -> Callable:
    """Build a file's text here; returns the stage of the result `sp`, if there is one."""

    def run(text: str) -> Path | None:
        assert run_build(str(write_config(text)), str(tmp_path / "out"), workers=1) == 0
        result = tmp_path / "out" / "small" / "datasets" / "sp"
        return stage_folder(result) if result.exists() else None

    return run


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """Where the build puts the dataset `sp`."""
    return tmp_path / "out" / "small" / "datasets" / "sp"


def test_results_follow_the_build_file(build: Callable, result: Path) -> None:
    first = build(SMALL)
    other = build(SMALL + "train = 20\n")
    assert first != other and is_linked(other, result)
    assert build(SMALL) == first and is_linked(first, result)
    assert build(SMALL.replace("sp", "bso").replace("bsoec", "spec")) is None
    names = {path.parent.name for path in result.parents[1].rglob(MANIFEST)}
    assert names == {"bso", "division", "report"}


def test_a_build_mends_a_result_that_a_killed_one_left(build: Callable, result: Path) -> None:
    stage = build(SMALL)
    result.rename(result.with_name(".sp.old"))
    assert build(SMALL) == stage and is_linked(stage, result)
    assert [path.name for path in result.parent.iterdir()] == ["sp"]


def test_with_a_model_goes_all_that_was_made_from_it(
    write_config: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = str(write_config(TINY + MODELS))
    monkeypatch.setattr(
        Train, "changed_code", lambda self: ["data"] if self.name == "dissent-bilstm" else []
    )
    with options(config, str(tmp_path / "out"), looking=True):
        task = BuildAll(config=config)
        for each in task.lineage:
            each.folder.mkdir(parents=True)
            (each.folder / "manifest.json").write_text("{}", encoding="utf-8")
        remove_outdated(task)
        removed = {each.title for each in task.lineage if not each.folder.exists()}
    names = "model dissent-bilstm", "evaluation dissent-bilstm", "report tiny", "all tiny"
    assert removed == {*names}
    assert not list((tmp_path / "out").rglob("*.damaged"))


def test_of_several_failed_evaluations_each_is_said(
    write_config: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    suites = "".join(
        f'[evaluations.{name}]\nsuite = "dissent"\nmodels = ["dissent-bilstm"]\n'
        'dataset = "dissent"\n'
        for name in ("one", "two")
    )
    config = str(write_config(TINY + MODELS + suites))
    said = [DiscorporaError("the first is bad"), DiscorporaError("the second is bad")]
    monkeypatch.setattr(models, "evaluate", lambda *_: said)
    with options(config, str(tmp_path / "out")):
        task = Evaluate(config=config, name="dissent-bilstm", on="one,two")
        with pytest.raises(DiscorporaError, match="the first is bad"):
            task.run()
    assert "evaluation two/dissent-bilstm: error: the second is bad" in caplog.messages


def test_a_result_that_was_removed_is_made_again(build: Callable) -> None:
    folder = build(SMALL)
    before = {path.name: path.read_bytes() for path in folder.rglob("*.parquet")}
    for lost in (folder, folder.parents[2] / "division", folder.parents[3] / "small"):
        shutil.rmtree(lost)
        assert build(SMALL) == folder
        assert {path.name: path.read_bytes() for path in folder.rglob("*.parquet")} == before


@pytest.mark.parametrize("task", ["Sentences", "BuildAll"])
def test_a_stage_that_another_build_made_meanwhile_is_taken(
    task: str, build: Callable, write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    build(SMALL)
    with options(str(write_config(SMALL)), str(tmp_path / "out")):
        stage = BuildAll() if task == "BuildAll" else Sentences(source="stories")
        record, aside = stage.run_file.read_bytes(), stage.folder.with_name("aside")
        stage.folder.rename(aside)

        class Other(logging.Handler):
            """The other build: it ends when this one has looked and says what it begins."""

            def emit(self, record: logging.LogRecord) -> None:
                if aside.exists():
                    aside.rename(stage.folder)

        other, log = Other(), logging.getLogger("discorpora")
        log.addHandler(other)
        try:
            stage.run()
        finally:
            log.removeHandler(other)
        assert stage.complete() and not aside.exists()
        assert stage.run_file.read_bytes() == record


NOTES = """
name = "notes"
[[sources]]
name = "notes"
spec = "sample:stories"
"""


def start(how: str, config: Path, output: Path) -> subprocess.Popen[str]:
    command = luigi_command(config, output)
    if how == "discorpora":
        command = [sys.executable, "-m", "workflows.cli.app", "build", "--workers", "2"]
        command += ["--config", str(config), "--output", str(output)]
    return subprocess.Popen(
        command,
        env=luigi_environment(),
        cwd=config.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("one", "other"), [("luigi", "discorpora"), ("discorpora", "luigi")])
def test_a_second_build_names_the_first_and_stops(
    one: str, other: str, write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    config, out = write_config(NOTES), tmp_path / "out"
    first = start(one, config, out)
    until(lambda: (out / LOCK).is_file() and (out / LOCK).stat().st_size)
    first.send_signal(signal.SIGSTOP)  # it holds the lock for as long as the second one needs
    second = start(other, config, out)
    _, said = second.communicate(timeout=60)
    first.send_signal(signal.SIGCONT)
    _, log = first.communicate(timeout=60)
    assert first.returncode == 0, log
    assert (out / "notes" / "report" / "report.md").is_file()
    assert second.returncode != 0 and "Traceback" not in said
    assert f"process {first.pid} on {socket.gethostname()}, since 20" in said
    assert f"--config {config}" in said
    assert not list(out.rglob("*.lock"))


def test_a_build_leaves_what_another_command_writes_into_its_output(tmp_path: Path) -> None:
    left = tmp_path / "fingerprints" / "ab" / ".note.17.partial"
    left.parent.mkdir(parents=True)
    left.touch()
    with replacing(tmp_path / "pairs.jsonl") as extracted, options("sample", str(tmp_path)):
        extracted.write_text("{}", encoding="utf-8")
        lock_output(tmp_path)
        unlock_output(tmp_path)
    assert (tmp_path / "pairs.jsonl").is_file() and not left.exists()


@pytest.mark.nightly
@pytest.mark.parametrize("trial", range(8))
def test_of_two_builds_at_once_one_goes_on(
    trial: int, write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    config, out = write_config(SMALL), tmp_path / "out"
    both = [start("luigi", config, out)]
    time.sleep(trial / 8)
    both.append(start("discorpora", config, out))
    said = [process.communicate(timeout=120)[1] for process in both]
    ended = [process.returncode for process in both]
    assert 0 in ended, said
    assert (out / "small" / "datasets" / "sp" / "manifest.json").is_file()
    assert ended == [0, 0] or "another build writes into this folder" in "".join(said)


def test_a_failure_is_no_success_in_any_folder(
    write_config: Callable[[str], Path], tmp_path: Path
) -> None:
    """Luigi itself ends with 0: its codes must not depend on a `luigi.cfg` beside the user."""
    text = tmp_path / "short.txt"
    text.write_text("It rained.\n", encoding="utf-8")
    config = write_config(SMALL.replace("sample:stories", f"text:{text}"))
    environment = luigi_environment()
    del environment["LUIGI_CONFIG_PATH"]
    done = ran(luigi_command(config, tmp_path / "out"), env=environment, cwd=tmp_path)
    assert "failed: dataset sp" in done.stderr
    assert done.returncode == 30, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "core", "local"),
    [
        ([], {}, True),
        (["--scheduler-host", "head"], {}, False),
        (["--scheduler-url=http://head:1"], {}, False),
        ([], {"default-scheduler-host": "head"}, False),
        ([], {"scheduler_host": "head"}, False),
        ([], {"local_scheduler": "false"}, False),
    ],
)
def test_the_scheduler_is_a_local_one_unless_another_is_named(
    monkeypatch: pytest.MonkeyPatch, words: list[str], core: dict[str, str], local: bool
) -> None:
    from luigi.configuration.cfg_parser import LuigiConfigParser

    from workflows import settings

    config = LuigiConfigParser()
    config.read_dict({"core": core})
    monkeypatch.setattr(settings.luigi.configuration, "get_config", lambda: config)
    monkeypatch.setattr(settings.sys, "argv", ["luigi", *words])
    settings.set_defaults()
    assert config.getboolean("core", "local_scheduler", False) is local
    assert config.get("scheduler", "retry_count") == "1"


def test_a_build_says_where_its_report_is_also_when_there_is_nothing_to_do(
    write_config: Callable[[str], Path], run_luigi: Callable, tmp_path: Path
) -> None:
    config = write_config(SMALL)
    report = tmp_path / "out" / "small" / "report" / "index.html"
    for said in ("built, see", "built before, see"):
        done = run_luigi(config)
        assert done.returncode == 0, done.stderr
        assert f"small: {said} {report}" in done.stderr
    assert report.is_file()


def test_an_interrupt_while_libraries_load_stops_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    with options("sample", str(tmp_path / "out")):
        task = BuildAll()
        loaded = {name for each in task.lineage for name in each.loads}
        assert {"spacy", "duckdb", "datasets"} <= loaded
        assert all(importlib.util.find_spec(name) for name in loaded)
        monkeypatch.setattr(stage, "import_module", interrupted)
        with pytest.raises(KeyboardInterrupt):
            luigi.build([task], local_scheduler=True, workers=2)
    assert not list((tmp_path / "out" / "stages").rglob("manifest.json"))
