"""From vectors of texts to features of examples (DiscoEval, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zoo.evaluate.discoeval.data import Split, TaskData
from zoo.evaluate.discoeval.tasks import Features
from zoo.evaluate.vectors import Text


def position(x: Sequence[np.ndarray]) -> np.ndarray:
    """[x1, x1 - x2, x1 - x3, ...]"""
    return np.hstack([x[0], *(x[0] - other for other in x[1:])])


def order(x: Sequence[np.ndarray]) -> np.ndarray:
    """[x1, x2, x1 - x2]"""
    return np.hstack([x[0], x[1], x[0] - x[1]])


def relation(x: Sequence[np.ndarray]) -> np.ndarray:
    """[x1, x2, x1 * x2, |x1 - x2|]"""
    return np.hstack([x[0], x[1], x[0] * x[1], np.abs(x[0] - x[1])])


def concatenate(x: Sequence[np.ndarray]) -> np.ndarray:
    """[x1, x2, ...]"""
    return np.hstack(list(x))


COMBINE = {
    "position": position,
    "order": order,
    "relation": relation,
    "concatenate": concatenate,
}


@dataclass(frozen=True)
class Inputs:
    """What a task has encoded: distinct `singles` and `pairs`, and which example has which.

    `rows[split][i]` says for input `i` which texts each example has: `flat` row numbers (singles
    first, then pairs) and `counts`, how many of them are averaged.
    """

    singles: list[str]
    pairs: list[tuple[str, str]]
    rows: dict[str, list[tuple[np.ndarray, np.ndarray]]]
    asked: int
    """Texts before repeated ones were merged."""


def inputs_of(data: TaskData, how: Features, lower: bool = True) -> Inputs:
    """The texts that a task needs, each once; lower-cased as in the released code."""
    singles: dict[Text, int] = {}
    pairs: dict[Text, int] = {}
    rows: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    asked = 0
    for name, split in data.splits.items():
        rows[name] = []
        for slots in how.inputs:
            known = singles if len(slots) == 1 else pairs
            texts = [_texts(split, example, slots, how.joined) for example in range(len(split))]
            flat = [text for listed in texts for text in listed]
            cased = [_lower(text) for text in flat] if lower else flat
            numbers = np.array([known.setdefault(text, len(known)) for text in cased], np.int64)
            rows[name].append((numbers, np.array([len(listed) for listed in texts])))
            asked += len(numbers)
    for inputs in rows.values():
        for slots, (numbers, _) in zip(how.inputs, inputs, strict=True):
            numbers += len(singles) if len(slots) > 1 else 0
    return Inputs(list(singles), list(pairs), rows, asked)  # type: ignore[arg-type]


def features_of(
    inputs: Inputs, vectors: Sequence[np.ndarray], how: Features
) -> dict[str, np.ndarray]:
    """The features of each split, `[examples, width]`.

    `vectors` are those of the singles and of the pairs, `[texts, dim]` each (empty where there
    are none).
    """
    table = np.concatenate([part for part in vectors if len(part)])
    combine = COMBINE[how.combine]
    return {
        split: np.ascontiguousarray(combine([_mean(table, *found) for found in rows]), np.float32)
        for split, rows in inputs.rows.items()
    }


def _mean(table: np.ndarray, flat: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The mean vector of each example's texts; `counts` are at least 1."""
    if (counts == 1).all():
        return table[flat]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.add.reduceat(table[flat], starts, axis=0) / counts[:, None].astype(np.float32)


def _texts(split: Split, example: int, slots: tuple[int, ...], joined: bool) -> list[Text]:
    """The texts of one input: a pair, or a slot's texts, each by itself or as one."""
    parts = [split.slots[slot][example] for slot in slots]
    if len(slots) == 2:
        return [(" ".join(parts[0]), " ".join(parts[1]))]
    return [" ".join(parts[0])] if joined else list(parts[0])


def _lower(text: Text) -> Text:
    return text.lower() if isinstance(text, str) else (text[0].lower(), text[1].lower())
