"""Slurm's job arrays by datatrove, without what a cluster shared with others cannot have.

A job runs only what lies in a folder of ours that is closed to others, gets the variables that it
needs and no more, and every array that was submitted is known.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from datatrove.executor.slurm import SlurmPipelineExecutor

JOB = "job"
"""The file beside the logs with the numbers of the arrays that Slurm was given."""
NEEDED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "XDG_*"),
    *("VIRTUAL_ENV", "CONDA_*", "PYTHON*", "LD_LIBRARY_PATH", "*_NUM_THREADS", "STANZA_*"),
    *("DISCORPORA_*", "LUIGI_CONFIG_PATH", "SLURM_CONF", "SBATCH_*"),
    *("HF_HOME", "HF_*CACHE", "HF_*OFFLINE", "HF_ENDPOINT"),  # no token: stages read what is there
)
"""The environment variables that a job gets (patterns)."""


class Executor(SlurmPipelineExecutor):
    """datatrove's executor, started by a build that waits for it."""

    jobs: tuple[str, ...] = ()
    """The numbers of the arrays: more than one for more tasks than an array may have."""

    @property
    def job_id(self) -> str | None:
        """The array that was submitted last; datatrove sets it after each."""
        return self.jobs[-1] if self.jobs else None

    @job_id.setter
    def job_id(self, job: str | int | None) -> None:
        if isinstance(job, str):  # -1: nothing was left to submit
            self.jobs = (*self.jobs, job)
            with self.logging_dir.open(JOB, "w") as file:
                file.write(",".join(self.jobs))

    def launch_merge_stats(self) -> None:
        """Submit nothing: a job that waits for the others would find its folder gone."""

    def get_launch_file_contents(self, sbatch_args: dict[str, Any], run_script: str) -> str:
        """The script of a job, which looks at the folder before it loads anything from there."""
        folder = self.logging_dir.path
        quoted = shlex.quote(folder)
        safe = f'test -O {quoted} && test "$(stat -c %a {quoted})" = 700'
        refused = f"{{ echo {quoted} must be yours and of mode 700 >&2; exit 1; }}"
        run = run_script.replace(f"{folder}/executor.pik", f"{quoted}/executor.pik")
        return str(super().get_launch_file_contents(sbatch_args, f"{safe} || {refused}; {run}"))


@contextmanager
def reduced_environment(more: Iterable[str]) -> Iterator[None]:
    """Leave only what a job needs, and `more` by name: sbatch hands the environment on."""
    kept = (*NEEDED, *more)
    before = dict(os.environ)
    for name in before:
        if not any(fnmatchcase(name, pattern) for pattern in kept):
            del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(before)
