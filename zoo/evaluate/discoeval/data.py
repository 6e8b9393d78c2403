"""The data of a task as the suite takes it: columns of texts, labels, what belongs together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from corpora.errors import InputError
from corpora.rng import stream
from zoo.evaluate.discoeval.tasks import Task

Slot = list[list[str]]
"""One place of every example: the texts that stand in it (several for a subtree's EDUs)."""

TRAIN_SHARE = 0.75
"""Of the validation set, where there is no training set."""


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


def prepared(data: TaskData, limit: int) -> TaskData:
    """Within the limit of rows a split, and with a training set."""
    notes = list(data.notes)
    splits = {name: _limited(split, limit) for name, split in data.splits.items()}
    if "validation" not in splits:
        raise InputError(
            "has no validation split, on which the classifier's training is stopped",
            where=data.name,
            hint="build it from more documents, or add valid.txt",
        )
    if "train" not in splits:
        train, held = divide(splits["validation"])
        splits = {**splits, "train": train, "validation": held}
        notes.append(
            f"no training set: {len(train)} rows of the validation set train, {len(held)} stay"
        )
    classes = len(np.unique(splits["train"].labels))
    if classes < 2:
        raise InputError(f"its training set has {classes} class(es)", where=data.name)
    return replace(data, splits=splits, notes=tuple(notes))


def divide(split: Split, seed: int = 0) -> tuple[Split, Split]:
    """Two parts, the first with three quarters of the units, drawn at random; no unit in both.

    The suite takes the same ones for every seed: models are scored on the same rows.
    """
    units = np.unique(split.units)
    random = stream(seed, "zoo.discoeval.divide").permutation(units)
    chosen = np.isin(split.units, random[: round(TRAIN_SHARE * len(units))])
    return split.take(np.flatnonzero(chosen)), split.take(np.flatnonzero(~chosen))


def _limited(split: Split, limit: int) -> Split:
    """At most `limit` rows, whole units, spread evenly over the split (0: all)."""
    if not 0 < limit < len(split):
        return split
    units = np.unique(split.units)
    count = max(1, round(limit * len(units) / len(split)))
    kept = units[np.linspace(0, len(units) - 1, count).astype(np.int64)]
    return split.take(np.flatnonzero(np.isin(split.units, kept)))
