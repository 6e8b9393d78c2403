"""Documents dealt out to splits so that every dataset comes near its shares.

Iterative stratification (Sechidis, Tsoumakas, Vlahavas 2011), with the datasets that draw on a
source as the labels of its documents, and characters as weights. It deals out units: whole groups,
or single documents where whole groups do not fit (docs/decisions/032-one-division.md). Written by
hand because scikit-multilearn's stratification takes neither weights nor groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.rng import Words, mix_bits, stable_id
from corpora.splits import SPLITS, Shares, measure_fit

ATTEMPTS, SMALL = 128, 2_000
"""How many orders of units are tried until all datasets fit, if there are at most `SMALL` units;
else two are."""

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
"""Splits by their index in `SPLITS`; -1 for none."""

Served = tuple[Sequence[str], Iterable[tuple[str, str, int]]]
"""A source: the datasets that draw on it; (id, group, number of characters) of its documents."""


@dataclass(frozen=True, slots=True)
class DocumentTable:
    """The documents of all sources, a row each, in order: the columns that a division needs.

    `documents`: the hash of the id. `groups`: the number of the group. `weights`: the number of
    characters. `source`: the number of the source. `served` is not a column: it has the datasets
    that draw on each source.
    """

    documents: Words
    groups: Ints
    weights: Ints
    source: NDArray[np.int32]
    served: Sequence[frozenset[str]]

    @classmethod
    def read(cls, sources: Sequence[Served]) -> DocumentTable:
        """Read the ids, groups and sizes of the documents of all sources, once."""
        rows = (
            (stable_id(name), stable_id(group), max(1, size), number)
            for number, (_, documents_of_source) in enumerate(sources)
            for name, group, size in documents_of_source
        )
        columns = np.fromiter(rows, "u8, u8, i8, i4")
        documents, keys, weights, source = (columns[f"f{n}"] for n in range(4))
        groups = np.unique(keys, return_inverse=True)[1]
        served = [frozenset(names) for names, _ in sources]
        return cls(documents, groups, weights, source, served)

    @property
    def datasets(self) -> list[str]:
        """The names of all datasets."""
        return sorted(frozenset().union(*self.served))

    def rows_of(self, dataset: str) -> Ints:
        """Return the indices of the rows of sources that a dataset draws on."""
        drawn_on = [i for i, names in enumerate(self.served) if dataset in names]
        return np.flatnonzero(np.isin(self.source, drawn_on))

    def cuts(self, split: Codes) -> bool:
        """Whether a group has documents in several splits. `split` has the split of each row; rows
        without a split (-1) do not count."""
        return len(_units_in_several(self.groups, split)) > 0

    def units(self, fixed: Codes, broken: Iterable[str] = ()) -> Ints:
        """Return the number of each row's unit: rows of one unit go to one split.

        A unit is a group, or several groups that share a document. But it is a single document if a
        dataset of `broken` draws on the group, or if `fixed` (the split of each row, or -1) has
        documents of the unit in several splits.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        document = np.unique(self.documents, return_inverse=True)[1]
        group = self.groups
        in_whole_group = np.ones(len(document), bool)
        for name in broken:
            # A group is broken as a whole, in whatever dataset its documents are.
            in_whole_group &= ~np.isin(group, group[self.rows_of(name)])
        document_count = 1 + document.max(initial=-1)
        nodes = document_count + 1 + group.max(initial=-1)

        def components(rows: NDArray[np.bool_]) -> Ints:
            """Return the component of each row in the graph of documents and groups. An edge joins
            the document and the group of each row that `rows` selects."""
            edges = (document[rows], group[rows] + document_count)
            graph = coo_array((np.ones(len(edges[0]), bool), edges), shape=(nodes, nodes))
            labels = connected_components(graph, directed=False)[1]
            return np.unique(labels[document], return_inverse=True)[1]

        units = components(in_whole_group)
        cut_units = _units_in_several(units, fixed)
        if len(cut_units):
            units = components(in_whole_group & ~np.isin(units, cut_units))
        return units


def _units_in_several(units: Ints, split: Codes) -> Ints:
    """Return the units with rows in more than one split; `units` and `split` are those of the rows.
    Rows without a split (-1) do not count."""
    has_split = split >= 0
    unit_of_pair = np.unique(np.stack([units[has_split], split[has_split]]), axis=1)[0]
    return np.unique(unit_of_pair[1:][unit_of_pair[1:] == unit_of_pair[:-1]])


