"""Random streams that depend only on a seed, a stage and a document."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


def stable_id(name: str) -> int:
    """Return the first 8 bytes of the sha256 of `name` as an unsigned integer."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest()[:8], "big")


def mix_bits(words: Words) -> Words:
    """Return the hash of each 64-bit word by SplitMix64's mixing (Steele, Lea, Flood 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def stream(seed: int, stage: str, document: str = "", epoch: int = 0) -> np.random.Generator:
    """Return the random generator of a stage for a document, independent of earlier draws."""
    return np.random.default_rng([seed, stable_id(stage), stable_id(document), epoch])
