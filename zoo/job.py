"""One training run as files: where it works, how it ends, what it leaves behind.

The run works in `OUTPUT.partial/`: checkpoints in its private `checkpoints/`, the finished
model beside them. `OUTPUT` appears by one rename, when the manifest is written.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpora.errors import ConfigError
from corpora.store import MANIFEST, is_complete, partial_path, sha256, staged, versions, write_json
from zoo.checkpoints import newest
from zoo.recipe import Recipe
from zoo.settings import Settings, identity

log = logging.getLogger("zoo")

RESULTS = "results.json"
CLAIM = ".job.json"
LIBRARIES = ("discoforge", "torch", "transformers", "tokenizers", "accelerate", "numpy")


@dataclass
class Job:
    """A run in progress: its recipe, its settings, its working folder."""

    recipe: Recipe
    settings: Settings
    folder: Path
    notes: list[str] = field(default_factory=list)
    """What the data made necessary (texts cut, classes empty): said, and kept in the results."""

    @property
    def finished(self) -> bool:
        """Whether the model is written and only the folder's renaming is left."""
        return (self.folder / RESULTS).is_file()

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def cache(self) -> Path:
        """Private files of the run, such as word vectors already read."""
        return self.folder / "checkpoints" / "cache"

    @property
    def run_file(self) -> Path:
        """Seconds, memory and host: beside the output, never in it."""
        output = Path(self.settings.output)
        return output.with_name(f"{output.name}.train.json")

    @property
    def logs(self) -> Path:
        """What `report_to` writes, beside the output."""
        output = Path(self.settings.output)
        return output.with_name(f"{output.name}.logs")

    def note(self, text: str) -> None:
        log.warning("%s", text)
        self.notes.append(text)


def is_main_process() -> bool:
    """Whether this process writes the files (rank 0 of those that `accelerate` started)."""
    return int(os.environ.get("RANK", "0")) == 0


@contextmanager
def working(recipe: Recipe, settings: Settings, revision: str) -> Iterator[Job]:
    """Yield the job to work on; at the end its folder becomes the output.

    The caller trains unless `job.finished`: a run may be killed between the two.

    Raises `ConfigError` if a run with other settings was left unfinished at the same place.
    """
    output = Path(settings.output)
    if not is_main_process():
        yield Job(recipe, settings, partial_path(output))
        return
    with staged(output) as partial:
        job = Job(recipe, settings, partial)
        _claim(job, _identity(recipe, settings, revision))
        yield job
        _finish(job, revision)


def already_made(recipe: Recipe, settings: Settings, revision: str) -> bool:
    """Whether the output is there, made by these settings from this data.

    Raises `ConfigError` if it is there but was made otherwise.
    """
    output = Path(settings.output)
    if not is_complete(output):
        return False
    made = json.loads((output / MANIFEST).read_text(encoding="utf-8"))
    _same(made.get("settings", {}), _identity(recipe, settings, revision), str(output))
    return True


def write_results(job: Job, results: Mapping[str, Any]) -> None:
    """Write results.json: from then on the model in the working folder is finished."""
    write_json(
        job.folder / RESULTS,
        {
            "recipe": job.recipe.name,
            "seed": job.settings.seed,
            "settings": identity(job.settings),
            "notes": job.notes,
            "versions": versions(*LIBRARIES),
            **results,
        },
    )


def _identity(recipe: Recipe, settings: Settings, revision: str) -> dict[str, Any]:
    return {**identity(settings), "recipe": recipe.name, "dataset_revision": revision}


def _claim(job: Job, wanted: dict[str, Any]) -> None:
    """Note what runs here. What another run left counts from its first whole checkpoint on."""
    # Not inside checkpoints/: that folder goes first when the run ends.
    path = job.folder / CLAIM
    if path.is_file() and (job.finished or newest(job.checkpoints)):
        _same(json.loads(path.read_text(encoding="utf-8")), wanted, str(job.folder))
    else:
        write_json(path, wanted)


def _same(found: Mapping[str, Any], wanted: Mapping[str, Any], where: str) -> None:
    plain = json.loads(json.dumps(wanted))
    differ = sorted(k for k in {*found, *plain} if found.get(k) != plain.get(k))
    if differ:
        key = differ[0]
        raise ConfigError(
            f"a run with other settings is there ({key}: {found.get(key)!r}, "
            f"now {plain.get(key)!r})",
            where=where,
            hint="choose another --output, or remove that folder to start anew",
        )


def _finish(job: Job, revision: str) -> None:
    """Leave the model alone in the folder, and write the manifest last."""
    shutil.rmtree(job.checkpoints, ignore_errors=True)
    (job.folder / CLAIM).unlink(missing_ok=True)
    files = sorted(p for p in job.folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    sums = {str(path.relative_to(job.folder)): sha256(path) for path in files}
    settings = _identity(job.recipe, job.settings, revision)
    write_json(job.folder / MANIFEST, {"settings": settings, "files": sums})
