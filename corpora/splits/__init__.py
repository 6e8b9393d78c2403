"""Which documents go to train, validation and test.

Whole groups (books, files) are kept together where that gives splits of about the right size. With
too few groups for that, documents are divided singly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from corpora.errors import ConfigError

SPLITS = ("train", "validation", "test")
SPLIT_NAMES = {**dict.fromkeys(("dev", "devel", "valid", "val"), "validation"), "training": "train"}
_IN_PATH = re.compile(
    r"(?<![a-z])(train(?:ing)?|dev(?:el)?|val(?:id(?:ation)?)?|test)(?![a-z])", re.IGNORECASE
)
MIN_GROUPS = 3  # fewest groups of a split that keeps whole groups
TOLERANCE = 0.2  # largest difference of a split from its share, as a part of the share


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
        """The shares in the order of `SPLITS`."""
        return self.train, self.validation, self.test

    def targets(self, total: int) -> list[float]:
        """Return the weight that each split should get of `total`."""
        whole = sum(self.parts)
        return [total * part / whole for part in self.parts]


def split_of(path: str) -> str:
    """Return the split in a file's path (`en_ewt-ud-dev.conllu`, `train/2005.txt`), or ""."""
    words = _IN_PATH.findall(path)
    return SPLIT_NAMES.get(words[-1].lower(), words[-1].lower()) if words else ""


class Fit(NamedTuple):
    """How near the splits are to their shares; splits with a share of 0 do not count.

    `difference`: the largest difference of a split's weight from its target, as a part of the
    target; `fewest`: the number of units in the smallest split; `empty`: the number of splits
    without a unit.
    """

    difference: float
    fewest: int
    empty: int

    @property
    def good(self) -> bool:
        """Whether all splits are near their shares and have enough units."""
        return self.difference <= TOLERANCE and self.fewest >= MIN_GROUPS


def measure_fit(targets: Sequence[float], weights: Sequence[float], counts: Sequence[int]) -> Fit:
    """Return how well splits fit their shares.

    For each split, `targets` has the weight that it should have, `weights` the weight that it has,
    `counts` the number of its units.
    """
    codes = [code for code, target in enumerate(targets) if target > 0]
    return Fit(
        max((abs(weights[code] - targets[code]) / targets[code] for code in codes), default=0.0),
        min((counts[code] for code in codes), default=MIN_GROUPS),
        sum(not counts[code] for code in codes),
    )
