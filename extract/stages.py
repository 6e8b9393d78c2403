"""The stages `parse` and `extract`: from documents to shards of parses, then to shards of pairs.

An existing shard is not made again, so an interrupted stage resumes there. Its bounds depend only
on the documents, its bytes on documents and settings, never on the number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpora.document import Document
from corpora.errors import ConfigError, InputError
from corpora.processes import in_order
from corpora.schemas import PAIRS
from corpora.store.atomic import write_json
from corpora.store.documents import shards_of
from corpora.store.rows import write_parquet
from extract import extractor
from extract.extractor import PairColumns
from extract.parse import by_words
from extract.parsers import check_language, get_parser, is_checked
from extract.patterns import load_patterns, resolve_markers
from extract.prefilter import Prefilter
from extract.settings import WORDS_PER_SHARD, PairSettings, ParseSettings
from extract.shards import PairCounts, ParseCounts, ParseFacts, Rejects, iter_parses, write_parses

PARSE_VERSION = 8
EXTRACT_VERSION = 22


@dataclass(frozen=True, slots=True)
class Part:
    """The share of one worker among `of`: the shards number `rank`, `rank + of`, ..."""

    rank: int = 0
    of: int = 1

    def has(self, shard: int) -> bool:
        return shard % self.of == self.rank


WHOLE = Part()


def parse(
    documents: Iterable[Document],
    folder: Path,
    settings: ParseSettings | None = None,
    *,
    workers: int = 1,
    part: Part = WHOLE,
) -> ParseCounts:
    """Parse documents (with a sentence layer) into `folder/parses-00000.parquet`, ...

    With `part`, only its shards are made and counted; a later run without `part` counts them all.
    Raises `InputError` if there are no documents.
    """
    settings = settings or ParseSettings()
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []

    def jobs() -> Iterator[tuple[ParseSettings, list[Document], Path]]:
        """Yield settings, documents and path of each shard of this part that does not exist."""
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
    return ParseCounts.of(_sum_counts(ParseFacts.read(path).counts.model_dump() for path in paths))


def extract(
    documents: Iterable[Document],
    parses: Path,
    folder: Path,
    settings: PairSettings | None = None,
    *,
    words_per_shard: int = WORDS_PER_SHARD,
    part: Part = WHOLE,
) -> PairCounts:
    """Extract pairs into `folder/pairs-00000.parquet`, ..., and write `folder/rejects.json`.

    `documents` have the sentence layer that the parses in the folder `parses` were made from, in
    the same order. With `part`, only its shards are made and counted, and `rejects.json` is not
    written. Raises `ConfigError` for a marker that the parses were not made for, `InputError` if
    the parses are those of other documents.
    """
    # Check that the parses were made for these markers.
    settings = settings or PairSettings()
    facts = ParseFacts.read(shards_of(parses, "parses")[0])
    if facts.markers is not None:
        markers = resolve_markers(settings.markers, settings.language, settings.patterns)
        if missing := [marker for marker in markers if marker not in facts.markers]:
            raise ConfigError(
                f"the parses were not made for the markers {', '.join(missing)}: "
                "sentences with only these were not parsed",
                hint="run the parse stage again with all these markers",
            )
    # Extract shard by shard; existing shards are kept.
    folder.mkdir(parents=True, exist_ok=True)
    shards: list[dict[str, Any]] = []
    stored = iter_parses(parses)
    hint = "the parses were made from other documents: run the parse stage again"
    for number, group in enumerate(by_words(documents, words_per_shard)):
        group_parses = list(islice(stored, len(group)))
        for document, parse in zip_longest(group, group_parses):
            if parse is None or parse.doc != document.id:
                instead = "nothing" if parse is None else repr(parse.doc)
                raise InputError(
                    f"expected the parse of document {document.id!r}, found {instead}", hint=hint
                )
        path = folder / f"pairs-{number:05d}.parquet"
        if not part.has(number):
            continue
        if not path.is_file():
            _extract_shard(extractor.extract(group, group_parses, settings, facts.scheme), path)
        shards.append(PairCounts.read(path).model_dump())
    for parse in stored:
        raise InputError(
            f"there is a parse of document {parse.doc!r}, but no such document", hint=hint
        )
    counts = PairCounts.of(_sum_counts(shards))
    if part == WHOLE:
        write_json(folder / "rejects.json", counts.rejects.model_dump())
    return counts


@cache
def _parser(settings: ParseSettings) -> Any:
    """Return the parser with these settings, loaded once in each process."""
    check_language(settings.parser, settings.language)
    options: dict[str, Any] = {}
    if is_checked(settings.parser, settings.check):
        options["check"] = True
    if settings.parser == "gold":
        return get_parser("gold")
    prefilter = None
    if settings.prefilter:
        markers = resolve_markers(settings.markers, settings.language, settings.patterns)
        table = load_patterns(settings.language, "ud", settings.patterns)
        prefilter = Prefilter(markers, table, settings.previous)
    options |= {"prefilter": prefilter, "gold_tokens": settings.gold_tokens}
    return get_parser(settings.parser, **options)


def _parse_shard(settings: ParseSettings, documents: list[Document], path: Path) -> None:
    """Parse the documents of one shard, and write the parses and their counts to `path`."""
    parser = _parser(settings)
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


def _extract_shard(columns: Iterable[PairColumns], path: Path) -> None:
    """Write the pairs of one shard, batch by batch, and the counts of its rejects to `path`."""
    rows: list[pa.RecordBatch] = []
    documents, markers, reasons = 0, Counter[str](), Counter[str]()
    for batch_columns in columns:
        rows.append(batch_columns.to_arrow())
        documents += len(batch_columns.batch.documents)
        for reject in batch_columns.rejects():
            markers[reject.marker] += 1
            reasons[reject.reason] += 1
    table = pa.Table.from_batches(rows, PAIRS)
    counts = PairCounts(
        documents=documents,
        markers=Counter(table["marker"].to_pylist()),
        pairs=len(table),
        positions=Counter(table["position"].to_pylist()),
        rejects=Rejects(markers=markers, reasons=reasons),
    )
    write_parquet(path, rows, PAIRS, counts.metadata())


def _sum_counts(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up nested counts key by key; the keys of the result are sorted."""
    total: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, Mapping):
                total[key] = _sum_counts([total.get(key, {}), value])
            else:
                total[key] = total.get(key, 0) + value
    return dict(sorted(total.items()))
