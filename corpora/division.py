"""One division of documents into splits, for all datasets that are made of them.

A model that was trained on one dataset is judged on another; drawn anew for each, the second's
test split would hold documents of the first's training split. So a build divides its documents
once, and hands the division to every builder (docs/decisions/032-one-division.md).

Documents are divided so that every dataset comes near the shares: iterative stratification
(Sechidis, Tsoumakas, Vlahavas 2011), with the datasets as labels and characters as weights.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from corpora.atomic import replacing
from corpora.errors import InputError
from corpora.rng import mixed, stable_id
from corpora.splits import MIN_GROUPS, SPLITS, TOLERANCE, Shares

VERSION = 1
"""Raised when `divide` puts the same documents elsewhere."""

FILE = "division.parquet"
SCHEMA = pa.schema(
    [
        pa.field("doc", pa.string(), nullable=False),
        pa.field("key", pa.uint64(), nullable=False),
        pa.field("split", pa.int8(), nullable=False),
    ]
)
ROWS_PER_GROUP = 65_536
ATTEMPTS, SMALL = 128, 2_000
"""Orders that are tried until all datasets fit, where there are at most so many units; else 2."""

Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
Sizes = Iterable[tuple[str, str, int]]
"""Id, group and number of characters of each document of a source."""


def divide(
    sources: Sequence[tuple[Sequence[str], Sizes]],
    shares: Shares,
    folder: Path,
    *,
    seed: int,
    names: Sequence[str] = (),
) -> dict[str, Any]:
    """Divide the documents of sources, and write `folder/division.parquet`.

    Each source comes with the datasets that draw on it; its documents are iterated twice. Whole
    groups go to a split, but for those of datasets that by groups do not come within 20 % of their
    shares with at least three groups a split: these are divided by document. A document that comes
    in two sources, as text and annotated, is one, and its groups are one group. In which split a
    document is does not depend on the order of sources or documents. Returns counts for the
    manifest.

    Raises `InputError` if a dataset draws on two sources with a document of one id, as its builder
    would, but before anything is parsed; `names` are the sources' names, for the message.
    """
    table = _Table.read(sources)
    _check_ids(table, sources, names)
    units = table.units()
    found = _Attempts(table, units, shares, seed).best()
    broken: set[str] = set()
    while unfit := [name for name in found.unfit if name not in broken]:
        # Other datasets that share their groups may fit no more: they are looked at again.
        broken |= {*unfit}
        finer = table.units(broken)
        if finer.max(initial=-1) == units.max(initial=-1):
            continue
        units = finer
        found = _Attempts(table, units, shares, seed).best()
    whole = units.max(initial=-1) == table.units().max(initial=-1)
    about = {
        "by": "group" if whole else "document",
        "reason": _reason(shares, [] if whole else sorted(broken)),
    }
    split = found.split[units]
    _write(sources, split, folder, about)
    _, first = np.unique(table.documents, return_index=True)
    numbers = np.bincount(split[first], minlength=len(SPLITS)).tolist()
    return {"documents": dict(zip(SPLITS, numbers, strict=True)), **about}


def _check_ids(
    table: _Table, sources: Sequence[tuple[Sequence[str], Sizes]], names: Sequence[str]
) -> None:
    for dataset in table.datasets:
        rows = table.twice(dataset)
        if not len(rows):
            continue
        ids = (id for _, sizes in sources for id, *_ in sizes)
        id = next(islice(ids, int(rows[0]), None))
        among = table.source[table.documents == table.documents[rows[0]]].tolist()
        both = [i for i in among if dataset in table.served[i]][:2]
        many = len(np.unique(table.documents[rows]))
        such = f" (one of {many:,} such ids)" if many > 1 else ""
        raise InputError(
            f"two documents have the id {id!r}{such}, and the dataset {dataset!r} draws on both",
            where=", ".join(names[i] if names else f"source {i + 1}" for i in both),
            hint="ids must differ over all sources of a dataset: is a source named twice? Of files "
            "named alike in two folders they do with /./ in the path, as in text:books/./emma",
        )


def _reason(shares: Shares, broken: Sequence[str]) -> str:
    parts = ", ".join(f"{s} {part:g}" for s, part in zip(SPLITS, shares.parts, strict=True))
    by = f"groups are whole but for those of {', '.join(broken)}" if broken else "groups are whole"
    return f"one division for all datasets of the build ({parts}): {by}"


def _write(
    sources: Sequence[tuple[Sequence[str], Sizes]],
    split: Codes,
    folder: Path,
    about: Mapping[str, str],
) -> None:
    """The documents in the order in which they come, each as often as it comes."""
    schema = SCHEMA.with_metadata({"division": json.dumps(about)})
    done = 0
    with (
        replacing(folder / FILE) as partial,
        pq.ParquetWriter(partial, schema, compression="zstd") as writer,
    ):
        for names in _batches(name for _, sizes in sources for name, *_ in sizes):
            codes = split[done : done + len(names)]
            done += len(names)
            columns = [pa.array(names), pa.array(_keys(names)), pa.array(codes)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _batches(names: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for name in names:
        batch.append(name)
        if len(batch) == ROWS_PER_GROUP:
            yield batch
            batch = []
    if batch:
        yield batch


def _keys(names: Sequence[str]) -> Keys:
    return np.fromiter(map(stable_id, names), np.uint64, len(names))


@dataclass(frozen=True, slots=True)
class _Table:
    """The documents as they come."""

    documents: Keys
    groups: Keys
    weights: Ints
    source: NDArray[np.int16]
    served: Sequence[frozenset[str]]

    @classmethod
    def read(cls, sources: Sequence[tuple[Sequence[str], Sizes]]) -> _Table:
        documents, groups = array("Q"), array("Q")
        weights, source = array("q"), array("h")
        for number, (_, sizes) in enumerate(sources):
            for name, group, size in sizes:
                documents.append(stable_id(name))
                groups.append(stable_id(group))
                weights.append(max(1, size))
                source.append(number)
        return cls(
            np.array(documents, np.uint64),
            np.array(groups, np.uint64),
            np.array(weights, np.int64),
            np.array(source, np.int16),
            [frozenset(names) for names, _ in sources],
        )

    @property
    def datasets(self) -> list[str]:
        return sorted(frozenset().union(*self.served))

    def rows_of(self, dataset: str) -> Ints:
        drawn_on = [i for i, names in enumerate(self.served) if dataset in names]
        return np.flatnonzero(np.isin(self.source, drawn_on))

    def twice(self, dataset: str) -> Ints:
        """The rows of a dataset whose document came before: ids are unique in a source."""
        rows = self.rows_of(dataset)
        first = np.unique(self.documents[rows], return_index=True)[1]
        return np.delete(rows, first)

    def units(self, broken: Iterable[str] = ()) -> Ints:
        """What is kept together, as a number a row: groups, or documents of `broken` datasets."""
        from scipy.sparse import coo_array  # type: ignore[import-untyped]
        from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

        document = np.unique(self.documents, return_inverse=True)[1]
        group = np.unique(self.groups, return_inverse=True)[1]
        joined = np.ones(len(document), bool)
        for name in broken:
            # A group is broken as a whole, in whatever dataset its documents are.
            joined &= ~np.isin(group, group[self.rows_of(name)])
        nodes = 1 + document.max(initial=-1) + 1 + group.max(initial=-1)
        edges = (document[joined], group[joined] + document.max(initial=-1) + 1)
        graph = coo_array((np.ones(len(edges[0]), bool), edges), shape=(nodes, nodes))
        labels = connected_components(graph, directed=False)[1]
        return np.unique(labels[document], return_inverse=True)[1]


class _Attempts:
    """Orders of the units, each dealt out to the splits; the first that fits all, or the best."""

    def __init__(self, table: _Table, units: Ints, shares: Shares, seed: int) -> None:
        self.shares, self.seed = shares, seed
        self.number = int(units.max(initial=-1)) + 1
        # The name of a unit is that of its first document by key: no other document changes it.
        self.names = np.full(self.number, np.iinfo(np.uint64).max, np.uint64)
        np.minimum.at(self.names, units, table.documents)
        self.members: dict[str, Ints] = {}
        self.weights: dict[str, Ints] = {}
        for dataset in table.datasets:
            rows = table.rows_of(dataset)
            weight = np.zeros(self.number, np.int64)
            np.add.at(weight, units[rows], table.weights[rows])
            self.members[dataset] = np.flatnonzero(weight)
            self.weights[dataset] = weight

    def best(self) -> _Attempt:
        found: list[_Attempt] = []
        for attempt in range(ATTEMPTS if self.number <= SMALL else 2):
            found.append(self._attempt(attempt))
            if not found[-1].unfit:
                break
        return min(found, key=lambda attempt: attempt.cost)

    def _attempt(self, attempt: int) -> _Attempt:
        salt = np.uint64(stable_id(f"{self.seed}/division/{attempt}"))
        order = np.lexsort((self.names, mixed(self.names ^ salt)))
        rank = np.empty(self.number, np.int64)
        rank[order] = np.arange(self.number)
        split = np.full(self.number, -1, np.int8)
        waiting = {name: members[split[members] < 0] for name, members in self.members.items()}
        while waiting:
            # The dataset with the fewest units to deal out has the least choice.
            name = min(waiting, key=lambda name: (len(waiting[name]), name))
            units = waiting.pop(name)
            self._deal(name, units[np.argsort(rank[units])], split)
            waiting = {other: left[split[left] < 0] for other, left in waiting.items()}
        return self._judged(split)

    def _deal(self, dataset: str, units: Ints, split: Codes) -> None:
        """Give each unit to the split that lacks most; the last ones go to splits without any."""
        weights, members = self.weights[dataset], self.members[dataset]
        targets = self.shares.targets(int(weights.sum()))
        there = members[split[members] >= 0]
        got = np.bincount(split[there], weights[there], len(SPLITS)).tolist()
        lacking = [targets[name] - part for name, part in zip(SPLITS, got, strict=True)]
        wanted = [code for code, name in enumerate(SPLITS) if targets[name] > 0]
        number = np.bincount(split[there], minlength=len(SPLITS)).tolist()
        without = [code for code in wanted if not number[code]]
        dealt = zip(range(len(units), 0, -1), units.tolist(), weights[units].tolist(), strict=True)
        for left, unit, weight in dealt:
            candidates = without if left <= len(without) else wanted
            code = max(candidates, key=lacking.__getitem__)
            lacking[code] -= weight
            split[unit] = code
            if code in without:
                without.remove(code)

    def _judged(self, split: Codes) -> _Attempt:
        unfit, empty, far = [], 0, 0.0
        for name, members in self.members.items():
            targets = self.shares.targets(int(self.weights[name].sum()))
            got = np.bincount(split[members], self.weights[name][members], len(SPLITS))
            number = np.bincount(split[members], minlength=len(SPLITS))
            off = [
                (abs(got[code] - target) / target, number[code])
                for code, target in enumerate(targets.values())
                if target > 0
            ]
            empty += sum(not n for _, n in off)
            far += max(share for share, _ in off)
            if any(share > TOLERANCE or n < MIN_GROUPS for share, n in off):
                unfit.append(name)
        return _Attempt(split, unfit, (empty, len(unfit), far))


@dataclass(frozen=True, slots=True)
class _Attempt:
    split: Codes
    unfit: list[str]
    cost: tuple[int, int, float]


class Division:
    """The split of every document of a build: 9 bytes of memory each."""

    def __init__(self, keys: Keys, codes: Codes, about: Mapping[str, str] | None = None) -> None:
        keys, first = np.unique(keys, return_index=True)
        self._keys, self._codes = keys, codes[first]
        self.by, self.reason = (about or {}).get("by", ""), (about or {}).get("reason", "")

    @classmethod
    def of(cls, split: Mapping[str, str]) -> Division:
        """A division that says the split of each document."""
        codes = [SPLITS.index(name) for name in split.values()]
        return cls(_keys(list(split)), np.array(codes, np.int8), {"reason": "as given"})

    @classmethod
    def read(cls, folder: Path) -> Division:
        """What `divide` wrote into `folder`."""
        table = pq.read_table(folder / FILE, columns=["key", "split"])
        about = json.loads((table.schema.metadata or {}).get(b"division", b"{}"))
        return cls(table["key"].to_numpy(), table["split"].to_numpy(), about)

    def __contains__(self, document: str) -> bool:
        return self._find(document) >= 0

    def split_of(self, document: str) -> str:
        """The split of a document. Raises `InputError` for one that was not divided."""
        at = self._find(document)
        if at < 0:
            raise InputError(
                f"the document {document!r} is in no split",
                hint="the documents were divided before they changed: remove the folder of the "
                "stage `division` and run again",
            )
        return SPLITS[self._codes[at]]

    def _find(self, document: str) -> int:
        key = np.uint64(stable_id(document))
        at = int(np.searchsorted(self._keys, key))
        return at if at < len(self._keys) and self._keys[at] == key else -1
