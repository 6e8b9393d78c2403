"""Slurm's job arrays by datatrove, made safe for a cluster that is shared with others.

A job runs only files of a folder that others cannot write, gets only the variables that it needs,
and the numbers of all submitted arrays are recorded.
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
"""The file beside the logs with the numbers of the submitted arrays."""
NEEDED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "XDG_*"),
    *("VIRTUAL_ENV", "CONDA_*", "PYTHON*", "LD_LIBRARY_PATH", "*_NUM_THREADS", "STANZA_*"),
    *("DISCORPORA_*", "LUIGI_CONFIG_PATH", "SLURM_CONF", "SBATCH_*"),
    *("HF_HOME", "HF_*CACHE", "HF_*OFFLINE", "HF_ENDPOINT"),  # no token: stages read what is there
)
"""The environment variables that a job gets (patterns)."""


class Executor(SlurmPipelineExecutor):
    """datatrove's executor for Slurm, started by a build that waits for it."""

    jobs: tuple[str, ...] = ()
    """The numbers of the arrays: several if there are more tasks than an array may have."""

    @property
    def job_id(self) -> str | None:
        """The id of the job array that was submitted last; datatrove sets it after each array."""
        return self.jobs[-1] if self.jobs else None

    @job_id.setter
    def job_id(self, job: str | int | None) -> None:
        if isinstance(job, str):  # -1: nothing was left to submit
            self.jobs = (*self.jobs, job)
            with self.logging_dir.open(JOB, "w") as file:
                file.write(",".join(self.jobs))

    def launch_merge_stats(self) -> None:
        """Submit no job that merges statistics: the build removes its folder before it runs."""

    def get_launch_file_contents(self, sbatch_args: dict[str, Any], run_script: str) -> str:
        """Return the script of a job; it checks the folder before it loads a pickle from there."""
        folder = self.logging_dir.path
        quoted = shlex.quote(folder)
        is_safe = f'test -O {quoted} && test "$(stat -c %a {quoted})" = 700'
        stop = f"{{ echo {quoted} must be yours and of mode 700 >&2; exit 1; }}"
        run = run_script.replace(f"{folder}/executor.pik", f"{quoted}/executor.pik")
        return str(super().get_launch_file_contents(sbatch_args, f"{is_safe} || {stop}; {run}"))


@contextmanager
def reduced_environment(more: Iterable[str]) -> Iterator[None]:
    """Remove all variables but `NEEDED` and `more` for a while: sbatch passes them on to jobs."""
    patterns = (*NEEDED, *more)
    before = dict(os.environ)
    for name in before:
        if not any(fnmatchcase(name, pattern) for pattern in patterns):
            del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(before)
