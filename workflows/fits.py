"""Whether models, datasets and suites of a build file fit each other: known before anything runs.

What recipes and suites read is declared by their classes, what a builder's
datasets have in `corpora.schemas.DATASETS`. What is declared nowhere is not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.errors import ConfigError
from corpora.schemas import DATASETS
from corpora.splits import SPLITS
from zoo.declared import GOES_ON, Form, Recipe, Suite
from zoo.evaluate import SUITES
from zoo.presets import read_preset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workflows.tables import BuildFile
    from workflows.tasks.datasets import Dataset

ANY = ""
"""Of `DATASETS`: every configuration that is not named."""


@dataclass(frozen=True)
class Data:
    """A dataset of the build as its table describes it: nothing of it need be built.

    `configurations` are those that it may have; `empty` the splits that get no row, each with
    the key that says so.
    """

    name: str
    builder: str
    configurations: tuple[str, ...]
    empty: Mapping[str, str]

    @classmethod
    def of(cls, task: Dataset) -> Data:
        known = task.builder.configurations(task.chosen())
        return cls(task.name, task.builder.name, known, _empty(task))

    def default(self) -> str:
        """The configuration that loads without being named; `ANY` where the data decide."""
        first = next(iter(DATASETS.get(self.builder, ())), ANY)
        alone = len(self.configurations) == 1 and first not in (ANY, *self.configurations)
        return self.configurations[0] if alone else first


def check_training(build: BuildFile, name: str, data: Data, recipe: Recipe) -> None:
    """Raise `ConfigError` for a model whose recipe cannot read its dataset."""
    model = build.models[name]
    forms = recipe.forms()
    if not forms or data.builder not in DATASETS:
        return
    where, what = f"{build.path}: models.{name}", f"the recipe {model.recipe}"
    config = recipe.configuration() or data.default()
    if not _fit(data.builder, config, forms):
        key = "config" if _named(data, forms) else "dataset"
        raise _no_form(data, config, forms, what, f"{where}.{key}")
    if config not in (ANY, *data.configurations):
        raise ConfigError(
            f"{what} reads the configuration {config!r}, which the dataset {data.name!r} has not",
            where=f"{where}.config",
            hint=f"name one that it has: {', '.join(data.configurations)}",
        )
    _check_splits(data, recipe.splits, f"{what} needs", f"{where}.dataset")


def _recipe(build: BuildFile, name: str) -> type[Recipe]:
    return read_preset(build.models[name].recipe, Path(build.path).parent).kind


def check_base(build: BuildFile, name: str) -> None:
    """Raise `ConfigError` for a base that leaves no encoder to start from."""
    base = build.models[name].base
    recipe = build.models[base].recipe if base else ""
    if base and GOES_ON not in _recipe(build, base).can:
        raise ConfigError(
            f"the model {base!r} (recipe {recipe}) has no backbone to start from",
            where=f"{build.path}: models.{name}.base",
            hint="take a base that was trained from a backbone itself, or a pretrained encoder by "
            'settings = { backbone = "PATH_OR_ID" }',
        )


def check_model(build: BuildFile, suite: str, name: str, where: str) -> None:
    """Raise `ConfigError` for a model that cannot do what the suite asks of it."""
    recipe = build.models[name].recipe
    needs, reads = build.suite(suite), _recipe(build, name)
    if needs.needs & reads.can:
        return
    others = [other for other in SUITES if SUITES.find(other).needs & reads.can]
    wanted, can = " or ".join(sorted(needs.needs)), " and ".join(sorted(reads.can))
    raise ConfigError(
        f"the suite {suite} wants a model that {wanted}; {name!r} (recipe {recipe}) {can}",
        where=where,
        hint=f"suites for this model: {', '.join(others)}",
    )


def check_data(
    needs: type[Suite], data: Sequence[tuple[Data, str]], where: str, *, listed: bool = False
) -> None:
    """Raise `ConfigError` for datasets (each with its configuration) that a suite cannot read.

    `where` is the key of the build file that is wrong then; `listed`: it names them in a list.
    """
    suite = needs.name or needs.__name__
    if not data:
        return
    if not needs.reads:
        problem = f"the suite {suite} takes no dataset of a build"
        raise ConfigError(problem, where=where, hint="it brings data of its own")
    if listed and not needs.several:
        hint = 'name one: dataset = "NAME@CONFIG"'
        raise ConfigError(f"the suite {suite} takes one dataset", where=where, hint=hint)
    for one, config in data:
        if one.builder not in DATASETS:
            _check_builder(one, needs.builders, suite, where)
            continue
        whole = needs.all_configs and not config
        chosen = config or needs.config or one.default()
        wanted = _fitting(one.builder, needs.reads) if whole else [chosen]
        if not any(_fit(one.builder, name, needs.reads) for name in wanted):
            raise _no_form(one, chosen, needs.reads, f"the suite {suite}", where, at=True)
        _check_builder(one, needs.builders, suite, where)
        _check_splits(one, needs.splits, f"the suite {suite} reads", where)


def _check_builder(data: Data, builders: Sequence[str], suite: str, where: str) -> None:
    if builders and data.builder not in builders:
        raise ConfigError(
            f"the suite {suite} has no task for {data.name!r}, of the builder {data.builder!r}",
            where=where,
            hint=f"it takes datasets of the builders {', '.join(builders)}",
        )


def _fit(builder: str, config: str, forms: Sequence[Form]) -> bool:
    """Whether a builder's configuration has one of `forms`, with what is read beside it."""
    return any(_has_form(builder, config, form) for form in forms)


