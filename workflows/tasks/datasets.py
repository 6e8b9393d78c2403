"""The stages over several sources: validation against gold, and the datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import luigi

from corpora.errors import ConfigError, InputError, nearest
from corpora.progress import track
from corpora.splits import SPLITS
from corpora.tasks import Builder
from workflows.settings import settings_of
from workflows.sources import SourceRecord
from workflows.stage import StageTask
from workflows.tables import BuildFile, Source, Validation
from workflows.tasks.sources import Documents, Pairs, Sentences, reader_options, record_of


class Validate(StageTask):
    """Score the pairs of a source against gold relations."""

    stage = "validation"
    version = 2
    name = luigi.Parameter(description="a [[validation]] entry's name")

    @property
    def key(self) -> str:
        return self.name

    @property
    def entry(self) -> Validation:
        entries = {entry.name: entry for entry in self.build.validation}
        if self.name not in entries:
            raise _unknown(self.build, "validation", self.name, list(entries))
        return entries[self.name]

    def requires(self) -> list[Pairs]:
        entry = self.entry
        return [
            Pairs(config=self.config, source=name, parser=entry.parser, mode=entry.mode)
            for name in entry.sources
        ]

    def settings(self) -> dict[str, Any]:
        entry = self.entry
        return {
            "parser": entry.parser,
            "markers": list(self.build.markers()),
            "mode": entry.mode,
            "gold_tokens": False,
            "gold_sentences": entry.parser == "gold",
        }

    def sources(self) -> list[SourceRecord]:
        entry = self.entry
        return [SourceRecord(f"{entry.name}-gold", self.build.place(entry.gold), get=entry.get)]

    def work(self, folder: Path) -> dict[str, Any]:
        from extract.commands import validate_stage

        tasks = self.requires()
        documents = chain.from_iterable(task.requires().documents() for task in tasks)
        folders = [task.folder for task in tasks]
        gold = self.sources()[0].spec
        settings = {**self.settings(), "patterns": self.build.extract.patterns}
        return validate_stage(documents, folders, gold, folder, settings)


class Divide(StageTask):
    """Divide the documents of a build into splits, for all its datasets."""

    stage = "division"
    priority = 1
    """Before parses: here it shows whether two sources of a dataset have documents of one id."""

    def served(self) -> dict[str, list[str]]:
        """The sources of documents by name, each with the datasets that draw on it."""
        build = self.build
        fed = {name for source in build.sources for name in source.datasets}
        builders = {name: build.builder(name) for name in fed}
        divided = {name for name, builder in builders.items() if builder.reads != "sources"}
        served = {s.name: sorted(divided & {*s.datasets}) for s in build.sources}
        return {name: served[name] for name in sorted(served) if served[name]}

    def requires(self) -> list[Documents]:
        return [Documents(config=self.config, source=name) for name in self.served()]

    def settings(self) -> dict[str, Any]:
        from corpora.splits.division import VERSION
        from corpora.splits.table import table_hash

        settings = self.build.splits.model_dump(exclude={"table"})
        if self.table:
            with self.build.at("splits.table"):
                self._check_table()
                settings["table_sha256"] = table_hash(self.table)
        return {**settings, "seed": self.build.seed, "served": self.served(), "code": VERSION}

    @property
    def table(self) -> str:
        """The file of documents whose split is settled, or an empty string."""
        return self.build.place(self.build.splits.table)

    def _check_table(self) -> None:
        """A build's own division is no table for it: the next build makes another one."""
        if Path(self.table).resolve().is_relative_to(self.root.resolve() / "stages"):
            raise ConfigError(
                "is the division of a build in this output, which the next one replaces",
                where=self.table,
                hint="copy the file beside the build file, and name the copy",
            )

    def work(self, folder: Path) -> dict[str, Any]:
        from corpora.splits.division import Division, divide
        from corpora.splits.table import read_table
        from corpora.store.documents import DocumentSizes

        served, shares = self.served(), self.build.splits.shares
        sizes = (DocumentSizes(task.folder) for task in self.requires())
        sources = list(zip(served.values(), sizes, strict=True))
        kept = Division.of(read_table(Path(self.table))) if self.table else None
        names, seed = list(served), self.build.seed
        counts = divide(sources, shares, folder, seed=seed, names=names, kept=kept)
        if counts.get("kept") == 0:
            example = next(
                (name for task in self.requires() for name, *_ in DocumentSizes(task.folder)), ""
            )
            raise InputError(
                "names no document of this build",
                where=self.table,
                hint=f"documents are named by their ids, such as {example!r}",
            )
        return counts


