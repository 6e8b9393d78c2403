"""Slurm's job arrays: what is submitted, with which variables, from which folder; a large array."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from luigi.cmdline import luigi_run

from corpora.errors import ConfigError, DiscorporaError
from tests.workflows.conftest import ROOT, luigi_environment
from workflows.engines import _prepare_logs, _unfinished, check
from workflows.tables import Engine

pytest.importorskip("datatrove")

from tests.processes import forked, ran
from workflows.slurm import JOB, Executor, reduced_environment

TASKS = int(os.environ.get("DISCORPORA_TASKS", "10000"))
"""Of the campaign of `make nightly`."""
BUILD = """
name = "array"
[[sources]]
name = "stories"
spec = "sample:stories"
[engine]
kind = "slurm"
tasks = {tasks}
poll_seconds = 0.5
export = ["KEPT"]
options = {{ partition = "cpu", time = "1:00:00", with_srun = false, max_array_size = {size} }}
"""
SBATCH = r"""#!{python}
# An array's tasks are forks of one process, which has loaded what they need: four at a time.
# Arrays wait for each other, as datatrove asks for.
import json, os, re, sys, time
here = os.path.dirname(os.path.abspath(__file__))
script = open(sys.argv[-1]).read()
number = 1 + len(os.listdir(here + "/arrays"))
offset = re.search(r"--export=ALL,RUN_OFFSET=(\d+)", " ".join(sys.argv)).group(1)
last = int(re.search(r"--array=0-(\d+)", script).group(1))
folder = re.search(r"launch_pickled_pipeline (\S+)", script).group(1)
with open(here + f"/arrays/{{number}}", "w") as file:
    json.dump(dict(os.environ), file)
print("Submitted batch job", number, flush=True)
if os.fork():
    os._exit(0)
os.setsid()
open(here + f"/{{number}}.pid", "w").write(str(os.getpid()))
null = os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(null, stream)
before = re.search(r"--dependency=afterany:(\d+)", " ".join(sys.argv))
while before and os.path.exists(here + f"/{{before.group(1)}}.pid"):
    time.sleep(0.1)
os.environ.update(SLURM_JOB_ID=str(number), SLURM_NODELIST="n1", RUN_OFFSET=offset)
import dill, pandas
from tests.workflows.numbered import Numbered
from workflows.settings import options
with open(folder, "rb") as file:
    executor = dill.load(file)
with options(executor.pipeline[0].config, executor.pipeline[0].output):
    planned = Numbered.from_str_params(executor.pipeline[0].parameters)
running = 0
for task in range(last + 1):
    if running == 4:
        os.wait()
        running -= 1
    if not os.fork():
        os.environ["SLURM_ARRAY_TASK_ID"] = str(task)
        try:
            executor.run()
        finally:
            os._exit(0)
    running += 1
while running:
    os.wait()
    running -= 1
os.remove(here + f"/{{number}}.pid")
"""
SQUEUE = r"""#!{python}
import os, sys
here = os.path.dirname(os.path.abspath(__file__))
for job in sys.argv[-1].split(","):
    if os.path.exists(here + f"/{{job}}.pid"):
        print(job, "cpu task R")
