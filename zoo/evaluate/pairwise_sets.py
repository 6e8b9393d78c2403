"""Test sets of coherent and spoilt texts: a built dataset folder, or the user's own files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.errors import InputError
from corpora.readers.coherence import SUFFIXES, is_annotations, read_pairs, with_group
from corpora.store.atomic import sha256
from zoo.training.data import (
    SPLITS,
    Dataset,
    no_split,
    open_dataset,
    read_manifest,
    split_spec,
    spread,
)


@dataclass(frozen=True, slots=True)
class TestPair:
    """A text and a worse one, after the same prompt.

    `group` is what pairs share that are not independent (a document, a prompt). `votes` has one
    number an annotator: 1 prefers `pos`, 0 prefers `neg`, -1 neither.
    """

    __test__ = False  # not a test case of pytest

    id: str
    group: str
    prompt: tuple[str, ...]
    pos: tuple[str, ...]
    neg: tuple[str, ...]
    votes: tuple[int, ...] = ()

    @property
    def identical(self) -> bool:
        return self.pos == self.neg


@dataclass(frozen=True)
class TestSet:
    """The pairs of one set that differ; `identical` counts those left out."""

    __test__ = False

    name: str
    pairs: Sequence[TestPair]
    identical: int = 0

    @property
    def digest(self) -> str:
        """The same for the same pairs in the same order."""
        found = hashlib.sha256()
        for pair in self.pairs:
            found.update(repr((pair.prompt, pair.pos, pair.neg)).encode())
        return found.hexdigest()[:16]


@dataclass(frozen=True)
class TestSets:
    """All sets of one place, and what a result says of it."""

    __test__ = False

    sets: Sequence[TestSet]
    description: Mapping[str, Any]


def open_sets(spec: str, split: str = "test", limit: int = 0) -> TestSets:
    """The test sets of a dataset folder (`@CONFIG` for one of them), a Hub id, or JSON Lines.

    Every configuration with columns `pos` and `neg` is a set, and so is every file of a folder
    of JSON Lines (or of the authors' pickles). `limit`: so many pairs a set, spread evenly.
    Raises `InputError` where there are none.
    """
    path = Path(spec)
    if path.is_file() or (path.is_dir() and not (path / "manifest.json").is_file()):
        return _of_files(path, limit)
    return _of_dataset(spec, split, limit)


def _of_files(path: Path, limit: int) -> TestSets:
    files = [path] if path.is_file() else sorted(p for p in path.iterdir() if _is_set(p))
    if not files:
        raise InputError(
            "no test set here",
            where=str(path),
            hint='give a built dataset folder, or JSON Lines of {"pos": [...], "neg": [...]}',
        )
    sets = [
        _set_of(file.name.partition(".")[0], _file_pairs(file), limit, str(file)) for file in files
    ]
    names = [each.name for each in sets]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise InputError(
                f"{files[names.index(name)].name} and {files[at].name} are both the set {name!r}",
                where=str(path),
                hint="a set has its file's name up to the first dot: rename one",
            )
    hashes = {file.name: sha256(file) for file in files}
    revision = hashlib.sha256(repr(sorted(hashes.items())).encode()).hexdigest()[:16]
    return TestSets(sets, _describe(path.name, "", revision, sets))


def _is_set(path: Path) -> bool:
    return path.is_file() and path.name.endswith(SUFFIXES) and not is_annotations(path)


def _file_pairs(path: Path) -> Iterator[TestPair]:
    """The pairs of a file; those of one reference text, or of one prompt, are a group."""
    for group, pair in with_group(read_pairs(path)):
        yield TestPair(pair.id, group, pair.prompt, pair.pos, pair.neg, pair.votes)


def _of_dataset(spec: str, split: str, limit: int) -> TestSets:
    folder, config = split_spec(spec)
    opened = [open_dataset(folder, name) for name in _configs(folder, config)]
    if split not in SPLITS:
        raise no_split(split, opened[0].splits, spec)
    usable = [data.need("pos", "neg") for data in opened if _has_pairs(data, split)]
    if not usable:
        raise InputError(
            f"no configuration has columns pos and neg in its split {split!r}",
            where=spec,
            hint="give a dataset built by coherence_tests, or intrusion@pairwise",
        )
    sets = [_of_table(data, split, limit) for data in usable]
    first = usable[0]
    about = first.describe()
    licence = {key: about[key] for key in ("licence", "licence_hub")}
    return TestSets(sets, {**_describe(first.name, config, first.revision, sets), **licence})


def _of_table(data: Dataset, split: str, limit: int) -> TestSet:
    """One set; the pairs that its builder left out as identical are counted too."""
    for name in ("pos", "neg"):
        kind = data[split].schema.field(name).type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise InputError(f"{name} is {kind}, expected a list of sentences", where=data.where)
    found = _set_of(_set_name(data), _rows(spread(data[split], limit)), 0, data.where)
    before = int(data.manifest.get("rejects", {}).get(f"identical_{data.config}", 0))
    return replace(found, identical=found.identical + before)


def _configs(folder: str, config: str) -> list[str]:
    """The configurations to open; of a Hub dataset the default one, if none is named."""
    if config or not Path(folder).is_dir():
        return [config]
    return list(read_manifest(Path(folder))["configs"])


def _has_pairs(data: Dataset, split: str) -> bool:
    table = data.splits.get(split)
    return table is not None and table.num_rows > 0 and {"pos", "neg"} <= set(table.column_names)


def _set_name(data: Dataset) -> str:
    """The configuration; `intrusion@pairwise` is called after its dataset."""
    return data.name if data.config in ("pairwise", "default") else data.config


def _rows(table: pa.Table) -> Iterator[TestPair]:
    for number, row in enumerate(table.to_pylist()):
        id, prompt = str(row.get("id") or row.get("doc") or number), row.get("prompt")
        yield TestPair(
            id=id,
            # An id of a text is DOCUMENT#NUMBER: texts of one document are not independent.
            group=str(row.get("group") or id.rpartition("#")[0] or id),
            prompt=(prompt,) if isinstance(prompt, str) else tuple(prompt or ()),
            pos=tuple(row["pos"]),
            neg=tuple(row["neg"]),
            votes=tuple(row.get("votes") or ()),
        )


def _set_of(name: str, pairs: Iterator[TestPair], limit: int, where: str) -> TestSet:
    found = list(pairs)
    if not found:
        raise InputError(
            "holds no pair", where=where, hint='a line is {"pos": [...], "neg": [...]}'
        )
    if 0 < limit < len(found):
        found = [found[i] for i in np.linspace(0, len(found) - 1, limit).astype(int)]
    different = [pair for pair in found if not pair.identical]
    if not different:
        raise InputError("no pair is left: all texts are identical to their pair", where=where)
    return TestSet(name, different, len(found) - len(different))


def _describe(name: str, config: str, revision: str, sets: Sequence[TestSet]) -> dict[str, Any]:
    rows = {found.name: len(found.pairs) + found.identical for found in sets}
    return {"name": name, "config": config, "revision": revision, "rows": rows}
