"""Build files: TOML, validated before anything runs.

A build file names its sources and the settings of every stage. Unknown keys, misspelt names and
values of a wrong type are errors that name the key and the nearest valid one.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from corpora import licences
from corpora.errors import ConfigError, DiscoforgeError, nearest
from corpora.readers.source import root_of
from corpora.splits import Shares
from workflows import discoeval

if TYPE_CHECKING:
    from corpora.tasks import Builder

CONFIGS = Path(__file__).parent / "configs"
SAMPLE = Path(__file__).parent.parent / "corpora" / "sample"
DATA_VARIABLE = "DISCOFORGE_DATA"

Entry = TypeVar("Entry")
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
"""A name that is also a folder's."""


LANGUAGES = {
    **{"arabic": "ar", "chinese": "zh", "czech": "cs", "danish": "da", "dutch": "nl"},
    **{"english": "en", "finnish": "fi", "french": "fr", "german": "de", "greek": "el"},
    **{"hebrew": "he", "hindi": "hi", "hungarian": "hu", "italian": "it", "japanese": "ja"},
    **{"korean": "ko", "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt"},
    **{"romanian": "ro", "russian": "ru", "spanish": "es", "swedish": "sv", "turkish": "tr"},
    **{"ukrainian": "uk", "vietnamese": "vi", "eng": "en"},
}
"""What may be written where a code is meant."""


def _language_code(value: str) -> str:
    """A language as its code; `ConfigError` with the code for a name."""
    if value.lower() in LANGUAGES or not re.fullmatch(r"([a-z]{2,3}(-[A-Za-z0-9]{2,8})*)?", value):
        code = LANGUAGES.get(value.lower())
        raise ConfigError(
            f"{value!r} is no code of a language",
            hint=f'write "{code}"' if code else 'such a code is "en", "de" or "pt-BR"',
        )
    return value


Language = Annotated[str, AfterValidator(_language_code)]
"""A code such as `en`, by which parsers, pattern tables and the Hub know it."""


