"""`discoeval:` the tab-separated files of DiscoEval (Chen et al. 2019), as they are published."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.readers.files import expect, good_record, read_lines
from corpora.readers.records import as_document
from corpora.readers.released import Release, ReleasedRow
from corpora.readers.source import OnBad, Source, fail, refusing
from corpora.splits import split_of

log = logging.getLogger(__name__)


class LineFormat(NamedTuple):
    """What a line of a task holds: a label of `labels`, if there are any, and `sentences` texts.

    BSO has no labels: its negatives are made by swapping the two sentences.
    """

    sentences: int
    labels: tuple[str, ...] = ()


TASKS = {
    "SP": LineFormat(5, ("0", "1", "2", "3", "4")),
    "BSO": LineFormat(2),
    "DC": LineFormat(6, ("0", "1")),
    "SSP": LineFormat(1, ("0", "1")),
}

_OTHER_TASKS = ("PDTB", "RST")
"""Folders of tasks made from texts of the LDC."""

_LICENCES = {
    "wiki": "CC-BY-SA-3.0",
    "arxiv": "CC0-1.0",
    "chat": "CC-BY-4.0",
    "rocstory": "research-only",  # ROCStories is distributed on request only
}
"""Licences by domain, the folder under the task."""

_NOT_IN_ORDER = (
    "in the published SP files of Wikipedia four of the five sentences are shuffled "
    "(docs/reference/sources.md): use them as examples of SP, not as coherent texts for other "
    "datasets"
)
_NO_TEXTS = "skipped: its examples are no texts: single sentences, relations or parts of trees"


class DiscoEval(Release):
    """DiscoEval's own files of SP, BSO, DC and SSP."""

    name = "discoeval"
    suffixes = (".txt", ".pkl")
    paper = "Chen et al. 2019"
    digits = 6

    task: Literal["SP", "BSO", "DC", "SSP"] | None = None
    """The task, if no folder of the path has its name."""

    def licence_of(self, key: str = "") -> str:
        """Return the licence of a domain's texts."""
        return super().licence_of(key) if self.licence else _LICENCES.get(key, self.own_licence)

    def licence_of_file(self, path: Path) -> str:
        """Return the licence of a file; the folder that it is in names its domain."""
        return self.licence_of(path.parent.name)

    def task_of(self, path: Path, source: Source) -> str:
        """Return the task of a file; "", counted as skipped, for one of PDTB or RST-DT.

        Raises `ConfigError` if neither an option nor the path names it.
        """
        tasks = (*TASKS, *_OTHER_TASKS)
        in_path = next((part for part in reversed(path.parts) if part in tasks), "")
        task: str = self.task or in_path
        if path.suffix == ".pkl" or task in _OTHER_TASKS:
            source.skipped[f"file of {task or 'RST'}"] += 1
            return ""
        if not task:
            hint = f"set the option task to one of {', '.join(TASKS)}"
            raise ConfigError(f"the path does not name a task: {str(path)!r}", hint=hint)
        return task

    def rows(self, path: Path, stem: str, source: Source) -> Iterator[ReleasedRow]:
        """Yield the examples of a file, of the configuration `TASK_DOMAIN` such as `sp_wiki`.

        A line of BSO gives the pair as written, then swapped, with the number of the line as
        `pair`; each two lines of DC have one `pair`.
        """
        from corpora.schemas import DISCOEVAL
        from corpora.store.rows import hub_features

        task = self.task_of(path, source)
        names = hub_features(DISCOEVAL[task])["label"]["names"] if task else []
        config, split = f"{task}_{path.parent.name}".lower(), split_of(path.name) or "train"
        for label, sentences, where in read_discoeval(task, path, source.refuse) if task else ():
            number = int(where.rpartition(":")[2])
            id = f"{stem}:{number:0{self.digits}}"
            columns: dict[str, Any] = {"id": id, "label": names[label]}
            if task == "BSO":
                columns |= zip(("sentence1", "sentence2"), sentences, strict=True)
                columns |= {"pair": number, "label": names[1]}
                yield ReleasedRow(config, split, columns, where)
                swapped = zip(("sentence2", "sentence1"), sentences, strict=True)
                columns = {**columns, **dict(swapped), "id": f"{id}:swapped", "label": names[0]}
            elif task == "SSP":
                columns["sentence"] = sentences[0]
            else:
                columns |= {"sentences": sentences, "pair": (number + 1) // 2}
            yield ReleasedRow(config, split, columns, where)

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the texts of the examples as documents, with their sentences as a layer.

        SP: the five sentences with the moved one put back; the other four are in order in the files
        of arXiv, but not in the published files of Wikipedia (a warning says so;
        `tests/bench/measure_order.py`). BSO: the two sentences. DC: the six sentences of the
        coherent examples. SSP, PDTB and RST-DT are skipped, their examples are no texts; the suite
        `discoeval` reads them. The domain, a part of the path, gives the licence.
        """
        task = self.task_of(path, source)
        if task == "SSP":
            source.skipped["file of SSP"] += 1
        if task in ("", "SSP"):
            log.warning("%s: %s", path, _NO_TEXTS)
            return
        if task == "SP" and path.parent.name == "wiki":
            log.warning("%s: %s", path, _NOT_IN_ORDER)
        licence = self.licence_of_file(path)
        for row in read_discoeval(task, path, source.refuse):
            if task == "DC" and row.label == 0:  # an incoherent text
                continue
            sentences = list(row.sentences)
            if task == "SP":
                sentences.insert(row.label, sentences.pop(0))
            with source.refusing(row.where):
                number = int(row.where.rpartition(":")[2])
                record = {"sentences": sentences, "licence": licence}
                yield as_document(record, source, f"{stem}:{number:0{self.digits}}")


class DiscoEvalRow(NamedTuple):
    """A line: its label (-1 for BSO, whose lines have none) and its tokenised sentences."""

    label: int
    sentences: tuple[str, ...]
    where: str


def read_discoeval(task: str, path: Path, on_bad: OnBad = fail) -> Iterator[DiscoEvalRow]:
    """Yield the rows of a file of the task `SP`, `BSO`, `DC` or `SSP`, unchanged.

    An invalid line goes to `on_bad`; by default the first one raises `InputError`.
    """
    line_format = TASKS[task]
    expected = line_format.sentences + (1 if line_format.labels else 0)
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path}:{number}"
        with refusing(on_bad, where, line):
            if not line:
                continue
            fields = good_record(line).split("\t")
            reason = f"wrong number of fields: {len(fields)}, expected {expected} for {task}"
            expect(len(fields) == expected, reason)
            label = fields.pop(0) if line_format.labels else "-1"
            is_label = label in (line_format.labels or ("-1",))
            expect(
                is_label,
                f"bad label: {label[:20]!r}, expected one of {', '.join(line_format.labels)}",
            )
            expect(all(map(str.strip, fields)), "no text: an empty sentence")
            yield DiscoEvalRow(int(label), tuple(fields), where)
