"""Splits and queries over the candidates that builders have collected into Parquet shards.

The split of a document, and the candidates that are used, are known only when all documents have
been read.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import InputError
from corpora.schemas import INT32, STRING, schema
from corpora.splits import SPLITS
from corpora.splits.division import Division, dataset_division
from corpora.store.engine import BATCH, Engine, parquet
from corpora.store.folder import CANDIDATES, DatasetFolder
from corpora.store.rows import SplitWriter

if TYPE_CHECKING:
    from corpora.tasks.builder import Builder, Target

Prescribed = Callable[[Mapping[str, tuple[str, int]], "Target"], Division | None]
"""Takes each document's group and number of candidates by id; returns prescribed splits, if any."""

REJECTS = "discorpora:rejects"
"""The key in a shard's metadata for the numbers of rejected candidates by reason."""

COMMON = schema(
    part=STRING,
    doc=STRING,
    number=INT32,
    group=STRING,
    licence=STRING,
    priority=pa.int64(),
    key=pa.uint64(),
)
"""(part, doc, number) is unique. `key` is equal for candidates that are duplicates."""

DOCUMENTS = schema(
    part=STRING,
    doc=STRING,
    doc_key=pa.uint64(),
    whole=STRING,
    group=STRING,
    source=STRING,
    language=STRING,
    candidates=INT32,
)
"""A document, or a part of one: `whole` is the id of the source's document."""


DOCUMENTS_PER_BATCH = 65_536


def text_key(values: Any) -> int:
    """Return a hash of 64 bits of a text or list of texts, the same in every run."""
    text = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


