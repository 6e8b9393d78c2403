"""The models that one `[models.NAME]` table stands for: its seeds, and the values of its sweep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from corpora.errors import ConfigError
from workflows.tables import BuildFile, Model, Variant

SEED = "seed"


def with_variants(build: BuildFile) -> BuildFile:
    """The build file with a model for each seed and each value of a sweep.

    An evaluation that names the table judges them all. Raises `ConfigError` for a name that two of
    them have, and for a sweep over the seed.
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
    evaluations = {
        name: one.model_copy(
            update={"models": tuple(v for n in one.models for v in _named(n, variants))}
        )
        for name, one in build.evaluations.items()
    }
    build = build.model_copy(update={"models": models, "evaluations": evaluations})
    build._variants = variants
    return build


def _named(name: str, variants: Mapping[str, Variant]) -> list[str]:
    """What a name in an evaluation stands for; one that is not there stays, for the message."""
    return [model for model, variant in variants.items() if variant.table == name] or [name]


def _variants(
    build: BuildFile, table: str, model: Model
) -> Iterator[tuple[str, Variant, dict[str, Any]]]:
    """The settings of the table, then each value of each swept key over them, all with all seeds.

    A value that the settings have too is the model itself.
    """
    first = model.settings.get(SEED, build.seed)
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
            seed = {SEED: first + number} if number else {}
            name = f"{point}.{number + 1}" if number else point
            yield name, Variant(table, point, changes), {**model.settings, **changes, **seed}


def _slug(value: Any) -> str:
    """A value as a part of a folder's name."""
    return re.sub(r"[^a-z0-9._-]+", "-", str(value).lower()).strip("-") or "empty"
