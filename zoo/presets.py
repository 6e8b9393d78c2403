"""Presets: the settings of a recipe in a TOML file, and what a user sets on top.

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
from corpora.declared import REFERENCE, Loc, TomlTable, anchored, portable
from corpora.errors import COMMAND_LINE, ConfigError, InputError, nearest
from corpora.outside import read_json, read_record
from corpora.store.atomic import MANIFEST
from corpora.toml import TomlFile
from zoo.declared import OBJECTIVES, RECIPES, RankingRecipe, Recipe

log = logging.getLogger("zoo")

ROOM = Path(__file__).parent
PLUGINS = "plugins"
"""Among the settings of a model's manifest."""
TRUST = "DISCORPORA_TRUST_REMOTE_CODE"
"""Set to 1 by `--trust-remote-code`, for the processes that a command starts too."""
REGISTRIES = {registry.what: registry for registry in (RECIPES, OBJECTIVES)}


class About(TomlTable):
    """What the list of recipes and the card say."""

    title: str = ""
    paper: str = ""
    objective: str = ""
    dataset: str = ""
    published: str = ""
    tier: str = ""
    differs: tuple[str, ...] = ()
    """Where its settings differ from the paper's, beside what the recipe itself says."""


class _File(TomlTable):
    """The tables of a preset's file; the settings are checked by the recipe's class."""

    recipe: str
    about: About = About()
    settings: dict[str, Any] = Field(default_factory=dict)

    @field_validator("recipe")
    @classmethod
    def _is_a_recipe(cls, name: str) -> str:
        RECIPES.find(name)
        return name


@dataclass(frozen=True)
class Preset:
    """A recipe with settings: `reference` names its class, in `RECIPES` or elsewhere."""

    name: str
    """`dissent/bilstm_tiny`: the family and the file's name."""
    reference: str
    about: About
    settings: Mapping[str, Any]
    file: TomlFile | None = None

    @property
    def place(self) -> str:
        """What `read_preset` finds it by from any folder."""
        return str(self.file.path.absolute()) if self.file else self.reference

    @property
    def kind(self) -> type[Recipe]:
        """The recipe's class."""
        return RECIPES.find(self.reference)

    def recipe(self, options: Mapping[str, Any], where: str = COMMAND_LINE) -> Recipe:
        """The recipe with the preset's settings and `options`, which stand at `where`, on top.

        Raises `ConfigError` with the place of an unknown key, a missing one, or a wrong value.
        """

        def place(keys: Loc) -> str:
            here = bool(keys) and keys[0] in self.settings and keys[0] not in options
            return self.file.where(("settings", *keys)) if here and self.file else where

        return self.kind.of(over(self.settings, options), place)


def shipped() -> dict[str, Path]:
    """The presets of this package by name, `family/file`."""
    return {
        f"{path.parent.name}/{path.stem}": path
        for path in sorted(ROOM.glob("*/*.toml"))
        if re.search(r"^recipe\s*=", path.read_text(encoding="utf-8"), re.M)
    }


def read_preset(name: str | Path, folder: Path = Path()) -> Preset:
    """A preset by its shipped name or path, or a recipe itself, with its class's own settings.

    A recipe is named as in `RECIPES`, or is `package.module:Class` or `FILE.py:Class`; a relative
    path is looked for in `folder`, then in the working folder. Raises `ConfigError` for a name or
    file that is not there, is not TOML, or has unknown keys.
    """
    text, known = str(name), shipped()
    if REFERENCE.fullmatch(text) or (text in RECIPES and not (folder / text).is_file()):
        reference = anchored(text, folder)
        kind = RECIPES.find(reference)
        return Preset(portable(text), reference, About(title=kind.summary(), paper=kind.paper), {})
    path = next(filter(Path.is_file, (folder / text, Path(text))), None)
    path = path or known.get(text.removesuffix(".toml"))
    if path is None:
        raise ConfigError(
            f"no recipe {text!r}",
            hint=f"{nearest(text.removesuffix('.toml'), [*known, *RECIPES])}give a TOML file "
            f"(looked in {str(folder.absolute())!r}), a preset ({', '.join(known)}) "
            f"or a recipe with its own settings ({', '.join(RECIPES)})",
        )
    file_ = TomlFile.read(path)
    named = file_.table.get("recipe")
    anchor = {"recipe": anchored(named, path.parent)} if isinstance(named, str) else {}
    tables = _File.of({**file_.table, **anchor}, file_.where)
    own = dict(tables.settings)
    if isinstance(own.get("objective"), str):
        own["objective"] = anchored(own["objective"], path.parent)
    family = Path(tables.recipe.partition(":")[0]).stem.partition(".")[0]
    return Preset(f"{family}/{path.stem}", tables.recipe, tables.about, own, file_)


