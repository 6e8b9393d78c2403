"""RTE, COPA and ReCoRD (SuperGLUE, Wang et al. 2019), on which CONPONO is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from corpora.errors import ConfigError, nearest
from corpora.readers import Reader, jsonl
from corpora.readers.hub import Hub
from corpora.readers.records import Place
from corpora.readers.source import Source
from corpora.readers.superglue import SPLIT_NAMES, TASKS, Row, SuperGlue, rows
from corpora.schemas import COPA, RECORD, RTE
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, used
from corpora.tasks.given import Given, Unique, opened_sources
from corpora.tasks.target import Target

VERSION = 1
READS = ("superglue", "hub")
SCHEMAS: dict[str, pa.Schema] = {"rte": RTE, "copa": COPA, "record": RECORD}
TEXTS = {
    "rte": ("premise", "hypothesis"),
    "copa": ("premise", "choice1", "choice2"),
    "record": ("query",),
}
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
    limits=("The test labels are not public: evaluate on `validation`.",),
    tags=("superglue", "evaluation"),
    task_categories=("text-classification", "question-answering"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """`tasks`: which of rte, copa and record."""

    tasks: tuple[str, ...] = ("rte", "copa", "record")

    def __post_init__(self) -> None:
        for task in self.tasks:
            if task not in TASKS:
                raise ConfigError(
                    f"tasks holds {task!r}", hint=f"{nearest(task, TASKS)}tasks: {', '.join(TASKS)}"
                )


def configurations(settings: Settings) -> Iterable[str]:
    """What `Builder.configurations` gives."""
    return settings.tasks


def build(
    sources: Iterable[Given], settings: Settings, target: Target, *, max_bad_share: float = 1.0
) -> dict[str, Any]:
    """Build a configuration a task; returns the manifest.

    `sources` are `(spec, options)`: `superglue:FOLDER`, or `hub:aps/super_glue` (all three tasks,
    train and validation; options `config` and `split` narrow it). Raises `InputError` for an id
    that comes twice in a split, and where more than `max_bad_share` of a source's records are bad.
    """
    with target.dataset(CARD) as dataset:
        ids = Unique()
        for reader, source, licence in opened_sources(sources, READS, dataset, max_bad_share):
            for task, split, records in _parts(reader, source, settings):
                found = _labelled(source, records, task, split, ids, dataset)
                writer = dataset.writer(task, split, SCHEMAS[task], texts=TEXTS[task])
                before = writer.rows
                dataset.write(task, split, found, SCHEMAS[task], texts=TEXTS[task])
                dataset.count_licence(licence, writer.rows - before)
        dataset.details |= {"settings": used(settings, target.seed)}
        return dataset.finish(next(iter(settings.tasks), None))


def _parts(
    reader: Reader, source: Source, settings: Settings
) -> Iterator[tuple[str, str, Iterable[Place]]]:
    """Task, split and records of each file, or of each part of a Hub dataset."""
    if isinstance(reader, SuperGlue):
        for path in source.files:
            task, split = reader.part_of(path)
            if task in settings.tasks:
                yield task, split, jsonl.records(path)
            else:
                source.skipped["other_task"] += 1
        return
    assert isinstance(reader, Hub)
    split = reader.split if "split" in reader.model_fields_set else ""
    for name in (reader.config,) if reader.config else settings.tasks:
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


def _labelled(
    source: Source,
    records: Iterable[Place],
    task: str,
    split: str,
    ids: Unique,
    dataset: DatasetFolder,
) -> Iterator[Row]:
    last = ""
    for where, row in rows(task, records, source.refuse):
        source.good += where != last
        last = where
        hidden = not row["answers"] if task == "record" else row["label"] < 0
        if hidden:
            dataset.reject("label_hidden")
            continue
        if task == "record" and not set(row["answers"]) & set(row["entities"]):
            dataset.reject("answer_is_no_entity")
            continue
        ids.check(f"{task}/{split}", row["id"], where)
        yield row
