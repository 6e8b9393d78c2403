"""The stages over several sources: validation against gold, and the datasets."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import luigi

from corpora.declared import without_folders
from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.readers import open_source
from corpora.splits import MIN_GROUPS, SPLITS
from corpora.splits.division import VERSION as DIVISION_VERSION
from corpora.splits.division import Division, DivisionSummary, divide
from corpora.splits.prescribed import count_difference, prescribed_splits, read_table, table_hash
from corpora.store.documents import DocumentSizes, settled_splits, shards_of
from corpora.store.folder import Stage
from corpora.tasks.builder import Builder, Target
from corpora.toml import toml_lines, toml_value
from extract.pairs import MEANINGS
from extract.patterns import is_shipped
from workflows.results import stage_folder
from workflows.sources import SourceRecord
from workflows.stage import StageTask
from workflows.tables import Source
from workflows.tasks.sources import Documents, Pairs, Sentences

log = logging.getLogger("discorpora")

READ_TO_FORESEE = 32 << 20
"""The most bytes of sources that `discorpora plan` reads to foresee the division's warnings."""


class Validate(StageTask):
    """Score the pairs of a source against gold relations."""

    stage = "validation"
    version = 3
    also_reads = ("documents", "sentences")
    loads = ("matplotlib.figure", "matplotlib.backends.backend_agg")
    name = luigi.Parameter(description="a [[validation]] entry's name")

    def requires(self) -> list[StageTask]:
        entry = self.build.check(self.name)
        return [
            Pairs(config=self.config, source=name, parser=entry.parser, mode=entry.mode)
            for name in entry.sources
        ]

    def settings(self) -> dict[str, Any]:
        """The parser, markers and mode whose pairs are compared with gold."""
        entry = self.build.check(self.name)
        return {
            "parser": entry.parser,
            "markers": list(self.build.markers()),
            "mode": entry.mode,
            "gold_tokens": False,
            "gold_sentences": entry.parser == "gold",
            **({"filters": entry.filters} if entry.filters else {}),
        }

    def sources(self) -> list[SourceRecord]:
        entry = self.build.check(self.name)
        return [SourceRecord(f"{entry.name}-gold", self.build.place(entry.gold), get=entry.get)]

    def work(self, folder: Path) -> dict[str, Any]:
        """Score the pairs of all sources against the gold."""
        from extract.commands import validate_stage  # no other stage needs what it imports

        tasks = cast("list[Pairs]", self.upstream)
        documents = chain.from_iterable(task.documents() for task in tasks)
        folders = [task.folder for task in tasks]
        settings = {**self.chosen_settings, "patterns": self.build.patterns}
        return validate_stage(documents, folders, self.own_sources[0].spec, folder, settings)


