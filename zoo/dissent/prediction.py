"""Asking a trained model of any DisSent type which marker joins two sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, PretrainedConfig

from corpora.errors import InputError
from zoo.dissent.data import encode_texts
from zoo.dissent.modeling import BiLstmForMarkers
from zoo.dissent.ngrams import NgramForMarkers, NgramVocabulary, encode_ngrams
from zoo.dissent.pairs import encode_pairs
from zoo.dissent.sif_modeling import SifForMarkers
from zoo.dissent.transformer_modeling import PairTransformer
from zoo.evaluate.classification import Rows, logits
from zoo.modeling import best_device

CHUNK = 4096


@dataclass(frozen=True)
class _Type:
    """How the models of a type are loaded and how they take pairs."""

    model: type
    tokenizer: Callable[[str], Any]
    encode: Callable[..., Any]


TYPES = {
    kind.config_class.model_type: _Type(kind, tokenizer, encode)
    for kind, tokenizer, encode in (
        (BiLstmForMarkers, AutoTokenizer.from_pretrained, encode_texts),
        (PairTransformer, AutoTokenizer.from_pretrained, encode_pairs),
        (SifForMarkers, AutoTokenizer.from_pretrained, encode_texts),
        (NgramForMarkers, NgramVocabulary.from_pretrained, encode_ngrams),
    )
}
"""The types of model that tell the marker of a pair, by `model_type`."""


@dataclass(frozen=True)
class PairClassifier:
    """A loaded model of one of `TYPES`, with what turns texts into its input."""

    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, folder: str | Path) -> PairClassifier:
        """Load a model folder or a Hub id. Raises `InputError` for a model of another type."""
        found = model_type(folder)
        if found not in TYPES:
            raise InputError(
                f"holds a model of type {found!r}, which classifies no pairs of sentences",
                where=str(folder),
                hint=f"the types that do: {', '.join(TYPES)}",
            )
        kind = TYPES[found]
        model = kind.model.from_pretrained(str(folder)).to(best_device())
        return cls(model, kind.tokenizer(str(folder)))

    @property
    def model_type(self) -> str:
        return str(self.model.config.model_type)

    @property
    def labels(self) -> list[str]:
        return [self.model.config.id2label[i] for i in range(self.model.config.num_labels)]

    def rows(
        self, one: Sequence[str], two: Sequence[str], labels: np.ndarray | None = None
    ) -> Rows:
        """Pairs of sentences as the model takes them; `truncated` counts those that were cut."""
        limit = getattr(self.tokenizer, "model_max_length", 0)
        return TYPES[self.model_type].encode(one, two, self.tokenizer, limit, labels=labels)

    def probabilities(self, pairs: Sequence[tuple[str, str]], batch_size: int = 64) -> np.ndarray:
        """The probability of each label, `[pairs, labels]`; a row sums to 1."""
        one, two = [s1 for s1, _ in pairs], [s2 for _, s2 in pairs]
        found = logits(self.model, self.rows(one, two), batch_size)
        return torch.from_numpy(found).double().softmax(-1).numpy()


def model_type(folder: str | Path) -> str:
    """The `model_type` of a model folder or Hub id. Raises `InputError` where there is none."""
    try:
        config, _ = PretrainedConfig.get_config_dict(str(folder))
    except OSError as error:
        raise InputError(
            "no model is there",
            where=str(folder),
            hint="give a model folder (with config.json) or a Hub id that can be reached",
        ) from error
    return str(config.get("model_type", ""))


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
