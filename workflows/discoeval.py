"""The tasks that a build file chooses for the suite `discoeval` are those of its datasets.

Of a folder of datasets the suite takes the tasks that are there and passes over the rest, as it
should of a whole build's. But what a build file names is meant to be evaluated. (A dataset of no
task is refused by its columns: `workflows.fits`.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpora.errors import ConfigError, nearest

SUITE = "discoeval"
TASKS = {
    "sp": "SP",
    "bso": "BSO",
    "dc": "DC",
    "ssp": "SSP",
    "pdtb_explicit": "PDTB-E",
    "pdtb_implicit": "PDTB-I",
    "rst": "RST-DT",
}
"""The task that the dataset of a builder is of."""


def check(builders: Mapping[str, str], settings: Mapping[str, Any], key: str, path: str) -> None:
    """Raise `ConfigError` for a dataset whose task is not chosen, or a chosen task without data.

    `builders` are those of the datasets that the table `key` of the build file at `path` names,
    by dataset; `settings` are the suite's options.
    """
    chosen = settings.get("tasks", "")
    if isinstance(chosen, str):  # another type is refused by the suite, with the other values
        tasks = [name for part in chosen.split(",") if (name := part.strip())]
        _check_tasks(builders, tasks, key, path)


def _check_tasks(builders: Mapping[str, str], tasks: list[str], key: str, path: str) -> None:
    """The tasks that are chosen, if any are, are those of the datasets."""
    given = {name: TASKS[builder] for name, builder in builders.items() if builder in TASKS}
    for task in tasks:
        if task not in given.values():
            raise ConfigError(
                f"{key}: tasks names {task!r}, and no dataset of it is of that task",
                where=path,
                hint=f"{nearest(task, TASKS.values())}its datasets are of the tasks: "
                f"{', '.join(dict.fromkeys(given.values()))}",
            )
    for name, task in given.items():
        if tasks and task not in tasks:
            raise ConfigError(
                f"{key} names the dataset {name!r}, and its tasks leave out {task!r}",
                where=path,
                hint="take the dataset out, or add its task",
            )
