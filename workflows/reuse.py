"""Nothing is trained or evaluated twice: a stage takes over what a finished one holds.

The hash of a dataset follows from its settings and its code, before anything runs: it may change
while all rows stay. A model and an evaluation record what they were made from, by the digests of
rows, so that a later one can be found to be the same.
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
"""What is known of the datasets that a stage has read, each with its hash as `revision`."""


def finished(kind: type[M], folders: Iterable[Path]) -> Iterator[tuple[Path, M]]:
    """The folders that are finished and not set aside, each with its manifest."""
    for folder in sorted(folders):
        if "." not in folder.name:
            try:
                yield folder, read_record(kind, folder / MANIFEST)
            except InputError:  # it is unfinished, damaged, or of an earlier version
                continue


def agree(one: Mapping[str, Any], other: Mapping[str, Any], keys: Iterable[str]) -> bool:
    """Whether the values of `keys` are the same, as JSON has them."""
    values = ({key: table.get(key) for key in keys} for table in (one, other))
    return len({json.dumps(each, sort_keys=True, default=str) for each in values}) == 1


def same_rows(one: Facts, other: Facts) -> bool:
    """Whether all facts agree but for the hashes, of at least one dataset."""
    return bool(one) and _numbered(one) == _numbered(other)


def _numbered(facts: Facts) -> list[dict[str, Any]]:
    """The facts with numbers in place of the hashes: equal hashes have equal numbers."""
    hashes = [about[REVISION] for about in facts]
    return [{**about, REVISION: hashes.index(about[REVISION])} for about in facts]


def revisions(old: Facts, new: Facts) -> dict[str, str]:
    """The new hash for each old one, of facts that agree."""
    pairs = zip(old, new, strict=True)
    return {str(one[REVISION]): str(other[REVISION]) for one, other in pairs}


def take_over(folder: Path, partial: Path, hashes: Mapping[str, str]) -> None:
    """Fill `partial` with the files of the finished `folder`; texts get the new `hashes`."""
    cleared(partial)
    link_folder(folder, partial)
    changed = {old: new for old, new in hashes.items() if old and old != new}
    pattern = re.compile("|".join(map(re.escape, changed)) or "(?!)")
    for path in partial.rglob("*"):
        if path.suffix in COPIED and path.name != MANIFEST:
            text = path.read_text(encoding="utf-8")
            if pattern.search(text):
                write_text(path, pattern.sub(lambda match: changed[match[0]], text))
