"""Sharing a stage's shards out to the workers of a machine or cluster, by datatrove's executors.

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
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import luigi

from corpora.errors import ConfigError, DiscoforgeError, nearest
from corpora.processes import stop_with_build
from workflows.config import DATA_VARIABLE, Engine

if TYPE_CHECKING:
    from datatrove.executor.base import PipelineExecutor

    from workflows.stage import StageTask

log = logging.getLogger("discoforge")

OURS = frozenset({"pipeline", "tasks", "workers", "logging_dir", "skip_completed", "depends"})
"""The arguments of an executor that are not the user's to choose."""
NEEDED = {"slurm": ("partition", "time")}
EXTRA = {"local": "slurm", "slurm": "slurm", "ray": "ray"}


@dataclass(frozen=True)
class Share:
    """One stage as a worker of an executor gets it: by names alone, so that it can be pickled."""

    family: str
    parameters: dict[str, str]
    config: str
    output: str
    folder: str
    data: str = ""
    place: str = "."
    """The build's current folder: relative paths in a build file start there."""
    build: int = 0
    """The process that a worker on its machine must not outlive."""

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> None:
        """Make the shards of worker `rank`."""
        from workflows.runner import options

        os.chdir(self.place)
        if self.data:
            os.environ[DATA_VARIABLE] = self.data
        if self.build:
            stop_with_build(self.build)
        with options(self.config, self.output):
            kind = luigi.task_register.Register.get_task_cls(self.family)
            kind.from_str_params(self.parameters).part(Path(self.folder), rank, world_size)


def share_out(task: StageTask, folder: Path) -> None:
    """Let the build's engine make the shards of `task` in `folder`; returns when they are there.

    Raises `ConfigError` for an engine that is not installed or an option that it does not have,
    and `DiscoforgeError` if workers failed: what they made is kept.
    """
    engine = task.build.engine
    logs = task.folder.with_suffix(".engine")
    shutil.rmtree(logs, ignore_errors=True)
    share = Share(
        family=task.task_family,
        parameters=task.to_str_params(),
        config=task.build.path,
        output=str(task.root),
        folder=str(folder.absolute()),
        data=task.build.data,
        place=str(Path.cwd()),
        build=os.getpid() if engine.kind == "local" else 0,
    )
    check(engine, task.build.path)
    executor = make_executor(engine, share, logs, task.title)
    log.info("%s: %d tasks on %s, logs in %s", task.title, engine.tasks, engine.kind, logs)
    if engine.kind == "local":
        _children_end_with(os.getpid())
    problem = ""
    try:
        with _aside(logs / "console.log"):
            if engine.kind == "ray":
                _start_ray(engine)
            executor.run()
            if engine.kind == "slurm":
                _wait_for_slurm(executor, logs, engine)
    except (DiscoforgeError, KeyboardInterrupt):
        raise
    except Exception as error:  # whatever a worker raised comes through the executor
        problem = f": {error}".splitlines()[0]
    missing = [rank for rank in range(engine.tasks) if not _done(logs, rank)]
    if missing or problem:
        raise DiscoforgeError(
            f"{len(missing)} of {engine.tasks} tasks did not end well{problem}",
            where=task.title,
            hint=f"read {logs}/logs/task_{(missing or [0])[0]:05d}.log; shards that are finished "
            "are kept: run the same command again",
        )
    shutil.rmtree(logs)


def check(engine: Engine, where: str) -> None:
    """Raise `ConfigError` if an `[engine]` table cannot be used here; `where` is its build file."""
    if engine.kind == "here":
        return
    needed = ("datatrove", "ray") if engine.kind == "ray" else ("datatrove",)
    for name in needed:
        if find_spec(name) is None:
            raise ConfigError(
                f"engine.kind = {engine.kind!r} needs {name}, which is not installed",
                where=where,
                hint=f'pip install "discoforge[{EXTRA[engine.kind]}]"',
            )
    valid = set(signature(_executor(engine.kind)).parameters) - OURS
    valid |= {"address"} if engine.kind == "ray" else set()
    for key in engine.options:
        if key not in valid:
            raise ConfigError(
                f"unknown key 'engine.options.{key}'; {nearest(key, valid)}".rstrip("; "),
                where=where,
                hint=f"valid here: {', '.join(sorted(valid))}",
            )
    for key in NEEDED.get(engine.kind, ()):
        if key not in engine.options:
            raise ConfigError(f"the key 'engine.options.{key}' is missing", where=where)
    if engine.kind == "slurm" and shutil.which("sbatch") is None:
        raise ConfigError(
            'engine.kind = "slurm", but there is no sbatch on this machine',
            where=where,
            hint="run it on a login node of the cluster, or choose another engine",
        )


def make_executor(engine: Engine, share: Share, logs: Path, title: str) -> PipelineExecutor:
    """The executor that a checked `[engine]` table describes."""
    options = {key: value for key, value in engine.options.items() if key != "address"}
    workers = engine.workers
    if engine.kind == "slurm":
        options.setdefault("job_name", title.replace(" ", "-").replace("/", "-"))
    if engine.kind == "local" and workers == -1:
        workers = min(engine.tasks, os.cpu_count() or 1)
    return _executor(engine.kind)(
        pipeline=[share],
        tasks=engine.tasks,
        workers=workers,
        logging_dir=str(logs),
        skip_completed=False,  # a shard that is there says so itself
        **options,
    )


def _executor(kind: str) -> type[PipelineExecutor]:
    """datatrove's class; only the one that is asked for is imported."""
    name = {"local": "Local", "slurm": "Slurm", "ray": "Ray"}[kind]
    return getattr(import_module(f"datatrove.executor.{kind}"), f"{name}PipelineExecutor")


def _start_ray(engine: Engine) -> None:
    import ray

    ray.init(address=engine.options.get("address"), ignore_reinit_error=True)


@contextmanager
def _aside(path: Path) -> Iterator[None]:
    """Let what datatrove and its workers print go to a file, not between the build's own lines."""
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


@cache
def _children_end_with(build: int) -> None:
    """What datatrove forks beside its workers (a manager of queues) outlives a killed build."""
    os.register_at_fork(after_in_child=partial(stop_with_build, build))


def _done(logs: Path, rank: int) -> bool:
    """datatrove leaves an empty file for a task that ended well."""
    return (logs / "completions" / f"{rank:05d}").is_file()


def _wait_for_slurm(executor: Any, logs: Path, engine: Engine) -> None:
    """Until every task is done, or Slurm knows no job of ours any more."""
    while not all(_done(logs, rank) for rank in range(engine.tasks)):
        if not _queued(str(executor.job_id)):
            # A file written on another machine may show a little later.
            time.sleep(engine.poll_seconds)
            return
        time.sleep(engine.poll_seconds)


def _queued(job: str) -> bool:
    """Whether Slurm still runs the job, or means to. A question that fails is asked again."""
    command = ["squeue", "--noheader", "--jobs", job]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        return "nvalid job id" not in found.stderr
    return bool(found.stdout.strip())
