"""The data of DiscoEval's tasks: built dataset folders, or its released files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.errors import BadRecord, ConfigError, InputError
from corpora.outside import split_config
from corpora.readers.discoeval import read_discoeval
from corpora.readers.files import read_lines
from corpora.readers.guarded import load_plain
from corpora.rng import stream
from corpora.store.atomic import MANIFEST, sha256
from corpora.store.manifest import read_manifest
from zoo.evaluate.discoeval.tasks import TASKS, Task
from zoo.training.data import (
    UNBUILT,
    Dataset,
    as_datasets,
    evenly,
    open_configs,
    open_dataset,
    several,
)

Slot = list[list[str]]
"""The texts of all examples in one slot, a list for each (a subtree's EDUs are several texts)."""

TRAIN_SHARE = 0.75
"""The share of the validation set that becomes the training set if there is none."""
NAMES = {"doc", "id", "section"}
"""Columns that name a row or its place."""
RELEASED = "discoeval"
"""The builder of the released rows; its configurations are called `TASK_DOMAIN`, as `sp_wiki`."""
FILES = {"train": "train.txt", "validation": "valid.txt", "test": "test.txt"}
TREES = {"train": "RST_TRAIN.pkl", "validation": "RST_DEV.pkl", "test": "RST_TEST.pkl"}
"""The files of RST-DT, which stand in `RST/`, `RST/py3/` or `RST/py2/`."""


@dataclass(frozen=True)
class Split:
    """The examples of a split: `slots[slot][example]` lists texts, `labels [examples]` are numbers.

    Examples with the same number in `units [examples]` depend on each other, such as an incoherent
    text and its original, or a pair of sentences and the swapped pair.
    """

    slots: tuple[Slot, ...]
    labels: np.ndarray
    units: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def of_units(self, units: np.ndarray) -> Split:
        """The examples whose number in `self.units` is among `units`, in their present order."""
        rows = np.flatnonzero(np.isin(self.units, units))
        slots = tuple([slot[row] for row in rows.tolist()] for slot in self.slots)
        return Split(slots, self.labels[rows], self.units[rows])


@dataclass(frozen=True)
class TaskData:
    """The data of one task in one domain; `labels` are the names of the classes."""

    task: Task
    domain: str
    labels: tuple[str, ...]
    splits: dict[str, Split]
    revision: str = ""
    notes: tuple[str, ...] = ()
    dataset: str = ""
    """The name of the dataset if discorpora built it."""

    @property
    def name(self) -> str:
        return f"{self.task.name} {self.domain}"

    def describe(self) -> dict[str, Any]:
        """The domain, the revision and the numbers of rows, as a result states them."""
        rows = {split: len(examples) for split, examples in self.splits.items()}
        about = {"domain": self.domain, "revision": self.revision, "rows": rows}
        return {**about, "name": self.dataset} if self.dataset else about


@dataclass
class DiscoEvalData:
    """The data of all tasks in a folder; `skipped` has for each task left out the reason."""

    tasks: list[TaskData] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


def read(data: Any, tasks: Sequence[str] = (), *, limit: int = 0) -> DiscoEvalData:
    """Read the tasks in `data` and prepare them for training: at most `limit` rows of each split.

    `data` is a `DiscoEvalData`, dataset objects (one or a mapping), or a name as `find` takes it.
    `tasks` names the tasks to read, all if empty. Raises `InputError` if there are none.
    """
    # Find the tasks.
    if isinstance(data, str | Path):
        data = find(str(data), tasks)
    elif not isinstance(data, DiscoEvalData):
        datasets = as_datasets(data)
        domains = [each.config if several(data) else "" for each in datasets]
        pairs = zip(datasets, domains, strict=True)
        all_tasks = [task for each, domain in pairs for task in _tasks_of_dataset(each, domain)]
        data = _chosen(DiscoEvalData(all_tasks), tasks, ", ".join(each.name for each in datasets))
    # Note those without data, and prepare all others.
    skipped, names = dict(data.skipped), {each.task.name for each in data.tasks}
    for name in (name for name in tasks if name not in names):
        skipped.setdefault(name, "no data of it there")
    order = list(TASKS)
    prepared = [_prepared(each, limit) for each in data.tasks]
    prepared.sort(key=lambda each: (order.index(each.task.name), each.domain))
    return DiscoEvalData(prepared, skipped)


def find(spec: str, tasks: Sequence[str] = ()) -> DiscoEvalData:
    """Read all rows of the tasks in a folder or dataset; `tasks` names those to read (empty: all).

    `spec` is a built dataset folder or Hub id (`@CONFIG`), a folder in DiscoEval's own layout
    (`SP/wiki/train.txt`), or a folder of such folders. A built dataset replaces the released files
    of its task. Raises `InputError` if it holds no task.
    """
    wanted, data = tuple(tasks) or tuple(TASKS), DiscoEvalData()
    name, config = split_config(spec)
    folder = Path(name)
    if not folder.is_dir() or (folder / MANIFEST).is_file():
        domain = folder.name.strip(".")  # a folder `.` gives no name
        datasets = [open_dataset(spec)]
        if not config and _builder_of(datasets[0].manifest) == RELEASED:
            datasets = open_configs(spec)[1]
        data.tasks = [task for each in datasets for task in _tasks_of_dataset(each, domain)]
    elif config:
        problem = f"no configuration {config!r}: it is a folder of several datasets"
        raise ConfigError(problem, where=name, hint="leave @CONFIG out; --tasks SP,BSO chooses")
    else:
        _read_several(folder, wanted, data)
    return _chosen(data, tasks, spec)


def _chosen(data: DiscoEvalData, tasks: Sequence[str], where: str) -> DiscoEvalData:
    """The data of the named tasks, all if none are named. Raises `InputError` if there is none."""
    chosen = [each for each in data.tasks if each.task.name in (tasks or TASKS)]
    if not chosen:
        raise InputError(
            "holds no rows of " + (", ".join(tasks) or "any task of DiscoEval"),
            where=where,
            hint=f"give a folder built with {', '.join(task.builder for task in TASKS.values())}, "
            "a folder of such folders, or DiscoEval's own data folder",
        )
    return DiscoEvalData(chosen, data.skipped)


def _prepared(data: TaskData, limit: int) -> TaskData:
    """Cut each split to about `limit` rows (whole units; 0: all); add a missing training set."""
    notes, splits = list(data.notes), dict(data.splits)
    for name, split in splits.items():
        if 0 < limit < len(split):
            units, first_rows = np.unique(split.units, return_index=True)
            count = max(1, round(limit * len(units) / len(split)))
            # Evenly within each class: the labels of SSP alternate, so that every second row of the
            # whole split would be of one class.
            by_class = np.argsort(split.labels[first_rows], kind="stable")
            splits[name] = split.of_units(units[by_class[evenly(len(units), count)]])
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
    """Divide a split into two at random: three quarters of its units, and the others.

    The suite does not pass its own seed, so that all models are scored on the same rows.
    """
    units = stream(seed, "zoo.discoeval.divide").permutation(np.unique(split.units))
    cut = round(TRAIN_SHARE * len(units))
    return split.of_units(units[:cut]), split.of_units(units[cut:])


# Datasets that discorpora built.


def _read_several(folder: Path, wanted: Sequence[str], data: DiscoEvalData) -> None:
    """Add to `data` the `wanted` tasks of the dataset folders in `folder`.

    A task without a dataset is read from the released files in `folder` or in a subfolder.
    """
    # Dataset folders of builders of the wanted tasks
    builders = {"", RELEASED, *(TASKS[name].builder for name in wanted)}
    for subfolder in sorted(folder.iterdir()):
        path = subfolder / MANIFEST
        manifest = read_manifest(path, UNBUILT) if path.is_file() else {}
        configs = manifest.get("configs", ()) if _builder_of(manifest) in builders else ()
        for config in configs:
            name = subfolder.name if len(configs) == 1 else f"{subfolder.name}@{config}"
            try:
                data.tasks += _tasks_of_dataset(open_dataset(f"{subfolder}@{config}"), name)
            except InputError as error:
                data.skipped[name] = error.message
    # Released files, for the tasks that are still missing
    built = {each.task.name for each in data.tasks}
    rest = [name for name in wanted if name not in built]
    for place in (folder, *sorted(folder.iterdir())):
        if _is_original(place):
            _read_original(place, rest, data)


def _builder_of(manifest: Mapping[str, Any]) -> str:
    """The builder that a dataset's manifest names, "" if it names none."""
    return str(manifest.get("stage", {}).get("settings", {}).get("builder", ""))


def _tasks_of_dataset(data: Dataset, domain: str) -> list[TaskData]:
    """The task of a dataset in a list, [] if it has none.

    `domain` is by default its name. The configuration of released rows names it, as in `sp_wiki`.
    """
    builder = _builder_of(data.manifest)
    columns = {name for table in data.splits.values() for name in table.schema.names}
    task = task_of(columns, builder or data.name)
    foreign = builder and builder not in (RELEASED, *(task.builder for task in TASKS.values()))
    if task is None or foreign:  # another builder's rows may have the same columns
        return []
    splits = {name: _split_of(table, task) for name, table in data.splits.items() if len(table)}
    labels = tuple(data.labels())
    released_task, _, released_domain = data.config.partition("_")
    if released_task == task.name.lower() and released_domain:
        domain = _domain_of(released_domain)
    domain = domain or data.name
    return [TaskData(task, domain, labels, splits, data.revision, dataset=data.name)]


def task_of(columns: set[str], builder: str) -> Task | None:
    """The task whose datasets have these columns, or None.

    Explicit and implicit relations have equal columns: `builder`, the name of the builder or of the
    dataset, decides.
    """
    candidates = [
        task
        for task in TASKS.values()
        if ({*task.columns} == columns - NAMES if task.alone else {*task.columns} <= columns)
    ]
    same_name = [task for task in candidates if task.builder == builder]
    explicit = "explicit" in builder
    similar = [task for task in candidates if ("explicit" in task.builder) == explicit]
    return next(iter(same_name or similar or candidates), None)


def _split_of(table: pa.Table, task: Task) -> Split:
    """Convert a table of a built dataset to examples of its task."""
    labels = table["label"].to_numpy().astype(np.int64)
    slots = [table[name].to_pylist() for name in task.texts]
    if task.slots > len(slots):  # one column lists all texts of an example
        slots = [list(slot) for slot in zip(*slots[0], strict=True)]
    if isinstance(slots[0][0], str):
        slots = [[[text] for text in slot] for slot in slots]
    # BSO has no column for its units: its builder writes a pair and the swapped pair together.
    rows = table[task.unit].to_numpy().astype(np.int64) if task.unit else np.arange(len(table))
    return Split(tuple(slots), labels, rows // task.unit_rows)


# DiscoEval's own files.


def _is_original(folder: Path) -> bool:
    """Whether a folder has released files of a task."""
    files = [f"{below}{kind['validation']}" for below in ("", "*/") for kind in (FILES, TREES)]
    return any(any(folder.glob(f"{t.folder}/{file}")) for t in TASKS.values() for file in files)


def _read_original(folder: Path, wanted: Sequence[str], data: DiscoEvalData) -> None:
    """Add to `data` every domain of the wanted tasks in a folder of the released data."""
    for task in (TASKS[name] for name in TASKS if name in wanted):
        task_folder = folder / task.folder
        if not task_folder.is_dir():
            continue
        if task.builder == "rst":
            data.tasks += _trees(task, task_folder)
            continue
        # Names of the labels: those of the task, or in a file of the folder
        label_file = task_folder / "labelset.txt"
        lines = _lines(label_file) if label_file.is_file() else ()
        labels = task.labels or tuple(name for line in lines if (name := line.strip()))
        for subfolder in sorted(task_folder.glob("*/")) if task.labels else [task_folder]:
            # The files of a domain
            files = {s: subfolder / name for s, name in FILES.items()}
            files = {split: path for split, path in files.items() if path.is_file()}
            if not files:  # a stray folder, such as .ipynb_checkpoints
                continue
            splits = {split: _split_of_file(task, path, labels) for split, path in files.items()}
            domain = _domain_of(subfolder.name) if task.labels else "pdtb"
            highest = max((int(split.labels.max()) for split in splits.values()), default=-1)
            names = labels or tuple(map(str, range(highest + 1)))
            data.tasks.append(TaskData(task, domain, names, splits, _revision(files)))


def _domain_of(name: str) -> str:
    """The name of a domain in results: that of its folder in the release, but `roc`."""
    return "roc" if name == "rocstory" else name


def _revision(files: Mapping[str, Path]) -> str:
    """The hash of the files: only results of equal files are comparable."""
    digests = "".join(sha256(path) for path in files.values())
    return f"files {hashlib.sha256(digests.encode()).hexdigest()[:12]}"


def _trees(task: Task, folder: Path) -> list[TaskData]:
    """Read RST-DT as released: pickles of rows `[label, left EDUs, right EDUs]`; [] if none."""
    places = [
        {split: path for split, name in TREES.items() if (path := folder / below / name).is_file()}
        for below in ("", "py3", "py2")
    ]
    files = max(places, key=len)
    rows = {split: list(_subtrees(path)) for split, path in files.items()}
    labels = tuple(sorted({label for each in rows.values() for label, _, _ in each}))
    splits = {}
    for split, each in rows.items():
        names, left, right = zip(*each, strict=True)
        numbers = np.array([labels.index(name) for name in names], np.int64)
        splits[split] = Split(([*left], [*right]), numbers, np.arange(len(each)))
    return [TaskData(task, "rst", labels, splits, _revision(files))] if splits else []


def _subtrees(path: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the rows of a pickle. Raises `InputError` for a row of another form, or for none."""
    rows = load_plain(path)
    for number, row in enumerate(rows if isinstance(rows, list) else [rows]):
        match row:
            case [str(label), [str(), *_] as left, [str(), *_] as right] if all(
                isinstance(text, str) for text in [*left, *right]
            ):
                yield label, [*left], [*right]
            case _:
                raise InputError(
                    f"expected a label and two lists of texts: {str(row)[:80]!r}",
                    where=f"{path}: row {number}",
                    hint="take RST_TRAIN.pkl, RST_DEV.pkl and RST_TEST.pkl of DiscoEval's release",
                )
    if not rows:
        raise InputError("has no examples", where=str(path))


def _split_of_file(task: Task, path: Path, labels: Sequence[str]) -> Split:
    """Read the examples of a released file; a line of BSO gives a pair and the swapped pair."""
    if task.labels:
        examples = [(each.label, each.sentences) for each in read_discoeval(task.name, path)]
    else:
        examples = list(_relations(path, len(labels)))
    if not examples:
        raise InputError("has no examples", where=str(path))
    if task.name == "BSO":
        examples = [pair for _, texts in examples for pair in ((1, texts), (0, texts[::-1]))]
    numbers = np.array([label for label, _ in examples], np.int64)
    columns = zip(*(texts for _, texts in examples), strict=True)
    units = np.arange(len(examples)) // (2 if task.name in ("BSO", "DC") else 1)
    return Split(tuple([[text] for text in column] for column in columns), numbers, units)


def _relations(path: Path, labels: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the label number and both arguments of each line of a released file of PDTB.

    Raises `InputError` for a line without them, or with a number not below `labels` (0: any).
    """
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
    """Yield the lines of a file. Raises `InputError` for one that is not UTF-8."""
    for line in read_lines(path):
        if isinstance(line, BadRecord):
            raise InputError(line.reason, where=line.where, hint="convert the file to UTF-8")
        yield line
