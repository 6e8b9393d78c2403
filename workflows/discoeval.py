"""What the suite `discoeval` takes of a build: more than that in a build file is an error.

Of a folder of datasets the suite takes the tasks that are there and passes over the rest, as it
should of a whole build's. But what a build file names is meant to be evaluated.
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
    """Raise `ConfigError` for a dataset that the suite would pass over, or a task without data.

    `builders` are those of the datasets that the table `key` of the build file at `path` names,
    by dataset; `settings` are the suite's options.
    """
    for name, builder in builders.items():
        if builder not in TASKS:
            made = "" if name == builder else f", made by {builder!r}"
            raise ConfigError(
                f"{key} names the dataset {name!r}{made}, which is no task of DiscoEval",
                where=path,
                hint=f"{nearest(builder, TASKS)}the suite {SUITE} takes datasets of the builders: "
                f"{', '.join(TASKS)}",
            )
    chosen = settings.get("tasks", "")
    if isinstance(chosen, str):  # another type is refused by the suite, with the other values
        tasks = [name for part in chosen.split(",") if (name := part.strip())]
        _check_tasks(builders, tasks, key, path)


def _check_tasks(builders: Mapping[str, str], tasks: list[str], key: str, path: str) -> None:
    """The tasks that are chosen, if any are, are those of the datasets."""
    given = {name: TASKS[builder] for name, builder in builders.items()}
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
