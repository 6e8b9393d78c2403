"""The stages over one source: documents → sentences → parses → pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import luigi

from corpora.declared import Loc
from corpora.document import Document
from corpora.progress import track
from corpora.readers import parse_spec
from extract.patterns import patterns_hash
from workflows.parsers import check_trees
from workflows.sources import SourceRecord, files_hash
from workflows.stage import StageTask
from workflows.tables import Source

if TYPE_CHECKING:
    from extract.extractor import Mode


def record_of(entry: Source) -> SourceRecord:
    """A source of the build file as manifests and stage hashes know it.

    Without a licence of its own it has the reader's, which may be `unknown`.
    """
    revision = str(entry.options.get("revision", ""))
    licence = entry.licences or parse_spec(entry.spec)[0].own_licence
    return SourceRecord(entry.name, entry.spec, licence, revision, entry.get)


def reader_options(entry: Source) -> dict[str, Any]:
    """The options that a source's reader gets, licence, language and name included."""
    given = {key: value for key in ("licence", "language") if (value := getattr(entry, key))}
    return {**entry.options, "name": entry.name, **given}


class SourceStage(StageTask):
    """A stage over one source of the build file."""

    source = luigi.Parameter(description="a source's name in the build file")

    @property
    def key(self) -> str:
        return self.source

    @property
    def entry(self) -> Source:
        return self.build.source(self.source)


class Documents(SourceStage):
    """Read a source into documents with their layers."""

    stage = "documents"

    def settings(self) -> dict[str, Any]:
        from corpora.ingest import VERSION

        entry = self.entry
        return {
            "code": VERSION,
            "options": entry.options,
            "licence": entry.licence,
            "language": entry.language,
            "max_bad_share": self.build.max_bad_share,
        }

    def code(self) -> list[str]:
        reader, _ = parse_spec(self.entry.spec)
        return sorted({reader.__module__, "corpora.ingest"})

    def sources(self) -> list[SourceRecord]:
        return [record_of(self.entry)]

    def all_sources(self) -> list[SourceRecord]:
        """The source, which knows where its documents are once they are read."""
        return [replace(record, documents=self.folder) for record in self.sources()]

    def work(self, folder: Path) -> dict[str, Any]:
        from corpora.ingest import ingest

        entry, share = self.entry, self.build.max_bad_share
        return ingest(entry.spec, reader_options(entry), folder, max_bad_share=share)


class Sentences(SourceStage):
    """Split every paragraph of a source into sentences: the layer that all builders read."""

    stage = "sentences"
    version = 2

    def requires(self) -> Documents:
        return Documents(config=self.config, source=self.source)

    def settings(self) -> dict[str, Any]:
        return {"splitter": self.splitter}

    def code(self) -> list[str]:
        return ["corpora.sentences.shards"]

    @property
    def splitter(self) -> str:
        return self.entry.splitter or self.build.sentences.splitter

    def work(self, folder: Path) -> dict[str, Any]:
        from corpora.sentences.shards import split_documents

        upstream = self.requires()
        sentences = split_documents(upstream.folder, folder, self.splitter)
        return {"documents": upstream.manifest()["counts"]["documents"], "sentences": sentences}

    def documents(self) -> Iterator[Document]:
        """The source's documents with this stage's sentence layer."""
        from corpora.store.documents import iter_documents

        return iter_documents(self.folder)


