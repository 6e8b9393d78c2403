"""Discourse markers in the examples that one model gets right and another wrong (section 3.4)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpora.errors import InputError
from corpora.rng import stream

MARKERS = (
    "but", "when", "if", "before", "because", "while", "though", "after", "so", "although",
    "then", "also", "still",
)  # fmt: skip
"""The paper's; it leaves out "and" and "as"."""
PLACES: dict[str, Callable[[str, str], str]] = {
    "both": lambda one, two: f"{one} {two}",
    "first": lambda one, _: one,
    "second": lambda _, two: two,
}
SAMPLES = 1000


@dataclass(frozen=True)
class Counts:
    """How often each marker occurs in each example, `[examples, markers]`."""

    table: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str], markers: Sequence[str]) -> Counts:
        """Whole words, whatever their case."""
        pattern = re.compile(rf"\b({'|'.join(map(re.escape, markers))})\b", re.IGNORECASE)
        found = [Counter(map(str.lower, pattern.findall(text))) for text in texts]
        return cls(np.array([[row[marker] for marker in markers] for row in found], np.float64))

    def change(self, training: Counts, rows: np.ndarray) -> tuple[float, np.ndarray]:
        """The weighted change of rate in `rows` against the training data, and each marker's.

        A marker's change is rate(rows) / rate(training) - 1, a rate being occurrences an example;
        the mean over the markers is weighted with their counts in the training data.
        """
        counts = training.table.sum(0)
        base = training.table.mean(0)
        known = counts > 0
        changes = np.zeros(len(counts))
        changes[known] = self.table[rows].mean(0)[known] / base[known] - 1
        return float((changes * counts).sum() / counts.sum()), changes


def analyse(
    training: Sequence[tuple[str, str]],
    examples: Sequence[tuple[str, str]],
    right_one: np.ndarray,
    right_two: np.ndarray,
    *,
    markers: Sequence[str] = MARKERS,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare the examples that model one alone gets right with those that two alone does.

    `training` and `examples` are the sentence pairs of BSO; `right_one`, `right_two` `[examples]`
    say which each model gets right. For each set and each place of the markers (`both` sentences,
    the `first`, the `second`): the weighted change of rate, each marker's change, and the mean
    and standard deviation of the change in random samples of as many examples.

    Raises `InputError` if the lengths differ, or no marker occurs in the training data.
    """
    right_one, right_two = np.asarray(right_one, bool), np.asarray(right_two, bool)
    if not len(examples) == len(right_one) == len(right_two):
        raise InputError(
            f"{len(examples)} examples, {len(right_one)} and {len(right_two)} answers",
            hint="both models must have answered all rows of one file, in its order",
        )
    sets = {"one": right_one & ~right_two, "two": right_two & ~right_one}
    result: dict[str, Any] = {name: {"n": int(rows.sum())} for name, rows in sets.items()}
    for place, text in PLACES.items():
        base = Counts.of([text(*pair) for pair in training], markers)
        if not base.table.sum():
            raise InputError("no marker occurs in the training data", hint="give its BSO pairs")
        found = Counts.of([text(*pair) for pair in examples], markers)
        for name, rows in sets.items():
            if rows.any():
                result[name][place] = _compare(found, base, rows, markers, seed, f"{name}.{place}")
    return result


def _compare(
    found: Counts, base: Counts, rows: np.ndarray, markers: Sequence[str], seed: int, name: str
) -> dict[str, Any]:
    change, each = found.change(base, np.flatnonzero(rows))
    random = stream(seed, f"zoo.conpono.markers.{name}")
    samples = [
        found.change(base, random.choice(len(rows), int(rows.sum()), replace=False))[0]
        for _ in range(SAMPLES)
    ]
    return {
        "change": change,
        "random_mean": float(np.mean(samples)),
        "random_deviation": float(np.std(samples)),
        "markers": dict(zip(markers, each.tolist(), strict=True)),
    }
