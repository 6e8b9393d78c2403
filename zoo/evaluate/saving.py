"""A suite's result as it is shown and kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpora.code import versions
from corpora.errors import ConfigError
from corpora.store.atomic import write_json
from zoo.declared import Suite
from zoo.evaluate.bootstrap import notes_of
from zoo.evaluate.learned import other_revisions, trained_on
from zoo.evaluate.outcomes import Outcomes, place_of, stem_of, write_outcomes
from zoo.training.job import LIBRARIES

log = logging.getLogger("zoo")


def finished(
    suite: Suite, result: Mapping[str, Any], *, split: str, seed: int, model: str = ""
) -> tuple[dict[str, Any], list[Outcomes]]:
    """The result of a suite as its JSON holds it, and its outcomes.

    `model` is the folder or Hub id, of which the result says what it was trained on.
    """
    trained = trained_on(model)
    notes = other_revisions(trained, result.get("dataset", {}))
    for note in notes:
        log.warning("%s", note)
    found = {
        "suite": suite.name or type(suite).__name__,
        "split": split,
        **result,
        "trained_on": trained,
        "notes": [*result.get("notes", ()), *notes, *notes_of(result["metrics"])],
        "seed": seed,
        "versions": versions(*LIBRARIES),
    }
    return found, found.pop("outcomes", [])


def check_place(path: Path) -> None:
    """Make the folder of the result `path`: what is in the way is said before the work is done."""
    if path.is_dir():
        raise ConfigError(
            "a folder, where the result should be written", where=str(path), hint="name a file"
        )
    path.parent.mkdir(parents=True, exist_ok=True)


def save(suite: Suite, path: Path, result: dict[str, Any], outcomes: list[Outcomes]) -> None:
    """Write `path`, the outcomes beside it, and what the suite draws or tabulates."""
    suite.write_files(result, stem_of(path))
    place_of(path).unlink(missing_ok=True)  # those of an earlier run are not this result's
    write_json(path, result)
    write_outcomes(path, outcomes)
