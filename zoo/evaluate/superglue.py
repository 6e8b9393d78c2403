"""Suite `superglue`: RTE, COPA and ReCoRD by fine-tuning (Iter et al. 2020, 3.2 and A.4).

An example is pairs of texts to be classified or ranked.
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
from corpora.store.atomic import MANIFEST
from corpora.store.manifest import read_manifest
from zoo.declared import GOES_ON, AtLeast0, Count, Form, Positive, Suite
from zoo.evaluate import in_hand
from zoo.evaluate.results import Result, finished
from zoo.evaluate.scores import Outcomes, numbered, of_ratio
from zoo.evaluate.table import Rows, percent
from zoo.training.data import (
    UNBUILT,
    as_datasets,
    check_columns,
    label_names,
    open_dataset,
    several,
    split_spec,
    spread,
)

if TYPE_CHECKING:
    from zoo.evaluate.superglue_training import Start

PLACEHOLDER = "@placeholder"
_BULLET = re.compile(r"\s*@highlight\s*")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_QUESTIONS = {"cause": "What was the cause?", "effect": "What happened as a result?"}


@dataclass(frozen=True)
class Task:
    """A task and the settings of appendix A.4; `epochs` counts where `max_steps` is 0.

    `classes` is 0 for a task that ranks candidates. `checkpoint` is how often the paper kept one.
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
    """Examples on the device at once: a batch is collected from as many as it needs."""


_RTE = ("premise", "hypothesis", "label")
_COPA = ("premise", "question", "choice1", "choice2", "label")
_RECORD = ("passage", "query", "entities", "answers")

TASKS = {
    task.config: task
    for task in (
        Task("RTE", "rte", _RTE, 8e-6, max_steps=3240, checkpoint=750, classes=2),
        Task("COPA", "copa", _COPA, 1e-5, max_steps=300, checkpoint=50),
        Task("ReCoRD", "record", _RECORD, 2e-5, epochs=8, device_batch=2),
    )
}