class Parse(SourceStage):
    """Parse the sentences that hold a candidate marker."""

    stage = "parse"
    shared = True
    parser = luigi.Parameter(default="", description="another parser than the build file's")

    @property
    def parser_name(self) -> str:
        return self.parser or self.build.parse.parser

    @property
    def parser_keys(self) -> Loc:
        """Which key of the build file names the parser."""
        named = [
            number
            for number, check in enumerate(self.build.validation)
            if self.source in check.sources and check.parser == self.parser_name
        ]
        drawn = self.entry.datasets and self.parser_name == self.build.parse.parser
        return ("parse", "parser") if drawn or not named else ("validation", named[0], "parser")

    @property
    def key(self) -> str:
        return f"{self.source}/{self.parser_name.replace(':', '-').replace('/', '-')}"

    def requires(self) -> StageTask:
        """Gold trees come with gold sentences; every other parser reads the stored layer."""
        if self.parser_name == "gold":
            return Documents(config=self.config, source=self.source)
        return Sentences(config=self.config, source=self.source)

    def settings(self) -> dict[str, Any]:
        from extract.stages import PARSE_VERSION

        chosen = self.chosen()
        return {
            **chosen.model_dump(),
            "markers": list(chosen.markers),
            "patterns": patterns_hash(chosen.language, chosen.patterns) if chosen.prefilter else "",
            "code": PARSE_VERSION,
            "pipeline": self.pipeline(),
        }

    def code(self) -> list[str]:
        from extract.parsers import get_parser

        return sorted({type(get_parser(self.parser_name)).__module__, "extract.prefilter"})

    def chosen(self) -> Any:
        """The settings of `extract.stages.parse`; without prefilter the markers do not matter."""
        from extract.parsers import check_language, get_parser
        from extract.stages import ParseSettings

        options, language = self.build.parse, self.entry.language or "en"
        # What cannot be used is an error now, not when it is run.
        with self.build.at(*self.parser_keys):
            get_parser(self.parser_name)
            check_trees(self.parser_name, self.entry.spec, self.source)
        with self.build.at(*self.build.source_keys(self.source), "language"):
            check_language(self.parser_name, language)
        return ParseSettings(
            parser=self.parser_name,
            markers=self.build.markers(language) if options.prefilter else (),
            language=language,
            prefilter=options.prefilter,
            patterns=self.build.patterns,
        )

    def pipeline(self) -> str:
        """The bytes of the embedded pipeline; other parsers are known by their name."""
        from extract.embedded import PATH

        return files_hash(PATH, self.root) if self.parser_name == "embedded" else ""

    def documents(self) -> Iterator[Document]:
        from corpora.store.documents import iter_documents

        return iter_documents(self.requires().folder)

    def work(self, folder: Path) -> dict[str, Any]:
        return self.part(folder, 0, 1)

    def part(self, folder: Path, rank: int, of: int) -> dict[str, Any]:
        from extract.stages import Part, parse

        documents = track(self.documents(), f"parsing {self.source}: documents")
        return parse(documents, folder, self.chosen(), part=Part(rank, of)).model_dump()


class Pairs(SourceStage):
    """Extract the pairs of a source from its parses."""

    stage = "pairs"
    shared = True
    parser = luigi.Parameter(default="", description="another parser than the build file's")
    mode = luigi.Parameter(default="", description="recall, require_clause or own_subjects")

    @property
    def key(self) -> str:
        return f"{self.requires().key}-{self.mode_name}"

    @property
    def mode_name(self) -> str:
        return self.mode or self.build.extract.mode

    def requires(self) -> Parse:
        parser = self.parser or self.build.parse.parser
        return Parse(config=self.config, source=self.source, parser=parser)

    def settings(self) -> dict[str, Any]:
        from extract.stages import EXTRACT_VERSION

        options, language = self.build.extract, self.entry.language or "en"
        return {
            "markers": list(self.build.markers(language)),
            "language": language,
            "mode": self.mode_name,
            "text": options.text,
            "patterns": patterns_hash(language, self.build.patterns),
            "code": EXTRACT_VERSION,
        }

    def code(self) -> list[str]:
        return ["extract.extractor"]

    def work(self, folder: Path) -> dict[str, Any]:
        return self.part(folder, 0, 1)

    def part(self, folder: Path, rank: int, of: int) -> dict[str, Any]:
        from extract.stages import (
            ExtractSettings,
            Part,
            extract,
            iter_parses,
            markers_of,
            scheme_of,
        )

        parses, options = self.requires(), self.build.extract
        chosen = ExtractSettings(
            markers=options.markers,
            language=self.entry.language or "en",
            mode=cast("Mode", self.mode_name),
            text=options.text,
            patterns=self.build.patterns,
            scheme=scheme_of(parses.folder),
            parsed=markers_of(parses.folder),
        )
        found = iter_parses(parses.folder)
        counts = extract(parses.documents(), found, folder, chosen, part=Part(rank, of))
        return counts.model_dump()
