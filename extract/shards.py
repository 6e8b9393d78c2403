"""Parses and pairs as Parquet shards: the Arrow side of the stages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from corpora.declared import Table
from corpora.schemas import PAIRS, SPAN
from corpora.store.documents import shards_of
from corpora.store.rows import parquet_batches, write_parquet
from extract.pairs import ORDERS, POSITIONS, Pair, PairColumns, SpanColumn
from extract.parse import STRINGS_LIMIT, Ints, ParsedDocument, StringTable

NUMBERS = ("start", "end", "head")
NAMES = ("form", "upos", "xpos", "feats", "deprel")
_LIST = pa.list_(pa.int32())
_NAME_LIST = pa.list_(pa.dictionary(pa.int32(), pa.string()))
PARSES = pa.schema(
    [
        pa.field("doc", pa.string(), nullable=False),
        pa.field("sentence", _LIST, nullable=False),
        pa.field("size", _LIST, nullable=False),
        *(pa.field(name, _LIST, nullable=False) for name in NUMBERS),
        *(pa.field(name, _NAME_LIST, nullable=False) for name in NAMES),
    ]
)
"""One row a document: the columns of `ParsedDocument`; `size` is the tokens of a sentence."""
Tally = dict[str, int]


class Facts(Table):
    """Facts about a shard in its file's metadata."""

    def metadata(self) -> dict[str, str]:
        return {"facts": json.dumps(self.model_dump(), sort_keys=True)}

    @classmethod
    def read(cls, path: Path) -> Self:
        metadata = pq.ParquetFile(path).schema_arrow.metadata or {}
        return cls.of(json.loads(metadata.get(b"facts", b"{}")), str(path))


class ParseCounts(Table):
    """Counts of parses, and of skipped sentences by reason."""

    documents: int = 0
    sentences: int = 0
    skipped: Tally = Field(default_factory=dict)
    tokens: int = 0


class ParseFacts(Facts):
    counts: ParseCounts
    scheme: str
    markers: tuple[str, ...] | None = None
    """The markers whose sentences were parsed; None for every sentence."""


class Rejects(Table):
    """Rejected candidates, by marker and by reason."""

    markers: Tally = Field(default_factory=dict)
    reasons: Tally = Field(default_factory=dict)


class PairCounts(Table):
    """Counts of pairs by marker and by position, and of rejected candidates."""

    documents: int = 0
    markers: Tally = Field(default_factory=dict)
    pairs: int = 0
    positions: Tally = Field(default_factory=dict)
    rejects: Rejects = Rejects()


class PairFacts(Facts):
    counts: PairCounts


def write_parses(path: Path, parses: Sequence[ParsedDocument], facts: ParseFacts) -> None:
    """One shard of parses."""
    sizes = [np.diff(p.offsets) for p in parses]
    columns = [
        pa.array([p.doc for p in parses], pa.string()),
        _lists([p.sentence for p in parses]),
        _lists(sizes),
        *(_lists([getattr(p, name) for p in parses]) for name in NUMBERS),
        *(_name_lists(parses, name) for name in NAMES),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=PARSES)
    write_parquet(path, [batch], PARSES, facts.metadata())


def iter_parses(folder: Path | Sequence[Path]) -> Iterator[ParsedDocument]:
    """The parses of the folders, in the order in which they were written.

    They share one string table, a new one after `STRINGS_LIMIT` strings: memory stays bounded.
    """
    strings = StringTable()
    for path in shards_of(folder, "parses"):
        if len(strings) > STRINGS_LIMIT:
            strings = StringTable()
        for batch in parquet_batches(path):
            yield from _read(batch, strings)


def iter_pairs(folders: Sequence[Path]) -> Iterator[Pair]:
    """The pairs of some folders, in the order in which they were written."""
    for path in shards_of(folders, "pairs"):
        for batch in parquet_batches(path):
            for row in batch.to_pylist():
                for key in ("marker_spans", "s1_spans", "s2_spans"):
                    row[key] = tuple((start, end) for start, end in row[key])
                yield Pair(**row)