@dataclass(frozen=True, slots=True)
class Example:
    """Pairs of texts, one a candidate, and which are right (or, for classes, which class).

    `texts` are the candidates as their task names them, `answers` the right ones (ReCoRD).
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
    """Of an example in training; evaluation ranks all of them."""
    max_steps: Count = 0
    """In place of the paper's steps and epochs, for a try."""
    learning_rate: AtLeast0 = 0.0
    """In place of the paper's."""
    copa_question: bool = False
    """Append the question (cause or effect) to the premise; the paper's table 2 shows none."""
    bf16: bool | Literal["auto"] = "auto"
    """bfloat16 in the forward pass; `auto`: on a GPU that has it."""

    def read(self, spec: str) -> Any:
        """The tasks of a dataset by configuration; the one that `@CONFIG` names by itself."""
        folder, config = split_spec(spec)
        if config and self.tasks not in ((), (config,)):
            problem = f"tasks names {', '.join(self.tasks)}, and the data {config!r}"
            raise ConfigError(problem, where=spec, hint="leave out @CONFIG, or the tasks")
        if config:
            return open_dataset(folder, config)
        names: Collection[str] = TASKS
        if Path(folder).is_dir():
            names = read_manifest(Path(folder, MANIFEST), UNBUILT)["configs"]
        # Of a dataset without any of the tasks it is said which configurations it has.
        chosen = self.tasks or [name for name in TASKS if name in names] or [*TASKS]
        return {name: open_dataset(folder, name) for name in chosen}

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Accuracy (ReCoRD: exact match and F1 too) on the validation set, as the paper reports."""
        from zoo.evaluate.superglue_training import Start

        start = Start.of(model)
        if start is None:
            raise self.unfit(model)
        opened = {each.config: each for each in as_datasets(data)}
        config = "" if several(data) else next(iter(opened))
        names = self.tasks or [name for name in TASKS if name in opened]
        missing = [name for name in names if name not in opened]
        if missing or not names:
            raise ConfigError(
                f"no data of the task {', '.join(missing or TASKS)}",
                where=", ".join(each.where for each in opened.values()),
                hint='give {"rte": DATASET, "copa": DATASET}, by the names of the tasks',
            )
        judged = {}
        for name in names:
            tests = opened[name].splits.get("test")  # those of SuperGLUE have no labels
            hidden = split == "test" and (tests is None or not tests.num_rows)
            scored = "validation" if hidden else split
            judged[TASKS[name]] = scored, spread(opened[name][scored], limit)
        tasks, outcomes = {}, []
        for task, (_, table) in judged.items():
            train = opened[task.config]["train"]
            tasks[task.name], own = self._task(task, train, table, start, seed)
            outcomes += own
        rows = {name: opened[name].describe()["rows"] for name in names}
        result = Result(
            model=in_hand.about(start),
            dataset={**opened[names[0]].describe(), "config": config, "rows": rows},
            protocol=self.model_dump(exclude={"tasks", "bf16"}) | {"limit": limit},
            examples=sum(task["examples"] for task in tasks.values()),
            metrics={"tasks": tasks, "resampled": "rows"},
            outcomes=outcomes,
            more={"split": " ".join(dict.fromkeys(scored for scored, _ in judged.values()))},
        )
        return finished(self, result, start, split, seed)

    def _task(
        self, task: Task, train: pa.Table, judged: pa.Table, start: Start, first: int
    ) -> tuple[dict[str, Any], list[Outcomes]]:
        """Train once for each seed, and score.

        The figures are the last step's; the best checkpoint beside them is picked on the same
        examples.
        """
        from zoo.evaluate.superglue_training import fine_tune

        given: dict[str, Any] = {"max_steps": self.max_steps, "learning_rate": self.learning_rate}
        task = replace(task, **{name: value for name, value in given.items() if value})
        learnt, examples = (
            examples_of(task.config, rows, copa_question=self.copa_question)
            for rows in (train, judged)
        )
        learnt = [fewer_candidates(example, self.max_candidates) for example in learnt]
        seeds = range(first, first + self.seeds)
        runs = [fine_tune(task, learnt, examples, start, self, seed) for seed in seeds]
        if task.classes:  # of the most frequent class
            chance = np.bincount([example.right[0] for example in examples]).max() / len(examples)
        else:  # of a candidate chosen at random
            chance = np.mean([len(set(e.right)) / len(e.pairs) for e in examples])
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
            each = np.array([list(map(measure.of, examples, chosen)) for chosen, _ in runs])
            means, ones = each.mean(1), np.ones(len(examples))
            drawn = f"{task.name}.{measure.key}" if measure.suffix else task.name
            figures[measure.key] = {
                "value": float(means.mean()),
                **of_ratio(each.mean(0), ones, first, drawn),
                "deviation": float(means.std(ddof=1)) if len(means) > 1 else None,
            }
            column = f"{task.name}{measure.suffix}"
            outcomes.append(Outcomes(column, numbered(len(examples)), each.mean(0)))
        return figures, outcomes

    @classmethod
    def rows(cls, result: Result) -> Rows:
        cells = {}
        for task, found in result.metrics["tasks"].items():
            for measure in (each for each in MEASURES if each.key in found):
                shown = percent(found[measure.key], found.get("examples"))
                cells[f"{task}{measure.suffix}"] = shown
        return {"": cells}


def examples_of(config: str, table: pa.Table, *, copa_question: bool = False) -> list[Example]:
    """The examples of one split; with `copa_question` COPA's premise ends in the question.

    A premise of COPA is followed by each choice: "completions" of it, as in the paper's table 2.
    Raises `InputError` for a table without a task's columns, and for a row without a right answer.
    """
    where = f"superglue@{config}"
    check_columns(table.column_names, TASKS[config].columns, where)
    classes = len(label_names(table.schema, where)) if config == "rte" else 2
    examples = []
    for number, row in enumerate(table.to_pylist()):
        place = f"{where}, row {number}"
        if config == "record":
            examples.append(_record(row, place))
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
            asked = f" {_QUESTIONS.get(row['question'], row['question'])}" if copa_question else ""
            choices = row["choice1"], row["choice2"]
            pairs = tuple((row["premise"] + asked, choice) for choice in choices)
        examples.append(Example(pairs, (row["label"],), choices))
    return examples


def _record(row: Mapping[str, Any], where: str) -> Example:
    """The passage, and the query with its blank filled by each marked entity (section 3.2.1)."""
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
    return Example(pairs, right, entities, tuple(row["answers"]))


def fewer_candidates(example: Example, limit: int) -> Example:
    """At most `limit` candidates for training: the first right one, then the others in order."""
    if len(example.pairs) <= limit:
        return example
    first = example.right[0]
    kept = sorted([first, *[i for i in range(len(example.pairs)) if i != first][: limit - 1]])
    return replace(
        example,
        pairs=tuple(example.pairs[i] for i in kept),
        right=tuple(place for place, i in enumerate(kept) if i in example.right),
        texts=tuple(example.texts[i] for i in kept),
    )


def normal(text: str) -> str:
    """As ReCoRD's script compares: lower case, no punctuation, no articles, single spaces."""
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(found: str, answers: Sequence[str]) -> float:
    """1 if `found` is one of the answers, both normalised."""
    return float(normal(found) in {normal(answer) for answer in answers})


def word_f1(found: str, answers: Sequence[str]) -> float:
    """The best F1 of the normalised words of `found` and of an answer."""
    words, listed = normal(found).split(), [normal(answer).split() for answer in answers]
    both = [(sum((Counter(words) & Counter(o)).values()), len(words) + len(o)) for o in listed]
    return max((2 * shared / total for shared, total in both if shared), default=0.0)


class Measure(NamedTuple):
    """A figure: its key, what its column is called after the task, what a choice counts."""

    key: str
    suffix: str
    of: Callable[[Example, int], float]


MEASURES = (
    Measure("accuracy", "", lambda example, choice: float(choice in example.right)),
    Measure("em", " EM", lambda example, at: exact_match(example.texts[at], example.answers)),
    Measure("f1", " F1", lambda example, at: word_f1(example.texts[at], example.answers)),
)
"""The last two are of ReCoRD only."""
