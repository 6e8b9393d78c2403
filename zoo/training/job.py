"""One training run as files: where it works, how it ends, what it leaves behind.

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
from corpora.outside import read_record
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
from zoo.training.data import facts_of, revision_of, split_spec

log = logging.getLogger("zoo")

RESULTS = "results.json"
CLAIM = ".job.json"
TOKENS = "tokens-"
"""How the folders of `zoo.training.mapped` begin: in the working folder, while the run lasts."""
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
    """All that the weights depend on, as its manifest says."""
    data: list[dict[str, Any]] = field(default_factory=list)
    """The facts of its dataset, then of those of the model that it starts from, if known."""
    notes: list[str] = field(default_factory=list)
    """What the data made necessary (texts cut, classes empty): said, and kept in the results."""
    trained_on: int = 0
    """Examples that there are to train on after every limit: rows, or what a recipe draws from
    them (CONPONO a paragraph each, the criteria a sentence)."""
    checkpoints: Path = field(init=False)
    logs: Path = field(init=False)
    """What `report_to` writes, beside the output."""
    run_file: Path = field(init=False)
    """Seconds, memory and host: beside the output, never in it."""

    def __post_init__(self) -> None:
        output = Path(self.recipe.output)
        self.checkpoints = self.folder / "checkpoints"
        self.logs = output.with_name(f"{output.name}.logs")
        self.run_file = output.with_name(f"{output.name}.train.json")

    @property
    def steps(self) -> StepRecipe:
        """The recipe of a run that takes optimizer steps."""
        assert isinstance(self.recipe, StepRecipe)
        return self.recipe

    @property
    def finished(self) -> bool:
        """Whether the model is written and only the folder's renaming is left."""
        return (self.folder / RESULTS).is_file()

    def note(self, text: str) -> None:
        log.warning("%s", text)
        self.notes.append(text)

    def note_processes(self, start: Path, states: str, now: int) -> None:
        """Note that other processes go on than began: a checkpoint has a random state of each."""
        before = len([*start.glob(states)]) or 1
        if before != now:
            self.note(f"{before} processes began, {now} went on from {start.name}")

    def note_counts(self, what: str, counts: Mapping[str, int]) -> None:
        """Note `what` with its count in each split, unless there is none in any."""
        if any(counts.values()):
            self.note(f"{what}: {', '.join(f'{split} {count}' for split, count in counts.items())}")


def is_main_process() -> bool:
    """Whether this process writes the files (rank 0 of those that `accelerate` started)."""
    return int(os.environ.get("RANK", "0")) == 0


class Finished(BaseModel):
    """The manifest of a finished model."""

    settings: dict[str, Any]
    version: int = 0
    """The recipe's; 0 in models of earlier versions."""
    code: str
    files: dict[Inside, str]
    data: list[dict[str, Any]] = []
    trained_by: str = ""
    """The stage whose weights it has, where they were not trained for this one."""


def planned(preset: Preset, recipe: Recipe) -> Job:
    """The run of a recipe, not begun; its identity has the data's revision too."""
    identity = identity_of(preset, recipe)
    if recipe.dataset:
        identity["dataset_revision"] = revision_of(recipe.dataset)
    about = recipe.described(preset.about, preset.settings)
    folder = partial_path(Path(recipe.output))
    return Job(preset.name, about, recipe, folder, identity, data_of(recipe))


def identity_of(preset: Preset, recipe: Recipe) -> dict[str, Any]:
    """The settings, and the contents of the files that they name, by the files' last names.

    So another folder changes nothing. The configuration of the data counts if it is named, not if
    it is the recipe's own.
    """
    identity = {**recipe.identity(), "recipe": preset.name}
    _, config = split_spec(recipe.dataset, recipe.dataset_config)
    if config:
        identity["dataset_config"] = config
    if needed := plugins_of(preset, recipe):
        identity[PLUGINS] = [plugin.model_dump() for plugin in needed]
    for key in recipe.marked(Mark.PLACE):
        name = str(getattr(recipe, key, ""))
        if name and (files := _contents(Path(name))):
            identity |= {key: Path(name).absolute().name, f"{key}_files": files}
        elif name and key == "vectors":
            hint = "give the path of a text file of word vectors"
            raise ConfigError("vectors: no such file", where=name, hint=hint)
    return identity


def data_of(recipe: Recipe) -> list[dict[str, Any]]:
    """The facts of the dataset, then those of the data of the model that it starts from."""
    facts = facts_of(recipe.dataset) if recipe.dataset else {}
    base = str(getattr(recipe, "backbone", ""))
    before: list[dict[str, Any]] = []
    if base and is_complete(Path(base)):
        with suppress(InputError):  # it may be another project's file of that name
            before = read_record(Finished, Path(base, MANIFEST)).data
    return [facts, *before] if facts else []


def already_made(job: Job) -> bool:
    """Whether the output is there, made by these settings from this data.

    Raises `ConfigError` if it is there but was made otherwise.
    """
    output = Path(job.recipe.output)
    if is_complete(output):
        _same(read_json(output / MANIFEST).get("settings", {}), job.identity, output)
    return is_complete(output)


@contextmanager
def working(job: Job) -> Iterator[None]:
    """Work in the job's folder; at the end it becomes the output.

    The caller trains unless `job.finished`: a run may be killed between the two.

    Raises `ConfigError` if a run with other settings was left unfinished at the same place.
    """
    if not is_main_process():
        yield
        return
    with staged(Path(job.recipe.output)):
        # Not inside checkpoints/: that folder goes first when the run ends.
        claim = job.folder / CLAIM
        # What another run left counts from its first whole checkpoint on.
        if claim.is_file() and (job.finished or newest(job.checkpoints)):
            _same(read_json(claim), job.identity, job.folder)
        else:
            if claim.is_file():
                log.info("begun before, but no checkpoint is whole: starting at step 0")
            write_json(claim, job.identity)
        yield
        # The model alone stays in the folder, and the manifest is written last.
        for private in (job.checkpoints, *job.folder.glob(f"{TOKENS}*")):
            shutil.rmtree(private, ignore_errors=True)
        claim.unlink(missing_ok=True)
        files = sorted(p for p in job.folder.rglob("*") if p.is_file() and p.name != MANIFEST)
        sums = {str(path.relative_to(job.folder)): sha256(path) for path in files}
        code = code_hash(type(job.recipe).__module__)
        made = {"settings": job.identity, "version": job.recipe.version, "code": code}
        write_json(job.folder / MANIFEST, {**made, "files": sums, "data": job.data})


def _contents(path: Path) -> dict[str, str]:
    """The checksums of a file, or of what a model folder is loaded from."""
    if path.is_dir():
        files = [p for kind in ("*.safetensors", "*.json") for p in path.glob(kind)]
        return {p.name: sha256(p) for p in sorted(files) if p.name not in (MANIFEST, RESULTS)}
    return {path.name: sha256(path)} if path.is_file() else {}


def _same(there: Mapping[str, Any], wanted: Mapping[str, Any], where: Path) -> None:
    plain = json.loads(json.dumps(wanted))
    differ = sorted(key for key in {*there, *plain} if there.get(key) != plain.get(key))
    if differ:
        key = differ[0]
        raise ConfigError(
            f"a run with other settings is there ({key}: {there.get(key)!r}, "
            f"now {plain.get(key)!r})",
            where=str(where),
            hint="choose another --output, or remove that folder to start anew",
        )
