"""Presets: TOML files that name a recipe and set its settings; a user may change these.

recipe = "dissent.bilstm"       # a recipe's name, package.module:Class or FILE.py:Class
[about]                         # shown by `discorpora zoo`
[settings]                      # fields of the recipe's class
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from glob import escape, glob
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Field, field_validator

from corpora.code import code_hash
from corpora.declared import REFERENCE, Loc, TomlTable, with_absolute_path, without_folders
from corpora.errors import COMMAND_LINE, ConfigError, InputError, nearest
from corpora.outside import read_json, read_record
from corpora.store.atomic import MANIFEST
from corpora.toml import TomlFile
from zoo.declared import OBJECTIVES, RECIPES, RankingRecipe, Recipe, StepRecipe

log = logging.getLogger("zoo")

ROOM = Path(__file__).parent
PLUGINS = "plugins"
"""The key of the plug-ins in the settings of a model's manifest."""
TRUST = "DISCORPORA_TRUST_REMOTE_CODE"
"""A variable of the environment that `--trust-remote-code` sets to 1; child processes read it."""
REGISTRIES = {registry.what: registry for registry in (RECIPES, OBJECTIVES)}


class About(TomlTable):
    """What the list of recipes and a model's card say about a recipe: `title` in one line, `paper`
    with its section, `objective` as an equation, `dataset` to train on, `published` figures, and
    `tier` (`paper`, `tiny`, ...)."""

    title: str = ""
    paper: str = ""
    objective: str = ""
    dataset: str = ""
    published: str = ""
    tier: str = ""
    differs: tuple[str, ...] = ()
    """Differences between its settings and the paper's, in addition to `Recipe.differs`."""


class _PresetTables(TomlTable):
    """The tables of a preset's file; the recipe's class checks the settings later."""

    recipe: str
    about: About = About()
    settings: dict[str, Any] = Field(default_factory=dict)

    @field_validator("recipe")
    @classmethod
    def _check_recipe(cls, name: str) -> str:
        RECIPES.find(name)
        return name


@dataclass(frozen=True)
class Preset:
    """A recipe's class and the settings that a preset's file gives it."""

    name: str
    """The family and the file's name, as in `dissent/bilstm_tiny`."""
    reference: str
    """The recipe's name in `RECIPES`, or `package.module:Class` or `FILE.py:Class`."""
    about: About
    settings: Mapping[str, Any]
    file: TomlFile | None = None

    @property
    def place(self) -> str:
        """The name by which `read_preset` finds the preset from any working folder."""
        return str(self.file.path.absolute()) if self.file else self.reference

    @property
    def kind(self) -> type[Recipe]:
        """The recipe's class."""
        return RECIPES.find(self.reference)

    def recipe(self, options: Mapping[str, Any], where: str = COMMAND_LINE) -> Recipe:
        """Return the recipe with the preset's settings; `options` replace settings.

        Raises `ConfigError` for an unknown key, a missing one, or a wrong value. It names the line
        of the preset's file, or for `options` their place, `where`.
        """

        def place(keys: Loc) -> str:
            in_file = bool(keys) and keys[0] in self.settings and keys[0] not in options
            return self.file.where(("settings", *keys)) if in_file and self.file else where

        return self.kind.of(over(self.settings, options), place)


def shipped() -> dict[str, Path]:
    """Return the paths of the presets in this package by name, as in `dissent/bilstm_tiny`."""
    return {
        f"{path.parent.name}/{path.stem}": path
        for path in sorted(ROOM.glob("*/*.toml"))
        if re.search(r"^recipe\s*=", path.read_text(encoding="utf-8"), re.M)
    }


