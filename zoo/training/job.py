"""One training run as files: its working folder, its end, and the folder of the model.

The run works in `OUTPUT.partial/`: checkpoints in its private `checkpoints/`, tokens in
`tokens-HASH/`, the finished model beside them. `OUTPUT` appears by one rename, when the manifest
is written.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from corpora.code import code_hash
from corpora.errors import ConfigError, InputError
from corpora.outside import read_record, split_config
from corpora.store.atomic import (
    MANIFEST,
    is_complete,
    partial_path,
    read_json,
    sha256,
    staged,
    write_json,
)
from corpora.store.manifest import Inside
from zoo.declared import Mark, Recipe, StepRecipe
from zoo.presets import PLUGINS, About, Preset, plugins_of
from zoo.training.checkpoints import newest
from zoo.training.data import facts_of, revision_of

log = logging.getLogger("zoo")

RESULTS = "results.json"
CLAIM = ".job.json"
"""The file in the working folder with the identity of the run that uses it."""
TOKENS = "tokens-"
"""The prefix of the folders that `zoo.training.mapped` keeps in the working folder."""
LIBRARIES = ("discorpora", "torch", "transformers", "tokenizers", "accelerate", "numpy")


@dataclass
class Job:
    """A run in progress: its recipe with all settings, and its working folder."""

    name: str
    """The preset's or the recipe's name."""
    about: About
    recipe: Recipe
    folder: Path
    identity: Mapping[str, Any] = field(default_factory=dict)
    """All that the weights depend on, as the manifest records it."""
    data: list[dict[str, Any]] = field(default_factory=list)
    """Facts about its dataset, then about those of the model that it starts from, if known."""
    notes: list[str] = field(default_factory=list)
    """Remarks on the data, such as texts cut or empty classes; logged, and kept in the results."""
    trained_on: int = 0
    """Number of training examples after every limit: rows, or what a recipe makes of them (CONPONO
    paragraphs, the criteria sentences)."""
    checkpoints: Path = field(init=False)
    logs: Path = field(init=False)
    """The folder beside the output for the trackers of `report_to`."""
    run_file: Path = field(init=False)
    """The file beside the output for what varies from run to run: seconds, memory, host."""

    def __post_init__(self) -> None:
        """Set the paths of checkpoints, logs and run figures."""
        output = Path(self.recipe.output)
        self.checkpoints = self.folder / "checkpoints"
        self.logs = output.with_name(f"{output.name}.logs")
        self.run_file = output.with_name(f"{output.name}.train.json")

    @property
    def steps(self) -> StepRecipe:
        """The recipe, for a run that takes optimizer steps."""
        assert isinstance(self.recipe, StepRecipe)
        return self.recipe

    @property
    def finished(self) -> bool:
        """True if the model is written, and only the folder must still be renamed."""
        return (self.folder / RESULTS).is_file()

    def note(self, text: str) -> None:
        """Log a warning, and keep it for the card and the results."""
        log.warning("%s", text)
        self.notes.append(text)

    def note_processes(self, start: Path, pattern: str, processes: int) -> None:
        """Note if the checkpoint `start` was written by another number of processes than resume it.
        Each process that wrote it left one file that matches `pattern` in it."""
        before = len([*start.glob(pattern)]) or 1
        if before != processes:
            self.note(f"{before} processes began, {processes} went on from {start.name}")

    def note_counts(self, what: str, counts: Mapping[str, int]) -> None:
        """Note `what` with the count of each split, as "WHAT: train 3, test 0", if one is not 0."""
        if any(counts.values()):
            self.note(f"{what}: {', '.join(f'{split} {count}' for split, count in counts.items())}")


def is_main_process() -> bool:
    """Return True in the process that writes the files: rank 0 of those of `accelerate`."""
    return int(os.environ.get("RANK", "0")) == 0


class Finished(BaseModel):
    """The manifest of a finished model: its recipe's settings, the hash of the recipe's code, the
    sha256 of each file, and the training data."""

    settings: dict[str, Any]
    version: int = 0
    """The recipe's version; 0 in older models."""
    code: str
    files: dict[Inside, str]
    data: list[dict[str, Any]] = []
    trained_by: str = ""
    """The stage of the build that trained the weights, if it is another one."""


def planned(preset: Preset, recipe: Recipe) -> Job:
    """Return the job of a recipe, from which a training can begin; nothing is written yet. Its
    identity also has the revision of the dataset."""
    identity = identity_of(preset, recipe)
    if recipe.dataset:
        identity["dataset_revision"] = revision_of(recipe.dataset)
    about = recipe.described(preset.about, preset.settings)
    folder = partial_path(Path(recipe.output))
    return Job(preset.name, about, recipe, folder, identity, data_of(recipe))


