"""Whether the tables of a build file fit together: known before anything runs.

What a builder gives, what a recipe or suite reads, and what a model can do is part of their
declarations; here the names of tables are looked up and the declarations compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corpora.declared import Loc
from corpora.errors import ConfigError, nearest
from corpora.tasks.builder import Builder
from workflows.tables import BuildFile, Evaluation
from zoo.declared import GOES_ON, Form, Recipe, Suite


def check_names(build: BuildFile) -> None:
    """Raise `ConfigError` for the first name of a table that the build file does not have."""
    specs: dict[str, str] = {}
    for source in build.sources:
        if source.name in specs:
            raise ConfigError(
                f"two sources are named {source.name!r}: {specs[source.name]} and {source.spec}",
                where=build.where(*build.source_keys(source.name)),
                hint="give each [[sources]] table its own name; of a glob's files the letters and "
                "digits of the path count, up to the first dot of the name: rename one",
            )
        specs[source.name] = source.spec
        build.reader(source)
        for dataset in source.datasets:
            _known(build, dataset, build.datasets, "dataset", build.source_keys(source.name))
    for number, check in enumerate(build.validation):
        with build.at("validation", number, "sources"):
            for name in check.sources:
                build.source(name)
    for key, model in build.models.items():
        _known(build, model.dataset, build.datasets, "dataset", ("models", key, "dataset"))
        seen = [key]
        while base := build.models[seen[-1]].base:
            keys = ("models", seen[-1], "base")
            _known(build, base, build.models, "model", keys)
            if base in seen:
                chain = " -> ".join([*seen, base])
                raise ConfigError(f"the bases form a circle: {chain}", where=build.where(*keys))
            seen.append(base)
    for key, evaluation in build.evaluations.items():
        _check_evaluation(build, key, evaluation)


def _check_evaluation(build: BuildFile, key: str, evaluation: Evaluation) -> None:
    keys = ("evaluations", key)
    if key in build.models:
        raise ConfigError(f"a model is called {key!r} too; rename it", where=build.where(*keys))
    if bool(evaluation.dataset) == bool(evaluation.data):
        raise ConfigError(
            f"it names {'both a dataset and data' if evaluation.data else 'no data'}",
            where=build.where(*keys),
            hint='give dataset = "NAME[@CONFIG]" of this build, or data = "kind:PATH"',
        )
    listed = () if isinstance(evaluation.dataset, str) else evaluation.dataset
    for at, name in enumerate(listed):
        if "@" in name or name in listed[:at]:
            problem = "with a configuration" if "@" in name else "twice"
            raise ConfigError(
                f"it lists {name!r} {problem}",
                where=build.where(*keys, "dataset"),
                hint="of several datasets every configuration is read, once; for one of them give "
                'dataset = "NAME@CONFIG"',
            )
    for name in evaluation.datasets:
        _known(build, name, build.datasets, "dataset", (*keys, "dataset"))
    for model in evaluation.models:
        _known(build, model, build.models, "model", (*keys, "models"))


def _known(build: BuildFile, name: str, known: Iterable[str], what: str, keys: Loc) -> None:
    if name not in known:
        raise ConfigError(
            f"no {what} {name!r}; {nearest(name, known)}the build file has "
            f"{', '.join(known) or f'no [{what}s.*] table'}",
            where=build.where(*keys),
        )


@dataclass(frozen=True)
class Data:
    """A dataset of the build as its table declares it: nothing of it need be built."""

    name: str
    builder: Builder
    build: BuildFile

    def schema(self, config: str) -> set[str]:
        """The columns of a configuration; empty for one that it does not have."""
        return {*self.builder.gives[config].names} if config in self.builder.gives else set()

    def has(self, config: str, form: Form) -> bool:
        """Whether a configuration has the columns of a form, and those read beside it."""
        wanted = {**form.beside, config: (*form.columns, *form.beside.get(config, ()))}
        return all({*columns} <= self.schema(name) for name, columns in wanted.items())

    def fitting(self, forms: Sequence[Form]) -> list[str]:
        """Its configurations that have one of the forms."""
        names = self.builder.configurations()
        return [name for name in names if any(self.has(name, form) for form in forms)]

    def default(self) -> str:
        """The configuration that loads without being named."""
        names = self.builder.configurations()
        return self.builder.default if self.builder.default in names else names[0]

    def check_configuration(self, config: str, keys: tuple[str, ...]) -> None:
        """Raise `ConfigError` for a configuration that the dataset cannot have."""
        names = self.builder.configurations()
        if config and config not in names:
            raise ConfigError(
                f"the dataset {self.name!r} has no configuration {config!r}",
                where=self.build.where(*keys),
                hint=f"{nearest(config, names)}it has: {', '.join(names)}",
            )

    def check_splits(self, splits: Sequence[str], what: str, keys: tuple[str, ...]) -> None:
        """Raise `ConfigError` where the settings leave one of these splits without rows."""
        if self.builder.reads == "sources" or hasattr(self.builder, "table"):
            return  # the data may prescribe the splits
        shares = self.build.splits
        for split in splits:
            empty = f"splits.{split} = 0" if not (getattr(shares, split) or shares.table) else ""
            if getattr(self.builder, split, 1) == 0 and split not in self.builder.share_fields():
                empty = f"datasets.{self.name}.{split} = 0"
            if empty:
                raise ConfigError(
                    f"{what} the split {split!r}, and {empty} leaves the dataset "
                    f"{self.name!r} none",
                    where=self.build.where(*keys),
                    hint=f"give {empty.partition(' ')[0]} a part, or take another dataset",
                )

    def unfit(self, config: str, forms: Sequence[Form], what: str, *, at: bool) -> ConfigError:
        """The columns of the configuration, and which configurations `what` could read.

        With `at` a configuration is named behind its dataset, else by a key of its own.
        """
        config = config if self.schema(config) else self.default()
        key = f'dataset = "{self.name}@' if at else 'config = "'
        ways = " or ".join(f'{key}{name}"' for name in self.fitting(forms))
        wanted = " or ".join(", ".join(form.columns) for form in forms)
        spec = self.name if config == "default" else f"{self.name}@{config}"
        there = ", ".join(sorted(self.schema(config)))
        return ConfigError(
            f"{what} cannot read {spec!r}, whose columns are {there}",
            hint=f"set {ways}" if ways else f"it reads {wanted}",
        )


def check_training(name: str, recipe: Recipe, data: Data) -> None:
    """Raise `ConfigError` for the model `name` whose recipe cannot read its dataset."""
    build, model = data.build, data.build.models[name]
    keys, what = ("models", name), f"the recipe {model.recipe}"
    data.check_configuration(model.config, (*keys, "config"))
    forms, config = recipe.forms(), model.config or recipe.configuration() or data.default()
    if not any(data.has(config, form) for form in forms):
        key = "config" if data.fitting(forms) else "dataset"
        with build.at(*keys, key):
            raise data.unfit(config, forms, what, at=False)
    if config not in data.builder.configurations():
        raise ConfigError(
            f"{what} reads the configuration {config!r}, which the dataset {data.name!r} lacks",
            where=build.where(*keys, "config"),
            hint=f"name one that it has: {', '.join(data.builder.configurations())}",
        )
    data.check_splits(recipe.splits, f"{what} needs", (*keys, "dataset"))


def check_base(build: BuildFile, name: str, base: type[Recipe]) -> None:
    """Raise `ConfigError` for a base that leaves no encoder to start from."""
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
    build: BuildFile, suite: Suite, name: str, recipe: type[Recipe], keys: tuple[str, ...]
) -> None:
    """Raise `ConfigError` for a model that cannot do what the suite needs."""
    if suite.needs & recipe.can:
        return
    from zoo.evaluate import SUITES

    others = [other for other in SUITES.own if SUITES.find(other).needs & recipe.can]
    raise ConfigError(
        f"the suite {suite.name} needs a model that {' or '.join(sorted(suite.needs))}; {name!r} "
        f"(recipe {build.models[name].recipe}) {' and '.join(sorted(recipe.can))}",
        where=build.where(*keys),
        hint=f"suites for this model: {', '.join(others)}",
    )


def check_data(build: BuildFile, suite: Suite, plan: Evaluation, keys: tuple[str, ...]) -> None:
    """Raise `ConfigError` for datasets (each with its configuration) that a suite cannot read."""
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
        data = Data(name, build.builder(name), build)
        data.check_configuration(config, keys)
        chosen = config or suite.config or data.default()
        wanted = data.fitting(suite.reads) if suite.all_configs and not config else [chosen]
        with build.at(*keys):
            if not any(data.has(each, form) for each in wanted for form in suite.reads):
                raise data.unfit(chosen, suite.reads, f"the suite {suite.name}", at=True)
            if suite.builders and data.builder.name not in suite.builders:
                raise ConfigError(
                    f"the suite {suite.name} has no task for {name!r}, of the builder "
                    f"{data.builder.name!r}",
                    hint=f"it takes datasets of the builders {', '.join(suite.builders)}",
                )
        data.check_splits(suite.splits, f"the suite {suite.name} reads", keys)
