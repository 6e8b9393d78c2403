"""The first pass of the DisSent builder: which pairs stay, and what is known of them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from corpora.errors import ConfigError, InputError
from corpora.rng import stream
from corpora.schemas import MARKERS_5, MARKERS_8, MARKERS_ALL, PAIRS
from corpora.splits import Shares
from corpora.store.folder import DatasetFolder
from corpora.tasks.near_duplicates import NearDuplicates
from corpora.tasks.pool import without_duplicates

ROWS_PER_BATCH = 16_384

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]

COLUMNS = (
    *("doc", "group", "source", "licence", "language", "marker"),
    *("s1", "s2", "position", "order", "has_clauses"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What becomes of a table of pairs.

    `markers`: the labels of `all`, in this order; pairs with other markers are left out.
    `require_clauses`: both sides need a finite verb or copula and an overt subject (section 2).
    `min_words`, `max_words`, `max_ratio`: bounds on the length of each side, and on how many
    times longer one may be than the other (words at white space).
    `near_duplicates`: of pairs whose words are alike to this Jaccard similarity (estimated by
    MinHash of 128 values) or more one stays, chosen at random; 0 for off. `balanced_cap`: how
    often each marker occurs in `balanced`; 0 for as often as the rarest one that occurs.
    `train`, `validation`, `test`: shares (section 4.3).
    """

    markers: tuple[str, ...] = MARKERS_ALL
    require_clauses: bool = True
    min_words: int = 5
    max_words: int = 50
    max_ratio: float = 5.0
    near_duplicates: float = 0.0
    balanced_cap: int = 0
    train: float = 0.9
    validation: float = 0.05
    test: float = 0.05

    def __post_init__(self) -> None:
        if len(set(self.markers)) != len(self.markers) or not self.markers:
            raise ConfigError(f"markers = {list(self.markers)}", hint="name each marker once")
        if not 0 <= self.near_duplicates < 1:
            raise ConfigError(
                f"near_duplicates = {self.near_duplicates}",
                hint="a similarity below 1, or 0 for off; equal pairs are left out anyway",
            )
        if self.balanced_cap < 0:
            raise ConfigError(f"balanced_cap = {self.balanced_cap}", hint="0 or more")
        Shares(self.train, self.validation, self.test)

    @property
    def configs(self) -> dict[str, tuple[str, ...]]:
        """The configurations and their label names, in order; sets that do not fit are left out."""
        known = set(self.markers)
        sets = {"books8": MARKERS_8, "books5": MARKERS_5}
        smaller = {name: markers for name, markers in sets.items() if known.issuperset(markers)}
        return {"all": self.markers, **smaller, "balanced": self.markers}


