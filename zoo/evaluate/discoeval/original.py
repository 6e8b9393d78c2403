"""DiscoEval's own data folder: `SP/wiki/train.txt` and so on, tab-separated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from corpora.errors import BadRecord, InputError
from corpora.readers.discoeval import read_discoeval
from corpora.readers.files import read_lines
from corpora.store.atomic import sha256
from zoo.evaluate.discoeval.examples import Found, Split, TaskData
from zoo.evaluate.discoeval.tasks import TASKS, Task

FILES = {"train": "train.txt", "validation": "valid.txt", "test": "test.txt"}
DOMAINS = {"rocstory": "roc"}


def is_original(folder: Path) -> bool:
    """Whether a folder holds `TASK/.../valid.txt` of some task."""
    places = [folder / task.folder for task in TASKS.values()]
    return any(
        (place / FILES["validation"]).is_file()
        for place in (*places, *(below for place in places for below in place.glob("*")))
    )


def read_folder(folder: Path, wanted: Sequence[str]) -> Found:
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
