"""Texts tokenised once, as arrays on disk that every run and worker maps into memory."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from corpora.errors import DiscorporaError
from corpora.store.atomic import MANIFEST, Busy, is_complete, read_json, staged, write_json
from zoo.training.data import Dataset, Shards, batches
from zoo.training.job import is_main_process

VERSION = 1
log = logging.getLogger("zoo")


class ArrayFiles(ExitStack):
    """Arrays that grow at their ends, each in the file `NAME.bin` of a folder."""

    def __init__(self, folder: Path, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__()
        self.folder, self.files = folder, dict[str, IO[bytes]]()
        self.kind = np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32)
        self.ends: Counter[str] = Counter()
        folder.mkdir(exist_ok=True)
        write_json(folder / "tokens.json", {"dtype": self.kind.name})

    def append(self, name: str, values: Any, kind: Any = np.int64) -> None:
        if name not in self.files:
            self.files[name] = self.enter_context((self.folder / f"{name}.bin").open("wb"))
        self.files[name].write(np.asarray(values).astype(kind).tobytes())

    def append_texts(self, tokens: str, bounds: str, texts: Iterable[Any]) -> None:
        """Texts end to end in `tokens`; text `i` stands between `bounds[i]` and `bounds[i + 1]`."""
        if bounds not in self.files:
            self.append(bounds, [0])
        texts = list(texts)
        ends = self.ends[bounds] + np.cumsum([len(text) for text in texts], dtype=np.int64)
        if len(ends):
            self.append(tokens, np.concatenate(texts), self.kind)
            self.append(bounds, ends)
            self.ends[bounds] = int(ends[-1])


def tokenized(
    dataset: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    settings: Sequence[Any],
    write: Callable[[ArrayFiles, Shards | pa.Table], None],
) -> Path:
    """`folder` with a hash behind its name, in which `write` fills a folder for each split.

    The hash is of the dataset's revision, the tokenizer and `settings`. The folder appears by one
    rename, and may be removed when no run needs it. Of runs that start side by side one makes it,
    the others wait, and so do the processes of a run but the main one.
    """
    rules = tokenizer.backend_tokenizer.to_str()
    parts = [VERSION, dataset.revision, dataset.config, rules, *settings]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    folder = folder.with_name(f"{folder.name}-{key}")
    told = False
    while not is_complete(folder):
        try:
            if is_main_process():
                with staged(folder) as partial:
                    for split in dataset.splits:
                        with ArrayFiles(partial / split, tokenizer) as arrays:
                            write(arrays, dataset[split])
                    write_json(partial / MANIFEST, {"key": key})
                continue
        except Busy:
            if not told:
                log.info("another run is making %s: waiting for it", folder)
            told = True
        except DiscorporaError:
            if not is_complete(folder):
                raise
        time.sleep(0.2)
    return folder


def rows_of(split: Shards | pa.Table, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a split in order, of these columns."""
    for batch in batches(split, columns):
        yield from batch.to_pylist()


def mapped(folder: Path, name: str, kind: Any = np.int64, width: int = 1) -> np.ndarray:
    """The numbers that `ArrayFiles` wrote, `[rows]` or `[rows, width]`, as they lie on the disk.

    Of the `kind` "tokens": as wide as the vocabulary asks for.
    """
    if kind == "tokens":
        kind = read_json(folder / "tokens.json")["dtype"]
    path = folder / f"{name}.bin"
    if not path.is_file() or not path.stat().st_size:
        return np.zeros(0 if width == 1 else (0, width), kind)
    array = np.memmap(path, kind, mode="r")
    return array if width == 1 else array.reshape(-1, width)