class Table(BaseModel):
    """A table of a build file: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(Table):
    """One `[[sources]]` entry: where documents come from and which datasets may use them.

    `spec` is `kind:PATH_OR_ID`; `{data}` in it stands for the build file's data folder. A glob
    expands to one source a file, named by its path below the glob's folder. `datasets` names the
    datasets that draw on the source (empty: none; the source then serves validation alone).
    `licence` may be a table by genre for a `conllu:` source, `splitter` another one than the
    build's. `get` says how to obtain it.
    """

    name: Name
    spec: str
    licence: str | dict[str, str] = ""
    language: Language = ""
    options: dict[str, Any] = {}
    splitter: str = ""
    datasets: tuple[str, ...] = ()
    get: str = ""

    @property
    def licences(self) -> str:
        """The licences as one SPDX expression."""
        one = isinstance(self.licence, str)
        return str(self.licence) if one else " AND ".join(sorted({*self.licence.values()}))


class Sentences(Table):
    splitter: str = "rules"


class Splits(Table):
    """The shares of the documents: they are divided once, for all datasets of the build.

    `table` names documents whose split is settled (`corpora.split_table`).
    """

    train: float = 0.8
    validation: float = 0.1
    test: float = 0.1
    table: str = ""

    @property
    def shares(self) -> Shares:
        return Shares(self.train, self.validation, self.test)


class Parse(Table):
    """`prefilter`: parse only the sentences that hold a candidate marker."""

    parser: str = "embedded"
    prefilter: bool = True


class Extract(Table):
    markers: str = "all15"
    mode: Literal["recall", "require_clause", "own_subjects"] = "require_clause"
    text: Literal["written", "tokenised"] = "written"


class Engine(Table):
    """Where the stages `parse` and `pairs` run: their shards, shared out to `tasks` workers.

    `here` is the process of the stage itself, `local` several processes of this machine for one
    source; `slurm` and `ray` are executors of datatrove. `workers` is how many tasks run at a time
    (-1: all; of `local` as many as there are cores for each of Luigi's workers). `options` are
    the executor's own arguments (`partition`, `time`, `qos`, `env_command`, `sbatch_args`, ...;
    `address` of a Ray cluster). No output depends on any of it.
    """

    kind: Literal["here", "local", "slurm", "ray"] = "here"
    tasks: int = Field(8, ge=1)
    workers: int = Field(-1, ge=-1)
    poll_seconds: float = Field(5.0, gt=0)
    options: dict[str, Any] = {}

    @field_validator("workers")
    @classmethod
    def _some_workers(cls, value: int) -> int:
        if value == 0:
            raise ValueError("-1 (all) or 1 and more")
        return value


class Validation(Table):
    """One `[[validation]]` entry: sources, their gold folder, and where the trees come from.

    `{data}` in `gold` stands for the data folder, `{sample}` for the embedded sample.
    """

    name: Name
    sources: tuple[str, ...] = Field(min_length=1)
    gold: str
    parser: str = "embedded"
    mode: Literal["recall", "require_clause", "own_subjects"] = "recall"
    get: str = ""


class Model(Table):
    """One `[models.NAME]` entry: a recipe, the dataset it trains on, changed settings.

    `base` names another model of the build file: its encoder is the backbone to start from.
    `suite` evaluates it on the dataset's test split, on `limit` rows spread over it (0: all);
    without one only `[evaluations]` do.
    """

    recipe: str
    dataset: str
    config: str = ""
    base: str = ""
    suite: str = ""
    limit: int = Field(0, ge=0)
    settings: dict[str, Any] = {}
    get: str = ""


class Evaluation(Table):
    """One `[evaluations.NAME]` entry: models on other data than their own dataset.

    `dataset` is a dataset of the build, with `@CONFIG` for its configuration, or a list of them
    for a suite that takes several; `data` in its place a spec `kind:PATH` of files that are there
    (`{data}` in it stands for the data folder).
    `settings` are the suite's own options.
    """

    suite: str
    models: tuple[str, ...] = Field(min_length=1)
    dataset: str | tuple[str, ...] = ""
    data: str = ""
    limit: int = Field(0, ge=0)
    settings: dict[str, Any] = {}
    get: str = ""

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the build's datasets that are evaluated on."""
        return tuple(name for name, _ in self.configurations)

    @property
    def configurations(self) -> tuple[tuple[str, str], ...]:
        """These datasets, each with its configuration ("" where none is named)."""
        listed = (self.dataset,) if isinstance(self.dataset, str) else self.dataset
        parts = [name.partition("@") for name in listed if name]
        return tuple((name, config) for name, _, config in parts)


