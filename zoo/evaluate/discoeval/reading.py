"""Reading a task's data: built dataset folders, or DiscoEval's own (`SP/wiki/train.txt`)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpora.errors import BadRecord, InputError
from corpora.readers.discoeval import read_discoeval
from corpora.readers.files import read_lines
from corpora.store.atomic import MANIFEST, sha256
from zoo.evaluate.discoeval.data import Found, Split, TaskData, prepared
from zoo.evaluate.discoeval.tasks import TASKS, Task
from zoo.training.data import open_dataset, read_manifest, split_spec

FILES = {"train": "train.txt", "validation": "valid.txt", "test": "test.txt"}
DOMAINS = {"rocstory": "roc"}


def read(spec: str, tasks: Sequence[str] = (), *, limit: int = 0) -> Found:
    """The tasks in `spec`, only those named in `tasks` if any are.

    `spec` is a built dataset folder or Hub id (`@CONFIG`), a folder of built folders, or a folder
    in DiscoEval's own layout (`SP/wiki/train.txt`). Raises `InputError` if it holds none.
    """
    wanted = tuple(tasks) or tuple(TASKS)
    place = Path(split_spec(spec)[0])
    if is_original(place):
        found = read_original(place, wanted)
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
    ready = [prepared(data, limit) for data in found.tasks]
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


def is_original(folder: Path) -> bool:
    """Whether a folder holds `TASK/.../valid.txt` of some task."""
    places = [folder / task.folder for task in TASKS.values()]
    return any(
        (place / FILES["validation"]).is_file()
        for place in (*places, *(below for place in places for below in place.glob("*")))
    )


def read_original(folder: Path, wanted: Sequence[str]) -> Found:
    """Every domain of every wanted task that is there. Labels of PDTB are numbers."""
    found = Found()
    for task in (task for name, task in TASKS.items() if name in wanted):
        place = folder / task.folder
        if task.builder == "rst" and place.is_dir():
            found.skipped[task.name] = (
                "its files are pickles, which are not opened: build the dataset rst from the trees"
            )
        elif task.labels:
            for below in sorted(path for path in place.glob("*") if path.is_dir()):
                domain = DOMAINS.get(below.name, below.name)
                found.tasks.append(_task(task, domain, below, _examples))
        elif place.is_dir():
            found.tasks.append(_task(task, "pdtb", place, _relations))
    return found


def _task(task: Task, domain: str, place: Path, reader: Callable[[Task, Path], Split]) -> TaskData:
    files = {split: place / name for split, name in FILES.items() if (place / name).is_file()}
    splits = {split: reader(task, path) for split, path in files.items()}
    labels = task.labels or _label_set(place, splits)
    return TaskData(task, domain, labels, splits, revision=_revision(files.values()))


def _revision(files: Iterable[Path]) -> str:
    """The same for the same files: two results of different ones are not compared."""
    digests = "".join(sha256(path) for path in files)
    return f"files {hashlib.sha256(digests.encode()).hexdigest()[:12]}"


def _examples(task: Task, path: Path) -> Split:
    """A file of SP, BSO, DC or SSP. Each line of BSO gives an example and its swapped form."""
    examples = list(read_discoeval(task.name, path))
    sentences = [list(example.sentences) for example in examples]
    if not sentences:
        raise InputError("has no examples", where=str(path))
    labels = np.array([example.label for example in examples], np.int64)
    units = np.arange(len(examples))
    if task.name == "BSO":
        sentences = [pair for one in sentences for pair in (one, one[::-1])]
        labels, units = np.tile([1, 0], len(units)), np.repeat(units, 2)
    if task.name == "DC":
        _check_pairs(labels, path)
        units = units // 2
    slots = tuple([[text] for text in column] for column in zip(*sentences, strict=True))
    return Split(slots, labels, units)


def _check_pairs(labels: np.ndarray, path: Path) -> None:
    """DC's lines come in pairs: the incoherent text, then the coherent one."""
    if len(labels) % 2 or (labels[0::2] + labels[1::2] != 1).any():
        raise InputError(
            "its lines are not pairs of an incoherent and a coherent text",
            where=str(path),
            hint="take the file as it is published: its order says what belongs together",
        )


def _relations(task: Task, path: Path) -> Split:
    """A file of PDTB: label number, first argument, second argument."""
    labels, first, second = [], [], []
    for number, line in enumerate(_lines(path), 1):
        fields = line.split("\t")
        if len(fields) < 3 or not fields[0].isdecimal():
            raise InputError(
                "expected a label number and two texts, separated by tabs",
                where=f"{path}:{number}",
            )
        labels.append(int(fields[0]))
        first.append([fields[1]])
        second.append([fields[2]])
    if not labels:
        raise InputError("has no examples", where=str(path))
    return Split((first, second), np.array(labels, np.int64), np.arange(len(labels)))


def _label_set(place: Path, splits: dict[str, Split]) -> tuple[str, ...]:
    path = place / "labelset.txt"
    if path.is_file():
        names = tuple(line.strip() for line in _lines(path) if line.strip())
        _check_numbers(place, splits, len(names))
        return names
    highest = max(int(split.labels.max()) for split in splits.values())
    return tuple(str(label) for label in range(highest + 1))


def _check_numbers(place: Path, splits: dict[str, Split], count: int) -> None:
    """Every label number is one of the `count` labels; an example is a line."""
    for split, examples in splits.items():
        for row in np.flatnonzero(examples.labels >= count)[:1]:
            raise InputError(
                f"the label number {examples.labels[row]}: labelset.txt names {count} labels",
                where=f"{place / FILES[split]}:{row + 1}",
                hint="the first label has the number 0: take both files from one release",
            )


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file. Raises `InputError` for the first that is not UTF-8."""
    for line in read_lines(path):
        if isinstance(line, BadRecord):
            raise InputError(line.reason, where=line.where, hint="convert the file to UTF-8")
        yield line
