"""Suite `superglue`: RTE, COPA and ReCoRD by fine-tuning (Iter et al. 2020, 3.2 and A.4).

An example of RTE is a pair of texts to classify. An example of COPA or ReCoRD has a pair of texts
for each candidate answer, and the pairs are ranked.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field

from corpora.errors import ConfigError, InputError
from corpora.outside import split_config
from corpora.store.atomic import MANIFEST
from corpora.store.manifest import read_manifest
from zoo.declared import GOES_ON, AtLeast0, Count, Form, Positive, Suite
from zoo.evaluate import in_hand
from zoo.evaluate.results import Result, finished
from zoo.evaluate.scores import Outcomes, independent_units, ratio_interval
from zoo.evaluate.table import Rows, percent
from zoo.training.data import (
    UNBUILT,
    as_datasets,
    check_columns,
    label_names,
    open_dataset,
    several,
    spread,
)

if TYPE_CHECKING:
    from zoo.evaluate.superglue_training import Start

PLACEHOLDER = "@placeholder"
"""The blank in a query of ReCoRD."""
_BULLET = re.compile(r"\s*@highlight\s*")
"""The mark before each point of the summary in a passage of ReCoRD."""
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_QUESTIONS = {"cause": "What was the cause?", "effect": "What happened as a result?"}


@dataclass(frozen=True)
class SuperGlueTask:
    """A task of SuperGLUE with its settings in appendix A.4.

    `config` is the configuration of the task's dataset, `columns` its columns. `classes` is 0 for a
    task that ranks candidates. Training takes `max_steps` steps, or `epochs` if that is 0.
    `checkpoint` is the number of steps between two checkpoints (0: one an epoch).
    """

    name: str
    config: str
    columns: tuple[str, ...]
    learning_rate: float
    max_steps: int = 0
    epochs: float = 0.0
    checkpoint: int = 0
    classes: int = 0
    device_batch: int = 32
    """Examples on the device at once; gradients are accumulated up to a whole batch."""


_RTE = ("premise", "hypothesis", "label")
_COPA = ("premise", "question", "choice1", "choice2", "label")
_RECORD = ("passage", "query", "entities", "answers")

TASKS = {
    task.config: task
    for task in (
        SuperGlueTask("RTE", "rte", _RTE, 8e-6, max_steps=3240, checkpoint=750, classes=2),
        SuperGlueTask("COPA", "copa", _COPA, 1e-5, max_steps=300, checkpoint=50),
        SuperGlueTask("ReCoRD", "record", _RECORD, 2e-5, epochs=8, device_batch=2),
    )
}


@dataclass(frozen=True, slots=True)
class SuperGlueExample:
    """An example to classify (one pair of texts) or to rank (a pair for each candidate).

    `right` has the number of the class, or the numbers of the right candidates. `texts` are the
    candidates themselves, `answers` the texts of ReCoRD's right answers.
    """

    pairs: tuple[tuple[str, str], ...]
    right: tuple[int, ...]
    texts: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


class SuperGlue(Suite):
    """RTE, COPA and ReCoRD by fine-tuning: accuracy on the validation set (ReCoRD: EM and F1 too).

    Steps, epochs, learning rates, warm-up and length are the paper's; the batch (32) and the limit
    of 25 candidates in training are those of its released code, since the paper has none.
    """

    name = "superglue"
    paper = "Iter et al. 2020, 3.2 and A.4"
    needs = frozenset({GOES_ON})
    reads = tuple(Form(task.columns) for task in TASKS.values())
    all_configs = True

    tasks: tuple[Literal["rte", "copa", "record"], ...] = ()
    """Names among rte, copa, record, with commas (all that the dataset has)."""
    seeds: Positive = 1
    """Trainings with the seeds `--seed` and the following ones: mean and deviation."""
    batch: Positive = 32
    """Examples of an optimizer step."""
    max_length: Annotated[int, Field(ge=8)] = 512
    """Tokens of a pair of texts; the longer text is cut."""
    max_candidates: Annotated[int, Field(ge=2)] = 25
    """The most candidates of an example in training; evaluation ranks all of them."""
    max_steps: Count = 0
    """Steps in place of the paper's steps and epochs, for a try (0: the paper's)."""
    learning_rate: AtLeast0 = 0.0
    """A learning rate in place of the paper's (0: the paper's)."""
    head: Literal["bilinear", "linear"] = "bilinear"
    """The head of COPA and ReCoRD: `bilinear` as in the released code, t^T W c with CONPONO's W of
    k = +1 (a new W for a model without one), or a new `linear` layer. RTE's is linear."""
    copa_question: bool = False
    """Append the question (cause or effect) to the premise; the paper's table 2 shows none."""
    bf16: bool | Literal["auto"] = "auto"
    """bfloat16 in the forward pass; `auto`: on a GPU that has it."""

    def read(self, spec: str) -> Any:
        """Open the datasets of the tasks by configuration, or the one that `@CONFIG` names."""
        folder, config = split_config(spec)
        if config and self.tasks not in ((), (config,)):
            problem = f"tasks names {', '.join(self.tasks)}, and the data {config!r}"
            raise ConfigError(problem, where=spec, hint="leave out @CONFIG, or the tasks")
        if config:
            return open_dataset(folder, config)
        names: Collection[str] = TASKS
        if Path(folder).is_dir():
            names = read_manifest(Path(folder, MANIFEST), UNBUILT)["configs"]
        # For a dataset without any of the tasks the error of opening one names its configurations.
        chosen = self.tasks or [name for name in TASKS if name in names] or [*TASKS]
        return {name: open_dataset(folder, name) for name in chosen}

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Fine-tune on each task, and measure accuracy (ReCoRD: EM and F1 too) on validation."""
        from zoo.evaluate.superglue_training import Start

        # Model and data
        start = Start.of(model)
        if start is None:
            raise self.unfit(model)
        datasets = {each.config: each for each in as_datasets(data)}
        config = "" if several(data) else next(iter(datasets))
        names = self.tasks or [name for name in TASKS if name in datasets]
        missing = [name for name in names if name not in datasets]
        if missing or not names:
            raise ConfigError(
                f"no data of the task {', '.join(missing or TASKS)}",
                where=", ".join(each.where for each in datasets.values()),
                hint='give {"rte": DATASET, "copa": DATASET}, by the names of the tasks',
            )
        # The rows to judge in each task
        judged = {}
        for name in names:
            test = datasets[name].splits.get("test")  # empty: SuperGLUE publishes no test labels
            hidden = split == "test" and (test is None or not test.num_rows)
            scored = "validation" if hidden else split
            judged[TASKS[name]] = scored, spread(datasets[name][scored], limit)
        # Fine-tune and judge.
        tasks, outcomes = {}, []
        for task, (_, table) in judged.items():
            train = datasets[task.config]["train"]
            tasks[task.name], of_task = self._run_task(task, train, table, start, seed)
            outcomes += of_task
        # Result
        rows = {name: datasets[name].describe()["rows"] for name in names}
        ranks = [task.name for task in judged if not task.classes]
        notes = []
        if ranks and self.head == "bilinear" and start.relation is None:
            notes.append(f"{', '.join(ranks)}: the model has no W of k = +1, a new one is trained")
        result = Result(
            model=in_hand.about(start),
            dataset={**datasets[names[0]].describe(), "config": config, "rows": rows},
            protocol=self.model_dump(exclude={"tasks", "bf16"}) | {"limit": limit},
            examples=sum(task["examples"] for task in tasks.values()),
            metrics={"tasks": tasks, "resampled": "rows"},
            notes=notes,
            outcomes=outcomes,
            more={"split": " ".join(dict.fromkeys(scored for scored, _ in judged.values()))},
        )
        return finished(self, result, start, split, seed)

    def _run_task(
        self, task: SuperGlueTask, train: pa.Table, judged: pa.Table, start: Start, first: int
    ) -> tuple[dict[str, Any], list[Outcomes]]:
        """Fine-tune and judge on one task for each seed from `first` on; return figures, outcomes.

        The figures are those after the last step. `best_checkpoint` is the accuracy of the best
        checkpoint, which is chosen on the same examples and so too high.
        """
        from zoo.evaluate.superglue_training import fine_tune

        # Fine-tune with each seed.
        changes: dict[str, Any] = {"max_steps": self.max_steps, "learning_rate": self.learning_rate}
        task = replace(task, **{name: value for name, value in changes.items() if value})
        training, examples = (
            examples_of(task.config, rows, copa_question=self.copa_question)
            for rows in (train, judged)
        )
        training = [fewer_candidates(example, self.max_candidates) for example in training]
        seeds = range(first, first + self.seeds)
        runs = [fine_tune(task, training, examples, start, self, seed) for seed in seeds]
        if task.classes:  # the accuracy of answering the most frequent class
            chance = np.bincount([example.right[0] for example in examples]).max() / len(examples)
        else:  # the accuracy of choosing a candidate at random
            chance = np.mean([len(set(e.right)) / len(e.pairs) for e in examples])
        # Figures of all seeds together
        best = [max(point["accuracy"] for point in points) for _, points in runs]
        figures: dict[str, Any] = {
            "examples": len(examples),
            "chance": float(chance),
            "best_checkpoint": float(np.mean(best)),
            "runs": [
                {"seed": seed, "checkpoints": points}
                for seed, (_, points) in zip(seeds, runs, strict=True)
            ],
        }
        outcomes = []
        for measure in MEASURES if task.config == "record" else MEASURES[:1]:
            values = np.array([list(map(measure.of, examples, chosen)) for chosen, _ in runs])
            means, ones = values.mean(1), np.ones(len(examples))  # values [seeds, examples]
            bootstrap = f"{task.name}.{measure.key}" if measure.suffix else task.name
            figures[measure.key] = {
                "value": float(means.mean()),
                **ratio_interval(values.mean(0), ones, first, bootstrap),
                "deviation": float(means.std(ddof=1)) if len(means) > 1 else None,
            }
            column = f"{task.name}{measure.suffix}"
            outcomes.append(Outcomes(column, independent_units(len(examples)), values.mean(0)))
        return figures, outcomes

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """The model's row: a column for each measure of each task."""
        cells = {}
        for task, figures in result.metrics["tasks"].items():
            for measure in (each for each in MEASURES if each.key in figures):
                cell = percent(figures[measure.key], figures.get("examples"))
                cells[f"{task}{measure.suffix}"] = cell
        return {"": cells}


