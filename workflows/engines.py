"""Sharing a stage's shards out to the workers of a machine, or of a cluster by datatrove.

A worker makes the shards of its part in the stage's partial folder, which every machine must
see; then the stage itself runs as always, finds them there, and counts. So no output depends on
the engine. If a worker fails the stage does, and its next run makes what is missing.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from luigi.interface import core

from corpora.errors import ConfigError, DiscorporaError, nearest
from corpora.processes import in_order
from workflows.tables import Engine

if TYPE_CHECKING:
    from datatrove.executor.base import PipelineExecutor

    from workflows.stage import StageTask

log = logging.getLogger("discorpora")

OURS = frozenset({"pipeline", "tasks", "workers", "logging_dir", "skip_completed", "depends"})
"""The arguments of an executor that are not the user's to choose."""
LIBRARIES = {"here": (), "local": (), "slurm": ("datatrove",), "ray": ("datatrove", "ray")}


class Share(Protocol):
    """A stage's work as a worker of an executor gets it; it can be pickled."""

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> None:
        """Make the shards of worker `rank`."""


def share_out(task: StageTask, folder: Path) -> None:
    """Let the build's engine make the shards of `task` in `folder`; returns when they are there.

    Raises `ConfigError` for an engine that is not installed or an option that it does not have,
    and `DiscorporaError` if workers failed: what they made is kept.
    """
    engine = task.build.engine
    check(engine, task.build.path)
    logs = task.folder.with_suffix(".engine")
    if engine.kind == "slurm":
        _refuse_two(logs)
    _prepare(logs, engine, folder)
    share = task.share(folder)
    tasks = len(_left(logs, engine))
    log.info("%s: %d tasks on %s, logs in %s", task.title, tasks, engine.kind, logs)
    problem = ""
    try:
        if engine.kind == "local":
            _run_processes(engine, share, logs)
        else:
            _run_executor(engine, share, logs, task.title)
    except (DiscorporaError, KeyboardInterrupt):
        raise
    except Exception as error:  # whatever a worker raised comes through the executor
        problem = f": {error}".splitlines()[0]
    missing = _left(logs, engine)
    if missing or problem:
        raise DiscorporaError(
            f"{len(missing)} of {engine.tasks} tasks did not end well{problem}",
            where=task.title,
            hint=f"read {logs}/logs/task_{(missing or [0])[0]:05d}.log; shards that are finished "
            "are kept: run the same command again",
        )
    shutil.rmtree(logs)


def check(engine: Engine, where: str) -> None:
    """Raise `ConfigError` if this machine has not what an `[engine]` table of the file `where` asks
    for: libraries, executors with its options, variables, Slurm."""
    for name in LIBRARIES[engine.kind]:
        if find_spec(name) is None:
            raise ConfigError(
                f"engine.kind = {engine.kind!r} needs {name}, which is not installed",
                where=where,
                hint=f'pip install "discorpora[{engine.kind}]"',
            )
    if LIBRARIES[engine.kind]:
        valid = {*signature(_executor(engine.kind)).parameters} - OURS
        valid |= {"address"} if engine.kind == "ray" else set()
        for key in (key for key in engine.options if key not in valid):
            raise ConfigError(
                f"unknown key 'engine.options.{key}'; {nearest(key, valid)}".rstrip("; "),
                where=where,
                hint=f"valid here: {', '.join(sorted(valid))}",
            )
    if engine.kind != "slurm":
        return
    for name in engine.export:
        if name not in os.environ:
            raise ConfigError(
                f"engine.export names {name!r}, which the environment does not have", where=where
            )
    for key in ("partition", "time"):
        if key not in engine.options:
            raise ConfigError(f"the key 'engine.options.{key}' is missing", where=where)
    if shutil.which("sbatch") is None:
        raise ConfigError(
            'engine.kind = "slurm", but there is no sbatch on this machine',
            where=where,
            hint="run it on a login node of the cluster, or choose another engine",
        )


def _run_processes(engine: Engine, share: Share, logs: Path) -> None:
    """The tasks in processes of this machine: a killed one is noticed."""
    workers = engine.workers
    if workers == -1:
        cores = (os.cpu_count() or 1) // max(1, core().workers)
        workers = max(1, min(engine.tasks, cores))
    jobs = ((share, rank, engine.tasks, logs) for rank in _left(logs, engine))
    for _ in in_order(_task, jobs, workers):
        pass


