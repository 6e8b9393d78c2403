"""`discoeval:` the tab-separated files of DiscoEval (Chen et al. 2019), as they are published."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpora.document import Document
from corpora.errors import BadRecord, ConfigError, InputError, nearest
from corpora.readers.files import read_lines
from corpora.readers.layouts import as_document
from corpora.readers.source import OnBad, Refused, Source
from corpora.readers.whole import CANONICAL

log = logging.getLogger(__name__)

SUFFIXES = (".txt",)
OPTIONS = frozenset({"task"})


@dataclass(frozen=True, slots=True)
class Form:
    """What a line holds: `labels` (none for BSO, whose negatives are made by swapping)."""

    sentences: int
    labels: tuple[str, ...] = ()


TASKS = {
    "SP": Form(5, ("0", "1", "2", "3", "4")),
    "BSO": Form(2),
    "DC": Form(6, ("0", "1")),
    "SSP": Form(1, ("0", "1")),
}

_LICENCES = {"wiki": "CC-BY-SA-3.0", "arxiv": "CC0-1.0", "chat": "CC-BY-4.0"}
"""By domain, the folder under the task; ROCStories is given out on request only."""

_NOT_IN_ORDER = (
    "in the published SP files of Wikipedia four of the five sentences stand in no order "
    "(docs/sources.md): good as examples of SP, no coherent texts to build other datasets from"
)


_NO_TEXTS = "left out: the examples of SSP are single sentences, no texts to build datasets from"


@dataclass(frozen=True, slots=True)
class Example:
    """A line: its label (-1 for BSO, whose lines have none) and its tokenised sentences."""

    label: int
    sentences: tuple[str, ...]
    where: str


def read_discoeval(task: str, path: Path, on_bad: OnBad | None = None) -> Iterator[Example]:
    """The examples of a file of `SP`, `BSO`, `DC` or `SSP`, unchanged.

    A line of another form goes to `on_bad`; without it the first one raises `InputError`.
    """
    form = _form(task)
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path}:{number}"
        try:
            if isinstance(line, BadRecord):
                raise Refused(line.reason)
            if line:
                yield _example(line, form, task, where)
        except Refused as refusal:
            if on_bad is None:
                raise InputError(str(refusal), where=where) from None
            value = line.value if isinstance(line, BadRecord) else line[:200]
            on_bad(BadRecord(where, str(refusal), value))


def _form(task: str) -> Form:
    if task not in TASKS:
        raise ConfigError(
            f"unknown task {task!r}",
            where="discoeval: task",
            hint=f"{nearest(task, TASKS)}tasks are {', '.join(TASKS)}",
        )
    return TASKS[task]


def _example(line: str, form: Form, task: str, where: str) -> Example:
    fields = line.split("\t")
    expected = form.sentences + bool(form.labels)
    if len(fields) != expected:
        raise Refused(f"wrong number of fields: {len(fields)}, expected {expected} for {task}")
    label = fields.pop(0) if form.labels else "-1"
    if form.labels and label not in form.labels:
        raise Refused(f"bad label: {label[:20]!r}, expected one of {', '.join(form.labels)}")
    if not all(map(str.strip, fields)):
        raise Refused("no text: an empty sentence")
    return Example(int(label), tuple(fields), where)


def read(source: Source) -> Iterator[Document]:
    """The texts behind the examples, a document each, with their sentences as a layer.

    SP: the five sentences, the moved one put back to its place; the other four are in order in
    the files of arXiv, but not in those of Wikipedia as they were published (a warning says so;
    `tests/bench/measure_order.py`). BSO: the two sentences. DC: the six
    sentences of the coherent examples. SSP is skipped, its examples are single sentences. The
    task is the option `task` or a part of the path (`data/SP/wiki/train.txt`), and so is the
    domain, which gives the licence.
    """
    given = source.option("task", str)
    for path in source.files:
        task = given or next((part for part in reversed(path.parts) if part in TASKS), "")
        if not task:
            raise ConfigError(
                f"the path names no task: {str(path)!r}",
                where="discoeval: task",
                hint=f"set the option task to one of {', '.join(TASKS)}",
            )
        if _form(task).sentences == 1:
            log.warning("%s: %s", path, _NO_TEXTS)
            source.skipped[f"file of {task}"] += 1
        else:
            if task == "SP" and path.parent.name == "wiki":
                log.warning("%s: %s", path, _NOT_IN_ORDER)
            yield from _documents(task, path, source.stem(path, SUFFIXES), source)


def _documents(task: str, path: Path, stem: str, source: Source) -> Iterator[Document]:
    def on_bad(record: BadRecord) -> None:
        source.refuse(record.where, record.reason, record.value)

    licence = _LICENCES.get(path.parent.name, "research-only" if "roc" in path.parent.name else "")
    for example in read_discoeval(task, path, on_bad):
        if task == "DC" and example.label == 0:
            continue
        number = example.where.rpartition(":")[2]
        record = {"sentences": _in_order(task, example)}
        try:
            document = as_document(record, CANONICAL, source, f"{stem}:{int(number):06d}")
        except Refused as refusal:
            source.refuse(example.where, str(refusal))
            continue
        document.licence = str(source.options.get("licence") or licence)
        yield document


def _in_order(task: str, example: Example) -> list[str]:
    """The sentences with the one that SP has moved to the front at its place."""
    sentences = list(example.sentences)
    if task == "SP":
        sentences.insert(example.label, sentences.pop(0))
    return sentences
