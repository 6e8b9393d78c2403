"""Pairs that are nearly the same as an earlier one (optional: extra `dedup`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.errors import require

HASHES = 128
SIZE = 4 * HASHES
RECALL = 0.99
"""The chance that two pairs as alike as the threshold are compared at all."""


def near_duplicates(
    pairs: Iterable[Mapping[str, Any]], markers: Sequence[str], threshold: float, folder: Path
) -> Iterator[tuple[str, int]]:
    """`doc` and `number` of those pairs whose sets of words are nearly those of an earlier one.

    Found by MinHash and LSH: an index in memory says which earlier pairs may be alike; the Jaccard
    similarity is estimated from the whole sketches, 512 bytes a pair, in a file in `folder`.
    """
    datasketch = require("datasketch", "dedup", f"for near_duplicates = {threshold}")
    codes = {marker: code for code, marker in enumerate(markers)}
    empty = datasketch.MinHash(num_perm=HASHES)
    index = datasketch.MinHashLSH(num_perm=HASHES, params=bands(threshold))
    with TemporaryFile(dir=folder, buffering=0) as file:

        def sketched(row: int) -> NDArray[np.uint32]:
            return np.frombuffer(os.pread(file.fileno(), SIZE, SIZE * row), np.uint32)

        kept = 0
        for pair in pairs:
            words = f"{codes[pair['marker']]} {pair['s1']} {pair['s2']}".lower().split()
            sketch = empty.copy()
            sketch.update_batch([word.encode() for word in words])
            hashes = sketch.hashvalues.astype(np.uint32)
            others = map(sketched, index.query(sketch))
            if any(np.mean(other == hashes) >= threshold for other in others):
                yield pair["doc"], pair["number"]
            else:
                index.insert(kept, sketch, check_duplication=False)
                file.write(hashes.tobytes())
                kept += 1


def bands(threshold: float) -> tuple[int, int]:
    """Bands and rows of the index: as many rows as find so similar pairs with `RECALL`."""
    rows = (r for r in range(HASHES // 2, 1, -1) if _recall(threshold, HASHES // r, r) >= RECALL)
    best = next(rows, 1)
    return HASHES // best, best


def _recall(similarity: float, bands: int, rows: int) -> float:
    """The chance that two sets are in one bucket of any band."""
    return float(1 - (1 - similarity**rows) ** bands)
