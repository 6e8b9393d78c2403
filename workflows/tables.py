"""The tables of a build file, and the declarations that they name.

A table that names a reader, builder, recipe or suite is validated by that class.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import fsum, isclose
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, PrivateAttr, field_validator, model_validator

from corpora import licences
from corpora.declared import Loc, TomlTable, Where, with_absolute_path
from corpora.errors import ConfigError, DiscorporaError, nearest
from corpora.languages import Language
from corpora.sentences import SplitterName
from corpora.splits import SPLITS, Shares
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Builder
from corpora.toml import TomlFile
from extract.parsers import get_parser
from extract.patterns import is_shipped, resolve_markers
from extract.settings import Check, Filters, Mode, PairShape
from zoo.evaluate.published import paper_table

NO_BUILDS = ("stages", "fingerprints")
"""The folders of an output that hold no build's results, whose names no build can have."""
SAMPLE = Path(__file__).parent.parent / "corpora" / "sample"

Entry = TypeVar("Entry")


def _name(value: str) -> str:
    if re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", value):
        return value
    raise ConfigError(
        f"{value[:100]!r} cannot be a name",
        hint="a folder is named after it: at most 100 small letters, digits, and . _ - after the "
        "first",
    )


def _build_name(value: str) -> str:
    if value in NO_BUILDS:
        raise ConfigError(
            f"{value!r} cannot be the name of a build",
            hint=f"an output folder keeps what builds share in {' and '.join(NO_BUILDS)}",
        )
    return value


def _licence(value: str) -> str:
    if value:
        licences.lookup(value)  # a card could not describe a dataset without it
    return value


def _parser(value: str) -> str:
    get_parser(value)  # whether there is such a kind
    kind, _, target = value.partition(":")
    if target and not re.fullmatch(r"[A-Za-z0-9][\w.-]*", target):
        what = "a spaCy pipeline" if kind == "spacy" else "a language"
        raise ConfigError(f"{target!r} cannot be the name of {what}")
    return value


def _gold(value: str) -> str:
    if not value.startswith("pdtb:"):
        raise ConfigError(f"{value!r}: gold relations are named pdtb:DIR")
    return value


def _contact(value: str) -> str:
    if value and not re.fullmatch(r"https?://\S+|[^\s@]+@[^\s@]+", value):
        raise ConfigError(f"{value!r}: expected a mail address, or a URL with https://")
    return value


Name = Annotated[str, AfterValidator(_name)]
"""A name that is also a folder's."""
ParserName = Annotated[str, AfterValidator(_parser)]
"""One of `extract.parsers.KINDS`."""
Licence = Annotated[str, AfterValidator(_licence)]
"""An SPDX identifier, or one of `corpora.licences`."""


class Source(TomlTable):
    """One `[[sources]]` entry: where documents come from and which datasets may use them."""

    name: Name
    """The source's name in this file."""
    spec: str
    """`kind:PATH_OR_ID` ([sources](sources.md)); `{data}` in it stands for the build file's `data`.
    A glob makes one source per file: for the source `novels`, `books/*.txt` gives `novels-emma`,
    `books/*/*.txt` gives `novels-emma-01`."""
    datasets: tuple[str, ...] = ()
    """The `[datasets.NAME]` that read it; without one it serves validation only."""
    licence: Licence | dict[str, Licence] = ""
    """An SPDX name; a table by genre for a `conllu:` source, by test set for `coherence:`."""
    language: Language = ""
    """A code such as `en`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The reader's options."""
    splitter: SplitterName | Literal[""] = ""
    """Another sentence splitter than the build's."""
    splits: Literal["", "own", "discoeval", "dissent", "lin", "ji", "coherence"] = ""
    """[Prescribed splits](#one-division)."""
    get: str = ""
    """How to obtain it; `plan` prints this if it is absent."""
    title: str = ""
    """The title of the work. This key and the next three are for the cards only."""
    url: str = ""
    """Its address."""
    authors: tuple[str, ...] = ()
    """A list of names."""
    description: str = ""
    """What it is."""
    _number: int = PrivateAttr(default=0)

    @property
    def loc(self) -> Loc:
        """The keys that lead to its table in the build file."""
        return ("sources", self._number)

    @property
    def licences(self) -> str:
        """The licences as one SPDX expression."""
        if isinstance(self.licence, str):
            return self.licence
        return " AND ".join(sorted({*self.licence.values()}))

    def reader_options(self) -> dict[str, Any]:
        """The options that the reader gets, licence and language included."""
        named = {key: value for key in ("licence", "language") if (value := getattr(self, key))}
        return {**self.options, **named}


