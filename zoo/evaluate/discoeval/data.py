"""The data of a task, from a built dataset folder, several of them, or the original layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpora.errors import InputError
from corpora.rng import stream
from corpora.store.atomic import MANIFEST
from zoo.evaluate.discoeval import original
from zoo.evaluate.discoeval.examples import Found, Split, TaskData
from zoo.evaluate.discoeval.tasks import TASKS, Task
from zoo.training.data import open_dataset, read_manifest, split_spec

TRAIN_SHARE = 0.75
"""Of the validation set, where there is no training set."""


def read(spec: str, tasks: Sequence[str] = (), *, limit: int = 0) -> Found:
    """The tasks in `spec`, only those named in `tasks` if any are.

    `spec` is a built dataset folder or Hub id (`@CONFIG`), a folder of built folders, or a folder
    in DiscoEval's own layout (`SP/wiki/train.txt`). Raises `InputError` if it holds none.
    """
    wanted = tuple(tasks) or tuple(TASKS)
    place = Path(split_spec(spec)[0])
    if original.is_original(place):
        found = original.read_folder(place, wanted)
    elif place.is_dir() and not (place / MANIFEST).is_file():
        found = _read_several(place, wanted)
    else:
        built = _read_built(spec, place.name)
        found = Found([built] if built is not None and built.task.name in wanted else [])
    if not found.tasks:
        raise InputError(
            "holds no data of " + (", ".join(tasks) or "any task of DiscoEval"),
            where=spec,
            hint=f"give a folder built with {', '.join(task.builder for task in TASKS.values())}, "
            "a folder of such folders, or DiscoEval's own data folder",
        )
    there = {data.task.name for data in found.tasks}
    for name in tasks:
        if name not in there:
            found.skipped.setdefault(name, "no data of it there")
    order = list(TASKS)
    ready = [_prepared(data, limit) for data in found.tasks]
    found.tasks = sorted(ready, key=lambda data: (order.index(data.task.name), data.domain))
    return found


def _read_several(folder: Path, wanted: Sequence[str]) -> Found:
    """Every configuration of every dataset folder below; what is no DiscoEval task is passed."""
    found = Found()
    for place in sorted(folder.iterdir()):
        if not (place / MANIFEST).is_file():
            continue
        configs = read_manifest(place).get("configs", {})
        for config in configs:
            name = place.name if len(configs) == 1 else f"{place.name}@{config}"
            try:
                data = _read_built(f"{place}@{config}", name)
            except InputError as error:
                found.skipped[name] = error.message
                continue
            if data is not None and data.task.name in wanted:
                found.tasks.append(data)
    return found


def _read_built(spec: str, domain: str) -> TaskData | None:
    """A dataset that discorpora built; None if its builder or columns are of no task."""
    data = open_dataset(spec)
    if not data.splits:
        raise InputError("has no split with rows", where=spec)
    first = next(iter(data.splits.values()))
    settings = data.manifest.get("stage", {}).get("settings", {})
    builder = str(settings.get("builder", ""))
    if builder and builder not in [task.builder for task in TASKS.values()]:
        return None  # other data in the same columns
    task = task_of(set(first.schema.names), builder or data.name)
    if task is None:
        return None
    splits = {name: _split_of(table, task) for name, table in data.splits.items() if len(table)}
    labels = tuple(data.labels())
    return TaskData(task, domain, labels, splits, data.revision, dataset=data.name)


def task_of(columns: set[str], builder: str) -> Task | None:
    """The task whose datasets have these columns.

    Explicit and implicit relations have the same: `builder`, or the dataset's name, tells them.
    """
    fitting = [
        task
        for task in TASKS.values()
        if ({*task.columns} == columns if task.alone else {*task.columns} <= columns)
    ]
    named = [task for task in fitting if task.builder == builder]
    like = [task for task in fitting if ("explicit" in task.builder) == ("explicit" in builder)]
    return next(iter(named or like or fitting), None)


def _split_of(table: pa.Table, task: Task) -> Split:
    labels = table["label"].to_numpy().astype(np.int64)
    columns = [table[name].to_pylist() for name in task.texts]
    if task.slots > len(columns):  # one column lists all texts of an example
        columns = [list(column) for column in zip(*columns[0], strict=True)]
    if isinstance(columns[0][0], str):
        columns = [[[text] for text in column] for column in columns]
    # The builder writes a pair and its swapped form one after the other.
    rows = table[task.unit].to_numpy().astype(np.int64) if task.unit else np.arange(len(table))
    return Split(tuple(columns), labels, rows // task.unit_rows)


def _prepared(data: TaskData, limit: int) -> TaskData:
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
