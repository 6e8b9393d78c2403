"""Which documents go to train, validation and test (DESIGN.md, rule "Deterministic").

Whole groups (books, files) are kept together where that gives splits of about the right size;
where there are too few groups for that, whole documents are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from corpora.errors import ConfigError
from corpora.rng import stable_id

SPLITS = ("train", "validation", "test")
MIN_GROUPS = 3
TOLERANCE = 0.2
ATTEMPTS = 64


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of each split in the whole: any numbers, sizes included; 0 leaves a split out.

    Raises `ConfigError` for a negative or infinite one, and if all are 0.
    """

    train: float = 0.9
    validation: float = 0.05
    test: float = 0.05

    def __post_init__(self) -> None:
        if not all(0 <= part < inf for part in self.parts) or not 0 < sum(self.parts) < inf:
            raise ConfigError(
                "train, validation and test = {}, {}, {}".format(*self.parts),
                hint="each is 0 (no such split) or more, and one of them more than 0",
            )

    @property
    def parts(self) -> tuple[float, float, float]:
        return self.train, self.validation, self.test

    def targets(self, total: int) -> list[float]:
        """The weight that each split should get of `total`."""
        whole = sum(self.parts)
        return [total * part / whole for part in self.parts]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The split of each document; `by` says what was kept together, `group` or `document`."""

    by: str
    split: dict[str, str]
    reason: str


def deal(
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


class Fit(NamedTuple):
    """How near the splits are to their shares, those of no share aside.

    `far`: the largest difference, as a part of the share; `fewest`: the units of the smallest
    split; `empty`: how many splits have none.
    """

    far: float
    fewest: int
    empty: int

    @property
    def good(self) -> bool:
        return self.far <= TOLERANCE and self.fewest >= MIN_GROUPS


def fit(targets: Sequence[float], got: Sequence[float], number: Sequence[int]) -> Fit:
    """The fit of splits that have `number` units of weight `got`."""
    wanted = [code for code, target in enumerate(targets) if target > 0]
    return Fit(
        max((abs(got[code] - targets[code]) / targets[code] for code in wanted), default=0.0),
        min((number[code] for code in wanted), default=MIN_GROUPS),
        sum(not number[code] for code in wanted),
    )


def assign(
    documents: Mapping[str, tuple[str, int]], shares: Shares, *, seed: int, stage: str
) -> Assignment:
    """Assign each document (id -> group, weight) to a split.

    By group if each split gets at least three groups and comes within 20 % of its share, else by
    document. The result depends on the documents, not on their order. With three or more documents
    no split of a positive share is empty.
    """
    groups: Counter[str] = Counter()
    for group, weight in documents.values():
        groups[group] += weight
    targets = shares.targets(groups.total())

    def dealt(units: Mapping[str, int], salt: str) -> tuple[dict[str, int], Fit]:
        """The units' splits, dealt out in an order by their names."""
        names = sorted(units, key=lambda name: (stable_id(f"{seed}/{salt}/{name}"), name))
        weights = [units[name] for name in names]
        codes = deal(weights, targets, [0, 0, 0], [0, 0, 0])
        got, number = [0, 0, 0], [0, 0, 0]
        for code, weight in zip(codes, weights, strict=True):
            got[code] += weight
            number[code] += 1
        return dict(zip(names, codes, strict=True)), fit(targets, got, number)

    attempts = ATTEMPTS if len(groups) <= 1000 else 2
    fewest = MIN_GROUPS * sum(part > 0 for part in shares.parts)
    for attempt in range(attempts if len(groups) >= fewest else 0):
        of_group, fitted = dealt(groups, f"{stage}/{attempt}")
        if fitted.good:
            split = {name: SPLITS[of_group[group]] for name, (group, _) in documents.items()}
            return Assignment("group", split, "whole groups fit")
    of_document, _ = dealt({name: weight for name, (_, weight) in documents.items()}, stage)
    split = {name: SPLITS[code] for name, code in of_document.items()}
    reason = (
        f"{len(groups)} groups do not make splits of at least {MIN_GROUPS} groups each "
        f"within {TOLERANCE:.0%} of their shares"
    )
    return Assignment("document", split, reason)