def over(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`table` with `changes`; a table in it changes key by key, and `{}` empties it."""
    values = dict(table)
    for key, new in changes.items():
        nested = new and isinstance(new, Mapping) and isinstance(values.get(key), Mapping)
        values[key] = over(values[key], new) if nested else new
    return values


@dataclass(frozen=True)
class Entry:
    """One preset: what it says about itself, and the figure measured here where there is one."""

    name: str
    about: About
    measured: str = ""


def catalogue(results: Path | None = None) -> list[Entry]:
    """All recipes, by name. `results` is a folder in which model folders are looked for.

    The figure measured is the `headline` of a model's `results.json` with the recipe's name; of
    several models there are several.
    Raises `InputError` for a folder that is not there, and for results that are not JSON.
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
    return [
        Entry(name, read_preset(path).about, "; ".join(measured.get(name, ())))
        for name, path in shipped().items()
    ]


# What a model needs that is not part of this package: recipes and objectives of plug-ins, and code
# that comes with it, which does not run unless the user says so.


class Plugin(BaseModel):
    """A class outside this package: `name` finds it, `requires` says what must be installed."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["recipe", "objective"]
    name: str
    requires: str
    code: str
    """The hash of its code: with other code it is another run."""


class Config(BaseModel):
    """What loading plug-ins reads of a model's configuration."""

    model_type: str = ""


class Manifest(BaseModel):
    """What loading reads of the manifest of a model's folder."""

    plugins: tuple[Plugin, ...] = Field((), validation_alias=AliasPath("settings", PLUGINS))


def plugins_of(preset: Preset, recipe: Recipe) -> list[Plugin]:
    """The plug-ins that a run uses; of a file its name stands for its path."""
    names: dict[Literal["recipe", "objective"], str] = {"recipe": preset.reference}
    if isinstance(recipe, RankingRecipe):
        names["objective"] = recipe.objective
    return [
        Plugin(
            kind=kind,
            name=portable(name),
            requires=requires,
            code=code_hash(REGISTRIES[kind].find(name).__module__),
        )
        for kind, name in names.items()
        if (requires := REGISTRIES[kind].plugin(name))
    ]


def load_plugins(folder: Path) -> None:
    """Import the plug-ins of a model folder, so that their models are known to transformers.

    Raises `InputError` if one is missing and the model's type is not known without it; else a
    missing one is only told: the weights do not need it.
    """
    place = folder / MANIFEST
    plugins = read_record(Manifest, place).plugins if place.is_file() else ()
    for plugin in plugins:
        if _may_run(plugin.name):
            with suppress(ConfigError):
                REGISTRIES[plugin.kind].find(plugin.name)
                continue
        from transformers import CONFIG_MAPPING

        there = read_record(Config, folder / "config.json").model_type
        problem = f"the {plugin.kind} {plugin.name} that trained it is not installed"
        if there not in CONFIG_MAPPING:
            raise InputError(
                f"{problem}, and its model type {there!r} is not known without it",
                where=str(folder),
                hint=f"install {plugin.requires}: "
                f"pip install '{plugin.requires.replace(' ', '==')}'; a file that you have read "
                "runs from the working folder with --trust-remote-code",
            )
        log.warning("%s: %s (%s)", folder, problem, plugin.requires)


def trust_code() -> None:
    """Let the code run that comes with the models that are loaded: `--trust-remote-code`."""
    os.environ[TRUST] = "1"


def trusts_code() -> bool:
    """Whether the user lets code run that came with a model."""
    return os.environ.get(TRUST) == "1"


def _may_run(name: str) -> bool:
    """Whether a class that a model folder names is of what the user installed, or trusts.

    A module in the working folder, or a file of any folder, may have come with the model.
    """
    module = name.partition(":")[0]
    package = module.partition(".")[0]
    installed = package in sys.modules or package in metadata.packages_distributions()
    return ":" not in name or trusts_code() or (installed and not module.endswith(".py"))
