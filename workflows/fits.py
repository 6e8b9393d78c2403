"""Checks that models, suites and datasets of a build file fit together, before anything runs.

They compare declarations: the columns that a builder gives, those that a recipe or suite reads, and
what a model can do. Every `check_...` raises `ConfigError` for the first thing that does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corpora.errors import ConfigError, nearest
from corpora.tasks.builder import Builder
from workflows.tables import BuildFile, Evaluation
from zoo.declared import GOES_ON, Form, Recipe, Suite
from zoo.evaluate import SUITES

Keys = tuple[str, ...]
"""The keys that lead to a value of the build file: `("models", "NAME", "dataset")`."""


@dataclass(frozen=True)
class DeclaredDataset:
    """A dataset as the build file declares it; it need not be built."""

    name: str
    build: BuildFile

    @property
    def builder(self) -> Builder:
        return self.build.builder(self.name)

    def schema(self, config: str) -> set[str]:
        """The names of the columns of a configuration; empty if the dataset does not have it."""
        schemas = self.builder.gives
        return {*schemas[config].names} if config in schemas else set()

    def has_columns(self, config: str, form: Form) -> bool:
        """Tell whether a configuration, and those read beside it, have the columns of a form."""
        columns_of = {**form.beside, config: (*form.columns, *form.beside.get(config, ()))}
        return all({*columns} <= self.schema(name) for name, columns in columns_of.items())

    def fitting_configurations(self, forms: Sequence[Form]) -> list[str]:
        """Return the names of the configurations that have the columns of one of the forms."""
        names = self.builder.configurations()
        return [name for name in names if any(self.has_columns(name, form) for form in forms)]

    def default_configuration(self) -> str:
        """Return the name of the configuration that is read if none is named."""
        names = self.builder.configurations()
        return self.builder.default if self.builder.default in names else names[0]

    def check_configuration(self, config: str, keys: Keys) -> None:
        """Check that the dataset has the configuration that stands at `keys` in the build file."""
        names = self.builder.configurations()
        if config and config not in names:
            raise ConfigError(
                f"the dataset {self.name!r} has no configuration {config!r}",
                where=self.build.where(*keys),
                hint=f"{nearest(config, names)}it has: {', '.join(names)}",
            )

    def check_splits(self, splits: Sequence[str], what: str, keys: Keys) -> None:
        """Check that each split gets rows; `what` begins the message: "the suite X reads"."""
        if self.builder.reads == "sources" or hasattr(self.builder, "table"):
            return  # the data may prescribe the splits
        shares = self.build.splits
        for split in splits:
            setting = ""  # the one that leaves the split empty
            if not getattr(shares, split) and not shares.table:
                setting = f"splits.{split}"
            if getattr(self.builder, split, 1) == 0 and split not in self.builder.share_fields():
                setting = f"datasets.{self.name}.{split}"
            if setting:
                raise ConfigError(
                    f"{what} the split {split!r}, and {setting} = 0 leaves the dataset "
                    f"{self.name!r} none",
                    where=self.build.where(*keys),
                    hint=f"give {setting} a part, or take another dataset",
                )

    def form_error(self, config: str, forms: Sequence[Form], what: str, *, at: bool) -> ConfigError:
        """Return an error for a recipe or suite (`what`) that cannot read the configuration.

        The error names the configurations of this dataset that have the columns of one of `forms`:
        with `at` as `dataset = "DATASET@CONFIG"`, else as `config = "CONFIG"`.
        """
        config = config if self.schema(config) else self.default_configuration()
        key = f'dataset = "{self.name}@' if at else 'config = "'
        fitting = " or ".join(f'{key}{name}"' for name in self.fitting_configurations(forms))
        columns = " or ".join(", ".join(form.columns) for form in forms)
        spec = self.name if config == "default" else f"{self.name}@{config}"
        return ConfigError(
            f"{what} cannot read {spec!r}, whose columns are "
            f"{', '.join(sorted(self.schema(config)))}",
            hint=f"set {fitting}" if fitting else f"it reads {columns}",
        )


def check_training(build: BuildFile, name: str, recipe: Recipe) -> None:
    """Check that the recipe of the model `name` can read its dataset."""
    model = build.models[name]
    if not recipe.trains:
        return
    data = DeclaredDataset(model.dataset, build)
    keys, what = ("models", name), f"the recipe {model.recipe}"
    data.check_configuration(model.config, (*keys, "config"))
    forms = recipe.forms()
    config = model.config or recipe.configuration() or data.default_configuration()
    if not any(data.has_columns(config, form) for form in forms):
        key = "config" if data.fitting_configurations(forms) else "dataset"
        with build.at(*keys, key):
            raise data.form_error(config, forms, what, at=False)
    names = data.builder.configurations()
    if config not in names:
        raise ConfigError(
            f"{what} reads the configuration {config!r}, which the dataset {data.name!r} lacks",
            where=build.where(*keys, "config"),
            hint=f"name one that it has: {', '.join(names)}",
        )
    data.check_splits(recipe.splits, f"{what} needs", (*keys, "dataset"))


def check_base(build: BuildFile, name: str, base: type[Recipe]) -> None:
    """Check that the base of the model `name` has an encoder to start from."""
    if GOES_ON not in base.can:
        model = build.models[name]
        raise ConfigError(
            f"the model {model.base!r} (recipe {build.models[model.base].recipe}) has no backbone "
            "to start from",
            where=build.where("models", name, "base"),
            hint="take a base that was trained from a backbone itself, or a pretrained encoder by "
            'settings = { backbone = "PATH_OR_ID" }',
        )


def check_model(
    build: BuildFile, suite: Suite, name: str, recipe: type[Recipe], keys: Keys
) -> None:
    """Check that the model can do what the suite needs."""
    if suite.needs & recipe.can:
        return
    others = [other for other in SUITES.built_in if SUITES.find(other).needs & recipe.can]
    raise ConfigError(
        f"the suite {suite.name} needs a model that {' or '.join(sorted(suite.needs))}; {name!r} "
        f"(recipe {build.models[name].recipe}) {' and '.join(sorted(recipe.can))}",
        where=build.where(*keys),
        hint=f"suites for this model: {', '.join(others)}",
    )


def check_data(build: BuildFile, suite: Suite, plan: Evaluation, keys: Keys) -> None:
    """Check that the suite can read the datasets, each with its configuration."""
    if not plan.datasets:
        return
    with build.at(*keys):
        if not suite.reads:
            raise ConfigError(
                f"the suite {suite.name} takes no dataset of a build", hint="it brings its own data"
            )
        if not isinstance(plan.dataset, str) and not suite.several:
            raise ConfigError(
                f"the suite {suite.name} takes one dataset",
                hint='name one: dataset = "NAME@CONFIG"',
            )
        for name, config in plan.configurations:
            # The columns of the configuration, then its builder and splits
            data = DeclaredDataset(name, build)
            data.check_configuration(config, keys)
            config_name = config or suite.config or data.default_configuration()
            configs = [config_name]
            if suite.all_configs and not config:
                configs = data.fitting_configurations(suite.reads)
            matches = (data.has_columns(c, form) for c in configs for form in suite.reads)
            if not any(matches):
                raise data.form_error(config_name, suite.reads, f"the suite {suite.name}", at=True)
            builder = data.builder.name
            if suite.builders and builder not in suite.builders:
                raise ConfigError(
                    f"the suite {suite.name} has no task for {name!r}, of the builder {builder!r}",
                    hint=f"it takes datasets of the builders {', '.join(suite.builders)}",
                )
            data.check_splits(suite.splits, f"the suite {suite.name} reads", keys)
