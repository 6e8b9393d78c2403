"""Where a builder writes, and what its random choices and splits hang on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from corpora.splits import SPLITS, Assignment, Shares, assign
from corpora.splits.division import Division
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage, used
from corpora.tasks.pool import Pool, Rows


@dataclass(frozen=True, slots=True)
class Target:
    """A dataset that is to be made.

    `folder`: the partial folder that `corpora.store.atomic.staged` yields. `stage`: what the card
    says it is made by; its name and `seed` are part of every random stream. `division`: which
    document is in which split; without one a builder divides its documents by the shares of its
    settings.
    """

    folder: Path
    stage: Stage
    seed: int
    division: Division | None = None

    def dataset(self, card: Card) -> DatasetFolder:
        """The folder to write to; use as a context manager."""
        return DatasetFolder(self.folder, self.stage.dataset_name, self.stage, card)

    def pool(self, part: str = "") -> Pool:
        """A file for candidates beside the dataset; use as a context manager.

        A builder with several pools names them by `part`: each has random streams of its own.
        """
        stage = f"{self.stage.name}/{part}" if part else self.stage.name
        path = self.folder / f".{part or 'candidates'}.jsonl"
        return Pool(path, seed=self.seed, stage=stage, division=self.division)

    def assign(self, documents: Mapping[str, tuple[str, int]], shares: Shares) -> Assignment:
        """`corpora.splits.assign` for this dataset."""
        return assign(
            documents, shares, seed=self.seed, stage=self.stage.name, division=self.division
        )


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
