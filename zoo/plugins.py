"""What a model needs that is not part of this package: recipes and objectives of plug-ins."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpora.code import code_hash
from corpora.declared import portable
from corpora.errors import ConfigError, InputError
from corpora.store.atomic import MANIFEST
from zoo.declared import OBJECTIVES, RECIPES, RankingRecipe, Recipe
from zoo.presets import Preset

log = logging.getLogger("zoo")

KEY = "plugins"
"""Among the settings of a model's manifest."""
REGISTRIES = {registry.what: registry for registry in (RECIPES, OBJECTIVES)}


@dataclass(frozen=True)
class Plugin:
    """A class outside this package: `name` finds it, `requires` says what must be installed."""

    kind: str
    name: str
    requires: str
    code: str
    """The hash of its code: with other code it is another run."""


def needed(preset: Preset, recipe: Recipe) -> list[Plugin]:
    """The plug-ins that a run uses; of a file its name stands for its path."""
    names = {"recipe": preset.reference}
    if isinstance(recipe, RankingRecipe):
        names["objective"] = recipe.objective
    return [
        Plugin(kind, portable(name), requires, code_hash(REGISTRIES[kind].find(name).__module__))
        for kind, name in names.items()
        if (requires := REGISTRIES[kind].plugin(name))
    ]


def missing(folder: Path) -> Iterator[Plugin]:
    """Import the plug-ins of a model folder; those that are not there."""
    path = folder / MANIFEST
    if not path.is_file():
        return
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for entry in manifest.get("settings", {}).get(KEY, ()):
        plugin = Plugin(**entry)
        try:
            REGISTRIES[plugin.kind].find(plugin.name)
        except ConfigError:
            yield plugin


def load(folder: Path) -> None:
    """Import the plug-ins of a model folder, so that their models are known to transformers.

    Raises `InputError` if one is missing and the model's type is not known without it; else a
    missing one is only told: the weights do not need it.
    """
    from transformers import CONFIG_MAPPING, PretrainedConfig

    for plugin in missing(folder):
        problem = f"the {plugin.kind} {plugin.name} that trained it is not installed"
        config, _ = PretrainedConfig.get_config_dict(folder)
        if config.get("model_type") in CONFIG_MAPPING:
            log.warning("%s: %s (%s)", folder, problem, plugin.requires)
            continue
        raise InputError(
            f"{problem}, and its model type {config.get('model_type')!r} is not known without it",
            where=str(folder),
            hint=f"install {plugin.requires}: pip install '{plugin.requires.replace(' ', '==')}'",
        )
