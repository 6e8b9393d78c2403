"""The stages `parse` and `extract`: from documents to parse shards to pair shards.

A shard is the unit of resuming: an existing shard is not made again. Its bounds depend only on the
documents, its bytes on documents and settings, never on the number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.errors import ConfigError, InputError
from corpora.processes import in_order
from corpora.store.atomic import write_json
from extract.extractor import Extractor, batches
from extract.pairs import POSITIONS, Reject
from extract.parse import ParsedDocument
from extract.parsers import check_language, get_parser
from extract.patterns import load_patterns, resolve_markers
from extract.pool import WHOLE, Part, by_words
from extract.prefilter import Prefilter
from extract.settings import ExtractSettings, PairSettings, ParseSettings
from extract.shards import (
    PairCounts,
    PairFacts,
    ParseCounts,
    ParseFacts,
    Rejects,
    iter_parses,
    write_pairs,
    write_parses,
)

__all__ = [
    "EXTRACT_VERSION",
    "PARSE_VERSION",
    "ExtractSettings",
    "ParseSettings",
    "Part",
    "extract",
    "iter_parses",
    "markers_of",
    "parse",
    "scheme_of",
]

PARSE_VERSION = 4
EXTRACT_VERSION = 12


def parse(
    documents: Iterable[Document],
    folder: Path,
    settings: ParseSettings | None = None,
    *,
    workers: int = 1,
    part: Part = WHOLE,
) -> ParseCounts:
    """Parse documents (with a sentence layer) into `folder/parses-00000.parquet` and on.

    With `part`, only its shards are made and counted; a later run without `part` finds them all.
    """
    settings = settings or ParseSettings()
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []

    def jobs() -> Iterator[tuple[ParseSettings, list[Document], Path]]:
        for number, group in enumerate(by_words(documents, settings.words_per_shard)):
            if not part.has(number):
                continue
            paths.append(folder / f"parses-{number:05d}.parquet")
            if not paths[-1].is_file():
                yield settings, group, paths[-1]

    for _ in in_order(_parse_shard, jobs(), workers):
        pass
    if not paths and part == WHOLE:
        raise InputError("there are no documents to parse")
    return ParseCounts.of(_summed(ParseFacts.read(path).counts.model_dump() for path in paths))


def scheme_of(folder: Path) -> str:
    """The label scheme of the parses in `folder`."""
    return ParseFacts.read(folder / "parses-00000.parquet").scheme


def markers_of(folder: Path) -> tuple[str, ...] | None:
    """The markers whose sentences are parsed in `folder`; None if all sentences are."""
    return ParseFacts.read(folder / "parses-00000.parquet").markers


def extract(
    documents: Iterable[Document],
    parses: Iterable[ParsedDocument],
    folder: Path,
    settings: ExtractSettings | None = None,
    *,
    part: Part = WHOLE,
) -> PairCounts:
    """Extract pairs into `folder/pairs-00000.parquet` and on, and `folder/rejects.json`.

    `documents` have the sentence layer that `parses` were made from, in the same order.
    With `part`, only its shards are made and counted, and `rejects.json` is not written. Raises
    `ConfigError` for a marker that the parses were not made for, `InputError` if the parses are
    those of other documents.
    """
    settings = settings or ExtractSettings()
    if settings.parsed is not None:
        asked = resolve_markers(settings.markers, settings.language, settings.patterns)
        if lost := [marker for marker in asked if marker not in settings.parsed]:
            raise ConfigError(
                f"the parses were not made for the markers {', '.join(lost)}: "
                "sentences with only these were not parsed",
                hint="run the parse stage again with all these markers",
            )
    folder.mkdir(parents=True, exist_ok=True)
    shards: list[dict[str, Any]] = []
    parsed = iter(parses)
    for number, group in enumerate(by_words(documents, settings.words_per_shard)):
        pairs = list(zip(group, _next(parsed, group), strict=True))
        path = folder / f"pairs-{number:05d}.parquet"
        if not part.has(number):
            continue
        if not path.is_file():
            _extract_shard(settings, pairs, path)
        shards.append(PairFacts.read(path).counts.model_dump())
    for left in parsed:
        raise InputError(
            f"there is a parse of document {left.doc!r}, but no such document",
            hint="the parses were made from other documents: run the parse stage again",
        )
    counts = PairCounts.of(_summed(shards))
    if part == WHOLE:
        write_json(folder / "rejects.json", counts.rejects.model_dump())
    return counts


_PARSERS: dict[ParseSettings, Any] = {}
"""The parsers that this process has loaded; a worker loads each once."""


def _parse_shard(settings: ParseSettings, documents: list[Document], path: Path) -> None:
    parser = _PARSERS.get(settings)
    if parser is None:
        parser = _PARSERS[settings] = _make_parser(settings)
    skipped: Counter[str] = Counter()
    parser.on_skip = lambda reject: skipped.update([reject.reason])
    parses = list(parser.parse(documents))
    counts = ParseCounts(
        documents=len(parses),
        sentences=sum(len(p.sentence) for p in parses),
        skipped=skipped,
        tokens=sum(len(p.head) for p in parses),
    )
    prefilter = getattr(parser, "prefilter", None)
    markers = prefilter.markers if prefilter else None
    write_parses(path, parses, ParseFacts(counts=counts, scheme=parser.scheme, markers=markers))


def _make_parser(settings: ParseSettings) -> Any:
    check_language(settings.parser, settings.language)
    if settings.parser == "gold":
        return get_parser("gold")
    prefilter = None
    if settings.prefilter:
        markers = resolve_markers(settings.markers, settings.language, settings.patterns)
        table = load_patterns(settings.language, "ud", settings.patterns)
        prefilter = Prefilter(markers, table, settings.previous)
    return get_parser(settings.parser, prefilter=prefilter, gold_tokens=settings.gold_tokens)


def _extract_shard(
    settings: ExtractSettings, pairs: list[tuple[Document, ParsedDocument]], path: Path
) -> None:
    reasons, refused = Counter[str](), Counter[str]()

    def on_reject(reject: Reject) -> None:
        reasons[reject.reason] += 1
        refused[reject.marker] += 1

    shaping = settings.model_dump(include=set(PairSettings.model_fields))
    extractor = Extractor(parser=_Stored(settings.scheme), on_reject=on_reject, **shaping)
    columns = [extractor.extract([d for d, _ in b], [p for _, p in b]) for b in batches(pairs)]
    markers, positions = Counter[str](), Counter[str]()
    for batch in columns:
        markers.update(batch.markers[i] for i in batch.marker.tolist())
        positions.update(POSITIONS[previous] for previous in batch.previous.tolist())
    counts = PairCounts(
        documents=len(pairs),
        markers=markers,
        pairs=sum(map(len, columns)),
        positions=positions,
        rejects=Rejects(markers=refused, reasons=reasons),
    )
    write_pairs(path, columns, PairFacts(counts=counts))


class _Stored:
    """Stands for the parser of stored parses: it knows only their scheme."""

    name = "stored"

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme

    def parse(self, documents: Iterable[Document]) -> Iterator[ParsedDocument]:
        raise TypeError("the parses are stored; pass them to Extractor.extract")


def _next(parses: Iterator[ParsedDocument], group: list[Document]) -> Iterator[ParsedDocument]:
    """The parses of one shard's documents; InputError if they are of other documents."""
    for document in group:
        parsed = next(parses, None)
        if parsed is None or parsed.doc != document.id:
            found = "nothing" if parsed is None else repr(parsed.doc)
            raise InputError(
                f"expected the parse of document {document.id!r}, found {found}",
                hint="the parses were made from other documents: run the parse stage again",
            )
        yield parsed


def _summed(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Nested counts added up, with sorted keys."""
    total: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, Mapping):
                total[key] = _summed([total.get(key, {}), value])
            else:
                total[key] = total.get(key, 0) + value
    return dict(sorted(total.items()))