class Publisher(TomlTable):
    """`[publisher]`: what the cards of all datasets say of who publishes them."""

    name: str = ""
    """A person or institution."""
    contact: Annotated[str, AfterValidator(_contact)] = ""
    """A mail address, or a URL with https://."""
    citation: str = ""
    """How to cite the data: BibTeX or a sentence; the citation of the method follows it."""


class Sentences(TomlTable):
    """`[sentences]`: how texts are split into sentences."""

    splitter: SplitterName = "rules"
    """`rules`, `source` (the source's own sentences) or `lines`."""


class Splits(TomlTable):
    """`[splits]`: the documents are divided once, for all datasets of the build."""

    train: float = 0.8
    """Shares of the documents; they add up to 1."""
    validation: float = 0.1
    """Shares of the documents; they add up to 1."""
    test: float = 0.1
    """Shares of the documents; they add up to 1."""
    table: str = ""
    """A file that [fixes the split](#one-division) of some documents."""
    largest_group: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Maximum share of a dataset's training candidates from one group, such as a book; 1: no
    limit."""

    @cached_property
    def shares(self) -> Shares:
        return Shares(self.train, self.validation, self.test)

    def model_post_init(self, context: Any) -> None:
        """Refuse shares that do not add up to 1 when the table is read."""
        if not isclose(total := fsum(self.shares.parts), 1):
            parts = ", ".join(f"{split} = {getattr(self, split):g}" for split in SPLITS)
            raise ConfigError(
                f"{parts} add up to {total:g}",
                hint="shares add up to 1, for example 0.8, 0.1, 0.1; those that are left out are "
                "0.8, 0.1, 0.1",
            )


class Parse(TomlTable):
    """`[parse]`: how sentences are parsed."""

    parser: ParserName = "embedded"
    """`embedded`, `gold`, `spacy:NAME` or `stanza:LANG`."""
    prefilter: bool = True
    """Parse only the sentences that contain a candidate marker."""
    check: Check = "second"
    """Let a second parser check the embedded one (`second`), or not (`none`); other parsers stay
    unchecked."""


class Engine(TomlTable):
    """`[engine]`: where the stages `parse` and `pairs` run; no output depends on it."""

    kind: Literal["here", "local", "slurm", "ray"] = "here"
    """In the stage's own process, in several processes of this machine, or on datatrove's executor
    for Slurm or Ray."""
    tasks: Annotated[int, Field(ge=1)] = 8
    """Parallel tasks per source: task r makes the shards r, r + `tasks`, ..."""
    workers: Annotated[int, Field(ge=-1)] = -1
    """Tasks that run at the same time; -1: all (`local`: the cores divided by Luigi's workers)."""
    poll_seconds: Annotated[float, Field(gt=0)] = 5.0
    """Seconds between looks at the tasks."""
    export: tuple[str, ...] = ()
    """Environment variables that Slurm's jobs get, beside those that they need."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of datatrove's executor (`partition`, `time`, ...); `address` of a Ray cluster."""

    @field_validator("workers")
    @classmethod
    def _some_workers(cls, value: int) -> int:
        if value == 0:
            raise ValueError("expected -1 (all) or 1 and more")
        return value

    @model_validator(mode="after")
    def _as_its_kind(self) -> Engine:
        if self.kind in ("here", "local") and self.options:
            raise ConfigError(f"unknown key 'engine.options.{next(iter(self.options))}'")
        if self.kind != "slurm" and self.export:
            raise ConfigError("engine.export is of kind 'slurm' alone")
        return self


class Validation(TomlTable):
    """One `[[validation]]` entry: pairs are scored against gold relations."""

    name: Name
    """Its name."""
    sources: tuple[str, ...] = Field(min_length=1)
    """The sources whose pairs are scored."""
    gold: Annotated[str, AfterValidator(_gold)]
    """`pdtb:DIR`; `{data}` stands for the data folder, `{sample}` for the embedded sample."""
    parser: ParserName = "embedded"
    """Where the trees come from."""
    mode: Mode = "recall"
    """The extraction's mode."""
    filters: Filters = ""
    """`dissent`: leave out pairs of lengths that [DisSent's
    dataset](datasets.md#dissent-dissent-sections-2-and-4) leaves out by default ([what counts
    then](../explanation/validation.md#filters))."""
    get: str = ""
    """How to obtain the gold relations."""


class WithSettings(TomlTable):
    """A table whose recipe or suite has settings of its own, in `settings`."""

    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the recipe or suite."""

    @model_validator(mode="before")
    @classmethod
    def _settings_apart(cls, table: Any) -> Any:
        """Say where a setting of the recipe or suite belongs that stands beside the keys."""
        for key, value in table.items() if isinstance(table, Mapping) else ():
            if key not in cls.model_fields and not isinstance(value, Mapping):
                valid = ", ".join(sorted(cls.model_fields))
                pasted = json.dumps(value, default=str)  # as TOML writes it
                raise ConfigError(
                    f"unknown key {key!r}; {nearest(key, cls.model_fields)}".rstrip("; "),
                    hint=f"a setting of the recipe or suite is written settings = "
                    f"{{ {key} = {pasted} }}; valid here: {valid}",
                )
        return table


class Model(WithSettings):
    """One `[models.NAME]` entry: a recipe and the dataset it trains on."""

    recipe: str
    """A shipped name, or a [TOML file](recipes.md#change-a-recipe)."""
    dataset: str = ""
    """The dataset of the build that it trains on; the recipe `pretrained` has none."""
    config: str = ""
    """The dataset's configuration."""
    seeds: int = Field(1, ge=1, le=100)
    """[Trainings](#seeds-and-sweeps) that differ in the seed."""
    sweep: dict[str, list[Any]] = Field(default_factory=dict)
    """Lists of values by setting: [a model for each](#seeds-and-sweeps)."""
    base: str = ""
    """Another model of this build; its encoder is the backbone to start from."""
    suite: str = ""
    """Evaluates the model on the test split of its dataset; without one only `[evaluations]` do."""
    limit: int = Field(0, ge=0)
    """Rows to evaluate on, spread over the split; 0: all."""
    devices: int = Field(1, ge=1)
    """GPUs that train it together, if there are as many and they divide its batch."""
    get: str = ""
    """How to obtain what is absent, such as a backbone."""

    @model_validator(mode="after")
    def _limit_of_an_evaluation(self) -> Model:
        if self.limit and not self.suite:
            raise ConfigError(
                f"limit = {self.limit}: without a suite nothing is evaluated",
                hint="name a suite, or set the limit in [evaluations.NAME]",
            )
        return self


@dataclass(frozen=True)
class Variant:
    """Which of the models of a `[models.NAME]` table a model is."""

    table: str
    """NAME."""
    point: str
    """The model of the first seed with the same settings."""
    changes: Mapping[str, Any]
    """The value of a sweep; empty for the table's own settings."""


class Evaluation(WithSettings):
    """One `[evaluations.NAME]` entry: models on other data than their own dataset."""

    suite: str
    """The suite's name."""
    models: tuple[str, ...] = Field(min_length=1)
    """Models of this build."""
    dataset: str | tuple[str, ...] = ""
    """`"NAME@CONFIG"` of this build; a list of datasets for a suite that reads several."""
    data: str = ""
    """`kind:PATH` of files; `{data}` in it stands for the data folder. Beside it `dataset` is a
    list, whose datasets replace the files of their tasks."""
    limit: int = Field(0, ge=0)
    """Rows to evaluate on; 0: all."""
    get: str = ""
    """How to obtain the data."""

    @model_validator(mode="after")
    def _some_data(self) -> Evaluation:
        """Check that it names either datasets of the build or other data."""
        one = isinstance(self.dataset, str)
        if bool(self.dataset) == bool(self.data) and (one or not self.data):
            raise ConfigError(
                f"it names {'both a dataset and data' if self.data else 'no data'}",
                hint='give dataset = "NAME[@CONFIG]" of this build, or data = "kind:PATH"; for a '
                'suite that reads several, beside data a list: dataset = ["NAME"]',
            )
        for name in () if isinstance(self.dataset, str) else self.dataset:
            if "@" in name or self.dataset.count(name) > 1:
                raise ConfigError(
                    f"dataset lists {name!r} {'with a configuration' if '@' in name else 'twice'}",
                    hint="of several datasets every configuration is read, once; for one of them "
                    'give dataset = "NAME@CONFIG"',
                )
        return self

    @property
    def configurations(self) -> tuple[tuple[str, str], ...]:
        """The build's datasets that are evaluated on, each with its configuration or ""."""
        listed = (self.dataset,) if isinstance(self.dataset, str) else self.dataset
        parts = [name.partition("@") for name in listed if name]
        return tuple((name, config) for name, _, config in parts)

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.configurations)


def _paper_table(name: str) -> str:
    paper_table(name)  # whether there is one
    return name


class Shown(TomlTable):
    """One `[[tables]]` entry: which models are the rows of a table or figure of a paper."""

    table: Annotated[str, AfterValidator(_paper_table)]
    """`PAPER:NUMBER`, such as `dissent:5` or `coherence:figure-2d`."""
    rows: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The models of each row, by the paper's name of it: `NAME`, or `NAME@EVALUATION`."""
    more: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Rows that the paper does not have, likewise."""
    evaluations: tuple[str, ...] = ()
    """The evaluations to read, where several fill a column; default: all."""

    @field_validator("rows", "more", mode="before")
    @classmethod
    def _one_name(cls, rows: Any) -> Any:
        """A row of one model may name it without brackets."""
        if not isinstance(rows, Mapping):
            return rows
        return {name: [item] if isinstance(item, str) else item for name, item in rows.items()}

    @model_validator(mode="after")
    def _rows_of_the_paper(self) -> Shown:
        """Check that the paper's table has these rows."""
        table = paper_table(self.table)
        for name in self.rows:
            if not table.over and name not in ("*", *table.rows):
                raise ConfigError(
                    f"{self.table} has no row {name!r}; {nearest(name, table.rows)}".rstrip("; "),
                    hint=f"its rows are: {', '.join(table.rows)}; others go into `more`",
                )
        return self


class BuildFile(TomlTable):
    """A whole build file; `load_build` reads it."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,99}$"), AfterValidator(_build_name)]
    """The build's name: a folder below the output."""
    seed: int = Field(13, ge=0)
    """The seed of every random stream."""
    data: str = ""
    """The value of `{data}` in specs; the variable `DISCORPORA_DATA` overrides it."""
    max_bad_share: float = Field(0.01, ge=0, le=1)
    """Maximum share of bad records in a source."""
    threads: int = Field(2, ge=1)
    """Threads of a training; part of the result, because sums depend on them."""
    sources: tuple[Source, ...] = Field(min_length=1)
    publisher: Publisher = Publisher()
    splits: Splits = Splits()
    sentences: Sentences = Sentences()
    parse: Parse = Parse()
    extract: PairShape = PairShape()
    engine: Engine = Engine()
    validation: tuple[Validation, ...] = ()
    datasets: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    models: dict[Name, Model] = Field(default_factory=dict)
    evaluations: dict[Name, Evaluation] = Field(default_factory=dict)
    tables: tuple[Shown, ...] = ()
    _file: TomlFile = PrivateAttr()
    _variants: dict[str, Variant] = PrivateAttr(default_factory=dict)
    """By model: a table with seeds or a sweep has several."""
    _builders: dict[str, Builder] = PrivateAttr(default_factory=dict)

    @property
    def path(self) -> str:
        return str(self._file.path)

    @property
    def folder(self) -> Path:
        """Where the build file lies."""
        return self._file.path.parent

    def place(self, spec: str) -> str:
        """`spec` with `{data}` and `{sample}` filled in."""
        return spec.replace("{data}", self.data).replace("{sample}", str(SAMPLE))

    def placed(self, value: Any) -> Any:
        """A setting with `{data}` and `{sample}` filled in (see `place`) if it is a text."""
        return self.place(value) if isinstance(value, str) else value

    @cached_property
    def fed(self) -> set[str]:
        """The datasets that some source feeds."""
        return {name for source in self.sources for name in source.datasets}

    @cached_property
    def skipped(self) -> list[str]:
        """The datasets that no source feeds, and the models and evaluations that need one."""
        skipped = [f"dataset {name}" for name in self.datasets if name not in self.fed]
        for name in self.models:
            needed = {each.dataset for each in self.with_bases(name)} - {""}
            if not self.fed.issuperset(needed):
                skipped.append(f"model {name}")
        for name, evaluation in self.evaluations.items():
            if not self.fed.issuperset(evaluation.datasets):
                skipped.append(f"evaluation {name}")
        return skipped

    @cached_property
    def by_name(self) -> dict[str, Source]:
        return {source.name: source for source in self.sources}

    # One table by its name; `ConfigError` with the nearest ones if there is none.

    def source(self, name: str) -> Source:
        return self._one("source", name, self.by_name)

    def check(self, name: str) -> Validation:
        return self._one("validation", name, {entry.name: entry for entry in self.validation})

    def dataset(self, name: str) -> dict[str, Any]:
        return self._one("dataset", name, self.datasets)

    def model(self, name: str) -> Model:
        return self._one("model", name, self.models)

    def with_bases(self, name: str) -> list[Model]:
        """A model, the model that it starts from, and so on."""
        models = [self.model(name)]
        while base := models[-1].base:
            models.append(self.model(base))
        return models

    def table_of(self, model: str) -> str:
        """The `[models.NAME]` table of a model; one with seeds or a sweep makes several models."""
        variant = self._variants.get(model)
        return variant.table if variant else model

    def variants(self, name: str) -> list[str]:
        """The models of a `[models.NAME]` table; of a single model, that one.

        Raises `ConfigError` for a name that the build file has not.
        """
        names = [model for model, variant in self._variants.items() if variant.table == name]
        if not names:
            self.model(name)
        return names or [name]

    def seeds(self, name: str) -> list[str]:
        """The models with the settings of `name` and any seed, if `name` has the first seed.

        For a model with another seed, only `name`. Raises `ConfigError` as `variants`.
        """
        self.model(name)
        return [m for m, variant in self._variants.items() if variant.point == name] or [name]

    def swept(self, table: str, key: str) -> dict[Any, str]:
        """The models of the first seed by the value of a swept setting.

        The model with the table's own settings is among them if these name the setting.
        """
        settings = self.model(table).settings
        values = {settings[key]: table} if key in settings else {}
        for variant in self._variants.values():
            if variant.table == table and key in variant.changes:
                values[variant.changes[key]] = variant.point
        return dict(sorted(values.items()))

    def evaluation(self, name: str) -> Evaluation:
        return self._one("evaluation", name, self.evaluations)

    def _one(self, kind: str, name: str, known: Mapping[str, Entry]) -> Entry:
        """Return the entry `name` of `known`; `kind` is what the error calls a missing one."""
        if name in known:
            return known[name]
        raise ConfigError(
            f"no {kind} {name!r}; {nearest(name, known)}"
            f"the build file has {', '.join(known) or 'none'}",
            where=self.path,
        )

    # The declarations that its tables name

    def builder(self, dataset: str) -> Builder:
        """The builder of a dataset with its settings. The dataset's table names it, or its name is
        that of the dataset.

        Shares of documents are the build's: they are split once, for all datasets.
        """
        if dataset in self._builders:
            return self._builders[dataset]
        table = dict(self.dataset(dataset))
        named = table.pop("builder", "")
        with self.at("datasets", dataset, *["builder"] * bool(named)):
            if not isinstance(named, str):
                raise ConfigError(f"builder = {named!r}: expected a text in quotes")
            kind = BUILDERS.find(with_absolute_path(named, self.folder) or dataset)
        shares = kind.share_fields()
        for key in SPLITS:
            if key in table and (key in shares or isinstance(table[key], float)):
                has = "no shares of its own" if key in shares else "numbers of rows (integers)"
                raise ConfigError(
                    f"{key} = {table[key]}: this dataset has {has}",
                    where=self.where("datasets", dataset, key),
                    hint="documents are split once, for all datasets: shares stand in [splits]",
                )
        of_build = {key: getattr(self.splits, key) for key in shares}
        placed = {key: self.placed(value) for key, value in table.items()}
        builder = kind.of({**placed, **of_build}, self.whereabouts("datasets", dataset))
        self._builders[dataset] = builder
        return builder

    def markers(self, language: str = "en") -> tuple[str, ...]:
        """The markers to look for, by name."""
        with self.at("extract", "markers"):
            return resolve_markers(self.extract.markers, language, self.patterns)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Pattern files; a relative path starts at the build file's folder.

        Raises `ConfigError` for two of the same name.
        """
        files = [*map(self.place, self.extract.patterns)]
        names = [Path(file).name for file in files]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(
                f"two pattern files have the name {twice[0]!r}",
                where=self.where("extract", "patterns"),
                hint="rename one: each dataset has a copy of both in one folder",
            )
        return tuple(file if is_shipped(file) else str(self.folder / file) for file in files)

    # Places for messages

    def where(self, *keys: int | str) -> str:
        """`FILE:LINE: key`, where a list's entry is called by its name."""
        return located(self._file, self._as_written(keys))

    def whereabouts(self, *keys: int | str) -> Where:
        """The place of a key below `keys`, for `TomlTable.of`."""
        return lambda inner: located(self._file, self._as_written(keys), inner)

    def _as_written(self, keys: Loc) -> Loc:
        """The keys with the table of a model in place of its name."""
        if len(keys) > 1 and keys[0] == "models":
            return (keys[0], self.table_of(str(keys[1])), *keys[2:])
        return keys

    def parser_keys(self, source: str, parser: str) -> Loc:
        """The key that names the parser of a source: the build's, or a validation's."""
        drawn = self.source(source).datasets and parser == self.parse.parser
        for number, check in enumerate(() if drawn else self.validation):
            if source in check.sources and check.parser == parser:
                return ("validation", number, "parser")
        return ("parse", "parser")

    @contextmanager
    def at(self, *keys: int | str) -> Iterator[None]:
        """Give an error its place in the build file: FILE:LINE: key."""
        try:
            yield
        except OSError as error:  # of a path that no file system takes
            problem = f"{error.strerror}: {str(error.filename)[:80]!r}"
            raise ConfigError(problem, where=self.where(*keys)) from None
        except DiscorporaError as error:
            if error.where.startswith(f"{self.path}:"):  # it has a place already
                raise
            inner = "" if error.where == self.path else error.where
            where = ": ".join(filter(None, (self.where(*keys), inner)))
            raise type(error)(error.message, where=where, hint=error.hint) from None


def located(file: TomlFile, keys: Loc, inner: Loc = ()) -> str:
    """`FILE:LINE: key` of the key `inner` below `keys`, which the message itself names."""
    called = ".".join(map(str, keys))
    if len(keys) > 1 and isinstance(keys[1], int):  # an entry of a list, called by its name
        entry = file.table[str(keys[0])][keys[1]]
        name = entry.get("name", "") if isinstance(entry, dict) else ""
        kind = str(keys[0]).removesuffix("s")
        called = f"{kind} {name}" if name else f"[[{keys[0]}]] number {keys[1] + 1}"
        called = ": ".join(filter(None, [called, ".".join(map(str, keys[2:]))]))
    return ": ".join(filter(None, [file.where((*keys, *inner)), called]))
