"""Read and write parses and pairs as Parquet shards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from corpora.declared import TomlTable
from corpora.store.documents import shards_of
from corpora.store.rows import parquet_batches, write_parquet
from extract.pairs import Pair, pairs_of
from extract.parse import NAMES, STRINGS_LIMIT, Ints, ParsedDocument, StringTable

NUMBERS = ("start", "end", "head")
SECOND = ("head", *NAMES[1:])
"""The columns in which a second parser's trees may differ; in a shard they begin with `second_`."""
_LIST = pa.list_(pa.int32())
_NAME_LIST = pa.list_(pa.dictionary(pa.int32(), pa.string()))
PARSES = pa.schema(
    [
        pa.field("doc", pa.string(), nullable=False),
        pa.field("sentence", _LIST, nullable=False),
        pa.field("size", _LIST, nullable=False),
        *(pa.field(name, _LIST, nullable=False) for name in NUMBERS),
        *(pa.field(name, _NAME_LIST, nullable=False) for name in NAMES),
        *(pa.field(f"second_{name}", _LIST if name in NUMBERS else _NAME_LIST) for name in SECOND),
    ]
)
"""One row a document: the columns of `ParsedDocument`; `size` is the tokens of a sentence. The
columns of the second parser are null without one."""
Tally = dict[str, int]


class Facts(TomlTable):
    """Facts about a shard, stored as JSON in the metadata of its Parquet file."""

    def metadata(self) -> dict[str, str]:
        return {"facts": json.dumps(self.model_dump(), sort_keys=True)}

    @classmethod
    def read(cls, path: Path) -> Self:
        metadata = pq.ParquetFile(path).schema_arrow.metadata or {}
        return cls.of(json.loads(metadata.get(b"facts", b"{}")), str(path))


class ParseCounts(TomlTable):
    """Counts of parses, and of skipped sentences by reason."""

    documents: int = 0
    sentences: int = 0
    skipped: Tally = Field(default_factory=dict)
    tokens: int = 0


class ParseFacts(Facts):
    """Facts about a shard of parses: counts, the scheme of labels, and the markers."""

    counts: ParseCounts
    scheme: str
    markers: tuple[str, ...] | None = None
    """The markers whose sentences were parsed; None for every sentence."""


class Rejects(TomlTable):
    """Rejected candidates, by marker and by reason."""

    markers: Tally = Field(default_factory=dict)
    reasons: Tally = Field(default_factory=dict)


class PairCounts(Facts):
    """Facts about a shard of pairs: numbers of documents, of pairs in all, by marker and by the
    position of S1 (same or previous sentence), and of rejected candidates by reason."""

    documents: int = 0
    markers: Tally = Field(default_factory=dict)
    pairs: int = 0
    positions: Tally = Field(default_factory=dict)
    rejects: Rejects = Rejects()


def write_parses(path: Path, parses: Sequence[ParsedDocument], facts: ParseFacts) -> None:
    """Write one shard of parses."""

    def column(parse: ParsedDocument | None, name: str) -> Any:
        """Return a column of a parse (None without a parse), with strings in place of codes."""
        if parse is None:
            return None
        values = getattr(parse, name)
        strings = parse.strings.strings
        return values if name in NUMBERS else [strings[code] for code in values.tolist()]

    columns = {
        "doc": [p.doc for p in parses],
        "sentence": [p.sentence for p in parses],
        "size": [np.diff(p.offsets) for p in parses],
        **{name: [column(p, name) for p in parses] for name in (*NUMBERS, *NAMES)},
        **{f"second_{name}": [column(p.second, name) for p in parses] for name in SECOND},
    }
    batch = pa.RecordBatch.from_pydict(columns, schema=PARSES)
    write_parquet(path, [batch], PARSES, facts.metadata())


def iter_parses(folder: Path | Sequence[Path]) -> Iterator[ParsedDocument]:
    """Yield the parses of the folders, in the order in which they were written.

    They share one string table, a new one after `STRINGS_LIMIT` strings: memory stays bounded.
    """
    strings = StringTable()
    for path in shards_of(folder, "parses"):
        if len(strings) > STRINGS_LIMIT:
            strings = StringTable()
        for batch in parquet_batches(path):
            yield from _parsed_documents(batch, strings)


def _parsed_documents(batch: pa.RecordBatch, strings: StringTable) -> Iterator[ParsedDocument]:
    """Yield the parsed documents of an Arrow batch, with codes of `strings` for their strings."""
    columns: dict[str, list[Ints]] = {}
    for name in batch.schema.names[1:]:
        column = batch.column(name)
        if pa.types.is_dictionary(column.type.value_type):
            codes = strings.codes(column.values.dictionary.to_pylist())
            values = codes[column.values.indices.to_numpy()]
        else:
            values = column.values.to_numpy(zero_copy_only=False)
        columns[name] = [values[a:b] for a, b in pairwise(column.offsets.to_numpy())]
    has_second = batch.column("second_head").is_valid().to_pylist()
    for row, doc in enumerate(batch.column("doc").to_pylist()):
        parts: dict[str, Any] = {name: column[row] for name, column in columns.items()}
        second = {name: parts.pop(f"second_{name}") for name in SECOND}
        offsets = np.append(0, np.cumsum(parts.pop("size"))).astype(np.int32)
        parse = ParsedDocument(doc=doc, strings=strings, offsets=offsets, **parts)
        if has_second[row]:
            parse.second = replace(parse, **second)
        yield parse


def iter_pairs(folders: Sequence[Path]) -> Iterator[Pair]:
    """Yield the pairs of some folders, in the order in which they were written."""
    for path in shards_of(folders, "pairs"):
        for batch in parquet_batches(path):
            yield from pairs_of(batch)
