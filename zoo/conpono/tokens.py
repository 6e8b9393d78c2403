"""Sentences tokenised once, as memory-mapped arrays that every run and worker shares."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from corpora.errors import InputError
from corpora.rng import stable_id
from corpora.store.atomic import write_json
from zoo.conpono.segments import Geometry
from zoo.texts import TextEncoder
from zoo.training.data import Dataset, Shards, batches
from zoo.training.mapped import made_once, mapped

VERSION = 1
BLOCK = 1 << 16
"""Paragraphs handled at once when the index is written."""
ARRAYS = {
    "sentences": (np.int64, 1),
    "paragraphs": (np.int64, 2),
    "documents": (np.int64, 1),
    "keys": (np.uint64, 1),
    "examples": (np.int64, 1),
    "segments": (np.int64, 1),
    "windows": (np.int64, 1),
}


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

    def segments_of(self, document: int) -> tuple[int, int]:
        """The numbers of the target-long segments in `document`, from and to."""
        first, end = self.documents[document], self.documents[document + 1]
        return int(self.segments[first]), int(self.segments[end])

    def starting(self, counts: np.ndarray, number: int) -> int:
        """The first sentence of the `number`-th segment or window counted by `counts`."""
        paragraph = int(np.searchsorted(counts, number, side="right")) - 1
        return int(self.paragraphs[paragraph, 0]) + number - int(counts[paragraph])


def token_stores(
    dataset: Dataset, tokenizer: PreTrainedTokenizerBase, geometry: Geometry, beside: Path
) -> dict[str, TokenStore]:
    """The stores of a dataset's splits, made once in a hidden folder beside `beside`.

    The folder's name is a hash of the dataset's revision, the tokenizer and the lengths of
    anchor and target; it appears by one rename. It may be removed when no run needs it. Of runs
    that start side by side one makes it, the others wait.
    """
    key = _key(dataset, tokenizer, geometry)
    folder = beside.parent / f".tokens-{key}"

    def write(partial: Path) -> dict[str, Any]:
        made = {
            split: _write(partial / split, dataset[split], tokenizer, geometry)
            for split in dataset.splits
        }
        return {"key": key, "splits": made}

    made_once(folder, write)
    return {split: open_store(folder / split) for split in dataset.splits}


def open_store(folder: Path) -> TokenStore:
    """A store as it lies on the disk, mapped into memory."""
    kind = json.loads((folder / "tokens.json").read_text(encoding="utf-8"))["dtype"]
    arrays = {name: mapped(folder / f"{name}.bin", *form) for name, form in ARRAYS.items()}
    tokens = mapped(folder / "tokens.bin", np.dtype(kind))
    return TokenStore(folder=folder, tokens=tokens, **arrays)


def _key(dataset: Dataset, tokenizer: PreTrainedTokenizerBase, geometry: Geometry) -> str:
    rules = tokenizer.backend_tokenizer.to_str()
    parts = [VERSION, dataset.revision, dataset.config, rules, geometry.anchor, geometry.target]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _write(
    folder: Path,
    split: Shards | pa.Table,
    tokenizer: PreTrainedTokenizerBase,
    geometry: Geometry,
) -> dict[str, int]:
    """Tokenise a split into `folder`; returns what it holds, in numbers."""
    folder.mkdir(exist_ok=True)
    kind = np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32)
    keys, sizes = _write_texts(folder, split, tokenizer, kind)
    write_json(folder / "tokens.json", {"dtype": kind.name})
    found = _write_index(folder, np.asarray(keys, np.uint64), np.asarray(sizes, np.int64), geometry)
    (folder / "read.bin").unlink()
    if not found:
        raise InputError(
            f"no paragraph has {geometry.window} sentences (an anchor and a target)",
            where=folder.name,
            hint="build the dataset with merge_above, or lower anchor_sentences",
        )
    return {"documents": len(keys), "paragraphs": int(sum(sizes)), "examples": found}


def _write_texts(
    folder: Path, split: Shards | pa.Table, tokenizer: PreTrainedTokenizerBase, kind: np.dtype
) -> tuple[array[int], array[int]]:
    """Token ids, sentence bounds and paragraph spans in the order of reading.

    Returns each document's key and number of paragraphs, 8 bytes each.
    """
    encoder = TextEncoder(tokenizer, 1 << 30)  # sentences stay whole here; segments are cut later
    keys, sizes = array("Q"), array("q")
    tokens = sentences = 0
    with ExitStack() as stack:
        files = {
            name: stack.enter_context((folder / f"{name}.bin").open("wb"))
            for name in ("tokens", "sentences", "read")
        }
        files["sentences"].write(np.zeros(1, np.int64).tobytes())
        for doc, texts, bounds in _documents(split):
            ids = encoder.sentences(texts)
            ends = tokens + np.cumsum([len(sentence) for sentence in ids], dtype=np.int64)
            files["tokens"].write(np.concatenate(ids).astype(kind).tobytes() if ids else b"")
            files["sentences"].write(ends.tobytes())
            spans = np.stack([bounds[:-1], bounds[1:]], axis=1) + sentences
            files["read"].write(spans.astype(np.int64).tobytes())
            tokens, sentences = int(ends[-1]) if ids else tokens, sentences + len(ids)
            keys.append(stable_id(doc))
            sizes.append(len(spans))
    return keys, sizes


def _documents(split: Shards | pa.Table) -> Iterator[tuple[str, list[str], np.ndarray]]:
    for batch in batches(split, ("doc", "sentences", "bounds")):
        for row in batch.to_pylist():
            bounds = np.asarray(row["bounds"], np.int64)
            if len(bounds) < 2 or bounds[0] != 0 or bounds[-1] != len(row["sentences"]):
                raise InputError(
                    f"bounds {row['bounds']} do not part its {len(row['sentences'])} sentences",
                    where=f"document {row['doc']}",
                    hint="build the dataset again",
                )
            yield row["doc"], row["sentences"], bounds


def _write_index(folder: Path, keys: np.ndarray, sizes: np.ndarray, geometry: Geometry) -> int:
    """Paragraphs and documents by key, and the counts; returns the number of examples."""
    order = np.argsort(keys, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    keys[order].tofile(folder / "keys.bin")
    np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int64).tofile(folder / "documents.bin")
    read = mapped(folder / "read.bin", np.int64, 2)
    with (folder / "paragraphs.bin").open("wb") as file:
        for document in order.tolist():
            file.write(read[starts[document] : starts[document + 1]].tobytes())
    paragraphs = mapped(folder / "paragraphs.bin", np.int64, 2)
    _write_counts(folder / "segments.bin", paragraphs, geometry.target)
    _write_counts(folder / "windows.bin", paragraphs, geometry.window)
    return _write_examples(folder / "examples.bin", paragraphs, geometry.window)


def _write_counts(path: Path, paragraphs: np.ndarray, width: int) -> None:
    """How many runs of `width` sentences begin before each paragraph, and in all."""
    total = 0
    with path.open("wb") as file:
        file.write(np.zeros(1, np.int64).tobytes())
        for start in range(0, len(paragraphs), BLOCK):
            block = paragraphs[start : start + BLOCK]
            counts = total + np.cumsum(np.maximum(block[:, 1] - block[:, 0] - width + 1, 0))
            total = int(counts[-1])
            file.write(counts.astype(np.int64).tobytes())


def _write_examples(path: Path, paragraphs: np.ndarray, width: int) -> int:
    found = 0
    with path.open("wb") as file:
        for start in range(0, len(paragraphs), BLOCK):
            block = paragraphs[start : start + BLOCK]
            rows = start + np.flatnonzero(block[:, 1] - block[:, 0] >= width)
            found += len(rows)
            file.write(rows.astype(np.int64).tobytes())
    return found
