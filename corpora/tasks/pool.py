"""Candidates that can be asked for by document: for tasks that take sentences of another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from corpora.candidates import Candidates, Rows
from corpora.rng import stable_id
from corpora.splits import SPLITS, Shares
from corpora.store import DatasetFolder, used


class Pool(Candidates):
    """Candidates on disk, read one by one, and by document."""

    _ranges: Mapping[str, range] = MappingProxyType({})

    def rows_of(self, name: str) -> range:
        """The rows of one document: they stand together."""
        if len(self._ranges) != len(self._names):
            ends = np.cumsum([self.documents[n][1] for n in self._names]).tolist()
            starts = [0, *ends[:-1]]
            spans = zip(starts, ends, strict=True)
            self._ranges = {n: range(a, b) for n, (a, b) in zip(self._names, spans, strict=True)}
        return self._ranges[name]

    def document_of(self, row: int) -> str:
        return self._names[self._document[row]]

    def documents_of(self, rows: Rows) -> NDArray[np.int32]:
        """The number of the document of each row: equal where the document is the same."""
        return np.frombuffer(self._document, np.int32)[rows]

    def place(self, row: int) -> str:
        """A name of a candidate that no other document changes: `DOCUMENT#NUMBER`."""
        name = self.document_of(row)
        return f"{name}#{row - self.rows_of(name).start}"

    def record(self, row: int) -> dict[str, Any]:
        """A candidate by the fields of `corpora.candidates.SCHEMA`."""
        names = ("doc", "id", "group", "licence", "sentences")
        return dict(zip(names, self._row(row), strict=True))

    def names_in(self, split: str, assigned: dict[str, str]) -> list[str]:
        """The documents of a split, in an order that depends on their names alone."""
        found = [name for name in self._names if assigned[name] == split]
        return sorted(found, key=lambda name: (stable_id(name), name))

    def without_texts_of(self, other: Pool, among: Rows) -> Rows:
        """Those of the rows `among` whose sentences are no candidate of `other`."""
        own = np.frombuffer(self._text_key, np.int64)[among]
        return among[~np.isin(own, np.frombuffer(other._text_key, np.int64))]


class Divided(Protocol):
    """Settings with the shares of the splits, or with the rows that each gets."""

    @property
    def train(self) -> float: ...
    @property
    def validation(self) -> float: ...
    @property
    def test(self) -> float: ...


def split_candidates(
    pool: Pool, settings: Divided, dataset: DatasetFolder
) -> Iterator[tuple[str, Rows]]:
    """Each split and its distinct candidates, by increasing priority.

    Duplicates are counted; the manifest is told of the split, the settings and the languages.
    """
    assignment = pool.assign(Shares(settings.train, settings.validation, settings.test))
    distinct = pool.distinct()
    dataset.reject("exact_duplicate", len(pool) - distinct.size)
    dataset.languages = pool.languages
    dataset.details |= {"split": assignment.to_dict(), "settings": used(settings, pool.seed)}
    return ((split, pool.of_split(split, assignment, distinct)) for split in SPLITS)
