"""Predict the marker between two sentences with a trained model of any DisSent type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from corpora.errors import BadRecord, InputError
from corpora.readers.files import read_lines
from corpora.readers.rows import JSON_LINES, json_rows
from zoo.evaluate.classification import PairClassifier
from zoo.texts import in_parts

SENTENCE_LIMIT = 100_000
"""Most characters of a sentence: models read some hundred words of it."""


def predict(
    model: str | Path | PairClassifier, pairs: Iterable[tuple[str, str]], batch_size: int = 64
) -> list[dict[str, float]]:
    """The markers' probabilities of each pair `(s1, s2)`, the most probable marker first.

    `model` is a folder, a Hub id, or a loaded `PairClassifier`.
    """
    return list(predictions(model, pairs, batch_size))


def predictions(
    model: str | Path | PairClassifier, pairs: Iterable[tuple[str, str]], batch_size: int = 64
) -> Iterator[dict[str, float]]:
    """As `predict`, in parts, for files that do not fit into memory."""
    loaded = model if isinstance(model, PairClassifier) else PairClassifier.load(model)
    names = loaded.labels
    for part in in_parts(pairs, lambda pair: len(pair[0]) + len(pair[1])):
        for row in loaded.probabilities(part, batch_size):
            order = np.argsort(-row, kind="stable")
            yield {names[i]: float(row[i]) for i in order}


def read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Pairs from a file: JSONL with `s1` and `s2`, or TSV with two columns (headers are left out).

    Raises `InputError` with the line of an invalid row, and for a file without a row.
    """
    found = False
    is_json = path.name.lower().endswith((*JSON_LINES, ".json"))
    form = 'an object with "s1" and "s2"' if is_json else "two columns with a tab between"
    for where, row in json_rows(path) if is_json else _columns(path):
        if isinstance(row, BadRecord):
            raise InputError(row.reason, where=where, hint=f"expected {form}, in UTF-8")
        cells: list[Any] = [row.get("s1"), row.get("s2")] if isinstance(row, Mapping) else row
        expected = form
        if [type(cell) for cell in cells] == [str, str]:
            if all(text.strip() and len(text) <= SENTENCE_LIMIT for text in cells):
                found = True
                yield cells[0], cells[1]
                continue
            expected = f"two texts that are not empty, of {SENTENCE_LIMIT:,} characters at most"
        raise InputError("is not a pair of sentences", where=where, hint=f"expected {expected}")
    if not found:
        raise InputError("holds no pair", where=str(path), hint=f"expected {form} a line")


def _columns(path: Path) -> Iterator[tuple[str, Any]]:
    """The columns of each line that is neither blank nor a header, with its place."""
    for number, line in enumerate(read_lines(path), 1):
        if isinstance(line, BadRecord):
            yield line.where, line
        elif line.strip(" ") and line.lower().split() != ["s1", "s2"]:
            yield f"{path}:{number}", line.split("\t")
