"""The log line at the start of a stage: `stage 3 of 12: parse stories`."""

from __future__ import annotations

import logging

import luigi

from corpora.store.atomic import is_complete
from workflows.stage import StageTask

log = logging.getLogger("discorpora")

_stages: list[StageTask] = []
"""All stages of the build."""


@StageTask.event_handler(luigi.Event.DEPENDENCY_DISCOVERED)
def remember(task: StageTask, _: StageTask) -> None:
    """Keep the stages of the build; Luigi looks at the last stage first."""
    if task not in _stages:
        _stages[:] = task.lineage


@StageTask.event_handler(luigi.Event.START)
def say_start(task: StageTask) -> None:
    """Log which stage starts, and how many of the build are complete."""
    stages = _stages or [task]
    done = sum(is_complete(stage.folder) for stage in stages)
    log.info("stage %d of %d: %s", min(done + 1, len(stages)), len(stages), task.title)
