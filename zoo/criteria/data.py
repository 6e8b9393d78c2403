"""Sentences with their neighbours and headings, tokenised once into memory-mapped arrays."""

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
SENTENCE_COLUMNS = ("section", *LABELS)
"""Columns with one value for each sentence."""
COLUMNS = ("doc", "title", "sentences", "section", "headings", *LABELS)
NO_HEADING = -1
"""The number of a heading or title that does not exist."""


@dataclass(frozen=True)
class SentenceContexts(TorchDataset[Any]):
    """The sentences of one split, each with its neighbours, headings and classes.

    `first[i]` marks the first sentence of a document. `labels [sentences, 3]` are the level, the
    bin in the paragraph, and the bin of the paragraph. `over [sentences, 2]` are the numbers of the
    section's heading and of the document's title among `headings`, or -1. `rows` are the numbers of
    the sentences to use, `columns` those of the labels, `bags` the names of the texts to predict.
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
        """The number of tokens of each sentence, after the cut."""
        return np.minimum(self.sentences.lengths()[self.rows], self.max_tokens)

    @property
    def truncated(self) -> int:
        """Number of sentences cut at the limit."""
        return int((self.sentences.lengths()[self.rows] > self.max_tokens).sum())

    def documents(self) -> np.ndarray:
        """The number of each row's document, `[rows]`."""
        return np.cumsum(self.first)[self.rows]

    def __getitem__(self, row: int) -> tuple[SentenceContexts, int]:
        """Return the dataset and the row's number, from which `collate` makes a whole batch."""
        return self, row

    def bags_of(self, name: str, sentences: np.ndarray) -> Texts:
        """Return the words of one neighbour or heading of each sentence; empty without one.

        `name` is "previous", "next", "section" or "title"; `sentences` are sentence numbers.
        """
        if name in ("previous", "next"):
            neighbours = sentences + (1 if name == "next" else -1)
            later = np.maximum(sentences, neighbours)
            exists = later < len(self.first)
            exists[exists] = ~self.first[later[exists]]  # both are in one document
            return self._select(self.sentences, neighbours, exists)
        heading = self.over[sentences, ("section", "title").index(name)]
        return self._select(self.headings, heading, heading != NO_HEADING)

    def _select(self, texts: Texts, numbers: np.ndarray, exists: np.ndarray) -> Texts:
        """Return the texts with the `numbers`, cut; an empty text where `exists` is False."""
        begins = texts.bounds[np.where(exists, numbers, 0)]
        lengths = texts.bounds[np.where(exists, numbers + 1, 0)] - begins
        bounds = bounds_of(np.minimum(lengths, self.max_tokens))
        places = np.arange(bounds[-1]) + np.repeat(begins - bounds[:-1], np.diff(bounds))
        return Texts(texts.ids[places], bounds)

    @staticmethod
    def collate(rows: Sequence[tuple[SentenceContexts, int]]) -> dict[str, Any]:
        """Make a batch of rows of one split, the input of `CriteriaModel.forward`."""
        split = rows[0][0]
        sentences, pad_id = split.rows[[row for _, row in rows]], split.pad_id
        all_exist = np.ones(len(sentences), np.bool_)
        ids, real = split._select(split.sentences, sentences, all_exist).padded(pad_id)
        bags = {name: split.bags_of(name, sentences).padded(pad_id) for name in split.bags}
        labels = split.labels[sentences][:, split.columns].astype(np.int64)
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(real.astype(np.int64)),
            "packed": real.sum(1).clip(min=1),
            "bags": {name: torch.from_numpy(words) for name, (words, _) in bags.items()},
            "labels": torch.from_numpy(labels),
        }


def open_contexts(
    recipe: Bigru, dataset: Dataset, tokenizer: PreTrainedTokenizerBase, config: CriteriaConfig
) -> dict[str, SentenceContexts]:
    """Return the sentences of each split, tokenised once in a run.

    Raises `InputError` for a document whose columns differ in length.
    """
    folders = tokenized(
        dataset,
        dataset.splits,
        tokenizer,
        recipe.output,
        ("criteria",),
        COLUMNS,
        partial(_encode_documents, tokenizer),
        finish=_number_headings,
        workers=recipe.workers,
    )
    contexts = {}
    for split, folder in folders.items():
        arrays = mapped(folder)
        contexts[split] = SentenceContexts(
            **{name: arrays[name] for name in ("sentences", "headings", "first", "labels", "over")},
            rows=np.arange(len(arrays["sentences"])),
            bags=config.bags,
            columns=[LABELS.index(name) for name in config.classes],
            max_tokens=recipe.max_tokens,
            pad_id=tokenizer.pad_token_id,
        )
    return contexts


def _encode_documents(tokenizer: PreTrainedTokenizerBase, rows: pa.RecordBatch) -> Part:
    """Tokenise the sentences, with their classes, and the headings of documents.

    `heading_numbers [sentences, 2]` are the numbers of the heading and the title over a sentence
    within its document, `counts` the number of headings of each document.
    """
    sentences: list[str] = []
    headings: list[str] = []
    first: list[bool] = []
    labels: list[tuple[int, ...]] = []
    heading_numbers: list[tuple[int, int]] = []
    counts = []
    for row in rows.to_pylist():
        size = len(row["sentences"])
        for name in SENTENCE_COLUMNS:
            if len(row[name]) != size:
                raise InputError(
                    f"{len(row[name])} values of {name!r} for {size} sentences",
                    where=f"document {row['doc']}",
                    hint="build the dataset again",
                )
        if not size:
            continue
        row_headings = [*row["headings"], row["title"]]
        numbers = [number if text else NO_HEADING for number, text in enumerate(row_headings)]
        sentences += row["sentences"]
        headings += row_headings
        first += [True] + [False] * (size - 1)
        labels.extend(zip(*(row[name] for name in LABELS), strict=True))
        heading_numbers.extend((numbers[section], numbers[-1]) for section in row["section"])
        counts.append(len(row_headings))
    ids, heading_ids = (
        tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        for texts in (sentences, headings)
    )
    return {
        # A sentence without words is one unknown word; a heading may be empty.
        "sentences": Texts.of([text or [tokenizer.unk_token_id] for text in ids]),
        "headings": Texts.of(heading_ids),
        "first": np.array(first, np.bool_),
        "labels": np.array(labels, np.int8) - np.array([1, 0, 0], np.int8),  # levels count from 1
        "heading_numbers": np.array(heading_numbers, np.int32),
        "counts": np.array(counts, np.int64),
    }


def _number_headings(split: str, arrays: dict[str, Any]) -> Part:
    """Convert heading numbers within a document to numbers among the headings of all documents."""
    document = np.cumsum(arrays["first"]) - 1
    headings_before = bounds_of(arrays["counts"])[document][:, None]
    numbers = arrays["heading_numbers"]
    return {"over": np.where(numbers == NO_HEADING, NO_HEADING, numbers + headings_before)}


def texts(split: Shards | pa.Table) -> Iterator[str]:
    """Yield the sentences and headings of a split, to train a tokenizer on."""
    for row in rows_of(split, ("title", "sentences", "headings")):
        yield from row["sentences"]
        yield from (heading for heading in (row["title"], *row["headings"]) if heading)