"""


@pytest.fixture
def slurm(tmp_path: Path) -> Path:
    """A folder of programs with the names of Slurm's."""
    folder = tmp_path / "bin"
    (folder / "arrays").mkdir(parents=True)
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scontrol", "#!/bin/sh\necho n1")):
        (folder / name).write_text(text.format(python=sys.executable), encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("tasks", "size"),
    [(60, 24), pytest.param(TASKS, 1001, marks=pytest.mark.nightly)],
    ids=["small", "campaign"],
)
def test_an_array_with_killed_and_slow_tasks_loses_and_repeats_nothing(
    tasks: int, size: int, slurm: Path, tmp_path: Path
) -> None:
    """The same command is given until it succeeds: some tasks are killed each time."""
    config, output, made = tmp_path / "build.toml", tmp_path / "out", tmp_path / "made"
    config.write_text(BUILD.format(tasks=tasks, size=size), encoding="utf-8")
    killed = 0.01 if tasks > 1000 else 0.08
    words = ["--shards", str(tasks), "--killed", str(killed), "--slow", "0.01"]
    words += ["--config", str(config), "--discorpora-output", str(output)]
    command = ["--module", "tests.workflows.numbered", "Numbered", *words, "--no-lock"]
    environment = luigi_environment() | {"DISCORPORA_MADE": str(made), "KEPT": "1", "SECRET": "1"}
    environment |= {"PATH": f"{slurm}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    runs, began = [], time.monotonic()
    while not runs or runs[-1]:
        done = forked(lambda: luigi_run(command), env=environment, cwd=ROOT)
        lost = re.search(r"(\d+) of \d+ tasks did not end well", done.stderr)
        assert bool(lost) == bool(done.returncode), done.stderr[-3000:]
        runs.append(int(lost.group(1)) if lost else 0)
        assert len(runs) < 12, runs
    seconds = time.monotonic() - began
    (folder,) = (path.parent for path in output.glob("stages/numbered/*/manifest.json"))
    assert json.loads((folder / "manifest.json").read_text())["counts"] == {
        "shards": tasks,
        "rows": tasks,
    }
    shards = sorted(folder.glob("*.parquet"))
    assert [pq.read_table(path)["number"].to_pylist() for path in shards] == [
        [number] for number in range(tasks)
    ]
    written = Counter(line.split()[0] for line in made.read_text().splitlines())
    assert len(written) == tasks and set(written.values()) == {1}
    assert {line.split()[1] for line in made.read_text().splitlines()} == {str(tasks)}
    handed = [json.loads(path.read_text()) for path in (slurm / "arrays").iterdir()]
    assert len(handed) >= -(-tasks // size) + len(runs) - 1
    assert all("KEPT" in each and "SECRET" not in each for each in handed)
    assert not list(output.glob("stages/**/*.engine"))
    sys.stderr.write(f"\n{tasks} tasks, {len(handed)} arrays, lost {runs}, {seconds:.0f} s\n")


def executor(folder: Path, **more: Any) -> Executor:
    return Executor([], 3, "1:00:00", "cpu", logging_dir=str(folder), **more)


def test_a_job_runs_only_from_a_folder_that_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir(mode=0o700)
    script = executor(folder).get_launch_file_contents({}, f"echo ran {folder}/executor.pik")
    for mode, runs in ((0o700, True), (0o750, False), (0o777, False)):
        folder.chmod(mode)
        done = ran(["bash", "-c", script])
        assert ("ran" in done.stdout, done.returncode == 0) == (runs, runs)
        assert runs or "must be yours and of mode 700" in done.stderr


def test_every_array_is_known_and_none_merges_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []

    def submitted(script: str, retriever: Any, *words: str) -> str:
        calls.append(words)
        return str(6 + len(calls))

    monkeypatch.setattr("datatrove.executor.slurm.launch_slurm_job", submitted)
    made = executor(tmp_path, max_array_size=2)
    made.run()
    assert made.jobs == ("7", "8") and (tmp_path / JOB).read_text() == "7,8"
    assert calls == [
        ("--export=ALL,RUN_OFFSET=0",),
        ("--export=ALL,RUN_OFFSET=1", "--dependency=afterany:7"),
    ]


def test_the_environment_is_reduced_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"HF_TOKEN": "x", "AWS_SECRET": "x", "HF_HOME": "h", "OMP_NUM_THREADS": "1", "MINE": ""}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with reduced_environment(["MINE"]):
        assert {*os.environ} & {*given} == {"HF_HOME", "OMP_NUM_THREADS", "MINE"}
        assert os.environ["PATH"] == before["PATH"]
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ({"kind": "local", "export": ["MINE"]}, "engine.export is of kind 'slurm' alone"),
        ({"kind": "slurm", "export": ["NO_SUCH"]}, "names 'NO_SUCH', which the environment"),
    ],
)
def test_export_names_what_there_is(engine: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(Engine.of(engine), "build.toml")


def test_logs_are_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o2775)  # a project's folder: new ones below get its group, and its mark
    logs, engine = tmp_path / "abc.engine", Engine(kind="local", tasks=3)
    _prepare_logs(logs, engine, tmp_path)
    assert logs.stat().st_mode & 0o7777 == 0o700
    monkeypatch.setattr(Path, "chmod", lambda *_: None)
    monkeypatch.setattr(Path, "mkdir", lambda path, **_: os.mkdir(path, 0o755))  # noqa: PTH102
    with pytest.raises(DiscorporaError, match="expected 700"):
        _prepare_logs(logs, engine, tmp_path)


def test_tasks_that_ended_well_are_not_given_out_again(tmp_path: Path) -> None:
    logs, folder, engine = tmp_path / "abc.engine", tmp_path / "partial", Engine(tasks=3)
    folder.mkdir()
    _prepare_logs(logs, engine, folder)
    assert _unfinished(logs, engine) == [0, 1, 2]
    (logs / "completions" / "00001").touch()
    _prepare_logs(logs, engine, folder)  # nothing of what it made is there
    assert _unfinished(logs, engine) == [0, 1, 2]
    (logs / "completions" / "00001").touch()
    (folder / "shard").touch()
    _prepare_logs(logs, engine, folder)
    assert _unfinished(logs, engine) == [0, 2]
    assert _unfinished(logs, Engine(tasks=4)) == [0, 2, 3]
    _prepare_logs(logs, Engine(tasks=4), folder)
    assert _unfinished(logs, Engine(tasks=4)) == [0, 1, 2, 3]