class Divide(StageTask):
    """Divide the documents of a build into splits, for all its datasets."""

    stage = "division"
    hands_on = False
    priority = 1
    """Higher than that of `Parse`, so that an id that two sources share is reported early."""

    @cached_property
    def datasets_of(self) -> dict[str, list[str]]:
        """The names of the sources to divide, each with the names of the datasets made from it."""
        build = self.build
        divided = {name for name in build.fed if build.builder(name).reads != "sources"}
        datasets_of = {s.name: sorted(divided & {*s.datasets}) for s in build.sources}
        return {name: datasets_of[name] for name in sorted(datasets_of) if datasets_of[name]}

    def requires(self) -> list[StageTask]:
        return [Documents(config=self.config, source=name) for name in self.datasets_of]

    @property
    def prescribed(self) -> dict[str, str]:
        """The sources with prescribed splits, each with the name of the scheme."""
        schemes = {name: self.build.source(name).splits for name in self.datasets_of}
        return {name: scheme for name, scheme in schemes.items() if scheme}

    @property
    def table(self) -> str:
        """The file that sets the splits of some documents, or an empty string."""
        return self.build.place(self.build.splits.table)

    def settings(self) -> dict[str, Any]:
        """The shares of the splits, the sources with their datasets, the hash of a split table."""
        settings = self.build.splits.model_dump(exclude={"table", "largest_group"})
        if self.table:
            with self.build.at("splits", "table"):
                # The next build replaces the division in this output.
                folder = stage_folder(Path(self.table).parent)
                if folder.is_relative_to(self.root.resolve() / "stages"):
                    raise ConfigError(
                        "is the division of a build in this output, which the next one replaces",
                        where=self.table,
                        hint="copy the file beside the build file, and name the copy",
                    )
                settings["table_sha256"] = table_hash(self.table)
        if self.prescribed:
            settings["prescribed"] = self.prescribed
        return {
            **settings,
            "seed": self.build.seed,
            "served": self.datasets_of,
            "code": DIVISION_VERSION,
        }

    def work(self, folder: Path) -> dict[str, Any]:
        """Divide the documents; raise `InputError` for a table of splits that does not fit them."""
        # The prescribed splits of the sources' documents
        sizes_of_sources = [DocumentSizes(task.folder) for task in self.upstream]
        prescribed: dict[str, str] = {}
        notes = []
        for task, name in zip(self.upstream, self.datasets_of, strict=True):
            if scheme := self.prescribed.get(name):
                with self.build.at(*self.build.source(name).loc, "splits"):
                    split_of = prescribed_splits(settled_splits(task.folder), scheme)
                splits = ", ".join(split for split in SPLITS if split in split_of.values())
                notes.append(f"those of {name} are prescribed (`{scheme}`: {splits})")
                if count := count_difference(split_of.values(), scheme):
                    log.warning("source %s: %s", name, count)
                    notes[-1] += f", {count}"
                prescribed |= split_of
        # Divide all other documents; the table of an earlier division comes first.
        division = divide(
            list(zip(self.datasets_of.values(), sizes_of_sources, strict=True)),
            self.build.splits.shares,
            folder,
            seed=self.build.seed,
            names=list(self.datasets_of),
            kept=self._division_of_table(sizes_of_sources) if self.table else None,
            prescribed=prescribed,
            prescribed_words="; ".join(notes),
        )
        shares = zip(SPLITS, self.build.splits.shares.parts, strict=True)
        counts = {split: division.documents[split] for split, share in shares if share}
        empty_splits = [split for split, number in counts.items() if not number]
        if division.kept and empty_splits:
            raise InputError(
                f"leaves the split {empty_splits[0]!r} without documents",
                where=self.table,
                hint=f"give it some there, or set {empty_splits[0]} = 0 in [splits]",
            )
        for warning in self.warnings(division):
            log.warning(warning)
        return division.to_dict()

    def _division_of_table(self, sources: Sequence[Iterable[tuple[str, str, int]]]) -> Division:
        """Return the split of each document that the table names, itself or by its group.

        `sources` have the id, group and size of each document. Raises `InputError` if the table
        names none of them.
        """
        named = read_table(Path(self.table))
        split: dict[str, str] = {}
        unknown, name, group = {*named}, "", ""
        for name, group, _ in chain.from_iterable(sources):
            unknown -= {name, group}
            if name in named or group in named:
                split[name] = named.get(name) or named[group]
        if not split:
            raise InputError(
                "names no document of this build",
                where=self.table,
                hint=f"documents are named by their ids, such as {name!r}, or by their groups, "
                f"such as {group!r}",
            )
        if unknown:
            log.warning(
                "%s: documents that are not in this build: %s, such as %r",
                *(self.table, f"{len(unknown):,}", min(unknown)),
            )
        return Division.of(split)

    def warnings(self, division: DivisionSummary) -> list[str]:
        """Return warnings of splits with few documents, and of groups in several splits."""
        warnings = []
        shares = zip(SPLITS, self.build.splits.shares.parts, strict=True)
        counts = {split: division.documents[split] for split, share in shares if share}
        few = [f"{number} in {split}" for split, number in counts.items() if number < MIN_GROUPS]
        if few and not self.prescribed and not self.table:
            warnings.append(
                f"few documents to divide: {', '.join(few)}. Cut books into chapters (option "
                "`chapters` of text:, or a file for each): the splits then have their shares"
            )
        if division.by == "document" and not self.prescribed:
            warnings.append(
                "documents of one group, such as chapters of a book, are in several splits "
                f"({division.reason}); see [splits] in docs/reference/build-file.md"
            )
        return warnings

    def foreseen_warnings(self) -> list[str]:
        """Return the `warnings` of the division before it is made, which reads the sources.

        The list is empty if that would take long, if a source is not here or has bad records, and
        if a table or a scheme prescribes splits.
        """
        if self.complete():
            return self.warnings(DivisionSummary(**self.manifest()["counts"]))
        # Not where it would take long, or splits are prescribed
        sources = [source for task in self.upstream for source in task.own_sources]
        size = sum(path.stat().st_size for source in sources for path in source.files)
        unread = any(source.problem for source in sources) or size > READ_TO_FORESEE
        if unread or self.prescribed or self.table:
            return []
        with suppress(DiscorporaError), TemporaryDirectory() as folder:
            served = [
                [(d.id, d.group, len(d.text)) for d in open_source(source.spec, source.options)]
                for source in sources
            ]
            division = divide(
                list(zip(self.datasets_of.values(), served, strict=True)),
                self.build.splits.shares,
                Path(folder),
                seed=self.build.seed,
            )
            return self.warnings(division)
        return []