class Candidates:
    """All candidates of a dataset as tables of DuckDB; use as a context manager.

    - `candidate`: `COMMON` and the builder's columns
    - `documents`: `DOCUMENTS`
    - `single`: part, doc, number and priority of each candidate that is not a duplicate
    - `kept`, after `split`: the rows of `single` that are in a split, with the split
    - `chosen`, after `split`: all columns of the candidates in `kept`, with their splits

    The shards are removed at the end, except after an error.
    """

    def __init__(self, builder: Builder, target: Target, dataset: DatasetFolder) -> None:
        self.builder, self.target, self.dataset = builder, target, dataset
        self.folder = target.folder / CANDIDATES
        self.engine = Engine(target.folder, threads=target.threads, memory=target.memory)
        self.assignments: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        """Open the shards as tables, check the documents' ids, and remove duplicates."""
        for name, files in (("candidate", "*.rows"), ("documents", "*.documents")):
            self.engine.run(f"create view {name} as select * from {parquet(self.folder / files)}")
        for path in sorted(self.folder.glob("*.documents")):
            counts = json.loads(pq.read_schema(path).metadata[REJECTS.encode()])
            for reason, number in counts.items():
                self.dataset.reject(reason, number)
        self._check_ids()
        languages = "select distinct language from documents where candidates > 0"
        self.dataset.languages |= {language for (language,) in self.engine.rows(languages)}
        self._remove_duplicates()
        return self

    def _check_ids(self) -> None:
        """Raise `InputError` if two documents have the same id."""
        for doc, sources in self.engine.rows(_REPEATED_IDS):
            raise InputError(
                f"two documents have the id {doc!r}",
                where=", ".join(dict.fromkeys(sources)),
                hint="ids must differ over all sources of a dataset: is a source named twice?",
            )

    def _remove_duplicates(self) -> None:
        """Make the table `single`: one candidate for each key. Other candidates with the key are
        duplicates, which count as rejected."""
        self.engine.run(_CREATE_SINGLE)
        number = "select (select count(*) from candidate) - (select count(*) from single)"
        self.dataset.reject("exact_duplicate", int(self.engine.value(number)))

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.engine.__exit__()
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def split(
        self,
        prescribed: Prescribed | None = None,
        *,
        weigh: Literal["documents", "single"] = "documents",
    ) -> None:
        """Give each document a split: the prescribed one, else that of the target's division.

        Without either, documents are divided by the builder's shares. The weight of a document is
        the number of its candidates, or with `weigh="single"` of those that are not duplicates.
        """
        target = self.target
        self.engine.run(f"create view weighed as {_WEIGHED[weigh]}")
        self.engine.run("create table split (part varchar, doc varchar, split varchar)")
        query = "select distinct part from weighed order by part"
        parts = [part for (part,) in self.engine.rows(query)]
        # With `one_split`, all parts of a document are in the same split: they are divided at once.
        parts_of_division = (
            {"": parts} if self.builder.one_split else {part: [part] for part in parts}
        )
        where_parts = "where list_contains($parts, part)"
        for name, member_parts in parts_of_division.items():
            # The division: prescribed, of the target, or new, by the shares of the builder
            parameters, division = {"parts": member_parts}, target.division
            if prescribed or division is None:
                query = (
                    f'select doc, min("group"), sum(candidates)::bigint from weighed {where_parts}'
                )
                rows = self.engine.rows(f"{query} group by doc order by doc", parameters)
                weights = {doc: (group, number) for doc, group, number in rows}
                division = (prescribed and prescribed(weights, target)) or division
                division = division or dataset_division(
                    weights, self.builder.shares(name), target.seed
                )
            # Store the split of each document.
            query = f"select part, doc, whole from weighed {where_parts}"
            for batch in self.engine.batches(query, parameters, DOCUMENTS_PER_BATCH):
                # A build divides whole documents, even if candidates are from parts of them.
                ids = batch["whole" if division is target.division else "doc"].to_pylist()
                splits = pa.array(division.splits_of(ids), pa.string())
                columns = [batch["part"], batch["doc"], splits]
                self.engine.insert("split", pa.table(columns, ["part", "doc", "split"]))
            # Record how many candidates each split has.
            query = f"from weighed join split using (part, doc) {where_parts} group by split"
            sums = dict(self.engine.rows(f"select split, sum(candidates) {query}", parameters))
            sizes = {split: int(sums.get(split, 0)) for split in SPLITS}
            assignment = {"by": division.by, "reason": division.reason, "weights": sizes}
            self.assignments[name] = assignment
        self._note_groups_in_several_splits()
        self.engine.run(
            "create table kept as select part, doc, number, priority, split "
            "from single join split using (part, doc) where split is not null; "
            "create view chosen as select candidate.*, split "
            "from kept join candidate using (part, doc, number)"
        )
        number = "select (select count(*) from single) - (select count(*) from kept)"
        self.dataset.reject("document_in_no_split", int(self.engine.value(number)))
        for part in parts:
            self._limit_groups(part)
        if self.builder.share_fields():
            self.dataset.shares = self.builder.shares()
        self.dataset.details["split"] = self.assignments.get("", self.assignments)

    def _note_groups_in_several_splits(self) -> None:
        """Add a note if documents of one group are in several splits."""
        [(groups, cut, most)] = self.engine.rows(_GROUPS_IN_SEVERAL_SPLITS)
        if cut:
            splits = "all" if most == len(SPLITS) else "several"
            self.dataset.note(
                "Documents of one book or file, such as the chapters of one novel, are in "
                f"{splits} splits ({cut:,} of {groups:,} books or files): a score on `test` may "
                "not hold for other books."
            )

    def _limit_groups(self, part: str) -> None:
        """Drop training candidates of each group that has more than the allowed share of them. A
        group keeps the candidates whose `priority` is the smallest number. The allowed share is
        `largest_group`, but at least 2 / n for `n` groups: a smaller share could leave almost no
        candidates."""
        self.engine.run(_CREATE_TRAINING, {"part": part})
        # size [k]: the sizes of groups, in candidates; groups [k]: how many groups have that size
        sizes = 'select count(*) as size from training group by "group"'
        rows = self.engine.rows(f"select size, count(*) from ({sizes}) group by 1 order by 1")
        size, groups = np.array(rows, np.int64).reshape(-1, 2).T
        share = max(self.target.largest_group, 2 / max(1, int(groups.sum())))

        def is_too_large(limit: int) -> bool:
            """Return whether `limit` exceeds the share when all groups are cut to `limit`."""
            return limit > share * int((np.minimum(size, limit) * groups).sum())

        largest = int(size.max(initial=0))
        if not is_too_large(largest):
            return
        limit = bisect_left(range(1, largest + 1), True, key=is_too_large)
        query = 'select list(distinct "group" order by "group") from training where place > $limit'
        names = self.engine.value(query, {"limit": limit})
        number = self.engine.value(_DROP_ABOVE_LIMIT, {"limit": limit})
        self.dataset.reject("group_over_its_share", int(number))
        self.dataset.note(
            f"No group (a book, a file) gives more than {share:.0%} of the candidates for training"
            f"{f' of `{part}`' if part else ''}: {number:,} of {', '.join(names)} are left out."
        )

    def of_split(
        self, split: str, *, limit: int | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        """Yield the candidates of a split in batches by increasing priority, at most `limit`."""
        query = (
            "select * from chosen where part = '' and split = $split "
            "order by priority, doc, number limit $limit"
        )
        return self.engine.batches(query, {"split": split, "limit": limit}, size)

    def number_to_use(self, split: str, size: int, unit: str) -> int:
        """Return the number of candidates of a split to use: all of them, but at most `size`.

        If there are fewer, a note on the card says so; if there are more, the others are counted as
        rejected (`not_needed`). `unit` names what is counted in the note, in the plural ("rows").
        """
        available = self.count(split)
        if available < size:
            note = f"{split}: {size:,} {unit} were asked for, the corpus gives {available:,}."
            self.dataset.note(note)
        self.dataset.reject("not_needed", max(0, available - size))
        return min(available, size)

    def count(self, split: str, *, part: str = "") -> int:
        """Return the number of candidates in a split."""
        query = "select count(*) from kept where part = $part and split = $split"
        return int(self.engine.value(query, {"part": part, "split": split}))

    def note_quoted(self) -> None:
        """Add a note with the number of sentences that got quotation marks (column `quoted`)."""
        query = "select sum(quoted)::bigint, sum(len(sentences))::bigint from chosen"
        ((quoted, sentences),) = self.engine.rows(query)
        if quoted:
            self.dataset.note(
                f"{quoted:,} of {sentences:,} sentences got quotation marks of their own."
            )

    def write(self, writer: SplitWriter, batches: Iterable[pa.RecordBatch]) -> None:
        """Write batches of candidates with the columns of the writer's schema; count licences."""
        for batch in batches:
            self.dataset.count_licences(batch["licence"])
            columns = [batch[field.name].cast(field.type) for field in writer.schema]
            writer.append(pa.RecordBatch.from_arrays(columns, schema=writer.schema))

    def write_splits(
        self,
        columns: pa.Schema,
        texts: Sequence[str],
        rows_per_group: int = 0,
        *,
        query: str = "select * from chosen where split = $split order by priority, doc, number",
        values: Mapping[str, Any] | None = None,
        size: int = BATCH,
    ) -> None:
        """Write the candidates of each split unchanged, as the configuration `default`.

        `query` may select other rows or another order; its parameters are `values` and `split`.
        """
        for split in SPLITS:
            writer = self.dataset.writer(
                "default", split, columns, texts=texts, rows_per_group=rows_per_group
            )
            parameters = {**(values or {}), "split": split}
            self.write(writer, self.engine.batches(query, parameters, size))

    @contextmanager
    def memory_mapped(
        self, query: str, values: Mapping[str, Any] | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows of a query as a table in a memory-mapped file, removed at the end."""
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


_REPEATED_IDS = """
select doc, list(source order by source) from documents
group by part, doc having count(*) > 1 order by doc limit 1
"""

_CREATE_SINGLE = """
create table single as select part, doc, number, priority from candidate
qualify row_number() over (partition by part, key order by priority, doc, number) = 1
"""
"""Among equal candidates, the one of lowest priority stays."""

_WEIGHED = {
    "documents": "select * from documents where candidates > 0",
    "single": """
select documents.* replace (weight.number as candidates) from documents
join (select part, doc, count(*) as number from single group by part, doc) as weight
    using (part, doc)
""",
}

_GROUPS_IN_SEVERAL_SPLITS = """
select count(*), count(*) filter (splits > 1), max(splits) from (
    select "group", count(distinct split) as splits
    from weighed join split using (part, doc) group by "group"
)
"""

_CREATE_TRAINING = """
create or replace table training as
select part, doc, number, "group",
    row_number() over (partition by "group" order by kept.priority, doc, number) as place
from kept join documents using (part, doc) where split = 'train' and part = $part
"""

_DROP_ABOVE_LIMIT = """
delete from kept using training where place > $limit
    and kept.part = training.part and kept.doc = training.doc and kept.number = training.number
"""
