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
from zoo.training.data import label_names

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
    """The examples of one split. Raises `InputError` for a table without a task's columns."""
    columns = TASKS[config].columns
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise InputError(
            f"no column {missing[0]!r}",
            where=f"superglue@{config}",
            hint=f"its columns: {', '.join(columns)}; build it with the builder superglue",
        )
    if config == "record":
        return [_record(row, number) for number, row in enumerate(table.to_pylist())]
    names = label_names(table.schema) if config == "rte" else []
    rows = enumerate(table.to_pylist())
    if config == "rte":
        return [_rte(row, len(names), number) for number, row in rows]
    return [_copa(row, number, copa_question) for number, row in rows]


def _rte(row: Mapping[str, Any], classes: int, number: int) -> Example:
    label = _label(row, classes, f"superglue@rte, row {number}")
    return Example(((row["premise"], row["hypothesis"]),), (label,))


def _copa(row: Mapping[str, Any], number: int, question: bool) -> Example:
    """The premise, then each choice: "completions" of the premise, as in the paper's table 2."""
    label = _label(row, 2, f"superglue@copa, row {number}")
    asked = f" {_QUESTIONS.get(row['question'], row['question'])}" if question else ""
    choices = row["choice1"], row["choice2"]
    pairs = tuple((row["premise"] + asked, choice) for choice in choices)
    return Example(pairs, (label,), choices)


def _label(row: Mapping[str, Any], classes: int, where: str) -> int:
    label = row["label"]
    if label is None or not 0 <= label < classes:
        raise InputError(
            f"label {label!r}, expected 0 to {classes - 1}",
            where=where,
            hint="the test sets of SuperGLUE have no labels: evaluate on validation",
        )
    return int(label)


def _record(row: Mapping[str, Any], number: int) -> Example:
    """The passage, and the query with its blank filled by each marked entity (section 3.2.1)."""
    where = f"superglue@record, row {number}"
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
    others = [i for i in range(len(example.pairs)) if i != first]
    kept = sorted([first, *others[: limit - 1]])
    right = tuple(place for place, i in enumerate(kept) if i in set(example.right))
    return Example(
        tuple(example.pairs[i] for i in kept),
        right,
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
    return max((_f1(normal(found).split(), normal(a).split()) for a in answers), default=0.0)


def _f1(one: Sequence[str], two: Sequence[str]) -> float:
    shared = sum((Counter(one) & Counter(two)).values())
    return 2 * shared / (len(one) + len(two)) if shared else 0.0
