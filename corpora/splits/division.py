"""One division of documents into splits, for all datasets that are made of them.

A model that was trained on one dataset is judged on another; drawn anew for each, the second's
test split would hold documents of the first's training split. So a build divides its documents
once, and hands the division to every builder (docs/decisions/032-one-division.md).

Which document goes where is found in `corpora.splits.stratification`; here it is written and read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import InputError
from corpora.rng import Words, stable_id
from corpora.schemas import INT8, STRING, schema
from corpora.splits import MIN_GROUPS, SPLITS, TOLERANCE, Shares
from corpora.splits.stratification import Codes, Served, Table, stratified
from corpora.store.atomic import replacing
from corpora.store.rows import PARQUET

VERSION = 2
"""Raised when `divide` puts the same documents elsewhere."""

FILE = "division.parquet"
SCHEMA = schema(doc=STRING, key=pa.uint64(), split=INT8)
ROWS_PER_GROUP = 65_536
PLACES = (*SPLITS, "")
"""What a code of the table means; the last one is that of a document that is in no split."""
NOWHERE = PLACES.index("")


@dataclass(frozen=True, slots=True)
class Divided:
    """What a division came to: how many documents each split has, and how many a table settled.

    `by`: what was kept together, `group` or `document`; `kept` is None without a table.
    """

    by: str
    reason: str
    documents: dict[str, int]
    kept: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


def divide(
    sources: Sequence[Served],
    shares: Shares,
    folder: Path,
    *,
    seed: int,
    names: Sequence[str] = (),
    kept: Division | None = None,
    prescribed: Mapping[str, str] | None = None,
    said: str = "",
) -> Divided:
    """Divide the documents of sources, and write `folder/division.parquet`.

    Each source comes with the datasets that draw on it; its documents are iterated twice. Groups
    are kept whole. But if a dataset then misses its shares by more than 20 %, or has fewer than
    three groups in a split, its documents are divided singly. A document that comes in two sources,
    as text and annotated, is one, and its groups are one group. In which split a
    document is does not depend on the order of sources or documents. Documents of `kept` are where
    it has them, with what is new in their groups, else where `prescribed` says ("" for no split);
    the others are dealt out to what splits then lack. `said` is how the reason names what is
    prescribed.

    Raises `InputError` if a dataset draws on two sources with a document of one id, as its builder
    would, but before anything is parsed; `names` are the sources' names, for the message.
    """
    table = Table.read(sources)
    _check_ids(table, sources, names)
    known = kept or Division.of({})
    given = known.codes(table.documents)
    settled = {name for name in table.datasets if (given[table.rows_of(name)] >= 0).any()}
    given = np.where(given < 0, Division.of(prescribed or {}).codes(table.documents), given)
    # Where all is prescribed there is nothing to divide, whatever the shares come to.
    settled |= {name for name in table.datasets if (given[table.rows_of(name)] >= 0).all()}
    nowhere = given == NOWHERE
    given[nowhere] = -1
    table = replace(table, weights=np.where(nowhere, 0, table.weights))
    split, broken = stratified(table, shares, seed, given, settled)
    split[nowhere] = NOWHERE
    whole_but = [f"those of {', '.join(broken)}"] if broken else []
    whole_but += ["those that the table divides"] if table.cuts(given) else []
    _, first = np.unique(table.documents, return_index=True)
    taken = int((known.codes(table.documents[first]) >= 0).sum())
    parts = ", ".join(f"{s} {part:g}" for s, part in zip(SPLITS, shares.parts, strict=True))
    reason = (
        f"one division for all datasets of the build ({parts}), in which no group is in two splits"
    )
    reason += f", except {' and '.join(whole_but)}" if whole_but else ""
    reason += f"; {taken:,} documents are where a table has them" if kept else ""
    reason += f"; {said}" if said else ""
    numbers = np.bincount(split[first], minlength=len(SPLITS))[: len(SPLITS)].tolist()
    made = Divided(
        "document" if whole_but else "group",
        reason,
        dict(zip(SPLITS, numbers, strict=True)),
        taken if kept else None,
    )
    _write(folder, sources, split, made)
    return made


def _write(folder: Path, sources: Sequence[Served], split: Codes, made: Divided) -> None:
    """The documents in the order in which they come, each as often as it comes."""
    described = SCHEMA.with_metadata(
        {"division": json.dumps({"by": made.by, "reason": made.reason})}
    )
    every = (name for _, sizes in sources for name, *_ in sizes)
    done = 0
    with (
        replacing(folder / FILE) as partial,
        pq.ParquetWriter(partial, described, **PARQUET) as writer,
    ):
        while ids := list(islice(every, ROWS_PER_GROUP)):
            columns = [pa.array(ids), pa.array(_keys(ids)), pa.array(split[done:][: len(ids)])]
            done += len(ids)
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=described))


def divided(documents: Mapping[str, tuple[str, int]], shares: Shares, seed: int) -> Division:
    """A division of the documents (id -> group, weight) of one dataset.

    By group if each split gets at least three groups and comes within 20 % of its share, else by
    document. It depends on the documents, not on their order. With three or more documents no
    split of a positive share is empty.
    """
    sizes = ((name, group, weight) for name, (group, weight) in documents.items())
    table = Table.read([(("dataset",), sizes)])
    split, broken = stratified(table, shares, seed, np.full(len(documents), -1, np.int8))
    reason = "whole groups fit"
    if broken:
        reason = f"{table.groups.max() + 1} groups do not make splits of at least "
        reason += f"{MIN_GROUPS} groups each within {TOLERANCE:.0%} of their shares"
    return Division(table.documents, split, "document" if broken else "group", reason)


def _check_ids(table: Table, sources: Sequence[Served], names: Sequence[str]) -> None:
    for dataset in table.datasets:
        rows = table.rows_of(dataset)
        _, first = np.unique(table.documents[rows], return_index=True)
        again = np.delete(rows, first)  # of another source: ids are unique in one
        if not len(again):
            continue
        ids = (id for _, sizes in sources for id, *_ in sizes)
        id = next(islice(ids, int(again[0]), None))
        among = table.source[table.documents == table.documents[again[0]]].tolist()
        both = [i for i in among if dataset in table.served[i]][:2]
        many = len(np.unique(table.documents[again]))
        such = f" (one of {many:,} such ids)" if many > 1 else ""
        raise InputError(
            f"two documents have the id {id!r}{such}, and the dataset {dataset!r} draws on both",
            where=", ".join(names[i] if names else f"source {i + 1}" for i in both),
            hint="ids must differ over all sources of a dataset: is a source named twice? Those of "
            'records (jsonl:, parquet:, hub:) do with options = { id_prefix = "NAME/" }, those of '
            "files named alike in two folders with /./ in the path, as in text:books/./emma",
        )


def _keys(names: Sequence[str]) -> Words:
    return np.fromiter(map(stable_id, names), np.uint64, len(names))


class Division:
    """The split of every document of a build: 9 bytes of memory each."""

    def __init__(self, keys: Words, codes: Codes, by: str = "", reason: str = "") -> None:
        keys, first = np.unique(keys, return_index=True)
        self._keys, self._codes = keys, codes[first]
        self.by, self.reason = by, reason

    @classmethod
    def of(cls, split: Mapping[str, str], reason: str = "as given") -> Division:
        """A division that says the split of each document, "" for none."""
        codes = [PLACES.index(name) for name in split.values()]
        return cls(_keys(list(split)), np.array(codes, np.int8), "document", reason)

    @classmethod
    def read(cls, folder: Path) -> Division:
        """What `divide` wrote into `folder`."""
        table = pq.read_table(
            folder / FILE, columns=["key", "split"], page_checksum_verification=True
        )
        about = json.loads((table.schema.metadata or {}).get(b"division", b"{}"))
        return cls(table["key"].to_numpy(), table["split"].to_numpy(), **about)

    def __contains__(self, document: str) -> bool:
        return int(self.codes(_keys([document]))[0]) >= 0

    def splits_of(self, documents: Sequence[str]) -> list[str | None]:
        """The split of each document, or None: prescribed splits may leave it out.

        Raises `InputError` for one that was not divided.
        """
        codes = self.codes(_keys(documents))
        missing = np.flatnonzero(codes < 0)
        if missing.size:
            raise InputError(
                f"the document {documents[missing[0]]!r} is in no split",
                hint="the documents were divided before they changed: remove the folder of the "
                "stage `division` and run again",
            )
        return [PLACES[code] or None for code in codes.tolist()]

    def codes(self, keys: Words) -> Codes:
        """The places in `PLACES` of documents by their keys; -1 of one that was not divided."""
        if not len(self._keys):
            return np.full(len(keys), -1, np.int8)
        at = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._codes[at], np.int8(-1))
