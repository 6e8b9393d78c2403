"""The tables of a build file, validated by pydantic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from corpora.errors import ConfigError, DiscorporaError, nearest
from corpora.splits import Shares

if TYPE_CHECKING:
    from corpora.tasks import Builder

SAMPLE = Path(__file__).parent.parent / "corpora" / "sample"

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

    `table` names documents whose split is settled (`corpora.splits.table`).
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
    patterns: tuple[str, ...] = ()
    """Pattern files that add markers to the tables or replace their rows."""


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
            return resolve_markers(self.extract.markers, language, self.extract.patterns)

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Give what a room refuses its place in the build file, FILE: `key`."""
        try:
            yield
        except DiscorporaError as error:
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
