"""Predict the marker between two sentences with a trained model of any DisSent type."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from corpora.errors import InputError
from zoo.evaluate.classification import PairClassifier

CHUNK = 4096


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
    rest = iter(pairs)
    while part := list(islice(rest, CHUNK)):
        for row in loaded.probabilities(part, batch_size):
            order = np.argsort(-row, kind="stable")
            yield {names[i]: float(row[i]) for i in order}


def read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Pairs from a file: JSONL with `s1` and `s2`, or TSV with two columns (a header is left out).

    Raises `InputError` with the line of an invalid row.
    """
    is_json = path.suffix in {".jsonl", ".json", ".ndjson"}
    with path.open(encoding="utf-8-sig", newline="") as lines:
        try:
            for number, line in enumerate(lines, 1):
                if not line.strip(" \r\n"):
                    continue
                if is_json:
                    expected = 'an object with "s1" and "s2"'
                    try:
                        row = json.loads(line)
                        cells = [row["s1"], row["s2"]]
                    except (json.JSONDecodeError, KeyError, TypeError):
                        cells = []
                else:
                    cells = line.rstrip("\r\n").split("\t")
                    expected = f"two columns with a tab between, not {len(cells)}"
                    if number == 1 and [cell.strip().lower() for cell in cells] == ["s1", "s2"]:
                        continue
                if len(cells) == 2:
                    expected = "two texts that are not empty"
                    if all(isinstance(text, str) and text.strip() for text in cells):
                        yield cells[0], cells[1]
                        continue
                raise InputError(
                    "is not a pair of sentences",
                    where=f"{path}:{number}",
                    hint=f"expected {expected}",
                )
        except UnicodeDecodeError as error:
            raise InputError(
                f"is not UTF-8: {error.reason}", where=str(path), hint="save it as UTF-8"
            ) from error
