"""Sentences and their contexts, tokenised once into mapped arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerBase

from corpora.errors import InputError
from zoo.criteria.modeling import CriteriaConfig
from zoo.training.data import Dataset, Shards
from zoo.training.mapped import Part, Texts, bounds_of, mapped, rows_of, tokenized

if TYPE_CHECKING:
    from zoo.criteria.recipes import Bigru

LABELS = ("level", "sentence_bin", "paragraph_bin")
ALONG = ("section", *LABELS)
"""Columns with one value for each sentence."""
COLUMNS = ("doc", "title", "sentences", "section", "headings", *LABELS)
NOWHERE = -1


@dataclass(frozen=True)
class Places(TorchDataset[Any]):
    """The sentences of one split, each with its neighbours, headings and classes.

    `first[i]` marks the first sentence of a document; `labels [sentences, 3]`: level, bin in the
    paragraph, bin of the paragraph; `over [sentences, 2]`: the numbers of its section's heading and
    its document's title among `headings`, or -1. `rows`: the sentences to use; `columns`: the
    labels to use.
    """

    sentences: Texts
    headings: Texts
    first: np.ndarray
    labels: np.ndarray
    over: np.ndarray
    rows: np.ndarray
    bags: tuple[str, ...]
    columns: list[int]
    max_tokens: int
    pad_id: int

    def __len__(self) -> int:
        return len(self.rows)

    def lengths(self) -> np.ndarray:
        """The tokens of each sentence, as they are encoded."""
        return np.minimum(self.sentences.lengths()[self.rows], self.max_tokens)

    @property
    def truncated(self) -> int:
        """Number of sentences cut at the limit."""
        return int((self.sentences.lengths()[self.rows] > self.max_tokens).sum())

    def documents(self) -> np.ndarray:
        """The number of each row's document, `[rows]`."""
        return np.cumsum(self.first)[self.rows]

    def __getitem__(self, row: int) -> tuple[Places, int]:
        """A row as its number: `collate` makes a whole batch at once."""
        return self, row

    def bags_of(self, name: str, sentences: np.ndarray) -> Texts:
        """The words to predict for each sentence; none if there is no such text."""
        if name in ("previous", "next"):
            near = sentences + (1 if name == "next" else -1)
            later = np.maximum(sentences, near)  # that of two neighbours begins no document
            there = later < len(self.first)
            there[there] = ~self.first[later[there]]
            return self._texts(self.sentences, near, there)
        heading = self.over[sentences, ("section", "title").index(name)]
        return self._texts(self.headings, heading, heading != NOWHERE)

    def _texts(self, texts: Texts, numbers: np.ndarray, there: np.ndarray) -> Texts:
        begins = texts.bounds[np.where(there, numbers, 0)]
        lengths = texts.bounds[np.where(there, numbers + 1, 0)] - begins
        ends = bounds_of(np.minimum(lengths, self.max_tokens))
        places = np.arange(ends[-1]) + np.repeat(begins - ends[:-1], np.diff(ends))
        return Texts(texts.ids[places], ends)

    @staticmethod
    def collate(rows: Sequence[tuple[Places, int]]) -> dict[str, Any]:
        """A batch of rows of one split as input of `CriteriaModel.forward`."""
        places = rows[0][0]
        sentences = places.rows[[row for _, row in rows]]
        there = np.ones(len(sentences), np.bool_)
        ids, real = places._texts(places.sentences, sentences, there).padded(places.pad_id)
        bags = {name: places.bags_of(name, sentences).padded(places.pad_id) for name in places.bags}
        labels = places.labels[sentences][:, places.columns].astype(np.int64)
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(real.astype(np.int64)),
            "packed": real.sum(1).clip(min=1),
            "bags": {name: torch.from_numpy(words) for name, (words, _) in bags.items()},
            "labels": torch.from_numpy(labels),
        }


def open_places(
    recipe: Bigru, dataset: Dataset, tokenizer: PreTrainedTokenizerBase, config: CriteriaConfig
) -> dict[str, Places]:
    """The sentences of each split, from arrays made once in a run.

    Raises `InputError` for a document whose columns differ in length.
    """
    folders = tokenized(
        dataset,
        dataset.splits,
        tokenizer,
        recipe.output,
        ("criteria",),
        COLUMNS,
        partial(_encoded, tokenizer),
        finish=_numbered,
        workers=recipe.workers,
    )
    places = {}
    for split, folder in folders.items():
        arrays = mapped(folder)
        places[split] = Places(
            **{name: arrays[name] for name in ("sentences", "headings", "first", "labels", "over")},
            rows=np.arange(len(arrays["sentences"])),
            bags=config.bags,
            columns=[LABELS.index(name) for name in config.classes],
            max_tokens=recipe.max_tokens,
            pad_id=tokenizer.pad_token_id,
        )
    return places


def _encoded(tokenizer: PreTrainedTokenizerBase, rows: pa.RecordBatch) -> Part:
    """The sentences of documents with their classes, and their headings."""
    sentences: list[str] = []
    headings: list[str] = []
    first: list[bool] = []
    labels: list[tuple[int, ...]] = []
    own: list[tuple[int, int]] = []
    counts = []
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
        above = [*row["headings"], row["title"]]
        there = [number if text else NOWHERE for number, text in enumerate(above)]
        sentences += row["sentences"]
        headings += above
        first += [True] + [False] * (size - 1)
        labels.extend(zip(*(row[name] for name in LABELS), strict=True))
        own.extend((there[section], there[-1]) for section in row["section"])
        counts.append(len(above))
    ids, above_ids = (
        tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        for texts in (sentences, headings)
    )
    return {
        # A sentence without words is one unknown word; a heading may be empty.
        "sentences": Texts.of([text or [tokenizer.unk_token_id] for text in ids]),
        "headings": Texts.of(above_ids),
        "first": np.array(first, np.bool_),
        "labels": np.array(labels, np.int8) - np.array([1, 0, 0], np.int8),  # levels count from 1
        "own": np.array(own, np.int32),
        "counts": np.array(counts, np.int64),
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