class Dataset(StageTask):
    """Build one dataset folder from all sources that the build file gives it."""

    name = luigi.Parameter(description="a [datasets.NAME] table's name")
    stage = "dataset"
    shared = True
    also_reads = ("documents",)  # for their authors and addresses
    loads = (
        *("datasets", "duckdb", "scipy.stats"),
        *("sklearn.feature_extraction.text", "sklearn.linear_model"),
    )

    @cached_property
    def builder(self) -> Builder:
        """The builder that the dataset's table names, or the one with the dataset's name."""
        return self.build.builder(self.name)

    @property
    def version(self) -> int:  # type: ignore[override]
        return self.builder.version

    @cached_property
    def entries(self) -> list[Source]:
        """The sources of the build file whose `datasets` name this one."""
        return [source for source in self.build.sources if self.name in source.datasets]

    @property
    def direct(self) -> bool:
        """Whether the builder reads the sources directly, without a stage upstream."""
        return self.builder.reads == "sources"

    def requires(self) -> list[StageTask]:
        """The stages whose documents or pairs the builder reads; the division comes last."""
        if self.direct:
            return []
        names, division = [source.name for source in self.entries], Divide(config=self.config)
        if self.builder.reads == "documents":
            return [*(Sentences(config=self.config, source=name) for name in names), division]
        parser, mode = self.build.parse.parser, self.build.extract.mode
        pairs = [Pairs(config=self.config, source=n, parser=parser, mode=mode) for n in names]
        return [*pairs, division]

    @property
    def code(self) -> Sequence[str]:
        return sorted({type(self.builder).__module__, "corpora.tasks.candidates"})

    def settings(self) -> dict[str, Any]:
        """The builder with its settings; raises `ConfigError` if no extracted marker is a label."""
        build, builder = self.build, self.builder
        settings = {"builder": builder.name, **builder.identity(), "seed": build.seed}
        if not self.direct:
            settings["largest_group"] = build.splits.largest_group
        labels = settings.get("markers", ())
        if builder.reads == "pairs" and labels and self.entries:
            # Without a common marker the dataset would be empty, as would show after hours.
            extracted = {m for task in self.upstream[:-1] for m in task.chosen_settings["markers"]}
            if extracted.isdisjoint(labels):
                raise ConfigError(
                    "none of the markers that are extracted is among its labels: "
                    f"{', '.join(labels)}",
                    where=build.where("datasets", self.name, "markers"),
                    hint=f"[extract] markers gives {', '.join(sorted(extracted))}",
                )
        if not self.direct:
            return settings
        options = [source.options for source in self.sources()]
        return {**settings, "given": options, "max_bad_share": build.max_bad_share}

    def sources(self) -> list[SourceRecord]:
        return [SourceRecord.of(source) for source in self.entries] if self.direct else []

    def card_facts(self) -> dict[str, Any]:
        """Facts for the card on each source and, under the key "", on dataset and publisher."""
        facts = {source.name: source.about for source in self.all_sources if source.about}
        dataset = self.builder.model_dump(include={*Builder.model_fields}, exclude_defaults=True)
        dataset |= self.build.publisher.model_dump(exclude_defaults=True)
        return {**facts, "": dataset} if dataset else facts

    def record(self) -> Stage:
        """Return the record, with a build file that makes only this dataset, with equal splits."""
        record, builder = super().record(), self.builder
        return replace(
            record,
            build=self.build_file(),
            title=builder.title,
            description=builder.description,
            publisher=self.build.publisher.model_dump(exclude_defaults=True),
        )

    def build_file(self) -> str:
        """Return the tables that determine the dataset as TOML, without paths of this machine."""
        build = self.build
        # Tables of the build that all sources share
        datasets_of = {source.name: [self.name] for source in self.entries}
        tables: dict[str, Any] = {}
        if publisher := build.publisher.model_dump(exclude_defaults=True):
            tables["publisher"] = publisher
        if not self.direct:
            division = self.upstream[-1]
            assert isinstance(division, Divide)
            datasets_of = division.datasets_of
            tables["splits"] = build.splits.model_dump(exclude={"table"})
            if division.table:
                tables["splits"]["table"] = f"{{data}}/{Path(division.table).name}"
            tables["sentences"] = build.sentences.model_dump()
        if self.builder.reads == "pairs":
            patterns = [
                file if is_shipped(file) else f"{{data}}/{Path(file).name}"
                for file in build.extract.patterns
            ]
            tables["parse"] = build.parse.model_dump()
            tables["extract"] = {**build.extract.model_dump(), "patterns": patterns}
        # Sources, with the datasets that they serve
        keys = {"licence", "language", "options", "splitter", "splits"}
        keys |= {"title", "url", "authors", "description", "get"}
        lines = toml_lines(build.model_dump(include={"name", "seed", "max_bad_share"}))
        for source in (build.source(name) for name in datasets_of):
            facts = {key: value for key, value in source.model_dump(include=keys).items() if value}
            spec = SourceRecord.of(source).portable_spec()
            table = {"name": source.name, "spec": spec, **facts}
            lines += ["[[sources]]", *toml_lines({**table, "datasets": datasets_of[source.name]})]
        # This dataset, and the builders of the other ones: they determine the splits
        for name in sorted({self.name, *chain.from_iterable(datasets_of.values())}):
            table = build.dataset(name)
            if "builder" in table:
                table = {**table, "builder": without_folders(table["builder"])}
            if name != self.name:
                table = {key: value for key, value in table.items() if key == "builder"}
            tables[f"datasets.{toml_value(name)}"] = table
        for name, table in tables.items():
            lines += [f"[{name}]", *toml_lines(table)]
        return "\n".join(lines).strip()

    def build_files(self) -> Iterator[Path]:
        """Yield the table of splits and the user's pattern files, where they determine the rows."""
        if not self.direct and (table := Path(cast(Divide, self.upstream[-1]).table)).is_file():
            yield table
        if self.builder.reads == "pairs":
            yield from (Path(file) for file in self.build.patterns if not is_shipped(file))

    def inputs(self) -> list[Any]:
        """The inputs of the builder: shards of documents or pairs, or sources with options."""
        if self.direct:
            return [(source.spec, source.options) for source in self.own_sources]
        stem = "pairs" if self.builder.reads == "pairs" else "documents"
        return shards_of([task.folder for task in self.upstream[:-1]], stem)

    def target(self, folder: Path) -> Target:
        """Return what the builder needs beside its inputs, such as the counts of rejected pairs."""
        rejects: Counter[str] = Counter()
        for task in self.upstream:
            if task.stage == "pairs":
                rejects.update(task.manifest()["counts"]["rejects"].get("reasons", {}))
        documents = [task for task in self.lineage if task.stage == "documents"]
        source_names = {source.name for source in self.all_sources}
        return Target(
            folder,
            self.record(),
            self.build.seed,
            None if self.direct else Division.read(self.upstream[-1].folder),
            max_bad_share=self.build.max_bad_share,
            largest_group=self.build.splits.largest_group,
            threads=self.build.threads,
            extraction_rejects=[(reason, n, MEANINGS[reason]) for reason, n in rejects.items()],
            documents=[task.folder for task in documents if task.key in source_names],
            build_files=[*self.build_files()],
        )

    def part(self, folder: Path, rank: int, of: int) -> dict[str, Any]:
        """Collect candidate rows from every `of`-th shard; none if the builder reads sources."""
        if not self.direct:
            self.builder.collect_part(self.inputs(), self.target(folder), rank, of)
        return {}

    def work(self, folder: Path) -> dict[str, Any]:
        return self.builder.build(self.inputs(), self.target(folder))
