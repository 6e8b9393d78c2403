"""Candidate rows: collected from documents into Parquet shards, then split and queried.

Which split a document is in, and which candidates are taken, is known only when all documents
have been read. A candidate's priority comes from the random stream of its document: neither other
documents nor their order change it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.document import Document
from corpora.errors import InputError
from corpora.rng import stable_id, stream
from corpora.splits import SPLITS, Assignment, assign
from corpora.store.atomic import replacing
from corpora.store.engine import BATCH, Engine
from corpora.store.folder import DatasetFolder
from corpora.store.splitwriter import SplitWriter
from corpora.tasks.builder import Builder, Row, Target

Prescribed = Callable[[Mapping[str, tuple[str, int]], Target], Assignment | None]
"""`Builder.prescribed`."""

FOLDER = ".candidates"
DOCUMENTS_PER_SHARD = 256
REJECTS = b"discorpora:rejects"

COMMON = pa.schema(
    [
        pa.field("part", pa.string(), nullable=False),
        pa.field("doc", pa.string(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("licence", pa.string(), nullable=False),
        pa.field("priority", pa.int64(), nullable=False),
        pa.field("key", pa.uint64(), nullable=False),
    ]
)
"""(part, doc, number) is unique. `key` is equal for candidates that are duplicates."""

DOCUMENTS = pa.schema(
    [
        pa.field("part", pa.string(), nullable=False),
        pa.field("doc", pa.string(), nullable=False),
        pa.field("doc_key", pa.uint64(), nullable=False),
        pa.field("whole", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("candidates", pa.int32(), nullable=False),
    ]
)
"""A document, or a part of one: `whole` is the id of the source's document."""


def collect(builder: Builder, documents: Iterable[Document], target: Target) -> None:
    """Write the candidates of documents as shards; those that are there are kept."""
    iterator = iter(documents)
    shard = 0
    while some := list(islice(iterator, DOCUMENTS_PER_SHARD)):
        collect_shard(builder, some, target, f"{shard:05d}")
        shard += 1
    if not shard:
        collect_shard(builder, (), target, "00000")


def collect_shard(
    builder: Builder, documents: Iterable[Document], target: Target, name: str
) -> None:
    """Write the candidates of some documents as the shard `name`, unless it is there."""
    folder = target.folder / FOLDER
    path = folder / f"{name}.rows.parquet"
    if path.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rejects: Counter[str] = Counter()
    about: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for document in documents:
        made = list(builder.candidates(document, lambda reason: rejects.update((reason,))))
        parts: dict[tuple[str, str], list[Row]] = {}
        for row in made:
            parts.setdefault((row.part, row.doc or document.id), []).append(row)
        # A document without candidates stays known: an id that comes twice is an error anyway.
        for (part, doc), own in (parts or {("", document.id): []}).items():
            about.append(_about(document, part, doc, len(own)))
            rows += _numbered(own, part, doc, document, builder, target)
    schema = pa.schema([*COMMON, *builder.columns])
    _write(folder / f"{name}.documents.parquet", about, DOCUMENTS, rejects)
    _write(path, rows, schema, rejects)


def _about(document: Document, part: str, doc: str, candidates: int) -> dict[str, Any]:
    return {
        "part": part,
        "doc": doc,
        "doc_key": stable_id(doc),
        "whole": document.id,
        "group": document.group,
        "source": document.source,
        "language": document.language,
        "candidates": candidates,
    }


def _numbered(
    rows: list[Row], part: str, doc: str, document: Document, builder: Builder, target: Target
) -> Iterator[dict[str, Any]]:
    """Rows with a number, a random priority, and the key of the texts that make duplicates."""
    random = stream(target.seed, target.stage_of(part), doc)
    priorities = random.integers(0, 2**63 - 1, size=len(rows)).tolist()
    names = builder.columns.names
    for number, (row, priority) in enumerate(zip(rows, priorities, strict=True)):
        values = dict(zip(names, row.values, strict=True))
        yield {
            "part": part,
            "doc": doc,
            "number": number,
            "group": document.group,
            "licence": document.licence,
            "priority": priority,
            "key": text_key([values[name] for name in builder.equal] or [part, doc, number]),
            **values,
        }


