"""Asking a trained model of any DisSent type which marker joins two sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

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
    """As `predict`, a part of the pairs at a time: for files that do not fit into memory."""
    loaded = model if isinstance(model, PairClassifier) else PairClassifier.load(model)
    names = loaded.labels
    for part in _parts(pairs):
        for row in loaded.probabilities(part, batch_size):
            order = np.argsort(-row, kind="stable")
            yield {names[i]: float(row[i]) for i in order}


def read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Pairs from a file: JSONL with `s1` and `s2`, or TSV with two columns (a header is left out).

    Raises `InputError` with the line of a row that is no pair.
    """
    with path.open(encoding="utf-8-sig", newline="") as lines:
        try:
            if path.suffix in {".jsonl", ".json", ".ndjson"}:
                yield from _from_jsonl(lines, path)
            else:
                yield from _from_tsv(lines, path)
        except UnicodeDecodeError as error:
            raise InputError(
                f"is not UTF-8: {error.reason}", where=str(path), hint="save it as UTF-8"
            ) from error


def _from_jsonl(lines: Iterable[str], path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            pair = row["s1"], row["s2"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise _no_pair(path, number, 'an object with "s1" and "s2"') from error
        yield _checked(pair, path, number)


def _from_tsv(lines: Iterable[str], path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, 1):
        row = line.rstrip("\r\n").split("\t")
        if row == [""] or (number == 1 and [c.strip().lower() for c in row] == ["s1", "s2"]):
            continue
        if len(row) != 2:
            raise _no_pair(path, number, f"two columns with a tab between, not {len(row)}")
        yield _checked((row[0], row[1]), path, number)


def _checked(pair: tuple[Any, Any], path: Path, number: int) -> tuple[str, str]:
    if not all(isinstance(text, str) and text.strip() for text in pair):
        raise _no_pair(path, number, "two texts that are not empty")
    return pair


def _no_pair(path: Path, number: int, expected: str) -> InputError:
    return InputError(
        "is no pair of sentences", where=f"{path}:{number}", hint=f"expected {expected}"
    )


def _parts(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    part: list[tuple[str, str]] = []
    for pair in pairs:
        part.append(pair)
        if len(part) == CHUNK:
            yield part
            part = []
    if part:
        yield part
