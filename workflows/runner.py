"""Run a build from Python, as the `luigi` command does from the shell."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import luigi

from workflows.links import walk
from workflows.tasks import BuildAll, Train

log = logging.getLogger("discorpora")


@contextmanager
def options(config: str, output: str, workers: int = 1) -> Iterator[None]:
    """Set what `luigi.cfg` and its options set for the `luigi` command: every stage reads it."""
    settings = luigi.configuration.get_config()
    wanted = {
        ("discorpora", "config"): config,
        ("discorpora", "output"): output,
        ("core", "workers"): str(workers),
    }
    before = {place: settings.get(*place, None) for place in wanted}
    for place, value in wanted.items():
        settings.set(*place, value)
    try:
        yield
    finally:
        for (section, key), value in before.items():
            if value is None:
                settings.remove_option(section, key)
            else:
                settings.set(section, key, value)


def run_build(config: str, output: str, workers: int, *, retrain: bool = False) -> int:
    """Build everything that `config` names; 0 if all of it is there at the end.

    With `retrain` the models that other code has made, or whose data it has, are removed first.
    """
    from workflows.cli.show import show_status

    with options(config, output, workers):
        task = BuildAll(config=config)
        for stage in walk(task) if retrain else ():
            if isinstance(stage, Train) and stage.other_code():
                log.info("%s: built by other code, trained again", stage.title)
                shutil.rmtree(stage.folder)
        done = task.complete() or luigi.build([task], local_scheduler=True, workers=workers)
    if done:
        show_status(config, output)
    return 0 if done else 1
