"""The models that one `[models.NAME]` table stands for: its seeds, and the values of its sweep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from corpora.errors import ConfigError
from workflows.tables import BuildFile, Model, Variant

SEED = "seed"


def with_variants(build: BuildFile) -> BuildFile:
    """Return the build file with one model for each seed and each value of a sweep.

    An evaluation that names a table evaluates all models that it stands for. Raises `ConfigError`
    for a name that two models have, and for a sweep over the seed.
    """
    models: dict[str, Model] = {}
    variants: dict[str, Variant] = {}
    for table, model in build.models.items():
        for name, variant, settings in _variants(build, table, model):
            if name in models or (name != table and name in build.models):
                raise ConfigError(
                    f"two models are named {name!r}",
                    where=build.where("models", table),
                    hint="the further seeds of a model are NAME.2, NAME.3, ..., the values of a "
                    "sweep NAME.KEY-VALUE: rename a table, or remove one of two like values",
                )
            models[name] = model.model_copy(update={"settings": settings, "seeds": 1, "sweep": {}})
            variants[name] = variant
    evaluations = {}
    for name, evaluation in build.evaluations.items():
        names = tuple(m for table in evaluation.models for m in _models_of(table, variants))
        evaluations[name] = evaluation.model_copy(update={"models": names})
    build = build.model_copy(update={"models": models, "evaluations": evaluations})
    build._variants = variants
    return build


def _models_of(name: str, variants: Mapping[str, Variant]) -> list[str]:
    """Return the models of the table `name`; [name] if it is unknown, which is an error later."""
    return [model for model, variant in variants.items() if variant.table == name] or [name]


def _variants(
    build: BuildFile, table: str, model: Model
) -> Iterator[tuple[str, Variant, dict[str, Any]]]:
    """Yield name, variant and settings of each model that a table stands for.

    They are the table's own settings, then these with each single value of the sweep; each for all
    seeds. A value of the sweep that the settings already have makes no further model.
    """
    first_seed = model.settings.get(SEED, build.seed)
    points: list[tuple[str, dict[str, Any]]] = [(table, {})]
    for key, values in model.sweep.items():
        if key == SEED:
            raise ConfigError(
                "sweep.seed: seeds have a key of their own",
                where=build.where("models", table, "sweep"),
                hint="write seeds = N in place of it",
            )
        points += [
            (f"{table}.{key}-{_slug(value)}", {key: value})
            for value in values
            if model.settings.get(key) != value
        ]
    for point, changes in points:
        for number in range(model.seeds):
            seed = {SEED: first_seed + number} if number else {}
            name = f"{point}.{number + 1}" if number else point
            yield name, Variant(table, point, changes), {**model.settings, **changes, **seed}


def _slug(value: Any) -> str:
    """Return a value as part of a folder's name: small letters, digits, dots, underscores."""
    return re.sub(r"[^a-z0-9._-]+", "-", str(value).lower()).strip("-") or "empty"