class Dataset(StageTask):
    """Build one dataset folder from every source that the build file gives it."""

    name = luigi.Parameter(description="a [datasets.NAME] table's name")
    stage = "dataset"

    @property
    def key(self) -> str:
        return self.name

    @property
    def table(self) -> dict[str, Any]:
        if self.name not in self.build.datasets:
            raise _unknown(self.build, "dataset", self.name, list(self.build.datasets))
        return self.build.datasets[self.name]

    @property
    def builder(self) -> Builder:
        """The builder of the dataset's name, or the one that its table names."""
        _ = self.table  # a name that the build file has not is said
        return self.build.builder(self.name)

    @property
    def version(self) -> int:  # type: ignore[override]
        return self.builder.version

    def own_sources(self) -> list[Source]:
        return [source for source in self.build.sources if self.name in source.datasets]

    def chosen(self) -> Any:
        where = f"{self.build.path}: datasets.{self.name}"
        table = {
            key: self.build.place(value) if isinstance(value, str) else value
            for key, value in self.table.items()
            if key != "builder"
        }
        shares = self.builder.shares
        for key in SPLITS:
            if key in table and (key in shares or isinstance(table[key], float)):
                kind = "no shares of its own" if key in shares else "numbers of rows (integers)"
                raise ConfigError(
                    f"{key} = {table[key]}: this dataset has {kind}",
                    where=where,
                    hint="documents are divided once, for all datasets: shares stand in [splits]",
                )
        own = {key: getattr(self.build.splits, key) for key in shares}
        return settings_of(self.builder.settings, {**table, **own}, where)

    def check_configuration(self, config: str, key: str) -> None:
        """Raise `ConfigError` if `key` of the build file names a configuration that is none."""
        known = self.builder.configurations(self.chosen())
        if config and config not in known:
            raise ConfigError(
                f"{key} names the configuration {config!r} of the dataset {self.name!r}",
                where=self.build.path,
                hint=f"{nearest(config, known)}it has: {', '.join(known)}",
            )

    @property
    def direct(self) -> bool:
        """Whether the builder reads its sources itself, without a stage before it."""
        return self.builder.reads == "sources"

    def settings(self) -> dict[str, Any]:
        own = {"builder": self.builder.name, **asdict(self.chosen()), "seed": self.build.seed}
        if self.builder.reads == "pairs":
            self._check_markers(own.get("markers", ()))
        if not self.direct:
            return own
        for source in self.own_sources():
            _check_splitter(self.build, source)
        given = [reader_options(source) for source in self.own_sources()]
        return {**own, "given": given, "max_bad_share": self.build.max_bad_share}

    def _check_markers(self, labels: Sequence[str]) -> None:
        """Of labels without a marker that is extracted no row could be made, after every parse."""
        found = {marker for task in self.drawn_on() for marker in task.settings()["markers"]}
        if labels and found and found.isdisjoint(labels):
            raise ConfigError(
                f"none of the markers that are extracted is among its labels: {', '.join(labels)}",
                where=f"{self.build.path}: datasets.{self.name}.markers",
                hint=f"[extract] markers gives {', '.join(sorted(found))}",
            )

    def sources(self) -> list[SourceRecord]:
        return [record_of(source) for source in self.own_sources()] if self.direct else []

    def all_sources(self) -> list[SourceRecord]:
        """Those whose texts are in it: the division has read the others too."""
        if self.direct:
            return self.sources()
        found = {s.name: s for task in self.drawn_on() for s in task.all_sources()}
        return [found[name] for name in sorted(found)]

    def requires(self) -> list[StageTask]:
        return [] if self.direct else [*self.drawn_on(), Divide(config=self.config)]

    def drawn_on(self) -> Sequence[Sentences | Pairs]:
        """The stages whose documents or pairs the builder reads."""
        names = [source.name for source in self.own_sources()]
        if self.builder.reads == "documents":
            return [Sentences(config=self.config, source=name) for name in names]
        parser, mode = self.build.parse.parser, self.build.extract.mode
        return [Pairs(config=self.config, source=name, parser=parser, mode=mode) for name in names]

    def inputs(self) -> Any:
        """The pair files, the documents with their sentences, or the sources themselves."""
        if self.direct:
            return [(source.spec, reader_options(source)) for source in self.own_sources()]
        tasks = self.drawn_on()
        if self.builder.reads == "pairs":
            return [path for task in tasks for path in sorted(task.folder.glob("pairs-*.parquet"))]
        documents = chain.from_iterable(task.documents() for task in tasks)
        return track(documents, f"building {self.name}: documents")

    def work(self, folder: Path) -> dict[str, Any]:
        given: dict[str, Any] = {"seed": self.build.seed, "stage": self.record()}
        if self.direct:
            given["max_bad_share"] = self.build.max_bad_share
        else:
            from corpora.splits.division import Division

            given["division"] = Division.read(Divide(config=self.config).folder)
        return self.builder.build(self.inputs(), folder, self.chosen(), **given)


def _check_splitter(build: BuildFile, source: Source) -> None:
    """A source's own splitter must split something: no stage runs over what builders read."""
    validated = any(source.name in check.sources for check in build.validation)
    direct = all(build.builder(name).reads == "sources" for name in source.datasets)
    if source.splitter and direct and not validated:
        raise ConfigError(
            f"splitter = {source.splitter!r} changes nothing: {', '.join(source.datasets)} read the"
            " source themselves",
            where=f"{build.path}: source {source.name}",
            hint="take it out; coherence_tests has a setting `splitter` of its own, for summaries",
        )


def _unknown(build: BuildFile, what: str, name: str, names: Sequence[str]) -> ConfigError:
    there = ", ".join(names) or "none"
    return ConfigError(
        f"no {what} {name!r}; {nearest(name, names)}the build file has {there}", where=build.path
    )
