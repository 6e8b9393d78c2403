"""Texts tokenised once a run by several processes, into files that the run maps into memory."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from corpora.processes import in_order
from corpora.store.atomic import (
    MANIFEST,
    is_complete,
    partial_path,
    read_json,
    staged,
    write_json,
)
from zoo.training.data import Dataset, Shards, batches
from zoo.training.job import TOKENS, is_main_process

VERSION = 2
INDEX = "arrays.json"
BYTES_A_WORKER = 1 << 25
"""Text that keeps a process busy for longer than it takes to start."""


@dataclass(frozen=True)
class Texts(Sequence[np.ndarray]):
    """Texts as token ids in one array: text `i` is `ids[bounds[i]:bounds[i + 1]]`."""

    ids: np.ndarray
    bounds: np.ndarray

    @classmethod
    def of(cls, texts: Iterable[Any]) -> Texts:
        """Return `texts`, each a sequence of ids, in one array."""
        sequences = list(texts)
        bounds = bounds_of([len(ids) for ids in sequences])
        return cls(np.fromiter(chain.from_iterable(sequences), np.int32, int(bounds[-1])), bounds)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: Any) -> Any:
        return self.ids[self.bounds[number] : self.bounds[number + 1]]

    def lengths(self) -> np.ndarray:
        """Return the number of ids of each text, `[texts]`."""
        return np.diff(self.bounds)

    def padded(self, pad_id: int) -> tuple[np.ndarray, np.ndarray]:
        """Return ids padded with `pad_id`, and a mask of the real ones, `[texts, longest or 1]`."""
        lengths = self.lengths()
        mask = np.arange(max(1, *lengths)) < lengths[:, None]
        padded_ids = np.full(mask.shape, pad_id, np.int64)
        padded_ids[mask] = self.ids
        return padded_ids, mask


def bounds_of(lengths: Any) -> np.ndarray:
    """Return the bounds `[items + 1]` of items with these `lengths` that are concatenated. Item `i`
    is from `bounds[i]` to `bounds[i + 1]`."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


Part = Mapping[str, "np.ndarray | Texts"]
"""The arrays, by name, into which some rows of a split are encoded."""
Encode = Callable[[pa.RecordBatch], Part]
"""Encodes some rows. It is sent to other processes, so it must be possible to pickle it."""


