"""The stages over one source: documents → sentences → parses → pairs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import luigi

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.ingest import VERSION as INGEST_VERSION
from corpora.ingest import ingest
from corpora.progress import track
from corpora.readers import parse_spec
from corpora.sentences.shards import split_documents
from corpora.store.documents import iter_documents
from extract import embedded, stages
from extract.confidence import threshold
from extract.parsers import check_language, get_parser
from extract.patterns import patterns_hash
from extract.settings import PairSettings, ParseSettings
from workflows.sources import SourceRecord, files_hash
from workflows.stage import StageTask
from workflows.tables import Source

TREEBANKS = ("conllu",)
"""Kinds of sources that have gold trees."""


def model_paths(parser: str) -> list[Path]:
    """Return the existing files and folders of a parser's model; none for gold trees."""
    kind, _, name = parser.partition(":")
    if kind == "embedded":
        return [embedded.PATH]
    if kind == "stanza":
        paths = stanza_models() / "resources.json", stanza_models() / name
        return [path for path in paths if path.exists()]
    if kind == "spacy":  # a package, which is not imported, or a folder
        package = find_spec(name) if name.isidentifier() else None
        folder = Path(package.origin).parent if package and package.origin else Path(name)
        return [folder] if folder.exists() else []
    return []


def stanza_models() -> Path:
    """Return the folder of stanza's models."""
    return Path(os.environ.get("STANZA_RESOURCES_DIR", Path.home() / "stanza_resources"))


def parser_problem(parser: str) -> tuple[str, str]:
    """Return why a parser cannot run on this machine, and how to mend it; "" and "" if it can.

    No parser is loaded, so versions are not checked.
    """
    kind, _, name = parser.partition(":")
    if kind == "spacy" and not model_paths(parser):
        return f"no package {name} is installed", f"python -m spacy download {name}"
    if kind != "stanza":
        return "", ""
    download = f"python -c \"import stanza; stanza.download('{name}')\""
    if find_spec("stanza") is None:
        install = "pip install 'discorpora[stanza]'"
        return "the package stanza is not installed", f"{install}; {download}"
    folder = stanza_models() / name
    return ("", "") if folder.is_dir() else (f"no models in {folder}", download)


class SourceStage(StageTask):
    """A stage over one source of the build file."""

    source = luigi.Parameter(description="a source's name in the build file")

    @cached_property
    def entry(self) -> Source:
        return self.build.source(self.source)

    def documents(self) -> Iterator[Document]:
        """Read the source's documents, with sentences if a stage upstream has split them."""
        stages = [task for task in self.lineage if task.stage in ("documents", "sentences")]
        return iter_documents(stages[-1].folder)


class Documents(SourceStage):
    """Read a source into documents with their layers."""

    stage = "documents"

    def settings(self) -> dict[str, Any]:
        """The version of the reading stage, and the options of the source."""
        entry = self.entry
        return {
            "code": INGEST_VERSION,
            "options": entry.options,
            "licence": entry.licence,
            "language": entry.language,
            "max_bad_share": self.build.max_bad_share,
        }

    @property
    def code(self) -> Sequence[str]:
        reader, _ = parse_spec(self.entry.spec)
        return sorted({reader.__module__, "corpora.ingest"})

    def sources(self) -> list[SourceRecord]:
        return [SourceRecord.of(self.entry)]

    def work(self, folder: Path) -> dict[str, Any]:
        (source,), share = self.own_sources, self.build.max_bad_share
        return ingest(source.spec, source.options, folder, max_bad_share=share)


class Sentences(SourceStage):
    """Split the paragraphs of a source into sentences, which all builders read."""

    stage = "sentences"
    version = 5
    code = ("corpora.sentences.shards",)

    def requires(self) -> Documents:
        return Documents(config=self.config, source=self.source)

    def settings(self) -> dict[str, Any]:
        return {"splitter": self.entry.splitter or self.build.sentences.splitter}

    def work(self, folder: Path) -> dict[str, Any]:
        (documents,) = self.upstream
        sentences = split_documents(documents.folder, folder, self.chosen_settings["splitter"])
        return {"documents": documents.manifest()["counts"]["documents"], "sentences": sentences}


