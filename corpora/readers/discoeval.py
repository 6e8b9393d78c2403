"""`discoeval:` the tab-separated files of DiscoEval (Chen et al. 2019), as they are published."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.readers.files import expect, good_record, read_lines
from corpora.readers.records import as_document
from corpora.readers.source import OnBad, Reader, Source, fail, refusing

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
_NO_TEXTS = "skipped: the examples of SSP are single sentences, those of RST-DT parts of trees"


class DiscoEval(Reader):
    """DiscoEval's own files of SP, BSO and DC."""

    name = "discoeval"
    suffixes = (".txt", ".pkl")
    paper = "Chen et al. 2019"

    task: Literal["SP", "BSO", "DC", "SSP"] | None = None
    """The task, if no folder of the path has its name."""

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the texts of the examples as documents, with their sentences as a layer.

        SP: the five sentences with the moved one put back; the other four are in order in the files
        of arXiv, but not in the published files of Wikipedia (a warning says so;
        `tests/bench/measure_order.py`). BSO: the two sentences. DC: the six sentences of the
        coherent examples. SSP and the pickles of RST-DT are skipped, their examples are no texts;
        the suite `discoeval` reads them. The domain, a part of the path, gives the licence.
        """
        task: str = self.task or next((part for part in reversed(path.parts) if part in TASKS), "")
        pickled = path.suffix == ".pkl"
        if not task and not pickled:
            hint = f"set the option task to one of {', '.join(TASKS)}"
            raise ConfigError(f"the path does not name a task: {str(path)!r}", hint=hint)
        if task == "SSP" or pickled:
            log.warning("%s: %s", path, _NO_TEXTS)
            source.skipped[f"file of {'RST' if pickled else task}"] += 1
            return
        domain = path.parent.name
        if task == "SP" and domain == "wiki":
            log.warning("%s: %s", path, _NOT_IN_ORDER)
        licence = str(self.licence or _LICENCES.get(domain, ""))
        for row in read_discoeval(task, path, source.refuse):
            if task == "DC" and row.label == 0:  # an incoherent text
                continue
            sentences = list(row.sentences)
            if task == "SP":
                sentences.insert(row.label, sentences.pop(0))
            with source.refusing(row.where):
                number = int(row.where.rpartition(":")[2])
                record = {"sentences": sentences, "licence": licence}
                yield as_document(record, source, f"{stem}:{number:06d}")


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
