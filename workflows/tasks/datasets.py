"""The stages over several sources: validation against gold, and the datasets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import luigi

from corpora.errors import ConfigError, InputError
from corpora.tasks.builder import Builder, Target
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
        return self.build.check(self.name)

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
        settings = {**self.settings(), "patterns": self.build.patterns}
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
        from corpora.splits.prescribed import table_hash

        settings = self.build.splits.model_dump(exclude={"table"})
        if self.table:
            with self.build.at("splits", "table"):
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
        from corpora.splits.prescribed import read_table
        from corpora.store.documents import DocumentSizes

        served, shares = self.served(), self.build.splits.shares
        sizes = (DocumentSizes(task.folder) for task in self.requires())
        sources = list(zip(served.values(), sizes, strict=True))
        kept = Division.of(read_table(Path(self.table))) if self.table else None
        names, seed = list(served), self.build.seed
        divided = divide(sources, shares, folder, seed=seed, names=names, kept=kept)
        if divided.kept == 0:
            example = next(
                (name for task in self.requires() for name, *_ in DocumentSizes(task.folder)), ""
            )
            raise InputError(
                "names no document of this build",
                where=self.table,
                hint=f"documents are named by their ids, such as {example!r}",
            )
        return divided.to_dict()


class Dataset(StageTask):
    """Build one dataset folder from every source that the build file gives it."""

    name = luigi.Parameter(description="a [datasets.NAME] table's name")
    stage = "dataset"
    shared = True

    @property
    def key(self) -> str:
        return self.name

    @cached_property
    def builder(self) -> Builder:
        """The builder of the dataset's name, or the one that its table names."""
        return self.build.builder(self.name)

    @property
    def version(self) -> int:  # type: ignore[override]
        return self.builder.version

    def code(self) -> list[str]:
        return sorted({type(self.builder).__module__, "corpora.tasks.candidates"})

    def own_sources(self) -> list[Source]:
        return [source for source in self.build.sources if self.name in source.datasets]

    @property
    def direct(self) -> bool:
        """Whether the builder reads its sources itself, without a stage before it."""
        return self.builder.reads == "sources"

    def settings(self) -> dict[str, Any]:
        own = {
            "builder": self.builder.name,
            **self.builder.identity(),
            "seed": self.build.seed,
        }
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
        extracted = {marker for task in self.drawn_on() for marker in task.settings()["markers"]}
        if labels and extracted and extracted.isdisjoint(labels):
            raise ConfigError(
                f"none of the markers that are extracted is among its labels: {', '.join(labels)}",
                where=self.build.where("datasets", self.name, "markers"),
                hint=f"[extract] markers gives {', '.join(sorted(extracted))}",
            )

    def sources(self) -> list[SourceRecord]:
        return [record_of(source) for source in self.own_sources()] if self.direct else []

    def all_sources(self) -> list[SourceRecord]:
        """Those whose texts are in it: the division has read the others too."""
        if self.direct:
            return self.sources()
        records = {s.name: s for task in self.drawn_on() for s in task.all_sources()}
        return [records[name] for name in sorted(records)]

    def requires(self) -> list[StageTask]:
        return [] if self.direct else [*self.drawn_on(), Divide(config=self.config)]

    def drawn_on(self) -> Sequence[Sentences | Pairs]:
        """The stages whose documents or pairs the builder reads."""
        names = [source.name for source in self.own_sources()]
        if self.builder.reads == "documents":
            return [Sentences(config=self.config, source=name) for name in names]
        parser, mode = self.build.parse.parser, self.build.extract.mode
        return [Pairs(config=self.config, source=name, parser=parser, mode=mode) for name in names]

    def inputs(self) -> list[Any]:
        """The shards of documents or pairs, or the sources themselves with their options."""
        if self.direct:
            return [(source.spec, reader_options(source)) for source in self.own_sources()]
        shards = "pairs-*.parquet" if self.builder.reads == "pairs" else "documents-*.parquet"
        return [path for task in self.drawn_on() for path in sorted(task.folder.glob(shards))]

    def target(self, folder: Path) -> Target:
        from corpora.splits.division import Division

        build = self.build
        return Target(
            folder,
            self.record(),
            build.seed,
            None if self.direct else Division.read(Divide(config=self.config).folder),
            max_bad_share=build.max_bad_share,
            threads=build.threads,
        )

    def part(self, folder: Path, rank: int, of: int) -> dict[str, Any]:
        """Make the candidates of every `of`-th shard; a builder of sources makes all by itself."""
        if not self.direct:
            self.builder.collect_part(self.inputs(), self.target(folder), rank, of)
        return {}

    def work(self, folder: Path) -> dict[str, Any]:
        return self.builder.build(self.inputs(), self.target(folder))


def _check_splitter(build: BuildFile, source: Source) -> None:
    """A source's own splitter must split something: no stage runs over what builders read."""
    validated = any(source.name in check.sources for check in build.validation)
    direct = all(build.builder(name).reads == "sources" for name in source.datasets)
    if source.splitter and direct and not validated:
        raise ConfigError(
            f"splitter = {source.splitter!r} changes nothing: {', '.join(source.datasets)} read the"
            " source themselves",
            where=build.where(*build.source_keys(source.name), "splitter"),
            hint="take it out; coherence_tests has a setting `splitter` of its own, for summaries",
        )
