"""Splits that a table says or a treebank prescribes: by section of the Wall Street Journal."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import ConfigError
from corpora.splits import SPLITS, Assignment

SECTIONS = {
    "discoeval": {"train": range(2, 15), "validation": range(15, 19), "test": range(19, 24)},
    "dissent": {"train": range(2, 23), "validation": range(2), "test": range(23, 25)},
}
"""DiscoEval 3.1; DisSent A.3."""

_NAMES = {"dev": "validation", "valid": "validation", "val": "validation"}
_LISTS = re.compile("(?<![a-z])(?:train|valid|val|dev|test)")
_WSJ = re.compile(r"(?:.*/)?wsj_(\d\d)\d\d$", re.IGNORECASE)


def prescribed(
    documents: Mapping[str, tuple[str, int]], sections: str, table: str
) -> Assignment | None:
    """The split of each document (id -> group, weight); one without a split is left out.

    `table`: what `read_table` reads, where it is not empty; a document may be named there without
    the folders in its id. Else, where every id is that of a Wall Street Journal article, by its
    section (a name of `SECTIONS`; empty where sections mean nothing). Else None: nothing is
    prescribed. Raises `ConfigError` for a table that cannot be read.
    """
    if table:
        listed = read_table(Path(table))
        split = {name: listed.get(name) or listed.get(_last(name), "") for name in documents}
        reason = f"as {Path(table).name} says"
    elif sections and documents and all(map(_WSJ.match, documents)):
        parts = SECTIONS[sections]
        part_of = {number: part for part, range in parts.items() for number in range}
        split = {name: part_of.get(int(name[-4:-2]), "") for name in documents}
        reason = ", ".join(f"{part} sections {r.start}-{r.stop - 1}" for part, r in parts.items())
    else:
        return None
    settled = {name: split[name] for name in documents if split.get(name)}
    return Assignment("document", settled, reason)


def table_hash(table: str) -> str:
    """A hash of a table of splits, so that settings that name it change with it; else empty.

    Raises `ConfigError` for a table that cannot be read.
    """
    if not table:
        return ""
    path = Path(table)
    if path.is_dir():
        return hashlib.sha256(repr(sorted(read_table(path).items())).encode()).hexdigest()
    read_table(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_table(path: Path) -> dict[str, str]:
    """Document -> split, of lines `SPLIT<TAB>DOCUMENT` or the `division.parquet` of a build.

    A folder holds a list of files for each split, whose name says which (`list.train`, `dev.txt`),
    as the coherence papers divide the Wall Street Journal; a document is called as its file,
    without folders and suffixes. Raises `ConfigError` for what is none of these, and for a
    document in two splits.
    """
    if path.is_dir():
        return _read_lists(path)
    try:
        if path.suffix == ".parquet":
            table = pq.read_table(path, columns=["doc", "split"])
            splits = [SPLITS[code] for code in table["split"].to_pylist()]
            return dict(zip(table["doc"].to_pylist(), splits, strict=True))
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError, pa.ArrowException, TypeError, IndexError) as error:
        raise ConfigError(
            f"no table of splits: {error}",
            where=str(path),
            hint="`table` names a file of lines SPLIT<TAB>DOCUMENT, or the division.parquet of a "
            "build",
        ) from error
    split_of: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        split, tab, name = line.strip().partition("\t")
        split, name = _NAMES.get(split, split), name.strip()
        message, hint = "", f"expected SPLIT<TAB>DOCUMENT, with {', '.join(SPLITS)} or dev"
        if not tab or split not in SPLITS:
            message = f"no split and document: {line[:60]!r}"
        elif split_of.setdefault(name, split) != split:
            message = f"the document {name!r} is in two splits, {split_of[name]} and {split}"
            hint = "name each document once"
        if message:
            raise ConfigError(message, where=f"{path}:{number}", hint=hint)
    return split_of


def _read_lists(folder: Path) -> dict[str, str]:
    split_of: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        named = _LISTS.search(path.name.lower())
        if not named or not path.is_file():
            continue
        split = _NAMES.get(named[0], named[0])
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"no list of files: {error}", where=str(path)) from error
        for number, line in enumerate(map(str.strip, lines), 1):
            name = _last(line).partition(".")[0]
            if name and split_of.setdefault(name, split) != split:
                raise ConfigError(
                    f"the document {name!r} is in two splits, {split_of[name]} and {split}",
                    where=f"{path}:{number}",
                    hint="name each document in one list",
                )
    if not split_of:
        raise ConfigError(
            "no list of files in this folder",
            where=str(folder),
            hint="call the lists train, dev and test (list.train, test.txt): a file a line",
        )
    return split_of


def _last(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]
