"""Documents dealt out to splits so that every dataset comes near its shares.

Iterative stratification (Sechidis, Tsoumakas, Vlahavas 2011), with the datasets that draw on a
source as the labels of its documents, and characters as weights. What is dealt out are units: whole
groups, or documents of datasets that do not fit otherwise (docs/decisions/032-one-division.md).
By hand: scikit-multilearn's stratification takes neither weights nor groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.rng import Words, mixed, stable_id
from corpora.splits import SPLITS, Shares, fit

ATTEMPTS, SMALL = 128, 2_000
"""Orders that are tried until all datasets fit, where there are at most so many units; else 2."""

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
"""Splits by their place in `SPLITS`; -1 for none."""

Served = tuple[Sequence[str], Iterable[tuple[str, str, int]]]
"""The datasets that draw on a source; id, group and number of characters of its documents."""


@dataclass(frozen=True, slots=True)
class Table:
    """The documents of sources as they come: keys of ids, numbers of groups, characters, source.

    `source`: the number of each document's source. `served`: the datasets that draw on a source.
    """

    documents: Words
    groups: Ints
    weights: Ints
    source: NDArray[np.int32]
    served: Sequence[frozenset[str]]

    @classmethod
    def read(cls, sources: Sequence[Served]) -> Table:
        rows = (
            (stable_id(name), stable_id(group), max(1, size), number)
            for number, (_, sizes) in enumerate(sources)
            for name, group, size in sizes
        )
        columns = np.fromiter(rows, "u8, u8, i8, i4")
        documents, keys, weights, source = (columns[f"f{n}"] for n in range(4))
        groups = np.unique(keys, return_inverse=True)[1]
        served = [frozenset(names) for names, _ in sources]
        return cls(documents, groups, weights, source, served)

    @property
    def datasets(self) -> list[str]:
        return sorted(frozenset().union(*self.served))

    def rows_of(self, dataset: str) -> Ints:
        drawn_on = [i for i, names in enumerate(self.served) if dataset in names]
        return np.flatnonzero(np.isin(self.source, drawn_on))

    def cuts(self, split: Codes) -> bool:
        """Whether documents of one group are in several splits; those in none (-1) do not count."""
        return len(_in_several(self.groups, split)) > 0

    def units(self, given: Codes, broken: Iterable[str] = ()) -> Ints:
        """The unit of each row, as a number: rows of one unit get one split.

        A unit is a group, or groups that share a document. It is a document where a dataset of
        `broken` draws on the group, or where `given` (each row's split or -1) has documents of the
        unit in several splits.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        document = np.unique(self.documents, return_inverse=True)[1]
        group = self.groups
        joined = np.ones(len(document), bool)
        for name in broken:
            # A group is broken as a whole, in whatever dataset its documents are.
            joined &= ~np.isin(group, group[self.rows_of(name)])
        nodes = 1 + document.max(initial=-1) + 1 + group.max(initial=-1)

        def together(joined: NDArray[np.bool_]) -> Ints:
            edges = (document[joined], group[joined] + document.max(initial=-1) + 1)
            graph = coo_array((np.ones(len(edges[0]), bool), edges), shape=(nodes, nodes))
            labels = connected_components(graph, directed=False)[1]
            return np.unique(labels[document], return_inverse=True)[1]

        units = together(joined)
        torn = _in_several(units, given)
        if len(torn):
            joined &= ~np.isin(units, torn)
            units = together(joined)
        return units


def _in_several(units: Ints, split: Codes) -> Ints:
    """The units, by number a row, that have rows in more than one split."""
    known = split >= 0
    found = np.unique(np.stack([units[known], split[known]]), axis=1)[0]
    return np.unique(found[1:][found[1:] == found[:-1]])


def stratified(
    table: Table, shares: Shares, seed: int, given: Codes, settled: Collection[str] = ()
) -> tuple[Codes, list[str]]:
    """The split of each row of the table, and the datasets whose groups are not whole.

    `given`: the split that a row's document has already, or -1. The rest of its group follows it.
    `settled`: the datasets that keep their groups whole, whatever their shares come to.
    """
    whole = units = table.units(given)
    best = _dealt(table, units, shares, seed, given)
    broken: set[str] = set()
    while unfit := {*best.unfit} - broken - {*settled}:
        # Other datasets that share their groups may fit no more: they are looked at again.
        broken |= unfit
        finer = table.units(given, broken)
        if finer.max(initial=-1) != units.max(initial=-1):
            units = finer
            best = _dealt(table, units, shares, seed, given)
    cut = units.max(initial=-1) != whole.max(initial=-1)
    return best.split[units], sorted(broken) if cut else []


class _Attempt(NamedTuple):
    """The split of each unit, the datasets that do not fit, and how bad that is."""

    split: Codes
    unfit: list[str]
    cost: tuple[int, int, float]


def _dealt(table: Table, units: Ints, shares: Shares, seed: int, given: Codes) -> _Attempt:
    """The units dealt out in several orders: the first attempt that fits all datasets, or the best.

    `units`: the unit of each row of the table.
    """
    total = int(units.max(initial=-1)) + 1
    settled = np.full(total, -1, np.int8)
    np.maximum.at(settled, units, given)
    # The name of a unit is that of its first document by key: no other document changes it.
    names = np.full(total, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(names, units, table.documents)
    weights: dict[str, Ints] = {}
    for dataset in table.datasets:
        rows = table.rows_of(dataset)
        weights[dataset] = np.zeros(total, np.int64)
        np.add.at(weights[dataset], units[rows], table.weights[rows])
    targets = {dataset: shares.targets(int(weight.sum())) for dataset, weight in weights.items()}
    members = {dataset: np.flatnonzero(weight) for dataset, weight in weights.items()}

    def sums(dataset: str, split: Codes) -> tuple[list[float], list[int]]:
        """The weight and the number of a dataset's units in each split, those in none aside."""
        there = members[dataset][split[members[dataset]] >= 0]
        got = np.bincount(split[there], weights[dataset][there], len(SPLITS))
        return got.tolist(), np.bincount(split[there], minlength=len(SPLITS)).tolist()

    attempts: list[_Attempt] = []
    for attempt in range(ATTEMPTS if total <= SMALL else 2):
        salt = np.uint64(stable_id(f"{seed}/division/{attempt}"))
        rank = np.empty(total, np.int64)
        rank[np.lexsort((names, mixed(names ^ salt)))] = np.arange(total)
        split = settled.copy()
        waiting = {dataset: own[split[own] < 0] for dataset, own in members.items()}
        while waiting:
            # The dataset with the fewest units to deal out has the least choice; of equal ones the
            # smaller, whose shares the larger would spoil to make up for what it lacks elsewhere.
            dataset = min(waiting, key=lambda name: (len(waiting[name]), len(members[name]), name))
            own = waiting.pop(dataset)
            own = own[np.argsort(rank[own])]
            of_own = weights[dataset][own].tolist()
            split[own] = _deal(of_own, targets[dataset], *sums(dataset, split))
            waiting = {other: left[split[left] < 0] for other, left in waiting.items()}
        fits = {dataset: fit(targets[dataset], *sums(dataset, split)) for dataset in members}
        unfit = [dataset for dataset, one in fits.items() if not one.good]
        empty, far = sum(f.empty for f in fits.values()), sum(f.far for f in fits.values())
        attempts.append(_Attempt(split, unfit, (empty, len(unfit), far)))
        if not unfit:
            break
    return min(attempts, key=lambda attempt: attempt.cost)


def _deal(
    weights: Sequence[int], targets: Sequence[float], got: Sequence[float], number: Sequence[int]
) -> list[int]:
    """The split of each unit, as its place in `SPLITS`: the one that lacks most.

    The last units go to splits without any. `targets`: the weight that each split should have;
    `got` and `number`: the weight, and how many units, it has already.
    """
    lacking = [target - part for target, part in zip(targets, got, strict=True)]
    wanted = [code for code, target in enumerate(targets) if target > 0]
    without = [code for code in wanted if not number[code]]
    codes = []
    for left, weight in zip(range(len(weights), 0, -1), weights, strict=True):
        code = max(without if left <= len(without) else wanted, key=lacking.__getitem__)
        lacking[code] -= weight
        codes.append(code)
        if code in without:
            without.remove(code)
    return codes