def identity_of(preset: Preset, recipe: Recipe) -> dict[str, Any]:
    """Return all that a run's weights depend on: settings, plug-ins, checksums of named files.

    A file is named without its folder, so that a move changes nothing. The configuration of the
    data is part of it only if the user names one.
    """
    identity = {**recipe.identity(), "recipe": preset.name}
    _, config = split_config(recipe.dataset, recipe.dataset_config)
    if config:
        identity["dataset_config"] = config
    if plugins := plugins_of(preset, recipe):
        identity[PLUGINS] = [plugin.model_dump() for plugin in plugins]
    for key in recipe.marked(Mark.PLACE):
        name = str(getattr(recipe, key, ""))
        if name and (files := _checksums(Path(name))):
            identity |= {key: Path(name).absolute().name, f"{key}_files": files}
        elif name and key == "vectors":
            hint = "give the path of a text file of word vectors"
            raise ConfigError("vectors: no such file", where=name, hint=hint)
    return identity


def data_of(recipe: Recipe) -> list[dict[str, Any]]:
    """Return facts about a recipe's dataset, then about the data of the model it starts from. The
    list is empty if the dataset has no facts, as one of the Hub."""
    facts = facts_of(recipe.dataset) if recipe.dataset else {}
    backbone = str(getattr(recipe, "backbone", ""))
    backbone_data: list[dict[str, Any]] = []
    if backbone and is_complete(Path(backbone)):
        with suppress(InputError):  # it may be another project's file of that name
            backbone_data = read_record(Finished, Path(backbone, MANIFEST)).data
    return [facts, *backbone_data] if facts else []


def already_made(job: Job) -> bool:
    """Return True if the model of this run exists already, complete.

    Raises `ConfigError` if the output is the model of a run with another identity.
    """
    output = Path(job.recipe.output)
    if is_complete(output):
        _check_identity(read_json(output / MANIFEST).get("settings", {}), job.identity, output)
    return is_complete(output)


@contextmanager
def working(job: Job) -> Iterator[None]:
    """Prepare the job's folder; after the block, write its manifest and rename it to the output.

    The caller trains inside the block, unless `job.finished`: then an earlier run was killed just
    before the renaming. If the training fails, its folder is removed, unless it has a checkpoint.
    Only the main process does any of this. Raises `ConfigError` if the folder has an unfinished run
    with another identity.
    """
    if not is_main_process():
        yield
        return
    with staged(Path(job.recipe.output)):
        # Not inside checkpoints/: that folder goes first when the run ends.
        claim = job.folder / CLAIM
        # An unfinished run counts only if it has a complete checkpoint.
        if claim.is_file() and (job.finished or newest(job.checkpoints)):
            _check_identity(read_json(claim), job.identity, job.folder)
        else:
            if claim.is_file():
                log.info("begun before, but no checkpoint is whole: starting at step 0")
            write_json(claim, job.identity)
        try:
            yield
        except Exception:
            if int(os.environ.get("WORLD_SIZE", "1")) == 1:  # else others may still read it
                leave(job)
            raise
        # Only the model stays in the folder, and the manifest is written last.
        for private in (job.checkpoints, *job.folder.glob(f"{TOKENS}*")):
            shutil.rmtree(private, ignore_errors=True)
        claim.unlink(missing_ok=True)
        files = sorted(p for p in job.folder.rglob("*") if p.is_file() and p.name != MANIFEST)
        sums = {str(path.relative_to(job.folder)): sha256(path) for path in files}
        code = code_hash(type(job.recipe).__module__)
        manifest = {"settings": job.identity, "version": job.recipe.version, "code": code}
        write_json(job.folder / MANIFEST, {**manifest, "files": sums, "data": job.data})


def leave(job: Job) -> None:
    """Remove the folder of a training that failed; if it has a checkpoint, say that it stays."""
    if job.finished or newest(job.checkpoints):
        log.warning(
            "the training failed: its checkpoints stay in %s; the same command continues from the "
            "newest, and without that folder it starts anew",
            job.folder,
        )
    else:
        shutil.rmtree(job.folder, ignore_errors=True)


def _checksums(path: Path) -> dict[str, str]:
    """Return the checksum of a file, or those of a model folder's weights and JSON files, by name.
    It is empty if the path does not exist, as for a Hub id."""
    if path.is_dir():
        files = [p for kind in ("*.safetensors", "*.json") for p in path.glob(kind)]
        return {p.name: sha256(p) for p in sorted(files) if p.name not in (MANIFEST, RESULTS)}
    return {path.name: sha256(path)} if path.is_file() else {}


def _check_identity(stored: Mapping[str, Any], identity: Mapping[str, Any], where: Path) -> None:
    """Raise `ConfigError` if the run stored in the folder `where` has another identity."""
    wanted = json.loads(json.dumps(identity))  # as JSON would store it
    different = sorted(key for key in {*stored, *wanted} if stored.get(key) != wanted.get(key))
    if different:
        key = different[0]
        raise ConfigError(
            f"a run with other settings is there ({key}: {stored.get(key)!r}, "
            f"now {wanted.get(key)!r})",
            where=str(where),
            hint="choose another --output, or remove that folder to start anew",
        )
