"""Word vectors from GloVe's text files: one word and its numbers a line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import load_file, save_file
from tqdm import tqdm

from corpora.errors import ConfigError, InputError

if TYPE_CHECKING:
    from torch.nn import Embedding
    from transformers import PreTrainedTokenizerBase


def read_glove(path: Path, vocabulary: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of the words of `vocabulary` that the file has.

    Returns `ids [found]` and `vectors [found, size]`, in the order of the ids. A file of
    millions of lines is read once for a vocabulary; the result is cached under
    `DISCORPORA_CACHE` (default `~/.cache/discorpora`).

    Raises `InputError` for a file that is absent, has a line of another size, or none of the
    words.
    """
    if not path.is_file():
        raise InputError(
            "no such file of word vectors",
            where=str(path),
            hint="download it from https://nlp.stanford.edu/projects/glove/ and unpack it",
        )
    cache = _cache_file(path, vocabulary)
    if cache.is_file():
        kept = load_file(cache)
        return kept["ids"], kept["vectors"]
    try:
        found = dict(_matches(path, vocabulary))
    except UnicodeDecodeError as error:
        raise InputError(
            "is no text file of word vectors",
            where=str(path),
            hint="if it is packed (.zip, .gz), unpack it",
        ) from error
    if not found:
        raise InputError("has no word of this vocabulary", where=str(path))
    ids = np.array(sorted(found), np.int64)
    vectors = np.stack([found[word] for word in ids.tolist()])
    _keep(cache, ids, vectors)
    return ids, vectors


def load_vectors(
    table: Embedding, tokenizer: PreTrainedTokenizerBase, path: Path, deviation: float
) -> str:
    """Put the file's vectors where it has the word; the other words keep random ones.

    `deviation` is that of the random ones: they become as large as the file's. Returns a note of
    how many words were found. Raises `ConfigError` for vectors of another size.
    """
    import torch

    ids, vectors = read_glove(path, tokenizer.get_vocab())
    weight = table.weight
    if vectors.shape[1] != weight.shape[1]:
        raise ConfigError(
            f"the vectors have {vectors.shape[1]} numbers, embedding_size is {weight.shape[1]}",
            where=str(path),
            hint=f"set embedding_size = {vectors.shape[1]}",
        )
    with torch.no_grad():
        weight.mul_(float(vectors.std()) / deviation)
        weight[torch.from_numpy(ids)] = torch.from_numpy(vectors)
    return f"{len(ids)} of {len(tokenizer)} words have a vector in {path.name}"


def _matches(path: Path, vocabulary: Mapping[str, int]) -> Iterator[tuple[int, np.ndarray]]:
    size = None
    with path.open(encoding="utf-8") as lines, _progress(path) as progress:
        for number, line in enumerate(lines, 1):
            progress.update(len(line.encode("utf-8")))
            if size is None:
                if len(line.split()) == 2:
                    continue  # the header of word2vec's text form
                size = len(line.split()) - 1
            # Some words of GloVe 840B hold spaces: the numbers are the last fields.
            word, *numbers = line.rstrip("\n").rsplit(" ", size)
            if word in vocabulary:
                yield vocabulary[word], _vector(numbers, size, f"{path}:{number}")


def _vector(numbers: list[str], size: int, where: str) -> np.ndarray:
    try:
        vector = np.array(numbers, np.float32)
    except ValueError as error:
        raise InputError(f"not a word and {size} numbers: {error}", where=where) from error
    if not np.isfinite(vector).all():
        raise InputError("a number that is not finite", where=where)
    if len(vector) != size:
        raise InputError(f"{len(vector)} numbers where the first line has {size}", where=where)
    return vector


def _progress(path: Path) -> tqdm:
    total = path.stat().st_size
    return tqdm(desc=path.name, total=total, unit="B", unit_scale=True, disable=None)


def _cache_file(path: Path, vocabulary: Mapping[str, int]) -> Path:
    state = path.stat()
    words = "\n".join(sorted(vocabulary, key=lambda word: vocabulary[word]))
    key = f"{path.resolve()}\n{state.st_size}\n{state.st_mtime_ns}\n{words}"
    name = hashlib.sha256(key.encode("utf-8")).hexdigest()[:16]
    home = os.environ.get("DISCORPORA_CACHE") or Path.home() / ".cache" / "discorpora"
    return Path(home) / f"vectors-{name}.safetensors"


def _keep(cache: Path, ids: np.ndarray, vectors: np.ndarray) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    partial = cache.with_name(f"{cache.name}.{os.getpid()}.partial")
    save_file({"ids": ids, "vectors": vectors}, partial)
    partial.replace(cache)