def examples_of(
    config: str, table: pa.Table, *, copa_question: bool = False
) -> list[SuperGlueExample]:
    """Convert the rows of one split to examples.

    A pair of COPA is the premise and a choice that completes it, as in the paper's table 2; with
    `copa_question` the premise ends in the question. Raises `InputError` for a table without the
    task's columns, and for a row without a right answer.
    """
    where = f"superglue@{config}"
    check_columns(table.column_names, TASKS[config].columns, where)
    classes = len(label_names(table.schema, where)) if config == "rte" else 2
    examples = []
    for number, row in enumerate(table.to_pylist()):
        place = f"{where}, row {number}"
        if config == "record":
            examples.append(_record_example(row, place))
            continue
        if row["label"] not in range(classes):
            raise InputError(
                f"label {row['label']!r}, expected 0 to {classes - 1}",
                where=place,
                hint="the test sets of SuperGLUE have no labels: evaluate on validation",
            )
        choices: tuple[str, ...] = ()
        if config == "rte":
            pairs: tuple[tuple[str, str], ...] = ((row["premise"], row["hypothesis"]),)
        else:
            text = _QUESTIONS.get(row["question"], row["question"])
            premise = f"{row['premise']} {text}" if copa_question else row["premise"]
            choices = row["choice1"], row["choice2"]
            pairs = tuple((premise, choice) for choice in choices)
        examples.append(SuperGlueExample(pairs, (row["label"],), choices))
    return examples


