"""Suite `senteval`: SentEval's tasks, by its released protocol or by the library mteb.

The columns are those of DiscoEval's table 2. With SentEval's folder as data, the tasks are measured
as in the released code (`zoo.evaluate.senteval_released`). With the data "hub", mteb runs the tasks
that it has, with its own protocol and data. Only its unsupervised tasks (USS) are measured as in
SentEval; `TASKS` notes for each other task how mteb differs, or that mteb lacks it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import field_validator

from corpora.code import versions
from corpora.errors import ConfigError, InputError, check_choice, require
from corpora.store.atomic import sha256
from zoo.declared import ENCODES, Suite
from zoo.evaluate import senteval_released
from zoo.evaluate.encoders import SHARD, as_encoder, layers_to_judge
from zoo.evaluate.results import Result, finished
from zoo.evaluate.table import Rows, percent, plain

HUB, METRIC = "hub", "cosine_pearson"
"""The data of mteb's tasks, and the measure that is read from its results."""
COLUMNS = ("USS", "SSS", "SC", "Probing")
UNTRAINED = "cosine of the vectors; SentEval trains a regression on their features: not comparable"


class SentEvalTask(NamedTuple):
    """A task of SentEval with its column; `mteb` is the name of mteb's task for it, "" if none.

    `note` says why mteb's figure does not count in the column, "" if it does.
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
    """SentEval's tasks, in the columns of DiscoEval's table 2.

    `--data FOLDER` (SentEval's `data/`) measures as the released code does; `--data hub` runs the
    tasks that mteb has, with mteb's protocol.
    """

    name, version = "senteval", 2
    paper = "Chen, Chu and Gimpel 2019, table 2"
    needs = frozenset({ENCODES})

    representation: str = "auto"
    """As in `load_encoder`: mean, cls, cls_mean, pooled, mean:LAYER."""
    tasks: tuple[str, ...] = ()
    """Names such as `MR,SICK-R`, of a folder; all if empty."""
    layers: bool = False
    """Also judge every layer by itself, [CLS] from layer 1 on (figure 8), of a folder."""
    layer_vectors: Literal["cls", "mean"] = "cls"
    """The vectors of a layer: its [CLS] token's, or the mean of its tokens."""

    @field_validator("tasks")
    @classmethod
    def _known_tasks(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            check_choice("task", name, [task.name for task in TASKS])
        return names

    def read(self, spec: str) -> Any:
        """Return "hub", or the path of SentEval's data. Raises `InputError` for another folder."""
        return spec if spec == HUB else data_folder(Path(spec))

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Evaluate vectors on the tasks in SentEval's folder, or on mteb's if `data` is "hub".

        Raises `DiscorporaError` for "hub" without the extra `mteb`.
        """
        if isinstance(data, Path):
            return self.evaluate_released(model, data, split, seed, limit)
        check_data_of_mteb(data, split, limit)
        require("mteb", "mteb", "to run the tasks of SentEval")
        from zoo.evaluate import mteb_tasks

        frozen = as_encoder(model)
        if frozen is None:
            raise self.unfit(model)
        # Scores by mteb, then the result
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

    def evaluate_released(
        self, model: Any, folder: Path, split: str, seed: int, limit: int
    ) -> Result:
        """Evaluate vectors by the released protocol; a `limit` or other `split` is an error."""
        if limit or split != "test":
            raise ConfigError(
                f"--limit {limit}, --split {split}",
                where="suite senteval",
                hint="SentEval scores whole tasks on their own splits: leave out both; "
                "--tasks MR,SICK-R chooses tasks",
            )
        encoder = as_encoder(model)
        if encoder is None:
            raise self.unfit(model)
        if self.layers and not encoder.layers:
            hint = "set layers = false"
            raise ConfigError("this encoder has no layers to look at", hint=hint, field="layers")

        def figures_of(representation: str) -> Any:
            """Return the figures of all tasks by one representation."""

            def vectors(texts: Sequence[str]) -> np.ndarray:
                return encoder.vectors(texts, [representation])[representation]

            return senteval_released.run(folder, vectors, self.tasks, seed)

        # Figures by the suite's vectors and, if asked for, by each layer
        name = encoder.named(self.representation)
        tasks = figures_of(name)
        numbers = layers_to_judge(encoder, self.layer_vectors) if self.layers else ()
        layers = per_layer({each: figures_of(f"{self.layer_vectors}:{each}") for each in numbers})
        result = Result(
            model={**encoder.describe(), "representation": name},
            dataset={"name": "SentEval", "revision": revision_of(folder)},
            protocol={"library": "SentEval's own", "representation": name},
            examples=sum(task["n"] for task in tasks.values()),
            metrics={
                "columns": columns_of(values_of(tasks), released=True),
                "tasks": tasks,
                **({"layers": {"vectors": self.layer_vectors, **layers}} if layers else {}),
            },
        )
        return finished(self, result, encoder, split, seed)

    def write_files(self, result: Result, stem: Path) -> None:
        """Write the figures by layer, if any, to `STEM.layers.csv`, `.svg` and `.png`."""
        from zoo.evaluate.confusions import write_layers

        if layers := result.metrics.get("layers"):
            write_layers(layers, stem.with_name(f"{stem.name}.layers"))

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """Return one row, the model's, whose name is "".

        The row has the complete columns, and each task that was measured by SentEval's protocol.
        """
        columns, tasks = result.metrics["columns"], result.metrics["tasks"]
        cells = {name: percent(column) for name, column in columns.items() if column["complete"]}
        for name, task in tasks.items():
            if "note" not in task:  # only the tasks that mteb measured have a note
                show = plain if task["metric"] == "pearson" else percent
                cells[name] = show(task, task["n"])
        return {"": cells}


def data_folder(folder: Path) -> Path:
    """The path of SentEval's `data/`: `folder` or its subfolder. Raises `InputError` for others."""
    for path in (folder, folder / "data"):
        if (path / "downstream").is_dir():
            return path
    raise InputError(
        "holds no folder downstream/",
        where=str(folder),
        hint='give the folder data/ of SentEval, or "hub" for what mteb has',
    )


def revision_of(folder: Path) -> str:
    """The revision of SentEval's data, "files HASH", from the files' names and contents."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            digest.update(f"{path.relative_to(folder).as_posix()} {sha256(path)}\n".encode())
    return f"files {digest.hexdigest()[:12]}"


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
    """Run the tasks that mteb has; return their scores and data revisions, by SentEval's names."""
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


def columns_of(scores: Mapping[str, float], *, released: bool = False) -> dict[str, dict[str, Any]]:
    """Average the scores of tasks, `scores[task]`, to the columns of DiscoEval's table 2.

    A column is complete, and has a `value`, only if each of its tasks was measured as in SentEval;
    else it lists the `missing` tasks. All scores count if `released` says that they are by
    SentEval's protocol, otherwise those of the tasks that mteb measures in the same way.
    """
    columns: dict[str, dict[str, Any]] = {}
    for column in COLUMNS:
        tasks = [task for task in TASKS if task.column == column]
        comparable = {task.name for task in tasks if (released or not task.note)}
        missing = [task.name for task in tasks if task.name not in comparable & scores.keys()]
        columns[column] = {"complete": not missing, "missing": missing}
        if not missing:
            columns[column]["value"] = float(np.mean([scores[task.name] for task in tasks]))
    return columns


def values_of(tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The `value` of each task's figures, by task."""
    return {name: task["value"] for name, task in tasks.items()}


def per_layer(layers: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of each complete column by layer, from the tasks' figures of each layer.

    Layer 0 is the embeddings. `accuracy[column]` has a figure for each layer (a correlation in USS
    and SSS), `best[column]` is the layer with the highest one, and `mean_best` the mean of these
    layers (DiscoEval, table 3). The result is empty if no column is complete.
    """
    rows = [columns_of(values_of(tasks), released=True) for tasks in layers.values()]
    accuracy = {
        column: [row[column]["value"] for row in rows]
        for column in COLUMNS
        if all(row[column]["complete"] for row in rows)
    }
    if not rows or not accuracy:
        return {}
    numbers = [*layers]
    best = {column: numbers[int(np.argmax(values))] for column, values in accuracy.items()}
    about = {"layers": numbers, "accuracy": accuracy, "best": best}
    return {**about, "mean_best": float(np.mean([*best.values()]))}


def notes_of(scores: Mapping[str, float]) -> list[str]:
    """Notes on the tasks whose figures by mteb do not count, one for each column and reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for task in TASKS:
        if task.note or task.name not in scores:
            reasons.setdefault((task.column, task.note or "not run"), []).append(task.name)
    return [
        "USS: mteb correlates all pairs of a year at once, SentEval each of its subsets",
        *(f"{column}: {', '.join(names)}: {why}" for (column, why), names in reasons.items()),
    ]
