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
"""Bytes of a sketch: 32 bits for each hash."""
RECALL = 0.99
"""The minimum probability that two pairs with the threshold's similarity are compared at all."""


def near_duplicates(
    pairs: Iterable[Mapping[str, Any]], markers: Sequence[str], threshold: float, folder: Path
) -> Iterator[tuple[str, int]]:
    """Yield `doc` and `number` of each pair whose set of words is nearly that of an earlier pair.

    The Jaccard similarity of two sets, at least `threshold`, is estimated by MinHash; an LSH index
    in memory finds the earlier pairs to compare. The sketches, 512 bytes a pair, are in a file in
    `folder`. Each pair has `marker` (one of `markers`), `s1` and `s2`.
    """
    datasketch = require("datasketch", "dedup", f"for near_duplicates = {threshold}")
    codes = {marker: code for code, marker in enumerate(markers)}
    empty_sketch = datasketch.MinHash(num_perm=HASHES)
    index = datasketch.MinHashLSH(num_perm=HASHES, params=bands_and_rows(threshold))
    with TemporaryFile(dir=folder, buffering=0) as file:

        def stored_hashes(row: int) -> NDArray[np.uint32]:
            return np.frombuffer(os.pread(file.fileno(), SIZE, SIZE * row), np.uint32)

        stored = 0
        for pair in pairs:
            words = f"{codes[pair['marker']]} {pair['s1']} {pair['s2']}".lower().split()
            sketch = empty_sketch.copy()
            sketch.update_batch([word.encode() for word in words])
            hashes = sketch.hashvalues.astype(np.uint32)
            candidates = map(stored_hashes, index.query(sketch))
            if any(np.mean(other == hashes) >= threshold for other in candidates):
                yield pair["doc"], pair["number"]
            else:
                index.insert(stored, sketch, check_duplication=False)
                file.write(hashes.tobytes())
                stored += 1


def bands_and_rows(threshold: float) -> tuple[int, int]:
    """Return the numbers of bands and of rows a band of the LSH index for a similarity threshold.

    More rows mean fewer comparisons, but pairs at the threshold are missed; the largest number of
    rows whose recall there is at least `RECALL` is chosen.
    """
    rows = (r for r in range(HASHES // 2, 1, -1) if _recall(threshold, HASHES // r, r) >= RECALL)
    largest = next(rows, 1)
    return HASHES // largest, largest


def _recall(similarity: float, bands: int, rows: int) -> float:
    """Return the probability that two sets of a Jaccard similarity share a bucket of any band."""
    return float(1 - (1 - similarity**rows) ** bands)
