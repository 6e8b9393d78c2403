"""RTE, COPA and ReCoRD (SuperGLUE, Wang et al. 2019), on which CONPONO is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from corpora.errors import ConfigError, nearest
from corpora.readers import Reader
from corpora.readers.records import Place
from corpora.readers.rows import Hub, json_rows
from corpora.readers.source import Source
from corpora.readers.superglue import SPLIT_NAMES, TASKS, SuperGlue, rows
from corpora.schemas import COPA, RECORD, RTE
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.from_sources import FromSources, Opened, Part, Rows

HUB_SPLITS = ("train", "validation")
"""What is read of the Hub's version without an option: the labels of `test` are hidden."""

CARD = Card(
    title="RTE, COPA and ReCoRD",
    summary=(
        "Three tasks of SuperGLUE in one folder: textual entailment, causes and effects, and "
        "reading with a placeholder for an entity."
    ),
    method=(
        "The rows of SuperGLUE (Wang et al. 2019) as they are published, in their splits; rows "
        "whose label is hidden are left out. ReCoRD has a row for each query; `entities` and "
        "`answers` are the distinct strings, in the order of the file."
    ),
    fields={
        "id": "number of the row in its file (ReCoRD: passage-query)",
        "premise": "RTE, COPA: what is given",
        "hypothesis": "RTE: does the premise entail it?",
        "question": "COPA: `cause` or `effect` of the premise",
        "choice1": "COPA: the first choice",
        "choice2": "COPA: the second choice",
        "label": "RTE: `entailment` or not; COPA: the choice that fits",
        "passage": "ReCoRD: a news text with its `@highlight` lines",
        "query": "ReCoRD: a sentence with `@placeholder`",
        "entities": "ReCoRD: the candidates",
        "answers": "ReCoRD: those of them that fit",
    },
    citation="""@inproceedings{wang-etal-2019-superglue,
  title = {{S}uper{GLUE}: A Stickier Benchmark for General-Purpose Language Understanding Systems},
  author = {Wang, Alex and Pruksachatkun, Yada and Nangia, Nikita and Singh, Amanpreet and
            Michael, Julian and Hill, Felix and Levy, Omer and Bowman, Samuel R.},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2019}
}""",
    configurations={
        "rte": "does the premise entail the hypothesis?",
        "copa": "which of two choices is the cause, or the effect, of the premise?",
        "record": "which entity of the passage fills the gap of the query?",
    },
    limits=("The test labels are not public: evaluate on `validation`.",),
    tags=("superglue", "evaluation"),
    task_categories=("text-classification", "question-answering"),
)


class Superglue(FromSources):
    """RTE, COPA and ReCoRD, as they are published."""

    name, version = "superglue", 1
    paper = "Wang et al. 2019"
    card = CARD
    kinds = ("superglue", "hub")
    gives = {"rte": RTE, "copa": COPA, "record": RECORD}
    default = "rte"
    texts = {
        "rte": ("premise", "hypothesis"),
        "copa": ("premise", "choice1", "choice2"),
        "record": ("query",),
    }

    tasks: tuple[Literal["rte", "copa", "record"], ...] = ("rte", "copa", "record")
    """Which of the tasks; each is a configuration."""

    def configurations(self) -> tuple[str, ...]:
        return self.tasks

    def parts(self, sources: Iterable[Opened], dataset: DatasetFolder) -> Iterator[Part]:
        """Each file of `superglue:FOLDER`, or each part of a dataset of the Hub."""
        for reader, source in sources:
            for task, split, records in self._records(reader, source):
                rows = _labelled(source, records, task, dataset)
                yield Part(task, split, reader.licence_of(), rows)

    def _records(
        self, reader: Reader, source: Source
    ) -> Iterator[tuple[str, str, Iterable[Place]]]:
        """Task, split and records; of the Hub all tasks, train and validation, unless the options
        `config` and `split` name one."""
        if isinstance(reader, SuperGlue):
            for path in source.files:
                task, split = reader.part_of(path)
                if task in self.tasks:
                    yield task, split, json_rows(path)
                else:
                    source.skipped["other_task"] += 1
            return
        assert isinstance(reader, Hub)
        split = reader.split if "split" in reader.model_fields_set else ""
        for name in (reader.config,) if reader.config else self.tasks:
            if name not in TASKS:
                raise ConfigError(
                    f"config = {name!r}",
                    where="hub: config",
                    hint=f"{nearest(name, TASKS)}one of {', '.join(TASKS)}, or none for all",
                )
            for part in (split,) if split else HUB_SPLITS:
                if part not in SPLIT_NAMES:
                    raise ConfigError(f"split = {part!r}", hint=f"one of {', '.join(SPLIT_NAMES)}")
                yield name, SPLIT_NAMES[part], reader.records(source.target, name, part)


def _labelled(source: Source, records: Iterable[Place], task: str, dataset: DatasetFolder) -> Rows:
    """The examples of a task whose label is not hidden."""
    last = ""
    for where, row in rows(task, records, source.refuse):
        source.good += where != last
        last = where
        if not row["answers"] if task == "record" else row["label"] < 0:
            dataset.reject("label_hidden")
        elif task == "record" and not set(row["answers"]) & set(row["entities"]):
            dataset.reject("answer_is_no_entity")
        else:
            yield where, row
