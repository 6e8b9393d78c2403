"""Checkpoints that count only if they are complete.

The Trainer writes the files of a checkpoint one after another, under the final name. A run killed
meanwhile leaves a folder that looks like a checkpoint. So each complete one is sealed by a last
file that lists the others with their sizes.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.errors import DiscorporaError
from corpora.store.atomic import write_json

if TYPE_CHECKING:
    from zoo.training.job import Job

log = logging.getLogger("zoo")

SEAL = "sealed.json"


def seal(folder: Path) -> None:
    """Flush the files of a checkpoint folder to the disk, then write the seal that lists them."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SEAL)
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    write_json(folder / SEAL, {path.name: path.stat().st_size for path in files})


def is_sealed(folder: Path) -> bool:
    """Return True if the folder has a seal, and each file that the seal lists with that size."""
    try:
        sizes = json.loads((folder / SEAL).read_text(encoding="utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, json.JSONDecodeError):
        return False


def all_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoint folders in `folder`, sealed or not, oldest first."""
    return sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.partition("-")[2]))


def newest(folder: Path) -> Path | None:
    """Return the newest sealed checkpoint in `folder`, or None."""
    return next((path for path in reversed(all_checkpoints(folder)) if is_sealed(path)), None)


def clear_broken(folder: Path) -> None:
    """Remove the checkpoints without a valid seal, with a warning for each."""
    for path in all_checkpoints(folder):
        if not is_sealed(path):
            log.warning("%s is not whole (the run was killed while it was written)", path.name)
            shutil.rmtree(path)


def rotate(folder: Path, keep: int, best: str | None) -> None:
    """Remove all checkpoints except the newest `keep` and the one named `best`. The seal of each is
    removed first, so that a half-removed checkpoint never counts as complete."""
    for path in all_checkpoints(folder)[: -max(keep, 1)]:
        if best is None or path.name != Path(best).name:
            (path / SEAL).unlink(missing_ok=True)
            shutil.rmtree(path)


def not_finite(job: Job, problem: str) -> DiscorporaError:
    """Return the error that stops a run whose loss or weights are not finite."""
    last = newest(job.checkpoints)
    state = f"the last good checkpoint is {last}" if last else "no checkpoint was made yet"
    clip = "lower max_grad_norm" if job.steps.max_grad_norm else "set max_grad_norm = 1"
    return DiscorporaError(
        problem,
        where=job.name,
        hint=f"{state}; lower learning_rate or {clip}, and train to another --output",
        field="learning_rate",
    )
