"""The examples of a task as columns, and what a folder holds of the suite."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zoo.evaluate.discoeval.tasks import Task

Slot = list[list[str]]
"""One place of every example: the texts that stand in it (several for a subtree's EDUs)."""


@dataclass(frozen=True)
class Split:
    """Examples as columns: `slots[k][example]`, `labels [examples]`.

    `units [examples]`: examples with the same number belong together (an incoherent text with
    its original, a swapped pair with the unswapped).
    """

    slots: tuple[Slot, ...]
    labels: np.ndarray
    units: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: np.ndarray) -> Split:
        slots = tuple([slot[row] for row in rows.tolist()] for slot in self.slots)
        return Split(slots, self.labels[rows], self.units[rows])


@dataclass(frozen=True)
class TaskData:
    """One task in one domain. `labels` are the names of the classes."""

    task: Task
    domain: str
    labels: tuple[str, ...]
    splits: dict[str, Split]
    revision: str = ""
    notes: tuple[str, ...] = ()
    dataset: str = ""
    """The name of the dataset that discorpora built."""

    @property
    def name(self) -> str:
        return f"{self.task.name} {self.domain}"

    def describe(self) -> dict[str, Any]:
        rows = {split: len(examples) for split, examples in self.splits.items()}
        about = {"domain": self.domain, "revision": self.revision, "rows": rows}
        return {**about, "name": self.dataset} if self.dataset else about


@dataclass
class Found:
    """What a folder holds of the suite, and why parts of it are left out."""

    tasks: list[TaskData] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