def text_key(values: Any) -> int:
    """64 bits that are equal for equal texts or lists of texts, in every run."""
    text = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def _write(
    path: Path, rows: list[dict[str, Any]], schema: pa.Schema, rejects: Counter[str]
) -> None:
    table = pa.Table.from_pylist(rows, schema)
    table = table.replace_schema_metadata({REJECTS: json.dumps(rejects)})
    with replacing(path) as partial:
        pq.write_table(table, partial, compression="zstd")


class Candidates:
    """All candidates of a dataset, under an engine; use as a context manager.

    After `split` these can be queried: `document` (`DOCUMENTS` and `split`), `candidate` (`COMMON`
    and the builder's columns), and `kept`: part, doc, number, priority and split of each candidate
    that is no duplicate and is in a split. The shards are removed at the end.
    """

    def __init__(self, builder: Builder, target: Target, dataset: DatasetFolder) -> None:
        self.builder, self.target, self.dataset = builder, target, dataset
        self.folder = target.folder / FOLDER
        self.engine = Engine(target.folder, threads=target.threads, memory=target.memory)
        self.assignments: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        self.engine.view("candidate", str(self.folder / "*.rows.parquet"))
        self.engine.view("documents", str(self.folder / "*.documents.parquet"))
        for path in sorted(self.folder.glob("*.rows.parquet")):
            counts = json.loads(pq.read_schema(path).metadata[REJECTS])
            for reason, number in counts.items():
                self.dataset.reject(reason, number)
        self._check_ids()
        languages = "select distinct language from documents where candidates > 0"
        self.dataset.languages |= {language for (language,) in self.engine.rows(languages)}
        return self

    def __exit__(self, *error: object) -> None:
        self.engine.__exit__(*error)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _check_ids(self) -> None:
        twice = self.engine.rows(
            """select doc, list(source order by source) from documents
            group by part, doc having count(*) > 1 order by doc limit 1"""
        )
        for doc, sources in twice:
            raise InputError(
                f"two documents have the id {doc!r}",
                where=", ".join(dict.fromkeys(sources)),
                hint="ids must differ over all sources of a dataset: is a source named twice?",
            )

    def split(self, prescribed: Prescribed | None = None) -> None:
        """Give each document a split: as prescribed, as the division says, or by the shares.

        Makes `document` and `kept`; duplicates and what is in no split are counted.
        """
        query = "select distinct part from documents where candidates > 0 order by part"
        parts = [part for (part,) in self.engine.rows(query)]
        self.engine.run(
            "create table split (part varchar not null, doc varchar not null, split varchar)"
        )
        drawn = {"": parts} if self.builder.one_split else {part: [part] for part in parts}
        for name, some in drawn.items():
            self.assignments[name] = self._split_parts(name, some, prescribed)
        self.engine.run(_KEPT)
        one = self.assignments.get("")
        self.dataset.details |= {
            "split": one if one is not None else self.assignments,
            "settings": {"seed": self.target.seed, **self.builder.identity()},
        }
        number, distinct, kept = self.engine.rows(_COUNTS)[0]
        self.dataset.reject("exact_duplicate", number - distinct)
        self.dataset.reject("document_in_no_split", distinct - kept)

    def _split_parts(
        self, name: str, parts: list[str], prescribed: Prescribed | None
    ) -> dict[str, Any]:
        """Fill the table `split` for documents of parts; returns what the manifest says.

        A document of several parts is in one split; `name` is that of the random streams.
        """
        target, division = self.target, self.target.division
        given = None
        if prescribed is not None or division is None:
            weights = {
                doc: (group, number)
                for doc, group, number in self.engine.rows(_WEIGHTS, {"parts": parts})
            }
            given = prescribed(weights, target) if prescribed is not None else None
            if given is None and division is None:
                shares, stage = self.builder.shares(name), target.stage_of(name)
                given = assign(weights, shares, seed=target.seed, stage=stage)
        if given is not None:
            for part in parts:
                self._insert([part] * len(given.split), list(given.split), given.split.values())
            return given.to_dict()
        assert division is not None
        for batch in self.engine.batches(_WHOLES, {"parts": parts}, 65_536):
            splits = division.splits_of(batch["whole"].to_pylist())
            self._insert(batch["part"].to_pylist(), batch["doc"].to_pylist(), splits)
        sums = dict(self.engine.rows(_SUMS, {"parts": parts}))
        weights_by_split = {split: int(sums.get(split, 0)) for split in SPLITS}
        return {"by": division.by, "reason": division.reason, "weights": weights_by_split}

    def _insert(self, parts: list[str], docs: list[str], splits: Iterable[str]) -> None:
        if docs:
            columns = {"part": parts, "doc": docs, "split": list(splits)}
            self.engine.insert("split", pa.table(columns))

    def of_split(
        self, split: str, *, part: str = "", limit: int | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        """The candidates of a split by increasing priority, at most `limit` of them."""
        values = {"part": part, "split": split, "limit": 2**62 if limit is None else limit}
        return self.engine.batches(_OF_SPLIT, values, size)

    def limited(self, split: str, size: int, unit: str, *, part: str = "") -> int:
        """How many candidates of a split to take, `size` at most.

        What the corpus lacks is noted, and what it has too much of is counted. `unit` is what the
        sizes count, in the plural.
        """
        there = self.count(split, part=part)
        if there < size:
            note = f"{split}: {size:,} {unit} were asked for, the corpus gives {there:,}."
            self.dataset.note(note)
        self.dataset.reject("not_needed", max(0, there - size))
        return min(there, size)

    def count(self, split: str, *, part: str = "") -> int:
        """How many candidates a split has."""
        query = "select count(*) from kept where part = $part and split = $split"
        return int(self.engine.value(query, {"part": part, "split": split}))

    def write(self, writer: SplitWriter, batches: Iterable[pa.RecordBatch]) -> None:
        """Write candidates as the rows that they are: the columns of the writer's schema."""
        for batch in batches:
            self.dataset.count_licences(batch["licence"])
            columns = [batch[field.name].cast(field.type) for field in writer.schema]
            writer.append(pa.RecordBatch.from_arrays(columns, schema=writer.schema))

    @contextmanager
    def mapped(self, query: str, values: Mapping[str, Any] | None = None) -> Iterator[pa.Table]:
        """The rows of a query as a table in a file, for access to any row; then it is removed."""
        path = self.target.folder / ".mapped.arrow"
        with (
            self.engine.reader(query, values) as reader,
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, reader.schema) as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)
        try:
            with pa.memory_map(str(path)) as file:
                yield pa.ipc.open_file(file).read_all()
        finally:
            path.unlink()


_WEIGHTS = """
select doc, min("group"), sum(candidates)::bigint from documents
where list_contains($parts, part) and candidates > 0 group by doc order by doc
"""

_WHOLES = """
select part, doc, whole from documents
where list_contains($parts, part) and candidates > 0
"""

_SUMS = """
select split, sum(candidates) from documents join split using (part, doc)
where list_contains($parts, part) group by split
"""

_KEPT = """
create table kept as
with ranked as (
    select part, doc, number, priority,
        row_number() over (partition by part, key order by priority, doc, number) as place
    from candidate
)
select part, doc, number, priority, split
from ranked join split using (part, doc)
where place = 1 and split is not null
"""
"""Of equal candidates the one of lowest priority stays."""

_COUNTS = """
select
    (select count(*) from candidate),
    (select count(*) from (select distinct part, key from candidate)),
    (select count(*) from kept)
"""

_OF_SPLIT = """
select candidate.*
from kept join candidate using (part, doc, number)
where part = $part and split = $split
order by kept.priority, doc, number
limit $limit
"""
