"""Suite `senteval`: the tasks of SentEval in the library mteb, as columns of DiscoEval's table 2.

mteb runs its tasks with its own protocol and data. Only the unsupervised tasks (USS) are measured
as SentEval measures them. For each other task `TASKS` says what differs, or that mteb lacks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from corpora.code import versions
from corpora.errors import ConfigError, require
from zoo.declared import ENCODES, Suite
from zoo.evaluate.encoders import SHARD, as_encoder
from zoo.evaluate.results import Result, finished
from zoo.evaluate.table import Rows, percent

HUB, METRIC = "hub", "cosine_pearson"
COLUMNS = ("USS", "SSS", "SC", "Probing")
UNTRAINED = "cosine of the vectors; SentEval trains a regression on their features: not comparable"


class SentEvalTask(NamedTuple):
    """A task of SentEval, its column, and mteb's task for it ("" if there is none).

    `note` says why it does not count in the column; "" if mteb measures it as SentEval does.
    """

    name: str
    column: str
    mteb: str = ""
    note: str = "not in mteb"


_SC = ("MR", "CR", "MPQA", "SUBJ", "SST", "TREC", "MRPC")
_PROBING = (
    *("Length", "WordContent", "Depth", "TopConstituents", "BigramShift"),
    *("Tense", "SubjNumber", "ObjNumber", "OddManOut", "CoordinationInversion"),
)
TASKS = (
    *(SentEvalTask(f"STS{year}", "USS", f"STS{year}", "") for year in range(12, 17)),
    SentEvalTask("STS-B", "SSS", "STSBenchmark", UNTRAINED),
    SentEvalTask("SICK-R", "SSS", "SICK-R", UNTRAINED),
    SentEvalTask("SICK-E", "SSS", "", "in mteb only in translations"),
    *(SentEvalTask(name, "SC") for name in _SC),
    *(SentEvalTask(name, "Probing") for name in _PROBING),
)


class SentEval(Suite):
    """The tasks of SentEval that the library mteb has, in the columns of DiscoEval's table 2.

    mteb runs its tasks with its own protocol and data: `--data hub`.
    """

    name = "senteval"
    paper = "Chen, Chu and Gimpel 2019, table 2"
    needs = frozenset({ENCODES})

    representation: str = "auto"
    """As in `load_encoder`: mean, cls, cls_mean, pooled, mean:LAYER."""

    def read(self, spec: str) -> Any:
        """The name "hub". Raises `ConfigError` for any other."""
        check_data_of_mteb(spec)
        return spec

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Run mteb's tasks, and report the columns that they fill.

        `data` is "hub": mteb loads its own data. Raises `DiscorporaError` without the extra `mteb`.
        """
        check_data_of_mteb(data, split, limit)
        require("mteb", "mteb", "to run the tasks of SentEval")
        from zoo.evaluate import mteb_tasks

        frozen = as_encoder(model)
        if frozen is None:
            raise self.unfit(model)
        scores, revisions = run(mteb_tasks.encoder(frozen))
        tasks = {
            task.name: {"value": scores[task.name], "metric": METRIC}
            | {"column": task.column, "note": task.note}
            for task in TASKS
            if task.name in scores
        }
        result = Result(
            model=frozen.describe(),
            dataset={name: {"revision": revision} for name, revision in revisions.items()},
            protocol={
                "library": f"mteb {versions('mteb')['mteb']}",
                "representation": frozen.representation,
            },
            examples=len(scores),
            metrics={"columns": columns_of(scores), "tasks": tasks},
            notes=notes_of(scores),
        )
        return finished(self, result, frozen, split, seed)

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """The model's row, with the complete columns."""
        columns = result.metrics["columns"]
        return {"": {name: percent(each) for name, each in columns.items() if each["complete"]}}


def check_data_of_mteb(data: Any, split: str = "test", limit: int = 0) -> None:
    """Raise `ConfigError` for data, a split or a limit that mteb would ignore."""
    if data != HUB or limit or split != "test":
        raise ConfigError(
            f"data {data!r}, --limit {limit}, --split {split}",
            where="suite senteval",
            hint="mteb loads its own data from the Hub and scores whole tasks on their own "
            "splits: give --data hub, and leave out --limit and --split",
        )


def run(encoder: Any) -> tuple[dict[str, float], dict[str, str]]:
    """Run mteb's evaluation; return the scores and the revisions of the data, by `TASKS`' names."""
    import mteb

    by_mteb_name = {task.mteb: task for task in TASKS if task.mteb}
    evaluation = mteb.evaluate(
        encoder,
        mteb.get_tasks(tasks=list(by_mteb_name)),
        cache=None,
        show_progress_bar=False,
        encode_kwargs={"batch_size": SHARD},  # the encoder makes its own batches of them
    )
    scores, revisions = {}, {}
    for result in evaluation.task_results:
        task = by_mteb_name[result.task_name]
        scores[task.name] = float(
            np.mean([row[METRIC] for rows in result.scores.values() for row in rows])
        )
        revisions[task.name] = str(result.dataset_revision)
    return scores, revisions


def columns_of(scores: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """The paper's columns from the scores by task; a column is the mean over its tasks.

    A column is complete, and has a value, only if each of its tasks was measured as SentEval
    does; else it lists the missing tasks.
    """
    columns: dict[str, dict[str, Any]] = {}
    for column in COLUMNS:
        tasks = [task for task in TASKS if task.column == column]
        missing = [task.name for task in tasks if task.note or task.name not in scores]
        columns[column] = {"complete": not missing, "missing": missing}
        if not missing:
            columns[column]["value"] = float(np.mean([scores[task.name] for task in tasks]))
    return columns


def notes_of(scores: Mapping[str, float]) -> list[str]:
    """The notes on tasks that are measured otherwise or missing: one for each column and reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for task in TASKS:
        if task.note or task.name not in scores:
            reasons.setdefault((task.column, task.note or "not run"), []).append(task.name)
    return [
        "USS: mteb correlates all pairs of a year at once, SentEval each of its subsets",
        *(f"{column}: {', '.join(names)}: {why}" for (column, why), names in reasons.items()),
    ]
