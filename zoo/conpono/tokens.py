"""Sentences tokenised once, as memory-mapped arrays that every run and worker shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from corpora.errors import InputError
from corpora.rng import stable_id
from zoo.conpono.segments import Geometry
from zoo.texts import TextEncoder
from zoo.training.data import Dataset
from zoo.training.mapped import Part, Texts, bounds_of, mapped, tokenized


@dataclass(frozen=True)
class TokenStore:
    """One split: token ids, and the starts of sentences, paragraphs and documents.

    Sentence `i` is `tokens[sentences[i]:sentences[i + 1]]`; paragraph `p` has the sentences
    `paragraphs[p, 0]` to `paragraphs[p, 1]`; document `d` the paragraphs `documents[d]` to
    `documents[d + 1]`. Documents are ordered by `keys`, a hash of their ids, so that samples do not
    depend on the dataset's order. `examples` are the paragraphs that are long enough; `segments`
    and `windows` count, before each paragraph, the possible starts of a target, or of an anchor
    with a target.
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
        """The document of `paragraph`."""
        return int(np.searchsorted(self.documents, paragraph, side="right")) - 1

    def starting(self, counts: np.ndarray, number: int) -> int:
        """The first sentence of the `number`-th segment or window counted by `counts`."""
        paragraph = int(np.searchsorted(counts, number, side="right")) - 1
        return int(self.paragraphs[paragraph, 0]) + number - int(counts[paragraph])


def open_store(folder: Path) -> TokenStore:
    """A store on the disk, mapped into memory."""
    arrays = mapped(folder)
    names = ("documents", "examples", "segments", "windows", "keys", "paragraphs")
    texts: Texts = arrays["tokens"]
    return TokenStore(
        folder, texts.ids, sentences=texts.bounds, **{name: arrays[name] for name in names}
    )


def token_stores(
    dataset: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    geometry: Geometry,
    output: str | Path,
    workers: int = -1,
) -> dict[str, TokenStore]:
    """The stores of a dataset's splits, made once while a run works on `output`.

    Raises `InputError` for a document whose bounds do not divide its sentences, and for a split
    without a paragraph for an anchor and a target.
    """
    folders = tokenized(
        dataset,
        dataset.splits,
        tokenizer,
        output,
        ("conpono", geometry.anchor, geometry.target),
        ("doc", "sentences", "bounds"),
        # Sentences stay whole here; segments are cut later.
        partial(_encoded, TextEncoder(tokenizer, 1 << 30)),
        finish=partial(_index, geometry),
        workers=workers,
    )
    return {split: open_store(folder) for split, folder in folders.items()}


def _encoded(encoder: TextEncoder, rows: pa.RecordBatch) -> Part:
    """The sentences, the sizes of the paragraphs, and each document's key and paragraphs."""
    sentences: list[str] = []
    sizes, counts, keys = [], [], []
    for row in rows.to_pylist():
        ends = row["bounds"]
        if len(ends) < 2 or ends[0] != 0 or ends[-1] != len(row["sentences"]):
            raise InputError(
                f"bounds {ends} do not divide its {len(row['sentences'])} sentences",
                where=f"document {row['doc']}",
                hint="build the dataset again",
            )
        sentences += row["sentences"]
        sizes += np.diff(ends).tolist()
        counts.append(len(ends) - 1)
        keys.append(stable_id(row["doc"]))
    return {
        "tokens": Texts.of(encoder.sentences(sentences)),
        "sizes": np.array(sizes, np.int64),
        "counts": np.array(counts, np.int64),
        "read_keys": np.array(keys, np.uint64),
    }


def _index(geometry: Geometry, split: str, read: dict[str, Any]) -> Part:
    """Paragraphs and documents by key, and counts of possible starts.

    Temporarily about 50 bytes for each paragraph are in memory.
    """
    keys, counts, ends = read["read_keys"], read["counts"], np.cumsum(read["sizes"])
    order = np.argsort(keys, kind="stable")
    spans = np.stack([ends - read["sizes"], ends], 1)
    paragraphs = spans[np.argsort(np.repeat(keys, counts), kind="stable")]
    lengths = paragraphs[:, 1] - paragraphs[:, 0]
    examples = np.flatnonzero(lengths >= geometry.window)
    if not len(examples):
        raise InputError(
            f"no paragraph has {geometry.window} sentences (an anchor and a target)",
            where=split,
            hint="build the dataset with merge_above, or lower anchor_sentences",
        )

    def places(width: int) -> np.ndarray:
        return bounds_of(np.maximum(lengths - width + 1, 0))

    return {
        "keys": keys[order],
        "documents": bounds_of(counts[order]),
        "paragraphs": paragraphs,
        "examples": examples,
        "segments": places(geometry.target),
        "windows": places(geometry.window),
    }
