"""Texts tokenised once a run, by several processes, as arrays that its processes map."""

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
    """Texts as ids, end to end: text `i` is `ids[bounds[i]:bounds[i + 1]]`."""

    ids: np.ndarray
    bounds: np.ndarray

    @classmethod
    def of(cls, texts: Iterable[Any]) -> Texts:
        listed = list(texts)
        bounds = bounds_of([len(text) for text in listed])
        return cls(np.fromiter(chain.from_iterable(listed), np.int32, int(bounds[-1])), bounds)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: Any) -> Any:
        return self.ids[self.bounds[number] : self.bounds[number + 1]]

    def lengths(self) -> np.ndarray:
        """The number of ids of each text, `[texts]`."""
        return np.diff(self.bounds)

    def padded(self, pad_id: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids with `pad_id` after them, and which are real: `[texts, longest]`, at least 1."""
        lengths = self.lengths()
        real = np.arange(max(1, *lengths)) < lengths[:, None]
        table = np.full(real.shape, pad_id, np.int64)
        table[real] = self.ids
        return table, real


def bounds_of(lengths: Any) -> np.ndarray:
    """Where things of these lengths begin and end, end to end, `[things + 1]`."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


Part = Mapping[str, "np.ndarray | Texts"]
"""Arrays that some rows of a split become; those of all rows follow one another."""
Encode = Callable[[pa.RecordBatch], Part]
"""Makes the part of some rows. It is sent to other processes, so it can be pickled."""


def joined(parts: Sequence[Part]) -> dict[str, Any]:
    """The arrays of parts in memory."""
    arrays: dict[str, Any] = {}
    for name, first in parts[0].items():
        found: list[Any] = [part[name] for part in parts]
        if isinstance(first, Texts):
            lengths = np.concatenate([texts.lengths() for texts in found])
            ids = np.concatenate([texts.ids for texts in found])
            arrays[name] = Texts(ids, bounds_of(lengths))
        else:
            arrays[name] = np.concatenate(found)
    return arrays


class Arrays(ExitStack):
    """Arrays that grow at their ends, each in a file `NAME.bin` of a folder."""

    def __init__(self, folder: Path, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__()
        self.folder = folder
        self.files: dict[str, IO[bytes]] = {}
        self.kinds: dict[str, Any] = {}
        self.ends: Counter[str] = Counter()
        self.id_kind = np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32
        folder.mkdir(exist_ok=True)
        write_json(folder / INDEX, self.kinds)

    def so_far(self) -> dict[str, Any]:
        """The arrays as they are on the disk by now."""
        for file in self.files.values():
            file.flush()
        return mapped(self.folder)

    def append(self, part: Part) -> None:
        """Add a part. Texts become the arrays `NAME` and `NAME.bounds`."""
        for name, values in part.items():
            arrays: dict[str, Any] = {name: values}
            if isinstance(values, Texts):
                bounds = f"{name}.bounds"
                arrays[name] = values.ids.astype(self.id_kind)
                arrays[bounds] = values.bounds[bounds in self.files :] + self.ends[name]
                self.ends[name] += int(values.bounds[-1])
            for key, array in arrays.items():
                if key not in self.files:
                    self.files[key] = self.enter_context((self.folder / f"{key}.bin").open("wb"))
                    self.kinds[key] = [array.dtype.name, *array.shape[1:]]
                    write_json(self.folder / INDEX, self.kinds)
                self.files[key].write(array.tobytes())


def mapped(folder: Path) -> dict[str, Any]:
    """The arrays of a folder by name, as they lie on the disk; `Texts` where they are such."""
    kinds = read_json(folder / INDEX)
    arrays: dict[str, Any] = {}
    for name, (kind, *shape) in kinds.items():
        path = folder / f"{name}.bin"
        # As plain arrays: a slice of a memory map takes ten times as long.
        flat = np.asarray(np.memmap(path, kind, "r")) if path.stat().st_size else np.zeros(0, kind)
        arrays[name] = flat.reshape(-1, *shape)
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
    """A folder for each split, whose arrays `encode` makes of `rows` rows of `columns` at a time.

    They lie in `OUTPUT.partial/tokens-HASH` until the run ends, with a hash of the dataset's
    revision, what is taken of each split, the tokenizer and `settings`: a run that was killed finds
    them again. Of the processes of a run the main one makes them, the others wait.

    At most `workers` processes make it (-1: one a core), fewer of little text; their number changes
    no byte. `finish` makes further arrays of those of the whole split.
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
                given = batches(source, columns, rows)
                with Arrays(unfinished / split, tokenizer) as arrays:
                    many = _process_count(workers, source.nbytes)
                    jobs = ((batch,) for batch in given)
                    for part in in_order(_encoded, jobs, many, partial(_hold, encode)):
                        arrays.append(part)
                    if finish:
                        arrays.append(finish(split, arrays.so_far()))
            write_json(unfinished / MANIFEST, {"key": key})
    return {split: folder / split for split in splits}


def _process_count(workers: int, size: int) -> int:
    """Processes for `size` bytes of text: at most `workers` (-1: one a core), each with enough."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(workers if workers >= 0 else there or 1, size // BYTES_A_WORKER)


_held: list[Encode] = []


def _hold(encode: Encode) -> None:
    """Keep the encoder in this process: with each job the tokenizer would be sent again."""
    _held[:] = [encode]


def _encoded(batch: pa.RecordBatch) -> Part:
    return _held[0](batch)


def rows_of(split: Shards | pa.Table, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a split in order, of these columns."""
    for batch in batches(split, columns):
        yield from batch.to_pylist()