def read_preset(name: str | Path, folder: Path = Path()) -> Preset:
    """Return the preset with this name or path; for a recipe's name, one with default settings.

    A recipe is named as in `RECIPES`, or by `package.module:Class` or `FILE.py:Class`. A relative
    path is looked for in `folder`, then in the working folder. Raises `ConfigError` for a name or
    file that does not exist, is not TOML, or has unknown keys.
    """
    text, presets = str(name), shipped()
    if REFERENCE.fullmatch(text) or (text in RECIPES and not (folder / text).is_file()):
        reference = with_absolute_path(text, folder)
        kind = RECIPES.find(reference)
        return Preset(
            without_folders(text), reference, About(title=kind.summary(), paper=kind.paper), {}
        )
    path = next(filter(Path.is_file, (folder / text, Path(text))), None)
    path = path or presets.get(text.removesuffix(".toml"))
    if path is None:
        raise ConfigError(
            f"no recipe {text!r}",
            hint=f"{nearest(text.removesuffix('.toml'), [*presets, *RECIPES])}give a TOML file "
            f"(looked in {str(folder.absolute())!r}), a preset ({', '.join(presets)}) "
            f"or a recipe with its own settings ({', '.join(RECIPES)})",
        )
    toml = TomlFile.read(path)
    content = dict(toml.table)
    if isinstance(content.get("recipe"), str):
        content["recipe"] = with_absolute_path(content["recipe"], path.parent)
    tables = _PresetTables.of(content, toml.where)
    settings = dict(tables.settings)
    if isinstance(settings.get("objective"), str):
        settings["objective"] = with_absolute_path(settings["objective"], path.parent)
    family = Path(tables.recipe.partition(":")[0]).stem.partition(".")[0]
    return Preset(f"{family}/{path.stem}", tables.recipe, tables.about, settings, toml)