def stratify(
    table: DocumentTable, shares: Shares, seed: int, fixed: Codes, settled: Collection[str] = ()
) -> tuple[Codes, list[str]]:
    """Return the split of each row of the table, and the datasets whose groups were broken up.

    `fixed` [rows] is the split that a document has already, or -1; all other documents of its
    group go to the same split. `settled` are datasets that keep their groups whole, even if they
    miss their shares.
    """
    whole_groups = units = table.units(fixed)
    best = _best_attempt(table, units, shares, seed, fixed)
    broken: set[str] = set()
    while unfit := {*best.unfit} - broken - {*settled}:
        # Other datasets that share their groups may fit no more: they are looked at again.
        broken |= unfit
        finer = table.units(fixed, broken)
        if finer.max(initial=-1) != units.max(initial=-1):
            units = finer
            best = _best_attempt(table, units, shares, seed, fixed)
    groups_cut = units.max(initial=-1) != whole_groups.max(initial=-1)
    return best.split[units], sorted(broken) if groups_cut else []


class _Attempt(NamedTuple):
    """The split of each unit, the datasets that do not fit, and the cost: the lower, the better."""

    split: Codes
    unfit: list[str]
    cost: tuple[int, int, float]


def _best_attempt(
    table: DocumentTable, units: Ints, shares: Shares, seed: int, fixed: Codes
) -> _Attempt:
    """Deal out the units in several random orders; return the first attempt that fits all datasets.

    An attempt fits a dataset if its splits are near their shares (`measure_fit`). If none fits all,
    the one with the lowest cost is returned. `units` [rows] and `fixed` [rows] are the unit and the
    fixed split, or -1, of each row of the table.
    """
    # Facts about each unit: its fixed split, its name, its weight in each dataset
    total = int(units.max(initial=-1)) + 1
    fixed_split = np.full(total, -1, np.int8)  # by unit
    np.maximum.at(fixed_split, units, fixed)
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
        """Return the weight and the number of a dataset's units in each split."""
        placed = members[dataset][split[members[dataset]] >= 0]
        weight = np.bincount(split[placed], weights[dataset][placed], len(SPLITS))
        return weight.tolist(), np.bincount(split[placed], minlength=len(SPLITS)).tolist()

    # Deal out the units in another random order in each attempt.
    attempts: list[_Attempt] = []
    for attempt in range(ATTEMPTS if total <= SMALL else 2):
        salt = np.uint64(stable_id(f"{seed}/division/{attempt}"))
        rank = np.empty(total, np.int64)
        rank[np.lexsort((names, mix_bits(names ^ salt)))] = np.arange(total)
        split = fixed_split.copy()
        undealt = {
            dataset: its_units[split[its_units] < 0] for dataset, its_units in members.items()
        }
        while undealt:
            # The dataset with the fewest units to deal out has the least choice; of equal ones the
            # smaller, whose shares the larger would spoil to make up for what it lacks elsewhere.
            dataset = min(undealt, key=lambda name: (len(undealt[name]), len(members[name]), name))
            next_units = undealt.pop(dataset)
            next_units = next_units[np.argsort(rank[next_units])]
            dealt_weights = weights[dataset][next_units].tolist()
            split[next_units] = _deal(dealt_weights, targets[dataset], *sums(dataset, split))
            undealt = {name: rest[split[rest] < 0] for name, rest in undealt.items()}
        # Rate the attempt.
        fits = {
            dataset: measure_fit(targets[dataset], *sums(dataset, split)) for dataset in members
        }
        unfit = [dataset for dataset, its_fit in fits.items() if not its_fit.good]
        empty = sum(its_fit.empty for its_fit in fits.values())
        difference = sum(its_fit.difference for its_fit in fits.values())
        attempts.append(_Attempt(split, unfit, (empty, len(unfit), difference)))
        if not unfit:
            break
    return min(attempts, key=lambda attempt: attempt.cost)


def _deal(
    units: Sequence[int], targets: Sequence[float], weights: Sequence[float], counts: Sequence[int]
) -> list[int]:
    """Return the split of each unit, as its index in `SPLITS`: the one that lacks most weight.

    The last units go to splits without any. `units` are the weights of the units, in the order in
    which they are dealt out; `targets` the weight that each split should have; `weights` and
    `counts` the weight, and the number of units, that it has already.
    """
    lacking = [target - weight for target, weight in zip(targets, weights, strict=True)]
    splits = [code for code, target in enumerate(targets) if target > 0]
    empty = [code for code in splits if not counts[code]]
    codes = []
    for units_left, weight in zip(range(len(units), 0, -1), units, strict=True):
        code = max(empty if units_left <= len(empty) else splits, key=lacking.__getitem__)
        lacking[code] -= weight
        codes.append(code)
        if code in empty:
            empty.remove(code)
    return codes
