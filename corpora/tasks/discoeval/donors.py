"""Where the intruders of discourse coherence come from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from corpora.rng import stream
from corpora.store.scratch import Scratch
from corpora.tasks.pool import Pool
from corpora.tasks.similar import Categories, Neighbours, Profiles

TIES = 16
"""At most so many documents of the same share of categories are drawn from."""

ATTEMPTS = 8
COPIES = 20
"""So many copies of a document are passed over in the search for another one."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Documents that a sentence may be taken from, and how they were found."""

    names: Sequence[str]
    found_by: str


class Donors(Protocol):
    """What finds other documents of a split for its windows."""

    def enter(self, pool: Pool, names: list[str]) -> None:
        """Begin with a split, whose documents are `names`."""

    def find(self, rows: Sequence[int]) -> Iterator[Candidates]:
        """The donors for each of some windows (rows of the pool)."""


class AnyOther:
    """Any other document of the split may give the intruder."""

    def enter(self, pool: Pool, names: list[str]) -> None:
        self._pool, self._names = pool, names

    def find(self, rows: Sequence[int]) -> Iterator[Candidates]:
        for _ in rows:
            yield Candidates(self._names, "chance")


class Similar:
    """Documents with the largest share of common categories, else the most similar texts.

    One whose text is more alike than `most_alike` (cosine) is a copy or another version.
    """

    def __init__(
        self, profiles: Profiles, categories: Categories, number: int, most_alike: float
    ) -> None:
        self._profiles, self._categories = profiles, categories
        self._number, self._most_alike = number, most_alike

    def enter(self, pool: Pool, names: list[str]) -> None:
        self._pool, self._names = pool, names
        self._at = {name: i for i, name in enumerate(names)}
        self._texts = Neighbours(self._profiles.matrix(names))
        self._shares = Neighbours(self._categories.matrix(names), "share")
        self._host = np.zeros(self._texts.matrix.shape[1], np.float32)

    def find(self, rows: Sequence[int]) -> Iterator[Candidates]:
        at = np.array([self._at[self._pool.document_of(row)] for row in rows], np.int64)
        by_text = chain.from_iterable(self._texts.nearest(at, self._number + COPIES))
        by_share = chain.from_iterable(self._shares.nearest(at, TIES + COPIES))
        for host, (similar, _), (sharing, share) in zip(at, by_text, by_share, strict=True):
            other = self._other(host, sharing)
            sharing, share = sharing[other][:TIES], share[other][:TIES]
            if sharing.size:
                best = sharing[share >= share[0] - 1e-9]
                yield Candidates([self._names[i] for i in best], "categories")
            else:
                similar = similar[self._other(host, similar)][: self._number]
                yield Candidates([self._names[i] for i in similar], "tfidf")

    def _other(self, host: np.int64, documents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the documents are no copies of the host."""
        matrix = self._texts.matrix
        own = slice(matrix.indptr[host], matrix.indptr[host + 1])
        # A sparse product would cost a pass over all features.
        self._host[matrix.indices[own]] = matrix.data[own]
        alike = matrix[documents] @ self._host
        self._host[matrix.indices[own]] = 0
        return np.asarray(alike <= self._most_alike)


class Sentences(Scratch):
    """The sentences of documents as keys, letter case aside, 8 bytes each in a file.

    Use as a context manager; the file is removed at the end.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._places: dict[str, tuple[int, int]] = {}

    def add(self, name: str, texts: Sequence[str]) -> None:
        """Take in the sentences of one document."""
        self._places[name] = (self._file.tell(), len(texts))
        self._file.write(_keys(texts).tobytes())

    def any_of(self, name: str, texts: Sequence[str]) -> bool:
        """Whether a document has any of these sentences."""
        start, number = self._places[name]
        self._file.flush()
        own = np.frombuffer(os.pread(self._file.fileno(), 8 * number, start), np.int64)
        return bool(np.isin(_keys(texts), own).any())


def _keys(texts: Sequence[str]) -> NDArray[np.int64]:
    # Python's own hash differs from run to run, but never leaves this process.
    return np.fromiter((hash(text.casefold()) for text in texts), np.int64, len(texts))


def replacement(
    pool: Pool,
    texts: Sentences,
    row: int,
    record: dict[str, Any],
    position: int,
    donors: Candidates,
) -> dict[str, Any] | str:
    """The window with an intruder at `position`, or the reason why there is none.

    The intruder stood at the same position of a window of its document: where a sentence stands
    in a paragraph must not tell whether it was replaced. That window has no sentence that the
    document to intrude on has anywhere: it would be a passage that both took over.
    """
    sentences, own = record["sentences"], record["doc"]
    random = stream(pool.seed, pool.stage, pool.place(row))
    for _ in range(ATTEMPTS if donors.names else 0):
        donor = donors.names[int(random.integers(len(donors.names)))]
        if donor == own:
            continue
        other = pool.record(int(random.choice(pool.rows_of(donor))))
        if not texts.any_of(own, other["sentences"]):
            intruder = other["sentences"][position]
            changed = [*sentences[:position], intruder, *sentences[position + 1 :]]
            return {
                "position": position,
                "donor": donor,
                "found_by": donors.found_by,
                "sentences": changed,
                "licence": other["licence"],
            }
    return "no_other_sentence" if donors.names else "no_similar_document"
