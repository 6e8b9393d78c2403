"""Vectors on disk: each text of an encoder is encoded once, whichever suite asks for it.

A folder a key (what made the vectors) and representation; in it shards, each written by one
rename: `keys [texts, 16]`, the digests of the texts, and `vectors [texts, dim]`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from corpora.errors import InputError
from corpora.store.atomic import replacing, sha256

Text = str | tuple[str, str]
"""One text, or two that are encoded together."""

DIGEST = 16
SUFFIX = ".safetensors"
DEFINING = ("*.safetensors", "config.json", "tokenizer*", "vocab*", "merges*", "*.model")
"""The files of a model folder on which its vectors depend."""


def digests(texts: Sequence[Text]) -> np.ndarray:
    """One key a text, `[texts, 16]` bytes; a pair's differs from that of any single text."""
    found = b"".join(_digest(text) for text in texts)
    return np.frombuffer(found, np.uint8).reshape(len(texts), DIGEST)


def _digest(text: Text) -> bytes:
    parts = [text] if isinstance(text, str) else list(text)
    coded = [part.encode("utf-8", "surrogatepass") for part in parts]
    # The length goes first, so that no two lists of parts give the same bytes.
    content = b"".join(b"%d:" % len(part) + part for part in coded)
    return hashlib.sha256(content).digest()[:DIGEST]


def folder_hash(folder: Path) -> str:
    """The sha256 over the files of a model folder that define its vectors."""
    files = sorted({file for pattern in DEFINING for file in folder.glob(pattern)})
    lines = [f"{file.name} {sha256(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class VectorCache:
    """Vectors by representation and text, under `FOLDER/KEY/`. Without a folder it keeps none.

    `hits` counts the texts that were found.
    """

    def __init__(self, folder: Path | str | None, key: str) -> None:
        self.folder = Path(folder) / key if folder and key else None
        self.hits = 0
        self._known: dict[str, tuple[dict[bytes, int], np.ndarray]] = {}

    def known(self, representation: str, keys: np.ndarray) -> np.ndarray:
        """Which of `keys [texts, 16]` have a vector: `[texts]` of truth values."""
        rows, _ = self._load(representation)
        return np.array([key.tobytes() in rows for key in keys], bool)

    def take(self, representation: str, keys: np.ndarray) -> np.ndarray:
        """The vectors of `keys`, all of which must be known: `[texts, dim]`."""
        rows, vectors = self._load(representation)
        self.hits += len(keys)
        return vectors[[rows[key.tobytes()] for key in keys]]

    def put(self, keys: np.ndarray, vectors: Mapping[str, np.ndarray]) -> None:
        """Keep `vectors[representation] [texts, dim]`; a killed run keeps the shards it wrote."""
        from safetensors.numpy import save

        if self.folder is None or not len(keys):
            return
        name = hashlib.sha256(keys.tobytes()).hexdigest()[:24]
        for representation, found in vectors.items():
            path = self._place(representation) / f"{name}{SUFFIX}"
            with replacing(path) as partial:
                content = {"keys": keys, "vectors": np.ascontiguousarray(found, np.float32)}
                partial.write_bytes(save(content))
            self._known.pop(representation, None)

    def _place(self, representation: str) -> Path:
        assert self.folder is not None
        return self.folder / representation.replace(":", "-")

    def _load(self, representation: str) -> tuple[dict[bytes, int], np.ndarray]:
        if self.folder is None:
            return {}, np.zeros((0, 0), np.float32)
        if representation not in self._known:
            self._known[representation] = _read(self._place(representation))
        return self._known[representation]


def _read(folder: Path) -> tuple[dict[bytes, int], np.ndarray]:
    shards = [_read_shard(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    if not shards:
        return {}, np.zeros((0, 0), np.float32)
    keys = np.concatenate([shard["keys"] for shard in shards])
    vectors = np.concatenate([shard["vectors"] for shard in shards])
    return {key.tobytes(): row for row, key in enumerate(keys)}, vectors


def _read_shard(path: Path) -> dict[str, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise InputError(
            f"a damaged file of cached vectors: {error}",
            where=str(path),
            hint="remove it; its texts are encoded again",
        ) from error
