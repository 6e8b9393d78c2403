"""Sentences and what stands around them, tokenised once into mapped arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
"""Columns that have one value a sentence."""
COLUMNS = ("doc", "title", "sentences", "section", "headings", *LABELS)
NOWHERE = -1


@dataclass(frozen=True)
class Places(TorchDataset[dict[str, np.ndarray]]):
    """The sentences of one split, each with its neighbours, headings and classes.

    Sentence `i` is `tokens[bounds[i]:bounds[i + 1]]`; `first[i]` says whether a document begins
    with it; `labels [sentences, 3]`: level, bin in the paragraph, bin of the paragraph; `over
    [sentences, 2]`: the numbers of its section's heading and its document's title among the
    headings (`heading_tokens`, `heading_bounds`), or -1. `rows`: the sentences that are used;
    `columns`: the labels that are.
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
        """The sentences that are longer than the limit and lose their end."""
        sizes = self.bounds[self.rows + 1] - self.bounds[self.rows]
        return int((sizes > self.max_tokens).sum())

    def documents(self) -> np.ndarray:
        """The number of each row's document, `[rows]`."""
        return np.cumsum(self.first)[self.rows]

    def word_counts(self, size: int) -> np.ndarray:
        """How often each of `size` words of the vocabulary stands in the sentences, `[size]`."""
        counts = np.zeros(size, np.int64)
        for start in range(0, len(self.tokens), 1 << 24):
            counts += np.bincount(self.tokens[start : start + (1 << 24)], minlength=size)
        return counts

    def __getitem__(self, row: int) -> dict[str, np.ndarray]:
        sentence = int(self.rows[row])
        labels = self.labels[sentence, self.columns].astype(np.int64)
        bags = {name: self.bag(name, sentence) for name in self.bags}
        return {"ids": self._text(self.tokens, self.bounds, sentence), "labels": labels, **bags}

    def bag(self, name: str, sentence: int) -> np.ndarray:
        """The words that are predicted: none where there is no such text."""
        if name in ("previous", "next"):
            near = sentence + (1 if name == "next" else -1)
            begins = max(sentence, near)  # a document's first sentence has none before it
            if begins == len(self.first) or self.first[begins]:
                return self.tokens[:0]
            return self._text(self.tokens, self.bounds, near)
        heading = int(self.over[sentence, ("section", "title").index(name)])
        if heading == NOWHERE:
            return self.tokens[:0]
        return self._text(self.heading_tokens, self.heading_bounds, heading)

    def _text(self, tokens: np.ndarray, bounds: np.ndarray, number: int) -> np.ndarray:
        begin, end = bounds[number], bounds[number + 1]
        return tokens[begin : min(end, begin + self.max_tokens)]

    def collate(self, rows: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
        """A batch as `CriteriaModel.forward` takes it."""
        padded = {}
        for name in ("ids", *self.bags):
            width = max(1, *(len(row[name]) for row in rows))
            table = np.full((len(rows), width), self.pad_id, np.int64)
            for number, row in enumerate(rows):
                table[number, : len(row[name])] = row[name]
            padded[name] = torch.from_numpy(table)
        ids, lengths = padded.pop("ids"), torch.tensor([[len(row["ids"])] for row in rows])
        return {
            "input_ids": ids,
            "attention_mask": (torch.arange(ids.shape[1]) < lengths).long(),
            "bags": padded,
            "labels": torch.from_numpy(np.stack([row["labels"] for row in rows])),
        }


def open_places(
    dataset: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    output: str | Path,
    config: CriteriaConfig,
    max_tokens: int,
    workers: int = -1,
) -> dict[str, Places]:
    """The sentences of each split, from arrays made once beside `output`.

    Raises `InputError` for a document whose columns are of unlike lengths.
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

    # A sentence without a word is the unknown word; a heading may be empty.
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


def spread(places: Places, rows: int) -> Places:
    """`rows` of the sentences, spread evenly over them (0: all)."""
    if not 0 < rows < len(places):
        return places
    return replace(places, rows=np.linspace(0, len(places) - 1, rows).astype(np.int64))


def texts(split: Shards | pa.Table) -> Iterator[str]:
    """The sentences and headings of a split, for a tokenizer."""
    for row in rows_of(split, ("title", "sentences", "headings")):
        yield from row["sentences"]
        yield from (heading for heading in (row["title"], *row["headings"]) if heading)
