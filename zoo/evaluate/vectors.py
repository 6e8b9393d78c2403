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
    found = []
    for text in texts:
        parts = [text] if isinstance(text, str) else list(text)
        coded = [part.encode("utf-8", "surrogatepass") for part in parts]
        # The length goes first, so that no two lists of parts give the same bytes.
        content = b"".join(b"%d:" % len(part) + part for part in coded)
        found.append(hashlib.sha256(content).digest()[:DIGEST])
    return np.frombuffer(b"".join(found), np.uint8).reshape(len(texts), DIGEST)


def model_key(model: str, commit: str | None) -> str:
    """What the vectors depend on: the hash of a folder's files, or the Hub's commit."""
    if not Path(model).is_dir():
        return hashlib.sha256(f"{model}@{commit}".encode()).hexdigest() if commit else ""
    files = sorted({file for pattern in DEFINING for file in Path(model).glob(pattern)})
    lines = [f"{file.name} {sha256(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class VectorCache:
    """Vectors by representation and text, under `FOLDER/KEY/`. Without a folder it keeps none."""

    def __init__(self, folder: Path | str | None, key: str) -> None:
        self.folder = Path(folder) / key if folder and key else None
        self._known: dict[str, tuple[dict[bytes, int], np.ndarray]] = {}

    def known(self, representation: str, keys: np.ndarray) -> np.ndarray:
        """Which of `keys [texts, 16]` have a vector: `[texts]` of truth values."""
        rows, _ = self._load(representation)
        return np.array([key.tobytes() in rows for key in keys], bool)

    def take(self, representation: str, keys: np.ndarray) -> np.ndarray:
        """The vectors of `keys`, all of which must be known: `[texts, dim]`."""
        rows, vectors = self._load(representation)
        return vectors[[rows[key.tobytes()] for key in keys]]

    def put(self, keys: np.ndarray, vectors: Mapping[str, np.ndarray]) -> None:
        """Keep `vectors[representation] [texts, dim]`; a killed run keeps the shards it wrote."""
        from safetensors.numpy import save

        if self.folder is None:
            return
        name = hashlib.sha256(keys.tobytes()).hexdigest()[:24]
        for representation, found in vectors.items():
            place = self.folder / representation.replace(":", "-")
            with replacing(place / f"{name}{SUFFIX}") as partial:
                content = {"keys": keys, "vectors": np.ascontiguousarray(found, np.float32)}
                partial.write_bytes(save(content))
            self._known.pop(representation, None)

    def _load(self, representation: str) -> tuple[dict[bytes, int], np.ndarray]:
        """The row of each key, and the vectors `[rows, dim]`."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        if representation in self._known:
            return self._known[representation]
        place = self.folder / representation.replace(":", "-") if self.folder else None
        keys, vectors = [np.zeros((0, DIGEST), np.uint8)], []
        for path in sorted(place.glob(f"*{SUFFIX}")) if place else ():
            try:
                shard = load_file(path)
            except SafetensorError as error:
                raise InputError(
                    f"a damaged file of cached vectors: {error}",
                    where=str(path),
                    hint="remove it; its texts are encoded again",
                ) from error
            keys.append(shard["keys"])
            vectors.append(shard["vectors"])
        rows = {key.tobytes(): row for row, key in enumerate(np.concatenate(keys))}
        found = np.concatenate(vectors) if vectors else np.zeros((0, 0), np.float32)
        self._known[representation] = rows, found
        return rows, found