def over(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `table` in which the values of `changes` replace or add to its own. A table
    inside `table` is changed key by key; the empty table `{}` replaces it as a whole."""
    values = dict(table)
    for key, new in changes.items():
        nested = new and isinstance(new, Mapping) and isinstance(values.get(key), Mapping)
        values[key] = over(values[key], new) if nested else new
    return values


class Measurement(TomlTable):
    """A training of a shipped preset by this project: an entry of `zoo/measured.toml`."""

    recipe: str
    parameters: int = 0
    """The number of the model's weights; 0: unknown."""
    seconds: int = 0
    """Seconds of the training on the CPU that the file names; 0: unknown."""
    figure: str
    """The figure and what it was measured on."""


class _Measurements(TomlTable):
    """The content of `zoo/measured.toml`."""

    measured: tuple[Measurement, ...]


MEASURED = ROOM / "measured.toml"


def measurements() -> dict[str, Measurement]:
    """Return the trainings by this project, by the name of the preset."""
    toml = TomlFile.read(MEASURED)
    entries = _Measurements.of(toml.table, toml.where).measured
    return {entry.recipe: entry for entry in entries}


@dataclass(frozen=True)
class CatalogueEntry:
    """An entry of the list of recipes: a preset, its description, and what was measured.

    `size`: the number of weights. `time`: how long a training took on a CPU. `measured`: the figure
    that this project measured, or those of the user's models.
    """

    name: str
    about: About
    size: str = ""
    time: str = ""
    measured: str = ""


def catalogue(results: Path | None = None) -> list[CatalogueEntry]:
    """Return an entry for each preset of this package, sorted by name.

    Its figures are those of `zoo/measured.toml`; or, if `results` is a folder, the headlines of all
    `results.json` in it that name the preset. Raises `InputError` for a missing folder and for
    results that are not JSON.
    """
    if results is not None and not results.is_dir():
        raise InputError(
            "no such folder",
            where=str(results),
            hint="give a folder of trained models, e.g. build/sample/models",
        )
    measured: dict[str, list[str]] = {}
    pattern = f"{escape(str(results))}/**/results.json"
    # `Path.rglob` follows no link to a folder.
    files = sorted(glob(pattern, recursive=True)) if results else []  # noqa: PTH207
    # A build has a model's results twice: with its stage, and under the build's name.
    for file in {Path(name).read_bytes(): Path(name) for name in files}.values():
        result = read_json(file)
        if isinstance(result, dict) and isinstance(result.get("recipe"), str):
            measured.setdefault(result["recipe"], []).append(str(result.get("headline", "")))
    entries, trained_here = [], measurements()
    for name, path in shipped().items():
        preset, here = read_preset(path), trained_here.get(name)
        figure = here.figure if here else ""
        if results is not None:
            figure = "; ".join(measured.get(name, ()))
        size = _millions(here.parameters) if here and here.parameters else _size(preset)
        time = _duration(here.seconds) if here and here.seconds else ""
        entries.append(CatalogueEntry(name, preset.about, size, time, figure))
    return entries


def _size(preset: Preset) -> str:
    """Return the weights of a preset's layers without embeddings; "" if there is no formula."""
    with suppress(ConfigError):
        recipe = preset.recipe({"dataset": "-", "output": "-"})
        if isinstance(recipe, StepRecipe):
            return f"{_millions(recipe.work().weights)} + embeddings"
    return ""


def _millions(weights: int) -> str:
    """Return a number of weights in millions, such as `22.7M`."""
    return f"{weights / 1e6:.1f}M"


def _duration(seconds: int) -> str:
    """Return seconds as a text: `45 s`, or `25 min` from two minutes on."""
    return f"{seconds} s" if seconds < 120 else f"{seconds / 60:.0f} min"


# A model may need recipes and objectives of plug-ins. Code that comes with a model does not run
# unless the user allows it.


class Plugin(BaseModel):
    """A recipe or objective outside this package that trained a model."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["recipe", "objective"]
    name: str
    """Its name in the registry, or `package.module:Class` or `FILE.py:Class`."""
    requires: str
    """The package that must be installed, with its version."""
    code: str
    """The hash of its code: with other code it is another run."""


class Config(BaseModel):
    """The part of a model's `config.json` that `load_plugins` reads."""

    model_type: str = ""


class Manifest(BaseModel):
    """The part of a model folder's manifest that `load_plugins` reads."""

    plugins: tuple[Plugin, ...] = Field((), validation_alias=AliasPath("settings", PLUGINS))


def plugins_of(preset: Preset, recipe: Recipe) -> list[Plugin]:
    """Return the plug-ins that a run of `recipe` uses: for its class and for its objective.
    Built-in classes are no plug-ins. A class in a file is named without the file's folder."""
    names: dict[Literal["recipe", "objective"], str] = {"recipe": preset.reference}
    if isinstance(recipe, RankingRecipe):
        names["objective"] = recipe.objective
    return [
        Plugin(
            kind=kind,
            name=without_folders(name),
            requires=requires,
            code=code_hash(REGISTRIES[kind].find(name).__module__),
        )
        for kind, name in names.items()
        if (requires := REGISTRIES[kind].plugin(name))
    ]


def load_plugins(folder: Path) -> None:
    """Import the plug-ins that trained the model in `folder`: they register its model type.

    If a plug-in is not installed and transformers does not know the model's type, raises
    `InputError`. If it knows the type, only logs a warning: the weights load without the plug-in.
    """
    manifest = folder / MANIFEST
    plugins = read_record(Manifest, manifest).plugins if manifest.is_file() else ()
    for plugin in plugins:
        if _may_run(plugin.name):
            with suppress(ConfigError):
                REGISTRIES[plugin.kind].find(plugin.name)
                continue
        from transformers import CONFIG_MAPPING

        model_type = read_record(Config, folder / "config.json").model_type
        problem = f"the {plugin.kind} {plugin.name} that trained it is not installed"
        if model_type not in CONFIG_MAPPING:
            raise InputError(
                f"{problem}, and its model type {model_type!r} is not known without it",
                where=str(folder),
                hint=f"install {plugin.requires}: "
                f"pip install '{plugin.requires.replace(' ', '==')}'; a file that you have read "
                "runs from the working folder with --trust-remote-code",
            )
        log.warning("%s: %s (%s)", folder, problem, plugin.requires)


def trust_code() -> None:
    """Allow code that comes with a model to run, in this process and its child processes."""
    os.environ[TRUST] = "1"


def trusts_code() -> bool:
    """Return True if the user allows code that comes with a model to run."""
    return os.environ.get(TRUST) == "1"


def _may_run(name: str) -> bool:
    """Return True if the class `name`, which a model folder names, may be imported. A class of an
    installed package may. A module in the working folder, or a file of any folder, may have come
    with the model: it needs the user's consent (`trusts_code`)."""
    module = name.partition(":")[0]
    package = module.partition(".")[0]
    installed = package in sys.modules or package in metadata.packages_distributions()
    return ":" not in name or trusts_code() or (installed and not module.endswith(".py"))
