"""Sentences and their contexts, tokenised once into mapped arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerBase

from corpora.errors import InputError
from zoo.criteria.modeling import CriteriaConfig
from zoo.training.data import Dataset, Shards
from zoo.training.mapped import Part, Texts, bounds_of, mapped, rows_of, tokenized

LABELS = ("level", "sentence_bin", "paragraph_bin")
ALONG = ("section", *LABELS)
"""Columns with one value for each sentence."""
COLUMNS = ("doc", "title", "sentences", "section", "headings", *LABELS)
NOWHERE = -1


@dataclass(frozen=True)
class Places(TorchDataset[Any]):
    """The sentences of one split, each with its neighbours, headings and classes.

    Sentence `i` is `tokens[bounds[i]:bounds[i + 1]]`; `first[i]` marks the first of a document;
    `labels [sentences, 3]`: level, bin in the paragraph, bin of the paragraph; `over [sentences,
    2]`: the numbers of its section's heading and its document's title among the headings
    (`heading_tokens`, `heading_bounds`), or -1. `rows`: the sentences to use; `columns`: the labels
    to use.
    """

    tokens: np.ndarray
    bounds: np.ndarray
    first: np.ndarray
    labels: np.ndarray
    over: np.ndarray
    heading_tokens: np.ndarray
    heading_bounds: np.ndarray
    rows: np.ndarray
    bags: tuple[str, ...]
    columns: list[int]
    max_tokens: int
    pad_id: int

    def __len__(self) -> int:
        return len(self.rows)

    def lengths(self) -> np.ndarray:
        """The tokens of each sentence, as they are encoded."""
        return np.minimum(self.bounds[self.rows + 1] - self.bounds[self.rows], self.max_tokens)

    @property
    def truncated(self) -> int:
        """Number of sentences cut at the limit."""
        sizes = self.bounds[self.rows + 1] - self.bounds[self.rows]
        return int((sizes > self.max_tokens).sum())

    def documents(self) -> np.ndarray:
        """The number of each row's document, `[rows]`."""
        return np.cumsum(self.first)[self.rows]

    def word_counts(self, size: int) -> np.ndarray:
        """Counts of the `size` words of the vocabulary in the sentences, `[size]`."""
        counts = np.zeros(size, np.int64)
        for start in range(0, len(self.tokens), 1 << 24):
            counts += np.bincount(self.tokens[start : start + (1 << 24)], minlength=size)
        return counts

    def __getitem__(self, row: int) -> tuple[Places, int]:
        """A row as its number: `collate` makes a whole batch at once."""
        return self, row

    def bags_of(self, name: str, sentences: np.ndarray) -> Texts:
        """The words to predict for each sentence; none if there is no such text."""
        if name in ("previous", "next"):
            near = sentences + (1 if name == "next" else -1)
            begins = np.maximum(sentences, near)  # a document's first sentence has no previous one
            there = begins < len(self.first)
            there[there] = ~self.first[begins[there]]
            return self._texts(self.tokens, self.bounds, near, there)
        heading = self.over[sentences, ("section", "title").index(name)]
        return self._texts(self.heading_tokens, self.heading_bounds, heading, heading != NOWHERE)

    def _texts(
        self, tokens: np.ndarray, bounds: np.ndarray, numbers: np.ndarray, there: np.ndarray
    ) -> Texts:
        begins = bounds[np.where(there, numbers, 0)]
        lengths = np.minimum(bounds[np.where(there, numbers + 1, 0)] - begins, self.max_tokens)
        ends = bounds_of(lengths)
        places = np.arange(ends[-1]) + np.repeat(begins - ends[:-1], lengths)
        return Texts(tokens[places], ends)

    @staticmethod
    def collate(rows: Sequence[tuple[Places, int]]) -> dict[str, Any]:
        """A batch of rows of one split as input of `CriteriaModel.forward`."""
        places = rows[0][0]
        sentences = places.rows[[row for _, row in rows]]
        everywhere = np.ones(len(sentences), np.bool_)
        own = places._texts(places.tokens, places.bounds, sentences, everywhere)
        ids, real = own.padded(places.pad_id)
        bags = {name: places.bags_of(name, sentences).padded(places.pad_id) for name in places.bags}
        labels = places.labels[sentences][:, places.columns].astype(np.int64)
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(real.astype(np.int64)),
            "bags": {name: torch.from_numpy(words) for name, (words, _) in bags.items()},
            "labels": torch.from_numpy(labels),
        }