class Parse(SourceStage):
    """Parse the sentences that contain a marker, or all sentences without the prefilter."""

    stage = "parse"
    shared = True
    parser = luigi.Parameter(default="", description="another parser than the build file's")

    @property
    def parser_name(self) -> str:
        return self.parser or self.build.parse.parser

    @property
    def key(self) -> str:
        return f"{self.source}/{self.parser_name.replace(':', '-').replace('/', '-')}"

    def requires(self) -> StageTask:
        """The stage that it reads: `Documents` for gold trees, whose sentences are gold too."""
        stage = Documents if self.parser_name == "gold" else Sentences
        return stage(config=self.config, source=self.source)

    def settings(self) -> dict[str, Any]:
        """The parse settings, the version of the stage, and hashes of all else that it reads.

        `pipeline` has the hashes of the parser's model, `patterns` that of the pattern table.
        """
        parse = self.parse_settings
        return {
            **parse.model_dump(),
            "markers": list(parse.markers),
            "patterns": patterns_hash(parse.language, parse.patterns) if parse.prefilter else "",
            "code": stages.PARSE_VERSION,
            "pipeline": "\n".join(
                files_hash(path, self.root) for path in model_paths(self.parser_name)
            ),
        }

    @property
    def code(self) -> Sequence[str]:
        return sorted({type(get_parser(self.parser_name)).__module__, "extract.prefilter"})

    @property
    def loads(self) -> Sequence[str]:
        kind = self.parser_name.partition(":")[0]
        return {"gold": (), "stanza": ("stanza",)}.get(kind, ("spacy",))

    @cached_property
    def parse_settings(self) -> ParseSettings:
        """The settings of `extract.stages.parse`; without the prefilter they name no markers.

        Raises `ConfigError` for a parser that does not exist, or cannot read this source.
        """
        options, name, language = self.build.parse, self.parser_name, self.entry.language or "en"
        with self.build.at(*self.build.parser_keys(self.source, name)):
            get_parser(name)
            kind = parse_spec(self.entry.spec)[0].name
            if name == "gold" and kind not in TREEBANKS:
                raise ConfigError(
                    f"the parser 'gold' reads gold trees, and the source {self.source!r} ({kind}:) "
                    "has none",
                    hint='set parser = "embedded", or name a source of the kind '
                    f"{', '.join(TREEBANKS)}:",
                )
        with self.build.at(*self.entry.loc, "language"):
            check_language(name, language)
        return ParseSettings(
            parser=name,
            markers=self.build.markers(language) if options.prefilter else (),
            language=language,
            prefilter=options.prefilter,
            check=options.check if name == "embedded" else "none",
            patterns=self.build.patterns,
        )

    def part(self, folder: Path, rank: int, of: int) -> dict[str, Any]:
        documents = track(self.documents(), f"parsing {self.source}: documents")
        part = stages.Part(rank, of)
        return stages.parse(documents, folder, self.parse_settings, part=part).model_dump()


class Pairs(SourceStage):
    """Extract the pairs of a source from its parses."""

    stage = "pairs"
    shared = True
    also_reads = ("documents", "sentences")
    code = ("extract.extractor",)
    parser = luigi.Parameter(default="", description="another parser than the build file's")
    mode = luigi.Parameter(default="", description="recall or standalone")

    @property
    def mode_name(self) -> str:
        return self.mode or self.build.extract.mode

    @cached_property
    def pair_settings(self) -> PairSettings:
        """The settings of extraction; the build file's `min_confidence` is for its own mode."""
        settings, language = self.build.extract, self.entry.language or "en"
        minimum = settings.min_confidence if self.mode_name == settings.mode else None
        with self.build.at("extract", "min_confidence"):
            parser = self.parser or self.build.parse.parser
            minimum = threshold(language, self.mode_name, minimum, parser)
        changes = {
            "language": language,
            "mode": self.mode_name,
            "min_confidence": minimum,
            "patterns": self.build.patterns,
        }
        return PairSettings(**{**settings.model_dump(), **changes})

    @property
    def key(self) -> str:
        return f"{self.upstream[0].key}-{self.mode_name}"

    def requires(self) -> Parse:
        parser = self.parser or self.build.parse.parser
        return Parse(config=self.config, source=self.source, parser=parser)

    def settings(self) -> dict[str, Any]:
        """The pair settings, the markers, the hash of the pattern table, the stage's version."""
        language = self.pair_settings.language
        return {
            **self.pair_settings.model_dump(),
            "markers": list(self.build.markers(language)),
            "patterns": patterns_hash(language, self.build.patterns),
            "code": stages.EXTRACT_VERSION,
        }

    def part(self, folder: Path, rank: int, of: int) -> dict[str, Any]:
        documents, parses = self.documents(), self.upstream[0].folder
        part = stages.Part(rank, of)
        return stages.extract(documents, parses, folder, self.pair_settings, part=part).model_dump()