def read_pairs(paths: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    """The columns that a dataset needs of tables of pairs, batch by batch."""
    for path in paths:
        try:
            file = pq.ParquetFile(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise InputError(f"cannot be read as Parquet: {error}", where=str(path)) from error
        missing = sorted(set(COLUMNS) - set(file.schema_arrow.names))
        if missing:
            raise InputError(
                f"has no column {', '.join(missing)}",
                where=str(path),
                hint=f"a table of pairs has the columns {', '.join(PAIRS.names)}",
            )
        with file:
            for batch in file.iter_batches(ROWS_PER_BATCH, columns=list(COLUMNS)):
                yield batch.select(list(COLUMNS))


class Survey:
    """The first pass: 22 bytes of memory a pair, and its document's name and group.

    Use as a context manager: sketches of pairs (`near_duplicates`) wait in `folder`.
    """

    def __init__(self, settings: Settings, folder: Path, *, seed: int, stage: str) -> None:
        self.settings, self.seed, self.stage = settings, seed, stage
        self.rejects: Counter[str] = Counter()
        self.languages: set[str] = set()
        self._names: dict[str, int] = {}
        self._groups: list[str] = []
        self._sources: list[str] = []
        self._seen: list[int] = []
        self._document, self._marker = array("i"), array("h")
        self._text_key, self._priority = array("q"), array("q")
        near = settings.near_duplicates
        self._near = NearDuplicates(near, folder / ".sketches") if near else None

    def __enter__(self) -> Survey:
        return self

    def __exit__(self, *error: object) -> None:
        if self._near is not None:
            self._near.__exit__(*error)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in one batch of pairs; those that do not pass the filters stay as marker -1."""
        marker = filtered(batch, self.settings, self.rejects)
        s1, s2 = batch["s1"].to_pylist(), batch["s2"].to_pylist()
        if self._near is not None:
            self._near.add(marker, s1, s2)
        document, priority = self._documents_and_priorities(batch)
        self._document.frombytes(document.astype(np.int32).tobytes())
        self._priority.frombytes(priority.tobytes())
        self._marker.frombytes(marker.astype(np.int16).tobytes())
        self._text_key.extend(map(hash, zip(marker.tolist(), s1, s2, strict=True)))
        self.languages.update(batch["language"].unique().to_pylist())

    def kept(self, dataset: DatasetFolder) -> Mask:
        """Which pairs stay: those that passed the filters, without duplicates.

        Of equal pairs that of the lowest priority stays, and of nearly equal ones.
        """
        passed = np.flatnonzero(self._markers() >= 0)
        keys = np.frombuffer(self._text_key, np.int64)
        distinct = without_duplicates(passed, keys, self._priorities())
        kept = np.zeros(keys.size, bool)
        kept[distinct] = True
        if self._near is not None:
            by_priority = distinct[np.argsort(self._priorities()[distinct], kind="stable")]
            alike = self._near.alike(np.searchsorted(passed, by_priority).tolist())
            kept[passed[alike]] = False
            dataset.reject("near_duplicate", alike.size)
        dataset.languages = self.languages
        for reason, number in self.rejects.items():
            dataset.reject(reason, number)
        dataset.reject("exact_duplicate", passed.size - distinct.size)
        return kept

    def order(self, kept: Mask) -> Ints:
        """The kept pairs by their priorities, which the order of files does not change."""
        rows = np.flatnonzero(kept)
        return rows[np.argsort(self._priorities()[rows], kind="stable")]

    def documents(self, kept: Mask) -> dict[str, tuple[str, int]]:
        """Group and number of kept pairs of each document that has any."""
        documents = np.frombuffer(self._document, np.int32)[kept]
        weights = np.bincount(documents, minlength=len(self._names))
        return {
            name: (self._groups[code], int(weights[code]))
            for name, code in self._names.items()
            if weights[code]
        }

    def balanced(self, kept: Mask, dataset: DatasetFolder) -> Mask:
        """Which pairs `balanced` takes: of each marker those of the lowest priority."""
        settings, markers = self.settings, self._markers()
        counts = np.bincount(markers[kept], minlength=len(settings.markers))
        absent = [m for m, n in zip(settings.markers, counts, strict=True) if not n]
        if absent:
            dataset.note(f"No pair was found for: {', '.join(absent)}.")
        cap = settings.balanced_cap or min((int(n) for n in counts if n), default=0)
        dataset.note(f"`balanced` has at most {cap:,} pairs of each marker.")
        dataset.details["balanced_cap"] = cap
        taken = np.zeros(kept.size, bool)
        for code in range(len(settings.markers)):
            rows = np.flatnonzero(kept & (markers == code))
            taken[rows[np.argsort(self._priorities()[rows], kind="stable")[:cap]]] = True
        return taken

    def _documents_and_priorities(self, batch: pa.RecordBatch) -> tuple[Ints, Ints]:
        """The code and a random number of each pair, from the stream of its document."""
        encoded = batch["doc"].dictionary_encode()
        local = encoded.indices.to_numpy()
        starts = np.flatnonzero(np.diff(local, prepend=-1))
        document, priority = np.empty(local.size, np.int64), np.empty(local.size, np.int64)
        for a, b in zip(starts, [*starts[1:], local.size], strict=True):
            name = batch["doc"][int(a)].as_py()
            about = (batch[column][int(a)].as_py() for column in ("group", "source"))
            code = self._code(name, *about)
            # Raw words, so that a document cut by a batch goes on where it stopped.
            random = stream(self.seed, self.stage, name).bit_generator
            random.advance(self._seen[code])  # type: ignore[attr-defined]
            priority[a:b] = (random.random_raw(int(b - a)) >> np.uint64(1)).astype(np.int64)
            document[a:b] = code
            self._seen[code] += int(b - a)
        return document, priority

    def _code(self, name: str, group: str, source: str) -> int:
        if name not in self._names:
            self._names[name] = len(self._names)
            self._groups.append(group)
            self._sources.append(source)
            self._seen.append(0)
        code = self._names[name]
        if self._sources[code] != source:
            raise InputError(
                f"two documents have the id {name!r}",
                where=f"{self._sources[code]}, {source}",
                hint="ids must differ over all sources of a dataset: is a source named twice?",
            )
        return code

    def _markers(self) -> NDArray[np.int16]:
        return np.frombuffer(self._marker, np.int16)

    def _priorities(self) -> Ints:
        return np.frombuffer(self._priority, np.int64)


def filtered(batch: pa.RecordBatch, settings: Settings, rejects: Counter[str]) -> Ints:
    """The label code of each pair, -1 for those left out; reasons are counted, one a pair."""
    codes = pc.index_in(batch["marker"], pa.array(settings.markers, pa.string()))
    codes = codes.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    one, two = _words(batch["s1"]), _words(batch["s2"])
    shorter, longer = np.minimum(one, two), np.maximum(one, two)
    clauses = batch["has_clauses"].to_numpy(zero_copy_only=False)
    tests = {
        "marker_not_in_set": codes < 0,
        "no_clauses": ~clauses if settings.require_clauses else np.zeros(len(codes), bool),
        "too_short": shorter < settings.min_words,
        "too_long": longer > settings.max_words,
        "unlike_lengths": longer > settings.max_ratio * shorter,
    }
    left_out = np.zeros(len(codes), bool)
    for reason, failed in tests.items():
        rejects[reason] += int((failed & ~left_out).sum())
        left_out |= failed
    return np.where(left_out, -1, codes)


def _words(column: pa.Array) -> Ints:
    parts = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(column))
    return pc.list_value_length(parts).to_numpy(zero_copy_only=False).astype(np.int64)
