"""Run a build from Python, as the `luigi` command does from the shell."""

from __future__ import annotations

import logging
import shutil

import luigi

from workflows.links import walk
from workflows.settings import options
from workflows.tasks import BuildAll, Train

log = logging.getLogger("discorpora")


def run_build(config: str, output: str, workers: int, *, retrain: bool = False) -> int:
    """Build everything that `config` names; 0 if all of it is there at the end.

    With `retrain` the models that other code has made, or whose data it has, are removed first.
    """
    with options(config, output, workers):
        task = BuildAll(config=config)
        for stage in walk(task) if retrain else ():
            if isinstance(stage, Train) and stage.other_code():
                log.info("%s: built by other code, trained again", stage.title)
                shutil.rmtree(stage.folder)
        done = task.complete() or luigi.build([task], local_scheduler=True, workers=workers)
    return 0 if done else 1
