"""Sentences tokenised once, as memory-mapped arrays that every run and worker shares."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from corpora.errors import InputError
from corpora.rng import stable_id
from zoo.conpono.segments import Geometry
from zoo.texts import TextEncoder
from zoo.training.data import Dataset, Shards
from zoo.training.mapped import ArrayFiles, mapped, rows_of, tokenized


@dataclass(frozen=True)
class TokenStore:
    """One split: token ids, and where its sentences, paragraphs and documents begin.

    Sentence `i` is `tokens[sentences[i]:sentences[i + 1]]`; paragraph `p` holds the sentences
    `paragraphs[p, 0]` to `paragraphs[p, 1]`; document `d` the paragraphs `documents[d]` to
    `documents[d + 1]`. Documents stand by `keys`, a hash of their ids, so that nothing drawn
    depends on the order in which the dataset lists them. `examples` are the paragraphs that are
    long enough; `segments` and `windows` count, before each paragraph, the places where a target,
    or an anchor with a target, can begin.
    """

    folder: Path
    tokens: np.ndarray
    sentences: np.ndarray
    paragraphs: np.ndarray
    documents: np.ndarray
    keys: np.ndarray
    examples: np.ndarray
    segments: np.ndarray
    windows: np.ndarray

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker that does not share this process's memory maps the same files.
        return open_store, (self.folder,)

    def ids(self, first: int, count: int) -> np.ndarray:
        """The ids of `count` sentences from `first` on, `[tokens]`."""
        return self.tokens[self.sentences[first] : self.sentences[first + count]]

    def document_of(self, paragraph: int) -> int:
        """The document that holds `paragraph`."""
        return int(np.searchsorted(self.documents, paragraph, side="right")) - 1

    def starting(self, counts: np.ndarray, number: int) -> int:
        """The first sentence of the `number`-th segment or window counted by `counts`."""
        paragraph = int(np.searchsorted(counts, number, side="right")) - 1
        return int(self.paragraphs[paragraph, 0]) + number - int(counts[paragraph])


def open_store(folder: Path) -> TokenStore:
    """A store as it lies on the disk, mapped into memory."""
    plain = ("sentences", "documents", "examples", "segments", "windows")
    return TokenStore(
        folder=folder,
        tokens=mapped(folder, "tokens", "tokens"),
        paragraphs=mapped(folder, "paragraphs", width=2),
        keys=mapped(folder, "keys", np.uint64),
        **{name: mapped(folder, name) for name in plain},
    )


def token_stores(
    dataset: Dataset, tokenizer: PreTrainedTokenizerBase, geometry: Geometry, beside: Path
) -> dict[str, TokenStore]:
    """The stores of a dataset's splits, made once in a hidden folder beside `beside`.

    Raises `InputError` for a document whose bounds do not part its sentences, and for a split
    without a paragraph that holds an anchor and a target.
    """
    encoder = TextEncoder(tokenizer, 1 << 30)  # sentences stay whole here; segments are cut later

    def write(arrays: ArrayFiles, split: Shards | pa.Table) -> None:
        keys, sizes, bounds = array("Q"), array("q"), array("q")
        sentences = 0
        for row in rows_of(split, ("doc", "sentences", "bounds")):
            ends = row["bounds"]
            if len(ends) < 2 or ends[0] != 0 or ends[-1] != len(row["sentences"]):
                raise InputError(
                    f"bounds {ends} do not part its {len(row['sentences'])} sentences",
                    where=f"document {row['doc']}",
                    hint="build the dataset again",
                )
            arrays.append_texts("tokens", "sentences", encoder.sentences(row["sentences"]))
            bounds.extend(sentences + at for pair in pairwise(ends) for at in pair)
            keys.append(stable_id(row["doc"]))
            sizes.append(len(ends) - 1)
            sentences += len(row["sentences"])
        spans = np.asarray(bounds, np.int64).reshape(-1, 2)
        _write_index(arrays, spans, np.asarray(keys, np.uint64), np.asarray(sizes), geometry)

    settings = (geometry.anchor, geometry.target)
    folder = tokenized(dataset, tokenizer, beside.with_name(".tokens"), settings, write)
    return {split: open_store(folder / split) for split in dataset.splits}


def _write_index(
    arrays: ArrayFiles, spans: np.ndarray, keys: np.ndarray, sizes: np.ndarray, geometry: Geometry
) -> None:
    """Paragraphs (`spans` of sentences, in the order of reading) and documents by key, and counts.

    For a moment some 50 bytes a paragraph are in memory.
    """
    order = np.argsort(keys, kind="stable")
    paragraphs = spans[np.argsort(np.repeat(keys, sizes), kind="stable")]
    lengths = paragraphs[:, 1] - paragraphs[:, 0]
    examples = np.flatnonzero(lengths >= geometry.window)
    if not len(examples):
        raise InputError(
            f"no paragraph has {geometry.window} sentences (an anchor and a target)",
            where=arrays.folder.name,
            hint="build the dataset with merge_above, or lower anchor_sentences",
        )
    arrays.append("keys", keys[order], np.uint64)
    arrays.append("documents", np.concatenate([[0], np.cumsum(sizes[order])]))
    arrays.append("paragraphs", paragraphs)
    arrays.append("examples", examples)
    for name, width in {"segments": geometry.target, "windows": geometry.window}.items():
        places = np.maximum(lengths - width + 1, 0)
        arrays.append(name, np.concatenate([[0], np.cumsum(places)]))