def _record_example(row: Mapping[str, Any], where: str) -> SuperGlueExample:
    """Convert a row of ReCoRD to pairs of the passage and the query with each entity (3.2.1)."""
    entities = tuple(dict.fromkeys(row["entities"]))
    right = tuple(i for i, entity in enumerate(entities) if entity in set(row["answers"]))
    if PLACEHOLDER not in row["query"] or not right:
        raise InputError(
            f"the query has no {PLACEHOLDER}" if right else "no entity is an answer",
            where=where,
            hint="the test set has no answers: evaluate on validation",
        )
    passage = _BULLET.sub(" ", row["passage"]).strip()
    pairs = tuple((passage, row["query"].replace(PLACEHOLDER, entity)) for entity in entities)
    return SuperGlueExample(pairs, right, entities, tuple(row["answers"]))


def fewer_candidates(example: SuperGlueExample, limit: int) -> SuperGlueExample:
    """Reduce a training example to `limit` candidates: its first right one and the first wrong
    ones."""
    if len(example.pairs) <= limit:
        return example
    first_right = example.right[0]
    others = [number for number in range(len(example.pairs)) if number != first_right]
    numbers = sorted([first_right, *others[: limit - 1]])
    return replace(
        example,
        pairs=tuple(example.pairs[number] for number in numbers),
        right=tuple(new for new, number in enumerate(numbers) if number in example.right),
        texts=tuple(example.texts[number] for number in numbers),
    )


def normalized(text: str) -> str:
    """The text as ReCoRD's script compares it: lower case, no punctuation, no articles."""
    words = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", words).split())


def exact_match(choice: str, answers: Sequence[str]) -> float:
    """1.0 if the chosen text is one of the answers, both normalised, else 0.0."""
    return float(normalized(choice) in {normalized(answer) for answer in answers})


def word_f1(choice: str, answers: Sequence[str]) -> float:
    """The highest F1 between the words of the chosen text and of an answer, both normalised."""
    words, best = normalized(choice).split(), 0.0
    for answer in answers:
        answer_words = normalized(answer).split()
        shared = sum((Counter(words) & Counter(answer_words)).values())
        best = max(best, 2 * shared / (len(words) + len(answer_words)) if shared else 0.0)
    return best


class Measure(NamedTuple):
    """A measure of a task: its key in the metrics, its column's suffix, and its function.

    `of(example, choice)` is the value, from 0 to 1, of choosing the class or candidate `choice`.
    """

    key: str
    suffix: str
    of: Callable[[SuperGlueExample, int], float]


MEASURES = (
    Measure("accuracy", "", lambda example, choice: float(choice in example.right)),
    Measure("em", " EM", lambda example, i: exact_match(example.texts[i], example.answers)),
    Measure("f1", " F1", lambda example, i: word_f1(example.texts[i], example.answers)),
)
"""The measures of ReCoRD; the other tasks have the first one alone."""