def _task(share: Share, rank: int, of: int, logs: Path) -> None:
    """One task, with its log and its mark as datatrove keeps them."""
    with _aside(logs / "logs" / f"task_{rank:05d}.log"):
        share(None, rank, of)
    _mark(logs, rank).touch()


def _mark(logs: Path, rank: int) -> Path:
    """datatrove leaves an empty file for a task that ended well."""
    return logs / "completions" / f"{rank:05d}"


def _left(logs: Path, engine: Engine) -> list[int]:
    """The tasks that have not ended well."""
    return [rank for rank in range(engine.tasks) if not _mark(logs, rank).exists()]


def _prepare(logs: Path, engine: Engine, folder: Path) -> None:
    """Make the folder of logs anew, closed to others: jobs run what lies there.

    The marks of an earlier run stay if it had as many tasks, and what they made is in `folder`.
    """
    marks, number = _mark(logs, 0).parent, logs / "tasks"
    kept: list[str] = []
    if number.is_file() and number.read_text() == str(engine.tasks) and any(folder.iterdir()):
        kept = [mark.name for mark in marks.glob("*")]
    shutil.rmtree(logs, ignore_errors=True)
    try:
        logs.mkdir(mode=0o700, parents=True)
        logs.chmod(0o700)  # also where the folder above hands its group on
    except OSError as error:
        raise DiscorporaError(f"cannot be made: {error.strerror}", where=str(logs)) from error
    found = logs.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o7777 != 0o700:
        raise DiscorporaError(
            f"has mode {found.st_mode & 0o7777:o}, expected 700: others could change what jobs run",
            where=str(logs),
            hint="build into a file system that keeps the modes of folders",
        )
    number.write_text(str(engine.tasks))
    marks.mkdir()
    for name in kept:
        (marks / name).touch()


def _executor(kind: str) -> type[PipelineExecutor]:
    """The executor's class; only the one that is asked for is imported."""
    if kind == "slurm":
        from workflows.slurm import Executor

        return Executor
    return getattr(import_module(f"datatrove.executor.{kind}"), f"{kind.title()}PipelineExecutor")


def _run_executor(engine: Engine, share: Share, logs: Path, title: str) -> None:
    """The tasks by datatrove's executor, until every one is done or no job of ours is known."""
    options = {key: value for key, value in engine.options.items() if key != "address"}
    if engine.kind == "slurm":
        options.setdefault("job_name", title.replace(" ", "-").replace("/", "-"))
    executor: Any = _executor(engine.kind)(
        pipeline=[share],
        tasks=engine.tasks,
        workers=engine.workers,
        logging_dir=str(logs),
        skip_completed=True,
        **options,
    )
    with _aside(logs / "console.log"):
        if engine.kind == "ray":
            import ray

            ray.init(address=engine.options.get("address"), ignore_reinit_error=True)
            executor.run()
            return
        from workflows.slurm import reduced_environment

        with reduced_environment(engine.export):
            executor.run()
        queued = True
        while queued and _left(logs, engine):
            queued = _queued(",".join(executor.jobs))
            # A file written on another machine may show a little later.
            time.sleep(engine.poll_seconds)


def _refuse_two(logs: Path) -> None:
    """Raise `DiscorporaError` while Slurm still has jobs of a run that was killed.

    Its tasks write the very files that ours would.
    """
    from workflows.slurm import JOB

    job = (logs / JOB).read_text(encoding="utf-8") if (logs / JOB).is_file() else ""
    if job and _queued(job):
        raise DiscorporaError(
            f"Slurm still has job {job} of an earlier run of this stage",
            where=str(logs),
            hint=f"wait until it has ended, or stop it: scancel {job.replace(',', ' ')}",
        )


def _queued(job: str) -> bool:
    """Whether Slurm still has one of the jobs (`1,2`). A question that fails is asked again."""
    command = ["squeue", "--noheader", "--jobs", job]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        return "nvalid job id" not in answer.stderr
    return bool(answer.stdout.strip())


@contextmanager
def _aside(path: Path) -> Iterator[None]:
    """Let what workers (and datatrove) print go to a file, not between the build's own lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {stream: os.dup(stream.fileno()) for stream in (sys.stdout, sys.stderr)}
    with path.open("ab") as file:
        for stream in kept:
            stream.flush()
            os.dup2(file.fileno(), stream.fileno())
    try:
        yield
    finally:
        for stream, number in kept.items():
            stream.flush()
            os.dup2(number, stream.fileno())
            os.close(number)