def open_places(
    dataset: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    output: str | Path,
    config: CriteriaConfig,
    max_tokens: int,
    workers: int = -1,
) -> dict[str, Places]:
    """The sentences of each split, from arrays made once while a run works on `output`.

    Raises `InputError` for a document whose columns differ in length.
    """
    folders = tokenized(
        dataset,
        dataset.splits,
        tokenizer,
        output,
        ("criteria",),
        COLUMNS,
        partial(_encoded, tokenizer),
        finish=_numbered,
        workers=workers,
    )
    places = {}
    for split, folder in folders.items():
        arrays = mapped(folder)
        tokens: Texts = arrays["tokens"]
        headings: Texts = arrays["headings"]
        places[split] = Places(
            tokens=tokens.ids,
            bounds=tokens.bounds,
            first=arrays["first"],
            labels=arrays["labels"],
            over=arrays["over"],
            heading_tokens=headings.ids,
            heading_bounds=headings.bounds,
            rows=np.arange(len(tokens)),
            bags=config.bags,
            columns=[LABELS.index(name) for name in config.classes],
            max_tokens=max_tokens,
            pad_id=tokenizer.pad_token_id,
        )
    return places


def _encoded(tokenizer: PreTrainedTokenizerBase, rows: pa.RecordBatch) -> Part:
    """The sentences of documents with their classes, and their headings."""
    parts: dict[str, list[Any]] = {name: [] for name in ("first", "labels", "own", "counts")}
    sentences: list[str] = []
    headings: list[str] = []
    for row in rows.to_pylist():
        size = len(row["sentences"])
        for name in ALONG:
            if len(row[name]) != size:
                raise InputError(
                    f"{len(row[name])} values of {name!r} for {size} sentences",
                    where=f"document {row['doc']}",
                    hint="build the dataset again",
                )
        if not size:
            continue
        sentences += row["sentences"]
        parts["first"].append(np.arange(size) == 0)
        labels = np.array([row[name] for name in LABELS], np.int64).T
        parts["labels"].append(labels - [1, 0, 0])  # levels count from 1
        above = [*row["headings"], row["title"]]
        headings += above
        there = np.where(above, np.arange(len(above)), NOWHERE)
        parts["own"].append(np.stack([there[row["section"]], np.full(size, there[-1])], 1))
        parts["counts"].append(len(above))

    def ids_of(texts: list[str]) -> list[list[int]]:
        return list(tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"])

    def joined(name: str, width: int, kind: Any) -> np.ndarray:
        return np.concatenate([np.zeros((0, width), kind), *parts[name]]).astype(kind)

    # A sentence without words is one unknown word; a heading may be empty.
    ids = [text or [tokenizer.unk_token_id] for text in ids_of(sentences)] if sentences else []
    return {
        "tokens": Texts.of(ids),
        "headings": Texts.of(ids_of(headings) if headings else []),
        "first": np.concatenate([np.zeros(0, np.bool_), *parts["first"]]),
        "labels": joined("labels", len(LABELS), np.int8),
        "own": joined("own", 2, np.int32),
        "counts": np.array(parts["counts"], np.int64),
    }


def _numbered(split: str, read: dict[str, Any]) -> Part:
    """The numbers of the sentences' headings among those of all documents."""
    before = bounds_of(read["counts"])[np.cumsum(read["first"]) - 1]
    own = read["own"]
    return {"over": np.where(own == NOWHERE, NOWHERE, own + before[:, None])}


def texts(split: Shards | pa.Table) -> Iterator[str]:
    """The sentences and headings of a split, for a tokenizer."""
    for row in rows_of(split, ("title", "sentences", "headings")):
        yield from row["sentences"]
        yield from (heading for heading in (row["title"], *row["headings"]) if heading)
