"""Nothing is trained or evaluated twice: a stage reuses the files of an equal, finished stage.

The hash of a dataset follows from its settings and its code before anything runs, so it may change
while all rows stay the same. A model and an evaluation record the digests of the rows that they
were made from, so that a later stage can be recognised as equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora.errors import InputError
from corpora.outside import M, read_record
from corpora.store.atomic import MANIFEST, cleared, write_text
from corpora.store.copies import COPIED, link_folder

REVISION = "revision"

Facts = Sequence[Mapping[str, Any]]
"""Facts of the datasets that a stage has read, each with the dataset's hash as `revision`."""


def finished(kind: type[M], folders: Iterable[Path]) -> Iterator[tuple[Path, M]]:
    """Yield those of `folders` that are finished stages, with the manifest as a `kind` record."""
    for folder in sorted(folders):
        if "." not in folder.name:  # neither unfinished nor set aside
            try:
                yield folder, read_record(kind, folder / MANIFEST)
            except InputError:  # it is unfinished, damaged, or of an earlier version
                continue


def agree(one: Mapping[str, Any], other: Mapping[str, Any], keys: Iterable[str]) -> bool:
    """Tell whether two tables have equal values under all `keys`, as JSON writes them."""
    values = ({key: table.get(key) for key in keys} for table in (one, other))
    return len({json.dumps(value, sort_keys=True, default=str) for value in values}) == 1


def same_rows(one: Facts, other: Facts) -> bool:
    """Tell whether the datasets have equal facts, digests of rows included, but for the hashes."""
    return bool(one) and _without_hashes(one) == _without_hashes(other)


def _without_hashes(facts: Facts) -> list[dict[str, Any]]:
    """Return the facts with numbers in place of the hashes: equal hashes have equal numbers."""
    hashes = [dataset[REVISION] for dataset in facts]
    return [{**dataset, REVISION: hashes.index(dataset[REVISION])} for dataset in facts]


def revisions(old: Facts, new: Facts) -> dict[str, str]:
    """Return the new hash for each old hash of datasets; both facts list them in one order."""
    pairs = zip(old, new, strict=True)
    return {str(before[REVISION]): str(after[REVISION]) for before, after in pairs}


def take_over(folder: Path, partial: Path, hashes: Mapping[str, str]) -> None:
    """Fill `partial` with links to the files of `folder`; texts are copied, with new `hashes`."""
    cleared(partial)
    link_folder(folder, partial)
    changed = {old: new for old, new in hashes.items() if old and old != new}
    pattern = re.compile("|".join(map(re.escape, changed)) or "(?!)")
    for path in partial.rglob("*"):
        if path.suffix in COPIED and path.name != MANIFEST:
            text = path.read_text(encoding="utf-8")
            if pattern.search(text):
                write_text(path, pattern.sub(lambda match: changed[match[0]], text))
