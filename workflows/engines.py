"""Divide the shards of a stage among workers of this machine, or of a cluster through datatrove.

A worker makes its share of the shards in the stage's partial folder, which every machine must see;
then the stage itself runs as always, finds the shards, and counts. So no output depends on the
engine. If a worker fails, the stage fails, and its next run makes the missing shards.
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

RESERVED = frozenset({"pipeline", "tasks", "workers", "logging_dir", "skip_completed", "depends"})
"""The arguments of an executor that a build file cannot set."""
LIBRARIES = {"here": (), "local": (), "slurm": ("datatrove",), "ray": ("datatrove", "ray")}
"""The libraries that each kind of engine needs."""


class Share(Protocol):
    """The work of a stage, divided among workers of an executor; it can be pickled."""

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> None:
        """Make the shards of worker `rank`."""


def share_out(task: StageTask, folder: Path) -> None:
    """Let the build's engine make the shards of `task` in `folder`; returns when all are made.

    Raises `ConfigError` for an engine that is not installed or an option that it does not have,
    and `DiscorporaError` if workers failed: finished shards are kept.
    """
    # Prepare.
    engine = task.build.engine
    check(engine, task.build.path)
    logs = task.folder.with_suffix(".engine")
    if engine.kind == "slurm":
        _check_no_job(logs)
    _prepare_logs(logs, engine, folder)
    share = task.share(folder)
    tasks = len(_unfinished(logs, engine))
    log.info("%s: %d tasks on %s, logs in %s", task.title, tasks, engine.kind, logs)
    # Run, and check that each task has ended well.
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
    unfinished = _unfinished(logs, engine)
    if unfinished or problem:
        raise DiscorporaError(
            f"{len(unfinished)} of {engine.tasks} tasks did not end well{problem}",
            where=task.title,
            hint=f"read {logs}/logs/task_{(unfinished or [0])[0]:05d}.log; shards that are "
            "finished are kept: run the same command again",
        )
    shutil.rmtree(logs)


def check(engine: Engine, where: str) -> None:
    """Raise `ConfigError` if the `[engine]` table of the file `where` cannot be used here.

    Checked are libraries, the executor's options, variables to export, and Slurm's `sbatch`.
    """
    # Libraries and options of the executor
    for name in LIBRARIES[engine.kind]:
        if find_spec(name) is None:
            raise ConfigError(
                f"engine.kind = {engine.kind!r} needs {name}, which is not installed",
                where=where,
                hint=f'pip install "discorpora[{engine.kind}]"',
            )
    if LIBRARIES[engine.kind]:
        valid = {*signature(_executor_class(engine.kind)).parameters} - RESERVED
        valid |= {"address"} if engine.kind == "ray" else set()
        for key in (key for key in engine.options if key not in valid):
            raise ConfigError(
                f"unknown key 'engine.options.{key}'; {nearest(key, valid)}".rstrip("; "),
                where=where,
                hint=f"valid here: {', '.join(sorted(valid))}",
            )
    if engine.kind != "slurm":
        return
    # What only Slurm needs
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
    """Run the unfinished tasks in processes of this machine."""
    workers = engine.workers
    if workers == -1:
        cores = (os.cpu_count() or 1) // max(1, core().workers)
        workers = max(1, min(engine.tasks, cores))
    jobs = ((share, rank, engine.tasks, logs) for rank in _unfinished(logs, engine))
    for _ in in_order(_run_task, jobs, workers):
        pass


def _run_task(share: Share, rank: int, of: int, logs: Path) -> None:
    """Run one task, the shards of worker `rank`; log and end mark have datatrove's names."""
    with _redirected_output(logs / "logs" / f"task_{rank:05d}.log"):
        share(None, rank, of)
    _mark(logs, rank).touch()


def _mark(logs: Path, rank: int) -> Path:
    """Return the path of datatrove's empty file that marks the success of a task."""
    return logs / "completions" / f"{rank:05d}"


def _unfinished(logs: Path, engine: Engine) -> list[int]:
    """Return the ranks of the tasks that have not ended successfully."""
    return [rank for rank in range(engine.tasks) if not _mark(logs, rank).exists()]


