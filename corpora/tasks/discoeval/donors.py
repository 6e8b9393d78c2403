"""Where the intruders of discourse coherence come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from corpora.rng import stream
from corpora.tasks.pool import Pool
from corpora.tasks.similar import Categories, Neighbours, Profiles

TIES = 16
"""At most so many documents of the same share of categories are drawn from."""

ATTEMPTS = 8


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
    """Documents with the largest share of common categories, else the most similar texts."""

    def __init__(self, profiles: Profiles, categories: Categories, number: int) -> None:
        self._profiles, self._categories, self._number = profiles, categories, number

    def enter(self, pool: Pool, names: list[str]) -> None:
        self._pool, self._names = pool, names
        self._at = {name: i for i, name in enumerate(names)}
        self._texts = Neighbours(self._profiles.matrix(names))
        self._shares = Neighbours(self._categories.matrix(names), "share")

    def find(self, rows: Sequence[int]) -> Iterator[Candidates]:
        at = np.array([self._at[self._pool.document_of(row)] for row in rows], np.int64)
        by_text = self._texts.nearest(at, self._number)
        by_share = self._shares.nearest(at, TIES)
        for texts, shares in zip(by_text, by_share, strict=True):
            for (similar, _), (sharing, share) in zip(texts, shares, strict=True):
                if sharing.size:
                    best = sharing[share >= share[0] - 1e-9]
                    yield Candidates([self._names[i] for i in best], "categories")
                else:
                    yield Candidates([self._names[i] for i in similar], "tfidf")


def replacement(
    pool: Pool, row: int, record: dict[str, Any], position: int, donors: Candidates
) -> dict[str, Any] | str:
    """The window with an intruder at `position`, or the reason why there is none.

    The intruder stood at the same position of a window of its document: where a sentence stands
    in a paragraph must not tell whether it was replaced.
    """
    sentences, own = record["sentences"], record["doc"]
    random = stream(pool.seed, pool.stage, pool.place(row))
    present = {sentence.casefold() for sentence in sentences}
    for _ in range(ATTEMPTS if donors.names else 0):
        donor = donors.names[int(random.integers(len(donors.names)))]
        if donor == own:
            continue
        other = pool.record(int(random.choice(pool.rows_of(donor))))
        intruder = other["sentences"][position]
        if intruder.casefold() not in present:
            changed = [*sentences[:position], intruder, *sentences[position + 1 :]]
            return {
                "position": position,
                "donor": donor,
                "found_by": donors.found_by,
                "sentences": changed,
                "licence": other["licence"],
            }
    return "no_other_sentence" if donors.names else "no_similar_document"
