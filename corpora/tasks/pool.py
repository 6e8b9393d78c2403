"""Candidate rows on disk: collected from documents once, then split, chosen and read back.

Which split a document goes to, and which candidates are taken, is known only when all have been
seen. So they wait in a file, a JSON line each; in memory stay about 30 bytes a candidate. The
result does not depend on the order in which documents come.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpora.document import Document
from corpora.errors import InputError
from corpora.rng import stable_id, stream
from corpora.splits import Assignment, Shares, assign
from corpora.splits.division import Division
from corpora.store.scratch import Scratch

Rows = NDArray[np.int64]

SCHEMA = pa.schema(
    [
        pa.field("doc", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("licence", pa.string(), nullable=False),
        pa.field("sentences", pa.list_(pa.string()), nullable=False),
    ]
)


class Pool(Scratch):
    """Lists of sentences from documents, each with a random priority: read in batches, or singly.

    A priority comes from the stream of its document, so neither other documents nor their order
    change it. Use as a context manager; the file is removed at the end.
    """

    def __init__(
        self, path: Path, *, seed: int, stage: str, division: Division | None = None
    ) -> None:
        super().__init__(path)
        self.seed, self.stage, self.division = seed, stage, division
        self.documents: dict[str, tuple[str, int]] = {}
        self.languages: set[str] = set()
        self._wholes: dict[str, str] = {}
        self._names: list[str] = []
        self._ranges: dict[str, range] = {}
        self._document = array("i")
        self._priority = array("q")
        self._text_key = array("q")
        self._offset = array("q")

    def __len__(self) -> int:
        return len(self._document)

    def add(
        self,
        document: Document,
        candidates: Sequence[list[str]],
        ids: Sequence[str] = (),
        *,
        whole: str = "",
    ) -> None:
        """Add all candidates of one document, named by `ids` (by default the document's id).

        `whole` is the id of the source's document that this one is a part of, if it is one.
        Raises `InputError` if a document with the same id came before.
        """
        if document.id in self.documents:
            raise InputError(
                f"two documents have the id {document.id!r}",
                where=document.source,
                hint="ids must differ over all sources of a dataset: is a source named twice?",
            )
        if not candidates:
            return
        number = len(candidates)
        self.documents[document.id] = (document.group, number)
        if whole:
            self._wholes[document.id] = whole
        self.languages.add(document.language)
        self._document.extend([len(self._names)] * number)
        self._names.append(document.id)
        random = stream(self.seed, self.stage, document.id)
        self._priority.extend(random.integers(0, 2**63 - 1, size=number).tolist())
        # Python's own hash differs from run to run, but never leaves this process.
        self._text_key.extend(hash(tuple(sentences)) for sentences in candidates)
        for id, sentences in zip(ids or [document.id] * number, candidates, strict=True):
            self._offset.append(self._file.tell())
            row = (document.id, id, document.group, document.licence, sentences)
            self._file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

    def assign(self, shares: Shares) -> Assignment:
        """Assign each document that gave candidates to a split."""
        return assign(
            self.documents,
            shares,
            seed=self.seed,
            stage=self.stage,
            division=self.division,
            wholes=self._wholes,
        )

    def distinct(self) -> Rows:
        """The candidates without exact duplicates: of equal ones that of lowest priority stays."""
        every = np.arange(len(self))
        return without_duplicates(
            every, np.frombuffer(self._text_key, np.int64), self._priorities()
        )

    def of_split(self, split: str, assignment: Assignment, among: Rows) -> Rows:
        """The rows of `among` whose documents are in `split`, by increasing priority."""
        inside = np.fromiter((assignment.split[name] == split for name in self._names), bool)
        rows = among[inside[np.frombuffer(self._document, np.int32)[among]]]
        return rows[np.argsort(self._priorities()[rows], kind="stable")]

    def read(self, rows: Rows, size: int = 4096) -> Iterator[pa.RecordBatch]:
        """The candidates `rows`, in that order, as record batches of `SCHEMA`."""
        for start in range(0, rows.size, size):
            found = list(map(self._row, rows[start : start + size].tolist()))
            columns = zip(*found, strict=True)
            arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def rows_of(self, name: str) -> range:
        """The rows of one document: they stand together."""
        if len(self._ranges) != len(self._names):
            ends = np.cumsum([self.documents[n][1] for n in self._names]).tolist()
            starts = [0, *ends[:-1]]
            spans = zip(starts, ends, strict=True)
            self._ranges = {n: range(a, b) for n, (a, b) in zip(self._names, spans, strict=True)}
        return self._ranges[name]

    def document_of(self, row: int) -> str:
        return self._names[self._document[row]]

    def documents_of(self, rows: Rows) -> NDArray[np.int32]:
        """The number of the document of each row: equal where the document is the same."""
        return np.frombuffer(self._document, np.int32)[rows]

    def place(self, row: int) -> str:
        """A name of a candidate that no other document changes: `DOCUMENT#NUMBER`."""
        name = self.document_of(row)
        return f"{name}#{row - self.rows_of(name).start}"

    def record(self, row: int) -> dict[str, Any]:
        """A candidate by the fields of `SCHEMA`."""
        return dict(zip(SCHEMA.names, self._row(row), strict=True))

    def names_in(self, split: str, assigned: dict[str, str]) -> list[str]:
        """The documents of a split, in an order that depends on their names alone."""
        found = [name for name in self._names if assigned[name] == split]
        return sorted(found, key=lambda name: (stable_id(name), name))

    def without_texts_of(self, other: Pool, among: Rows) -> Rows:
        """Those of the rows `among` whose sentences are no candidate of `other`."""
        own = np.frombuffer(self._text_key, np.int64)[among]
        return among[~np.isin(own, np.frombuffer(other._text_key, np.int64))]

    def _row(self, row: int) -> Any:
        self._file.seek(self._offset[row])
        return json.loads(self._file.readline())

    def _priorities(self) -> Rows:
        return np.frombuffer(self._priority, np.int64)


def without_duplicates(rows: Rows, keys: Rows, priority: Rows) -> Rows:
    """Those of `rows` that share their key with no other row of a lower priority."""
    ordered = np.sort(keys[rows])
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not repeated.size:
        return rows
    # Duplicates are few: only they are sorted by priority.
    place = np.minimum(np.searchsorted(repeated, keys[rows]), repeated.size - 1)
    alike = rows[repeated[place] == keys[rows]]
    order = alike[np.lexsort((priority[alike], keys[alike]))]
    dropped = order[1:][keys[order[1:]] == keys[order[:-1]]]
    return np.setdiff1d(rows, dropped, assume_unique=True)