def _prepare_logs(logs: Path, engine: Engine, folder: Path) -> None:
    """Make an empty folder of logs that other users cannot write, since jobs run files in it.

    The end marks of an earlier run stay if it had as many tasks, and its shards are in `folder`.
    """
    marks, record = _mark(logs, 0).parent, logs / "tasks"
    finished: list[str] = []
    if record.is_file() and record.read_text() == str(engine.tasks) and any(folder.iterdir()):
        finished = [mark.name for mark in marks.glob("*")]
    shutil.rmtree(logs, ignore_errors=True)
    try:
        logs.mkdir(mode=0o700, parents=True)
        logs.chmod(0o700)  # a folder inherits the setgid bit of the folder above
    except OSError as error:
        raise DiscorporaError(f"cannot be made: {error.strerror}", where=str(logs)) from error
    state = logs.stat()
    if state.st_uid != os.geteuid() or state.st_mode & 0o7777 != 0o700:
        raise DiscorporaError(
            f"has mode {state.st_mode & 0o7777:o}, expected 700: others could change what jobs run",
            where=str(logs),
            hint="build into a file system that keeps the modes of folders",
        )
    record.write_text(str(engine.tasks))
    marks.mkdir()
    for name in finished:
        (marks / name).touch()


def _executor_class(kind: str) -> type[PipelineExecutor]:
    """Import and return the class of datatrove's executor of this kind, ours for Slurm."""
    if kind == "slurm":
        from workflows.slurm import Executor

        return Executor
    return getattr(import_module(f"datatrove.executor.{kind}"), f"{kind.title()}PipelineExecutor")


def _run_executor(engine: Engine, share: Share, logs: Path, title: str) -> None:
    """Run the tasks by datatrove's executor; on Slurm wait until all are done or no job is left."""
    options = {key: value for key, value in engine.options.items() if key != "address"}
    if engine.kind == "slurm":
        options.setdefault("job_name", title.replace(" ", "-").replace("/", "-"))
    executor: Any = _executor_class(engine.kind)(
        pipeline=[share],
        tasks=engine.tasks,
        workers=engine.workers,
        logging_dir=str(logs),
        skip_completed=True,
        **options,
    )
    with _redirected_output(logs / "console.log"):
        if engine.kind == "ray":
            import ray

            ray.init(address=engine.options.get("address"), ignore_reinit_error=True)
            executor.run()
            return
        from workflows.slurm import reduced_environment

        with reduced_environment(engine.export):
            executor.run()
        queued = True
        while queued and _unfinished(logs, engine):
            queued = _is_queued(",".join(executor.jobs))
            # A file written on another machine may be visible a little later.
            time.sleep(engine.poll_seconds)


def _check_no_job(logs: Path) -> None:
    """Raise `DiscorporaError` if Slurm has jobs of an earlier run, which write the same files."""
    from workflows.slurm import JOB

    job = (logs / JOB).read_text(encoding="utf-8") if (logs / JOB).is_file() else ""
    if job and _is_queued(job):
        raise DiscorporaError(
            f"Slurm still has job {job} of an earlier run of this stage",
            where=str(logs),
            hint=f"wait until it has ended, or stop it: scancel {job.replace(',', ' ')}",
        )


def _is_queued(jobs: str) -> bool:
    """Tell whether Slurm still has one of the jobs (`1,2`); also true if `squeue` itself fails."""
    command = ["squeue", "--noheader", "--jobs", jobs]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        return "nvalid job id" not in answer.stderr
    return bool(answer.stdout.strip())


@contextmanager
def _redirected_output(path: Path) -> Iterator[None]:
    """Append the output of workers (and datatrove) to a file, not to the build's log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    copies = {stream: os.dup(stream.fileno()) for stream in (sys.stdout, sys.stderr)}
    with path.open("ab") as file:
        for stream in copies:
            stream.flush()
            os.dup2(file.fileno(), stream.fileno())
    try:
        yield
    finally:
        for stream, copy in copies.items():
            stream.flush()
            os.dup2(copy, stream.fileno())
            os.close(copy)