def _has_form(builder: str, config: str, form: Form) -> bool:
    wanted = {**form.beside, config: (*form.columns, *form.beside.get(config, ()))}
    return all({*columns} <= {*_columns(builder, name)} for name, columns in wanted.items())


def _fitting(builder: str, forms: Sequence[Form]) -> list[str]:
    """The configurations of a builder that have one of `forms`."""
    return [config for config in DATASETS[builder] if _fit(builder, config, forms)]


def _named(data: Data, forms: Sequence[Form]) -> list[str]:
    """The dataset's own configurations that have one of `forms`."""
    return [name for name in _fitting(data.builder, forms) if name in data.configurations]


def _columns(builder: str, config: str) -> list[str]:
    schemas = DATASETS[builder]
    schema = schemas.get(config, schemas.get(ANY))
    return list(schema.names) if schema is not None else []


def _no_form(
    data: Data, config: str, forms: Sequence[Form], what: str, where: str, *, at: bool = False
) -> ConfigError:
    """What stands in the configuration, and which one to name, or which builders to take.

    With `at` a configuration is named behind its dataset, else by a key of its own.
    """
    key = f'dataset = "{data.name}@' if at else 'config = "'
    ways = " or ".join(f'{key}{name}"' for name in _named(data, forms))
    others = ", ".join(builder for builder in DATASETS if _fitting(builder, forms))
    wanted = " or ".join(", ".join(form.columns) for form in forms)
    spec = data.name if config in (ANY, "default") else f"{data.name}@{config}"
    there = ", ".join(_columns(data.builder, config)) or "none that are known"
    return ConfigError(
        f"{what} cannot read {spec!r}, whose columns are {there}",
        where=where,
        hint=f"set {ways}" if ways else f"it reads {wanted}: datasets of the builders {others}",
    )


def _check_splits(data: Data, splits: Sequence[str], what: str, where: str) -> None:
    for split in splits:
        if key := data.empty.get(split):
            raise ConfigError(
                f"{what} the split {split!r}, and {key} leaves the dataset {data.name!r} none",
                where=where,
                hint=f"give {key.partition(' ')[0]} a part, or take another dataset",
            )


def _empty(task: Dataset) -> dict[str, str]:
    """The splits without rows; none where the data themselves may prescribe the splits."""
    chosen = task.chosen()
    if task.direct or hasattr(chosen, "table"):
        return {}
    shares = task.build.splits.model_dump()
    found = {}
    for split in SPLITS:
        if not shares[split] and not shares["table"]:
            found[split] = f"splits.{split} = {shares[split]:g}"
        elif getattr(chosen, split, 1) == 0:
            found[split] = f"datasets.{task.name}.{split} = 0"
    return found
