"""The data of a task, from built dataset folders or DiscoEval's own (`SP/wiki/train.txt`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.errors import BadRecord, ConfigError, InputError
from corpora.readers.discoeval import read_discoeval
from corpora.readers.files import read_lines
from corpora.rng import stream
from corpora.store.atomic import MANIFEST, sha256
from corpora.store.manifest import read_manifest
from zoo.evaluate.discoeval.tasks import TASKS, Task
from zoo.training.data import (
    UNBUILT,
    Dataset,
    as_datasets,
    evenly,
    open_dataset,
    several,
    split_spec,
)

Slot = list[list[str]]
"""One place of every example: the texts that stand in it (several for a subtree's EDUs)."""

TRAIN_SHARE = 0.75
"""Of the validation set, where there is no training set."""
FILES = {"train": "train.txt", "validation": "valid.txt", "test": "test.txt"}


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

    def of_units(self, units: np.ndarray) -> Split:
        """The examples of these units alone, in their order."""
        rows = np.flatnonzero(np.isin(self.units, units))
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


def read(data: Any, tasks: Sequence[str] = (), *, limit: int = 0) -> Found:
    """The tasks in `data`, only those named in `tasks` if any are; `limit` rows of each split.

    `data` are a `Found`, datasets in hand (one or a mapping), or what `find` takes. Raises
    `InputError` if they hold no task.
    """
    if isinstance(data, str | Path):
        data = find(str(data), tasks)
    elif not isinstance(data, Found):
        found = _of_datasets(data)
        data = _wanted(found, tasks, ", ".join(each.name for each in as_datasets(data)))
    skipped, kinds = dict(data.skipped), {each.task.name for each in data.tasks}
    for name in (name for name in tasks if name not in kinds):
        skipped.setdefault(name, "no data of it there")
    order = list(TASKS)
    ready = [_prepared(each, limit) for each in data.tasks]
    return Found(
        sorted(ready, key=lambda each: (order.index(each.task.name), each.domain)), skipped
    )


def find(spec: str, tasks: Sequence[str] = ()) -> Found:
    """All rows of the tasks in `spec`, only those named in `tasks` if any are.

    `spec` is a built dataset folder or Hub id (`@CONFIG`), a folder of built folders, or a folder
    in DiscoEval's own layout (`SP/wiki/train.txt`). Raises `InputError` if it holds none.
    """
    wanted, found = tuple(tasks) or tuple(TASKS), Found()
    folder, config = split_spec(spec)
    place = Path(folder)
    held = FILES["validation"]
    released = [f"{t.folder}/{name}" for t in TASKS.values() for name in (held, f"*/{held}")]
    if not place.is_dir() or (place / MANIFEST).is_file():
        found.tasks = _of_dataset(open_dataset(spec), place.name.strip("."))  # `.` names nothing
    elif config:
        problem = f"no configuration {config!r}: it is a folder of several datasets"
        raise ConfigError(problem, where=folder, hint="leave @CONFIG out; --tasks SP,BSO chooses")
    elif any(any(place.glob(name)) for name in released):
        _read_original(place, wanted, found)
    else:
        _read_several(place, wanted, found)
    return _wanted(found, tasks, spec)


def _of_datasets(data: Any) -> Found:
    """Datasets in hand; a mapping's keys are their domains."""
    named = [(each, each.config if several(data) else "") for each in as_datasets(data)]
    return Found([task for each, domain in named for task in _of_dataset(each, domain)])


def _wanted(found: Found, tasks: Sequence[str], where: str) -> Found:
    """The tasks that are asked for, all if none are named. Raises `InputError` for none."""
    kept = [data for data in found.tasks if data.task.name in (tasks or TASKS)]
    if not kept:
        raise InputError(
            "holds no rows of " + (", ".join(tasks) or "any task of DiscoEval"),
            where=where,
            hint=f"give a folder built with {', '.join(task.builder for task in TASKS.values())}, "
            "a folder of such folders, or DiscoEval's own data folder",
        )
    return Found(kept, found.skipped)


def _prepared(data: TaskData, limit: int) -> TaskData:
    """Within the limit of rows a split (whole units, spread evenly), and with a training set."""
    notes, splits = list(data.notes), dict(data.splits)
    for name, split in splits.items():
        if 0 < limit < len(split):
            units = np.unique(split.units)
            count = max(1, round(limit * len(units) / len(split)))
            splits[name] = split.of_units(units[evenly(len(units), count)])
    if "validation" not in splits:
        raise InputError(
            "has no validation split, on which the classifier's training is stopped",
            where=data.name,
            hint="build it from more documents, or add valid.txt",
        )
    if "train" not in splits:
        train, held = divide(splits["validation"])
        splits |= {"train": train, "validation": held}
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
    units = stream(seed, "zoo.discoeval.divide").permutation(np.unique(split.units))
    cut = round(TRAIN_SHARE * len(units))
    return split.of_units(units[:cut]), split.of_units(units[cut:])


# Datasets that discorpora built.


def _read_several(folder: Path, wanted: Sequence[str], found: Found) -> None:
    """Every configuration of every dataset folder below; what is no wanted task is not opened."""
    builders = {"", *(TASKS[name].builder for name in wanted)}
    for place in sorted(folder.iterdir()):
        there = place / MANIFEST
        manifest = read_manifest(there, UNBUILT) if there.is_file() else {}
        configs = manifest.get("configs", ()) if _builder_of(manifest) in builders else ()
        for config in configs:
            name = place.name if len(configs) == 1 else f"{place.name}@{config}"
            try:
                found.tasks += _of_dataset(open_dataset(f"{place}@{config}"), name)
            except InputError as error:
                found.skipped[name] = error.message


def _builder_of(manifest: Mapping[str, Any]) -> str:
    return str(manifest.get("stage", {}).get("settings", {}).get("builder", ""))


def _of_dataset(data: Dataset, domain: str) -> list[TaskData]:
    """A dataset, called `domain` or else by its name; none of no task."""
    builder = _builder_of(data.manifest)
    columns = {name for table in data.splits.values() for name in table.schema.names}
    task = task_of(columns, builder or data.name)
    another = builder and builder not in [task.builder for task in TASKS.values()]
    if task is None or another:  # another builder's rows may have the same columns
        return []
    splits = {name: _split_of(table, task) for name, table in data.splits.items() if len(table)}
    labels = tuple(data.labels())
    domain = domain or data.name
    return [TaskData(task, domain, labels, splits, data.revision, dataset=data.name)]


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
    """A table by slots; of each the list of an example's texts (several of a subtree's EDUs)."""
    labels = table["label"].to_numpy().astype(np.int64)
    columns = [table[name].to_pylist() for name in task.texts]
    if task.slots > len(columns):  # one column lists all texts of an example
        columns = [list(column) for column in zip(*columns[0], strict=True)]
    if isinstance(columns[0][0], str):
        columns = [[[text] for text in column] for column in columns]
    # The builder writes a pair and its swapped form one after the other.
    rows = table[task.unit].to_numpy().astype(np.int64) if task.unit else np.arange(len(table))
    return Split(tuple(columns), labels, rows // task.unit_rows)


# DiscoEval's own files.


def _read_original(folder: Path, wanted: Sequence[str], found: Found) -> None:
    """Every domain of every wanted task that is there. Labels of PDTB are numbers."""
    for task in (TASKS[name] for name in TASKS if name in wanted):
        place = folder / task.folder
        if not place.is_dir():
            continue
        if task.builder == "rst":
            found.skipped[task.name] = (
                "its files are pickles, which are not opened: build the dataset rst from the trees"
            )
            continue
        listed = place / "labelset.txt"
        named = tuple(line.strip() for line in _lines(listed)) if listed.is_file() else ()
        labels = task.labels or tuple(filter(None, named))
        for below in sorted(place.glob("*/")) if task.labels else [place]:
            files = {s: below / name for s, name in FILES.items() if (below / name).is_file()}
            if not files:  # a stray folder, such as .ipynb_checkpoints
                continue
            splits = {split: _split_of_file(task, path, labels) for split, path in files.items()}
            # The same for the same files: two results of different ones are not compared.
            digests = "".join(sha256(path) for path in files.values())
            revision = f"files {hashlib.sha256(digests.encode()).hexdigest()[:12]}"
            domain = {"rocstory": "roc"}.get(below.name, below.name) if task.labels else "pdtb"
            highest = max((int(split.labels.max()) for split in splits.values()), default=-1)
            names = labels or tuple(map(str, range(highest + 1)))
            found.tasks.append(TaskData(task, domain, names, splits, revision))


def _split_of_file(task: Task, path: Path, labels: Sequence[str]) -> Split:
    """The examples of a file. Each line of BSO gives an example and its swapped form."""
    if task.labels:
        lines = [(one.label, one.sentences) for one in read_discoeval(task.name, path)]
    else:
        lines = list(_relations(path, len(labels)))
    if not lines:
        raise InputError("has no examples", where=str(path))
    if task.name == "BSO":
        lines = [pair for _, one in lines for pair in ((1, one), (0, one[::-1]))]
    numbers = np.array([label for label, _ in lines], np.int64)
    columns = zip(*(texts for _, texts in lines), strict=True)
    units = np.arange(len(lines)) // (2 if task.name in ("BSO", "DC") else 1)
    return Split(tuple([[text] for text in column] for column in columns), numbers, units)


def _relations(path: Path, labels: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The lines of a file of PDTB: label number (below `labels`, 0: any), and both arguments."""
    for number, line in enumerate(_lines(path), 1):
        if not line:
            continue
        label, *texts = line.split("\t")
        if len(texts) < 2 or not label.isdecimal() or (labels and int(label) >= labels):
            below = f" from 0 to {labels - 1} (labelset.txt)" if labels else ""
            raise InputError(
                f"expected a label number{below} and two texts, separated by tabs",
                where=f"{path}:{number}",
                hint="take labelset.txt and this file from one release",
            )
        yield int(label), tuple(texts[:2])


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file. Raises `InputError` for the first that is not UTF-8."""
    for line in read_lines(path):
        if isinstance(line, BadRecord):
            raise InputError(line.reason, where=line.where, hint="convert the file to UTF-8")
        yield line