class BuildFile(Table):
    """A whole build file. `path` and `data` are filled in by `load_build`."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    seed: int = Field(13, ge=0)
    data: str = ""
    max_bad_share: float = Field(0.01, ge=0, le=1)
    threads: int = Field(2, ge=1)
    sources: tuple[Source, ...] = Field(min_length=1)
    splits: Splits = Splits()
    sentences: Sentences = Sentences()
    parse: Parse = Parse()
    extract: Extract = Extract()
    engine: Engine = Engine()
    validation: tuple[Validation, ...] = ()
    datasets: dict[Name, dict[str, Any]] = {}
    models: dict[Name, Model] = {}
    evaluations: dict[Name, Evaluation] = {}
    path: str = ""

    def place(self, spec: str) -> str:
        """`spec` with `{data}` and `{sample}` filled in."""
        return spec.replace("{data}", self.data).replace("{sample}", str(SAMPLE))

    def source(self, name: str) -> Source:
        return self._one("source", name, {source.name: source for source in self.sources})

    def model(self, name: str) -> Model:
        return self._one("model", name, self.models)

    def evaluation(self, name: str) -> Evaluation:
        return self._one("evaluation", name, self.evaluations)

    def builder(self, dataset: str) -> Builder:
        """The builder of the dataset's name, or the one that its table names."""
        from corpora.tasks import find_builder

        named = self.datasets[dataset].get("builder", "")
        with self.at(f"datasets.{dataset}{'.builder' * bool(named)}"):
            return find_builder(named or dataset)

    def markers(self, language: str = "en") -> tuple[str, ...]:
        """The markers to look for, by name."""
        from extract.patterns import resolve_markers

        with self.at("extract.markers"):
            return resolve_markers(self.extract.markers, language)

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Give what a room refuses its place in the build file, FILE: `key`."""
        try:
            yield
        except DiscoforgeError as error:
            where = ": ".join(part for part in (self.path, key, error.where) if part)
            where = where.removesuffix(f": {self.path}")  # what the build file itself refused
            raise type(error)(error.message, where=where, hint=error.hint) from None

    def _one(self, kind: str, name: str, known: Mapping[str, Entry]) -> Entry:
        """One table by its name; `ConfigError` with the nearest ones if there is none."""
        if name in known:
            return known[name]
        raise ConfigError(
            f"no {kind} {name!r}; {nearest(name, known)}"
            f"the build file has {', '.join(known) or 'none'}",
            where=self.path,
        )


def config_path(name: str) -> Path:
    """The build file that `name` means: a path, or the name of one shipped with the package.

    `sample`, `sample.toml` and `workflows/configs/sample.toml` all find the shipped file, from
    whatever folder; a file of that path in the current folder comes first.
    """
    path = Path(name)
    if path.is_file():
        return path
    shipped = CONFIGS / f"{path.stem if path.suffix == '.toml' else path.name}.toml"
    if path.parent in (Path(), Path("workflows/configs")) and shipped.is_file():
        return shipped
    names = [p.stem for p in sorted(CONFIGS.glob("*.toml"))]
    raise ConfigError(
        f"no build file {name!r}; {nearest(path.stem, names)}".rstrip("; "),
        hint=f"give the path of a TOML file, or one of the shipped ones: {', '.join(names)}",
    )


def load_build(name: str) -> BuildFile:
    """Read and validate a build file: its path, or the name of a shipped one."""
    path = config_path(name).resolve()
    return _load(path, path.stat().st_mtime_ns, os.environ.get(DATA_VARIABLE, ""))


@cache
def _load(path: Path, mtime_ns: int, data_variable: str) -> BuildFile:
    table = _read_toml(path)
    try:
        build = BuildFile.model_validate({**table, "path": str(path)})
    except ValidationError as error:
        raise _config_error(path, table, error) from None
    _check_splits(build)
    build = build.model_copy(update={"data": _data_folder(build, data_variable)})
    build = build.model_copy(update={"sources": tuple(_expand(build))})
    _check_names(build)
    return build


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 text: {error}", where=str(path)) from None


def _data_folder(build: BuildFile, data_variable: str) -> str:
    """The data folder: the variable wins over the build file, so that one file serves all."""
    folder = data_variable or build.data
    if not folder:
        return ""
    path = Path(folder).expanduser()
    base = Path.cwd() if data_variable else Path(build.path).parent
    return str(path if path.is_absolute() else (base / path).resolve())


def _expand(build: BuildFile) -> list[Source]:
    """Fill in `{data}`; a glob becomes one source a file."""
    sources = []
    for source in build.sources:
        if "{data}" in source.spec and not build.data:
            raise ConfigError(
                f"source {source.name!r} lies under {{data}}, and no data folder is set",
                where=build.path,
                hint=f"set the environment variable {DATA_VARIABLE}, or `data` in the build file",
            )
        spec = build.place(source.spec)
        kind, _, place = spec.partition(":")
        if any(mark in place for mark in "*?["):
            place = os.path.expanduser(place)  # noqa: PTH111 - a Path would lose /./
            base = Path("/") if place.startswith("/") else Path()
            paths = sorted(base.glob(str(Path(place.lstrip("/")))))
            sources += [_one_of(source, kind, path, root_of(place)) for path in paths]
            if paths:
                continue
        sources.append(source.model_copy(update={"spec": spec}))
    return sources


def _one_of(source: Source, kind: str, path: Path, root: Path) -> Source:
    """One match of a glob as a source: it and its documents are named by the path below `root`."""
    inside = path.relative_to(root)
    marked = len(inside.parts) > 1 or path.is_dir()  # of other files the name says it all
    spec = f"{kind}:{root}/./{inside}" if marked else f"{kind}:{path}"
    return source.model_copy(update={"name": f"{source.name}-{slug(inside)}", "spec": spec})


def slug(path: Path) -> str:
    """A file's path as part of a source's name, without what stands behind the first dot."""
    words = "-".join([*path.parts[:-1], path.name.split(".")[0]]).lower()
    return "".join(c if c.isalnum() else "-" for c in words)


def _check_splits(build: BuildFile) -> None:
    with build.at("splits"):
        _ = build.splits.shares


def _check_names(build: BuildFile) -> None:
    _check_unique(build)
    for source in build.sources:
        for dataset in source.datasets:
            if dataset not in build.datasets:
                raise _no_dataset(build, f"sources.{source.name}", dataset)
        _check_options(build, source)
        _check_licences(build, source)
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
    from corpora.readers import COMMON_OPTIONS, parse_spec
    from corpora.sentences import SPLITTERS
    from workflows.reader_options import check_option, check_together

    where = f"{build.path}: source {source.name}"
    with build.at(f"source {source.name}: spec"):
        reader = parse_spec(source.spec)[0]
    valid = reader.options | COMMON_OPTIONS
    for key, value in source.options.items():
        if key not in valid:
            raise ConfigError(
                f"unknown option {key!r}; {nearest(key, valid)}".rstrip("; "),
                where=where,
                hint=f"valid here: {', '.join(sorted(valid))}",
            )
        with build.at(f"source {source.name}: options.{key}"):
            check_option(reader.kind, key, value)
    with build.at(f"source {source.name}: options"):
        check_together(reader.kind, source.options)
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


def _config_error(path: Path, table: Mapping[str, Any], error: ValidationError) -> ConfigError:
    """The first problem of a build file as one sentence: place, value, what was expected."""
    first = error.errors()[0]
    place, key = _place(table, first["loc"])
    where = f"{path}: {place}" if place else str(path)
    if first["loc"][-1:] == ("[key]",):
        return ConfigError(
            f"[{first['loc'][0]}.NAME]: {first['input']!r} is no name",
            where=str(path),
            hint="small letters, digits, and . _ - after one: a folder is named after it",
        )
    if first["type"] == "extra_forbidden":
        valid = _fields_at(first["loc"][:-1])
        name = str(first["loc"][-1])
        return ConfigError(
            f"unknown key {key!r}; {nearest(name, valid)}".rstrip("; "),
            where=where,
            hint=_own_settings(first["loc"], first["input"]) + f"valid here: {', '.join(valid)}",
        )
    if first["type"] == "missing":
        return ConfigError(f"the key {key!r} is missing", where=where)
    if first["type"] == "string_pattern_mismatch":
        hint = "small letters, digits, and _ - after one: folders are named after it"
        return ConfigError(f"{key} = {first['input']!r} is no name", where=where, hint=hint)
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ConfigError):
        return ConfigError(cause.message, where=f"{where}: {key}", hint=cause.hint)
    return ConfigError(f"{key} = {first['input']!r}: {first['msg'].lower()}", where=where)


def _place(table: Mapping[str, Any], loc: tuple[int | str, ...]) -> tuple[str, str]:
    """The table that an error is in, where it is one of a list, and the rest of its key.

    A `[[sources]]` or `[[validation]]` is called by its name, or by its number if it has none.
    """
    if len(loc) < 2 or not isinstance(loc[1], int):
        return "", ".".join(map(str, loc))
    kind, number = str(loc[0]), loc[1]
    entry = table[kind][number]
    name = entry.get("name") if isinstance(entry, dict) else None
    called = f"{kind.removesuffix('s')} {name}" if name else f"[[{kind}]] number {number + 1}"
    rest = ".".join(map(str, loc[2:]))
    return (called, rest) if rest else ("", called)


def _own_settings(loc: tuple[int | str, ...], value: Any) -> str:
    """Where a setting of a recipe or suite stands that was written beside its keys."""
    if loc[0] not in ("models", "evaluations") or len(loc) != 3 or isinstance(value, dict):
        return ""
    whose = "recipe" if loc[0] == "models" else "suite"
    pasted = json.dumps(value, default=str)  # as TOML writes texts, numbers, switches and lists
    return f"one of the {whose} is written settings = {{ {loc[2]} = {pasted} }}; "


def _fields_at(place: tuple[int | str, ...]) -> list[str]:
    """The valid keys of the table at `place` of a build file."""
    model: Any = BuildFile
    for part in place:
        if isinstance(part, str) and isinstance(model, type) and part in model.model_fields:
            model = model.model_fields[part].annotation
        arguments = [a for a in getattr(model, "__args__", ()) if isinstance(a, type)]
        tables = [a for a in arguments if issubclass(a, Table)]
        model = tables[0] if tables else model
    fields = getattr(model, "model_fields", {})
    return sorted(name for name in fields if name != "path")
