"""Which documents go to train, validation and test (DESIGN.md, rule "Deterministic").

Whole groups (books, files) are kept together where that gives splits of about the right size;
where there are too few groups for that, whole documents are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from corpora.errors import ConfigError
from corpora.rng import stable_id

if TYPE_CHECKING:
    from corpora.splits.division import Division

SPLITS = ("train", "validation", "test")
MIN_GROUPS = 3
TOLERANCE = 0.2
ATTEMPTS = 64

Unit = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of each split in the whole: any numbers, sizes included; 0 leaves a split out.

    Raises `ConfigError` for a negative or infinite one, and if all are 0.
    """

    train: float = 0.9
    validation: float = 0.05
    test: float = 0.05

    def __post_init__(self) -> None:
        for split, part in zip(SPLITS, self.parts, strict=True):
            if not 0 <= part < inf:
                raise ConfigError(
                    f"{split} = {part}", hint="0 or more, and finite; 0 leaves the split out"
                )
        if not 0 < sum(self.parts) < inf:
            raise ConfigError(
                "train, validation and test = {}, {}, {}".format(*self.parts),
                hint="one of them at least is more than 0, for example 0.9, 0.05, 0.05",
            )

    @property
    def parts(self) -> tuple[float, float, float]:
        return self.train, self.validation, self.test

    def targets(self, total: int) -> dict[str, float]:
        """The weight that each split should get of `total`."""
        whole = sum(self.parts)
        return {s: total * part / whole for s, part in zip(SPLITS, self.parts, strict=True)}


@dataclass(frozen=True, slots=True)
class Assignment:
    """The split of each document.

    `by` says what was kept together, `group` or `document`.
    """

    by: str
    split: dict[str, str]
    weights: dict[str, int]
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"by": self.by, "reason": self.reason, "weights": self.weights}


def assign(
    documents: Mapping[str, tuple[str, int]],
    shares: Shares,
    *,
    seed: int,
    stage: str,
    division: Division | None = None,
    wholes: Mapping[str, str] = MappingProxyType({}),
) -> Assignment:
    """Assign each document (id -> group, weight) to a split.

    As `division` says, where there is one, of the document or of the whole in `wholes` that it is
    a part of. Else by group if each split gets at least three groups
    and comes within 20 % of its share, else by document. The result depends on the documents, not
    on their order. With three or more documents no split of a positive share is empty.
    """
    if division is not None:
        found = {
            document: division.split_of(wholes.get(document, document)) for document in documents
        }
        sizes = {document: weight for document, (_, weight) in documents.items()}
        return Assignment(division.by, found, _weights(found, sizes), division.reason)
    groups: Counter[str] = Counter()
    for group, weight in documents.values():
        groups[group] += weight
    attempts = ATTEMPTS if len(groups) <= 1000 else 2
    fewest = MIN_GROUPS * sum(part > 0 for part in shares.parts)
    for attempt in range(attempts if len(groups) >= fewest else 0):
        by_group = _fill(_order(groups, seed, f"{stage}/{attempt}"), shares)
        if _fits(by_group, groups, shares):
            split = {document: by_group[group] for document, (group, _) in documents.items()}
            return Assignment("group", split, _weights(by_group, groups), "whole groups fit")
    weights = {document: weight for document, (_, weight) in documents.items()}
    by_document = _fill(_order(weights, seed, stage), shares)
    reason = (
        f"{len(groups)} groups do not make splits of at least {MIN_GROUPS} groups each "
        f"within {TOLERANCE:.0%} of their shares"
    )
    return Assignment("document", by_document, _weights(by_document, weights), reason)


def _order(weights: Mapping[str, int], seed: int, stage: str) -> list[Unit]:
    """The units in an order that depends on their names alone."""
    return sorted(weights.items(), key=lambda unit: (stable_id(f"{seed}/{stage}/{unit[0]}"), unit))


def _fill(units: Sequence[Unit], shares: Shares) -> dict[str, str]:
    """Give each unit to the split that lacks most; the last units go to splits without any."""
    lacking = shares.targets(sum(weight for _, weight in units))
    without = [split for split, target in lacking.items() if target > 0]
    chosen: dict[str, str] = {}
    for left, (name, weight) in zip(range(len(units), 0, -1), units, strict=True):
        candidates = without if left <= len(without) else list(lacking)
        split = max(candidates, key=lambda s: lacking[s])
        lacking[split] -= weight
        chosen[name] = split
        if split in without:
            without.remove(split)
    return chosen


def _fits(chosen: Mapping[str, str], weights: Mapping[str, int], shares: Shares) -> bool:
    number = Counter(chosen.values())
    got = _weights(chosen, weights)
    targets = shares.targets(sum(weights.values()))
    return all(
        target == 0
        or (number[split] >= MIN_GROUPS and abs(got[split] - target) <= TOLERANCE * target)
        for split, target in targets.items()
    )


def _weights(chosen: Mapping[str, str], weights: Mapping[str, int]) -> dict[str, int]:
    total = dict.fromkeys(SPLITS, 0)
    for name, split in chosen.items():
        total[split] += weights[name]
    return total
