"""RTE, COPA and ReCoRD (SuperGLUE, Wang et al. 2019), on which CONPONO is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from corpora.errors import check_choice
from corpora.readers import Reader
from corpora.readers.records import PlacedRecord
from corpora.readers.rows import Hub, json_rows
from corpora.readers.source import Source
from corpora.readers.superglue import SuperGlue, example_rows
from corpora.schemas import COPA, RECORD, RTE
from corpora.splits import SPLITS, split_of
from corpora.store.folder import DatasetFolder
from corpora.tasks.cards import card_beside
from corpora.tasks.from_sources import FromSources, Opened, PlacedRows, SplitRows

HUB_SPLITS = ("train", "validation")
"""The splits read from the Hub without an option: the labels of `test` are hidden."""


class Superglue(FromSources):
    """RTE, COPA and ReCoRD, as they are published."""

    name, version = "superglue", 1
    paper = "Wang et al. 2019"
    card = card_beside(__file__, "superglue")
    kinds = ("superglue", "hub")
    gives = {"rte": RTE, "copa": COPA, "record": RECORD}
    default = "rte"
    texts = {
        "rte": ("premise", "hypothesis"),
        "copa": ("premise", "choice1", "choice2"),
        "record": ("query",),
    }

    tasks: tuple[Literal["rte", "copa", "record"], ...] = ("rte", "copa", "record")
    """The tasks to build; each is a configuration."""

    def configurations(self) -> tuple[str, ...]:
        return self.tasks

    def parts(self, sources: Iterable[Opened], dataset: DatasetFolder) -> Iterator[SplitRows]:
        """Yield the rows of each file of `superglue:FOLDER`, or of each split of a Hub dataset."""
        for reader, source in sources:
            for task, split, records in self._records(reader, source):
                rows = _labelled_rows(source, records, task, dataset)
                yield SplitRows(task, split, reader.licence_of(), rows)

    def _records(
        self, reader: Reader, source: Source
    ) -> Iterator[tuple[str, str, Iterable[PlacedRecord]]]:
        """Yield task, split and records of each part of a source. From the Hub come all tasks,
        train and validation, unless the options `config` and `split` name one."""
        if isinstance(reader, SuperGlue):
            for path in source.files:
                task, split = reader.task_and_split(path)
                if task in self.tasks:
                    yield task, split, json_rows(path)
                else:
                    source.skipped["other_task"] += 1
            return
        assert isinstance(reader, Hub)
        split = reader.split if "split" in reader.model_fields_set else ""
        for name in (reader.config,) if reader.config else self.tasks:
            for part in (split,) if split else HUB_SPLITS:
                check_choice("config", name, self.tasks, source.name)
                our_split = check_choice("split", split_of(part) or part, SPLITS, source.name)
                yield name, our_split, reader.records(source.target, name, part)


def _labelled_rows(
    source: Source, records: Iterable[PlacedRecord], task: str, dataset: DatasetFolder
) -> PlacedRows:
    """Yield the examples of a task, without those whose label is hidden."""
    last_place = ""
    for where, row in example_rows(task, records, source.refuse):
        source.good += where != last_place
        last_place = where
        hidden = not row["answers"] if task == "record" else row["label"] < 0
        if hidden:
            dataset.reject("label_hidden")
        elif task == "record" and not set(row["answers"]) & set(row["entities"]):
            dataset.reject("answer_is_no_entity")
        else:
            yield where, row
