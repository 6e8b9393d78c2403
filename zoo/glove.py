"""Word vectors from GloVe's text files: one word and its numbers a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corpora.errors import ConfigError, InputError

if TYPE_CHECKING:
    from torch.nn import Embedding
    from transformers import PreTrainedTokenizerBase


def read_glove(path: Path, vocabulary: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of the words of `vocabulary` that the file has.

    Returns `ids [words]` and `vectors [words, size]`, in the order of the ids. Raises
    `InputError` for a file that is absent, has a line of another size, or none of the words.
    """
    if not path.is_file():
        raise InputError(
            "no such file of word vectors",
            where=str(path),
            hint="download it from https://nlp.stanford.edu/projects/glove/ and unpack it",
        )
    size = 0
    vectors: dict[int, np.ndarray] = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not size:
                    if len(line.split()) == 2:
                        continue  # the header of word2vec's text form
                    size = len(line.split()) - 1
                # Some words of GloVe 840B hold spaces: the numbers are the last fields.
                word, *numbers = line.rstrip("\n").rsplit(" ", size)
                if word in vocabulary:
                    try:
                        vector: np.ndarray = np.array(numbers, np.float32)
                    except ValueError:
                        vector = np.zeros(0, np.float32)
                    if len(vector) != size or not np.isfinite(vector).all():
                        raise InputError(
                            f"not a word and {size} finite numbers, as the first line has them",
                            where=f"{path}:{number}",
                        )
                    vectors[vocabulary[word]] = vector
    except UnicodeDecodeError as error:
        raise InputError(
            "is no text file of word vectors",
            where=str(path),
            hint="if it is packed (.zip, .gz), unpack it",
        ) from error
    if not vectors:
        raise InputError("has no word of this vocabulary", where=str(path))
    ids = sorted(vectors)
    return np.array(ids, np.int64), np.stack([vectors[word] for word in ids])


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