def write_pairs(path: Path, columns: Iterable[PairColumns], facts: PairFacts) -> int:
    """One shard of pairs by `corpora.schemas.PAIRS`; returns the number of rows."""
    return write_parquet(path, (_pair_batch(c) for c in columns), PAIRS, facts.metadata())


def _pair_batch(columns: PairColumns) -> pa.RecordBatch:
    """Pairs as a record batch, without a Python object for each pair."""
    documents = columns.documents
    values = {
        name: _chosen([getattr(document, name) for document in documents], columns.doc)
        for name in ("group", "source", "licence")
    }
    values |= {
        "doc": _chosen([document.id for document in documents], columns.doc),
        "language": _chosen([columns.language] * len(documents), columns.doc),
        "sentence": pa.array(columns.sentence, pa.int32()),
        "marker": _chosen(columns.markers, columns.marker),
        "marker_spans": _span_lists(columns.marker_spans),
        "s1_spans": _span_lists(columns.s1_spans),
        "s2_spans": _span_lists(columns.s2_spans),
        "s1": pa.array(columns.s1, pa.string()),
        "s2": pa.array(columns.s2, pa.string()),
        "s2_added": pa.array(columns.s2_added, pa.string()),
        "confidence": pa.nulls(len(columns), pa.float32())
        if columns.confidence is None
        else pa.array(columns.confidence),
        "position": _chosen(POSITIONS, columns.previous),
        "order": _chosen(ORDERS, columns.s1_first),
        "has_clauses": pa.array(columns.has_clauses, pa.bool_()),
        "pattern": _chosen(columns.patterns, columns.pattern),
    }
    return pa.RecordBatch.from_arrays([values[f.name] for f in PAIRS], schema=PAIRS)


def _chosen(names: Sequence[str], which: Any) -> pa.Array:
    return pa.array(names, pa.string()).take(pa.array(which.astype(np.int32)))


def _span_lists(column: SpanColumn) -> pa.Array:
    flat = np.stack([column.start, column.end], axis=1).ravel().astype(np.int32)
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.int32()), type=SPAN)
    return pa.ListArray.from_arrays(pa.array(column.offsets, pa.int32()), pairs)


def _lists(rows: Sequence[Ints]) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int32)
    values = np.concatenate([np.empty(0, dtype=np.int32), *rows]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def _name_lists(parses: Sequence[ParsedDocument], name: str) -> pa.Array:
    """String columns as lists over one dictionary, sorted so that equal parses are equal bytes."""
    rows = [getattr(p, name) for p in parses]
    names = sorted(
        {p.strings.strings[c] for p, r in zip(parses, rows, strict=True) for c in set(r.tolist())}
    )
    place = {string: i for i, string in enumerate(names)}
    flat: list[Ints] = []
    for parse, row in zip(parses, rows, strict=True):
        unique, inverse = np.unique(row, return_inverse=True)
        codes = [place[parse.strings.strings[c]] for c in unique.tolist()]
        flat.append(np.array(codes, dtype=np.int32)[inverse])
    lists = _lists(flat)
    values = pa.DictionaryArray.from_arrays(lists.values, pa.array(names, pa.string()))
    return pa.ListArray.from_arrays(lists.offsets, values)


def _read(batch: pa.RecordBatch, strings: StringTable) -> Iterator[ParsedDocument]:
    numbers = {name: _flat(batch, name) for name in ("sentence", "size", *NUMBERS)}
    names = {name: _codes(batch, name, strings) for name in NAMES}
    for row, doc in enumerate(batch.column("doc").to_pylist()):
        parts = {
            name: values[offsets[row] : offsets[row + 1]]
            for name, (values, offsets) in (numbers | names).items()
        }
        size = parts.pop("size")
        offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int32)
        yield ParsedDocument(doc=doc, strings=strings, offsets=offsets, **parts)


def _flat(batch: pa.RecordBatch, name: str) -> tuple[Ints, Ints]:
    column = batch.column(name)
    return column.values.to_numpy(zero_copy_only=False), column.offsets.to_numpy()


def _codes(batch: pa.RecordBatch, name: str, strings: StringTable) -> tuple[Ints, Ints]:
    column = batch.column(name)
    codes = strings.codes(column.values.dictionary.to_pylist())
    return codes[column.values.indices.to_numpy()], column.offsets.to_numpy()
