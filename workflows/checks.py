"""Whether what the tables of a build file name is there: datasets, models, options, licences.

Whether recipes, suites and datasets fit each other is asked later, by `workflows.fits`.
"""

from __future__ import annotations

from corpora import licences
from corpora.errors import ConfigError, nearest
from workflows import discoeval
from workflows.tables import BuildFile, Evaluation, Source


def check_names(build: BuildFile) -> None:
    """Raise `ConfigError` for the first name, option or licence that is none."""
    _check_unique(build)
    for source in build.sources:
        for dataset in source.datasets:
            if dataset not in build.datasets:
                raise _no_dataset(build, f"sources.{source.name}", dataset)
        _check_licences(build, source)
        _check_options(build, source)
    for check in build.validation:
        with build.at(f"validation {check.name}: sources"):
            for name in check.sources:
                build.source(name)
    for key, model in build.models.items():
        if model.dataset not in build.datasets:
            raise _no_dataset(build, f"models.{key}", model.dataset)
        if model.base:
            _check_base(build, key)
    for key, evaluation in build.evaluations.items():
        _check_evaluation(build, key, evaluation)


def _check_unique(build: BuildFile) -> None:
    specs: dict[str, str] = {}
    for source in build.sources:
        if source.name in specs:
            raise ConfigError(
                f"two sources are named {source.name!r}: {specs[source.name]} and {source.spec}",
                where=build.path,
                hint="give each [[sources]] table a name of its own; of a glob's files the letters "
                "and digits of the path count, up to the first dot of the name: rename one",
            )
        specs[source.name] = source.spec


def _check_base(build: BuildFile, key: str) -> None:
    """The chain of bases names models that there are, and does not come back to itself."""
    seen = [key]
    while base := build.models[seen[-1]].base:
        if base not in build.models:
            raise _no_model(build, f"models.{seen[-1]}.base", base)
        if base in seen:
            chain = " -> ".join([*seen, base])
            raise ConfigError(f"models.{key}.base goes round: {chain}", where=build.path)
        seen.append(base)


def _check_evaluation(build: BuildFile, key: str, evaluation: Evaluation) -> None:
    where = f"evaluations.{key}"
    if key in build.models:
        raise ConfigError(f"{where} has the name of a model; name it otherwise", where=build.path)
    if bool(evaluation.dataset) == bool(evaluation.data):
        raise ConfigError(
            f"{where} names {'both a dataset and data' if evaluation.data else 'no data'}",
            where=build.path,
            hint='give dataset = "NAME[@CONFIG]" of this build, or data = "kind:PATH"',
        )
    for name in evaluation.datasets:
        if name not in build.datasets:
            raise _no_dataset(build, where, name)
    _check_list(build, where, evaluation)
    if evaluation.suite == discoeval.SUITE and evaluation.datasets:
        made_by = {n: str(build.datasets[n].get("builder", n)) for n in evaluation.datasets}
        discoeval.check(made_by, evaluation.settings, where, build.path)
    for model in evaluation.models:
        if model not in build.models:
            raise _no_model(build, where, model)


def _check_list(build: BuildFile, where: str, evaluation: Evaluation) -> None:
    """Several datasets are read whole, each once."""
    listed = () if isinstance(evaluation.dataset, str) else evaluation.dataset
    for at, name in enumerate(listed):
        if "@" in name or name in listed[:at]:
            problem = "with a configuration" if "@" in name else "twice"
            raise ConfigError(
                f"{where}.dataset lists {name!r} {problem}",
                where=build.path,
                hint="of several datasets every configuration is read, once; for one of them give "
                'dataset = "NAME@CONFIG"',
            )


def _no_model(build: BuildFile, key: str, model: str) -> ConfigError:
    return ConfigError(
        f"{key} names the model {model!r}; {nearest(model, build.models)}"
        f"the build file has {', '.join(build.models) or 'no [models.*] table'}",
        where=build.path,
    )


def _check_options(build: BuildFile, source: Source) -> None:
    """The options of a source are those of its reader, and its splitter is one that there is."""
    from corpora.readers import parse_spec
    from corpora.sentences import SPLITTERS

    where = f"{build.path}: source {source.name}"
    with build.at(f"source {source.name}: spec"):
        reader = parse_spec(source.spec)[0]
    given = {key: value for key in ("licence", "language") if (value := getattr(source, key))}
    reader.of({**source.options, **given}, f"{where}: options")
    splitter = source.splitter or build.sentences.splitter
    if splitter not in SPLITTERS:
        raise ConfigError(
            f"no splitter {splitter!r}; {nearest(splitter, SPLITTERS)}".rstrip("; "),
            where=where,
            hint=f"the splitters are: {', '.join(SPLITTERS)}",
        )


def _check_licences(build: BuildFile, source: Source) -> None:
    """The licences of a source are in the table, or nothing could be said of a dataset of it."""
    given = {"": source.licence} if isinstance(source.licence, str) else source.licence
    for genre, licence in given.items():
        key = f"licence.{genre}" if genre else "licence"
        with build.at(f"source {source.name}: {key}"):
            licences.get(licence)


def _no_dataset(build: BuildFile, key: str, dataset: str) -> ConfigError:
    return ConfigError(
        f"{key} names the dataset {dataset!r}; {nearest(dataset, build.datasets)}"
        f"the build file has {', '.join(build.datasets) or 'no [datasets.*] table'}",
        where=build.path,
    )
