"""RTE, COPA and ReCoRD as pairs of texts to be classified or ranked (Iter et al. 2020, 3.2)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from corpora.errors import InputError
from zoo.training.data import check_columns, label_names

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


def examples_of(config: str, table: pa.Table, *, copa_question: bool = False) -> list[Example]:
    """The examples of one split; with `copa_question` COPA's premise ends in the question.

    A premise of COPA is followed by each choice: "completions" of it, as in the paper's table 2.
    Raises `InputError` for a table without a task's columns, and for a row without a right answer.
    """
    where = f"superglue@{config}"
    check_columns(table.column_names, TASKS[config].columns, where)
    classes = len(label_names(table.schema)) if config == "rte" else 2
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
    if PLACEHOLDER not in row["query"]:
        raise InputError(f"the query has no {PLACEHOLDER}", where=where)
    entities = tuple(dict.fromkeys(row["entities"]))
    right = tuple(i for i, entity in enumerate(entities) if entity in set(row["answers"]))
    if not right:
        raise InputError(
            "no entity is an answer",
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
    return Example(
        tuple(example.pairs[i] for i in kept),
        tuple(place for place, i in enumerate(kept) if i in example.right),
        tuple(example.texts[i] for i in kept),
        example.answers,
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