def joined(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the arrays of several parts, concatenated in memory, by name."""
    arrays: dict[str, Any] = {}
    for name, first in parts[0].items():
        pieces: list[Any] = [part[name] for part in parts]
        if isinstance(first, Texts):
            lengths = np.concatenate([texts.lengths() for texts in pieces])
            ids = np.concatenate([texts.ids for texts in pieces])
            arrays[name] = Texts(ids, bounds_of(lengths))
        else:
            arrays[name] = np.concatenate(pieces)
    return arrays


class Arrays(ExitStack):
    """Writes arrays part by part, each into a file `NAME.bin` of a folder, with their types."""

    def __init__(self, folder: Path, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__()
        self.folder = folder
        self.files: dict[str, IO[bytes]] = {}
        self.types: dict[str, Any] = {}
        self.ends: Counter[str] = Counter()
        self.id_type = np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32
        folder.mkdir(exist_ok=True)
        write_json(folder / INDEX, self.types)

    def so_far(self) -> dict[str, Any]:
        """Return the arrays written so far, mapped from the disk."""
        for file in self.files.values():
            file.flush()
        return mapped(self.folder)

    def append(self, part: Part) -> None:
        """Append a part to the files. Texts become the arrays `NAME` and `NAME.bounds`."""
        for name, values in part.items():
            arrays: dict[str, Any] = {name: values}
            if isinstance(values, Texts):
                bounds = f"{name}.bounds"
                is_later_part = bounds in self.files  # the file has its first bound already
                arrays[name] = values.ids.astype(self.id_type)
                arrays[bounds] = values.bounds[is_later_part:] + self.ends[name]
                self.ends[name] += int(values.bounds[-1])
            for key, array in arrays.items():
                if key not in self.files:
                    self.files[key] = self.enter_context((self.folder / f"{key}.bin").open("wb"))
                    self.types[key] = [array.dtype.name, *array.shape[1:]]
                    write_json(self.folder / INDEX, self.types)
                self.files[key].write(array.tobytes())


def mapped(folder: Path) -> dict[str, Any]:
    """Return a folder's arrays by name, mapped from the disk; those with bounds are `Texts`."""
    types = read_json(folder / INDEX)
    arrays: dict[str, Any] = {}
    for name, (dtype, *shape) in types.items():
        path = folder / f"{name}.bin"
        # As plain arrays: a slice of a memory map takes ten times as long.
        is_empty = not path.stat().st_size
        array = np.zeros(0, dtype) if is_empty else np.asarray(np.memmap(path, dtype, "r"))
        arrays[name] = array.reshape(-1, *shape)
    for name in [name for name in arrays if f"{name}.bounds" in arrays]:
        arrays[name] = Texts(arrays[name], arrays.pop(f"{name}.bounds"))
    return arrays


def tokenized(
    dataset: Dataset,
    splits: Mapping[str, Any],
    tokenizer: PreTrainedTokenizerBase,
    output: str | Path,
    settings: Sequence[Any],
    columns: Sequence[str],
    encode: Encode,
    *,
    finish: Callable[[str, dict[str, Any]], Part] | None = None,
    workers: int = -1,
    rows: int = 64,
) -> dict[str, Path]:
    """Encode each split into arrays on the disk, and return the folder of each split.

    `encode` gets `rows` rows of the `columns` at a time, in at most `workers` processes (-1: one a
    core). `finish`, if set, gets the arrays of a whole split and returns further arrays.

    The folders are in `OUTPUT.partial/tokens-HASH` until the run ends. The hash is of the dataset's
    revision, the splits' numbers of rows, the tokenizer and `settings`, so that a resumed run finds
    them. In a run of several processes the main one encodes, and the others wait.
    """
    sizes = {split: part.num_rows for split, part in splits.items()}
    parts = [VERSION, dataset.name, dataset.revision, dataset.config, sizes, *settings]
    rules = [tokenizer.backend_tokenizer.to_str(), tokenizer.all_special_tokens, len(tokenizer)]
    key = hashlib.sha256(json.dumps([*parts, *rules]).encode()).hexdigest()[:16]
    folder = partial_path(Path(output)) / f"{TOKENS}{key}"
    while not is_complete(folder) and not is_main_process():
        time.sleep(0.2)
    if not is_complete(folder):
        with staged(folder) as unfinished:
            for split, source in splits.items():
                with Arrays(unfinished / split, tokenizer) as arrays:
                    processes = _process_count(workers, source.nbytes)
                    start = partial(_keep_encoder, encode)
                    jobs = ((batch,) for batch in batches(source, columns, rows))
                    for part in in_order(_encode_batch, jobs, processes, start):
                        arrays.append(part)
                    if finish:
                        arrays.append(finish(split, arrays.so_far()))
            write_json(unfinished / MANIFEST, {"key": key})
    return {split: folder / split for split in splits}


def _process_count(workers: int, size: int) -> int:
    """Return how many processes encode `size` bytes of text: at most `workers` (-1: one a core).
    Few bytes get fewer, even none, since a process takes time to start."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(workers if workers >= 0 else cores or 1, size // BYTES_A_WORKER)


_worker_encoder: list[Encode] = []
"""The encoder of this process, if it is a worker."""


def _keep_encoder(encode: Encode) -> None:
    """Keep the encoder in a worker process, so that jobs need not send the tokenizer again."""
    _worker_encoder[:] = [encode]


def _encode_batch(batch: pa.RecordBatch) -> Part:
    """Encode some rows with the encoder that `_keep_encoder` gave to this process."""
    return _worker_encoder[0](batch)


def rows_of(split: Shards | pa.Table, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a split in order, each with these columns."""
    for batch in batches(split, columns):
        yield from batch.to_pylist()
