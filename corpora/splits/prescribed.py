"""Splits that a table, a source's files or sections of the Wall Street Journal prescribe."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import ConfigError, InputError
from corpora.splits import SPLIT_NAMES, SPLITS, split_of
from corpora.splits.division import Division

SECTIONS = {
    "discoeval": {"train": range(2, 15), "validation": range(15, 19), "test": range(19, 24)},
    "dissent": {"train": range(2, 23), "validation": range(2), "test": range(23, 25)},
    "lin": {"train": range(2, 22), "validation": range(22, 23), "test": range(23, 24)},
    "ji": {"train": range(2, 21), "validation": range(2), "test": range(21, 23)},
}
"""DiscoEval 3.1; DisSent A.3; Lin, Kan and Ng 2009; Ji and Eisenstein 2015."""

OWN = "own"
PRESCRIBED = (OWN, *SECTIONS)
"""What a source's `splits` may be."""

_WSJ = re.compile(r"(?:.*/)?wsj_(\d\d)\d\d$", re.IGNORECASE)


def by_section(document: str, sections: str) -> str | None:
    """The split of an article of the Wall Street Journal: one of `SECTIONS`, "" for none of them.

    None for another document.
    """
    if not (article := _WSJ.match(document)):
        return None
    parts = SECTIONS[sections].items()
    return next((split for split, numbers in parts if int(article[1]) in numbers), "")


def prescribed_splits(documents: Iterable[tuple[str, str]], how: str) -> dict[str, str]:
    """Document -> split, "" for none, of documents with the split that their file's path says.

    `how` is one of `PRESCRIBED`. Raises `InputError` for a document of which it says nothing.
    """
    found: dict[str, str] = {}
    for name, own in documents:
        split = (own or None) if how == OWN else by_section(name, how)
        if split is None:
            where = "its file's path names none of train, dev and test"
            raise InputError(
                f"no split of the document {name!r} is prescribed: "
                f"{where if how == OWN else 'it is no article wsj_NNNN'}",
                hint="leave out `splits` of the source: its documents are then divided by [splits]",
            )
        found[name] = split
    return found


def prescribed(
    documents: Mapping[str, tuple[str, int]], sections: str, table: str
) -> Division | None:
    """The split of each document (id -> group, weight), maybe none.

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
        split = {name: by_section(name, sections) or "" for name in documents}
        parts = SECTIONS[sections].items()
        reason = ", ".join(f"{part} sections {r.start}-{r.stop - 1}" for part, r in parts)
    else:
        return None
    return Division.of(split, reason)


def table_hash(table: str) -> str:
    """A hash of a table of splits, so that settings that name it change with it; else empty.

    Raises `ConfigError` for a table that cannot be read.
    """
    if not table:
        return ""
    return hashlib.sha256(repr(sorted(read_table(Path(table)).items())).encode()).hexdigest()


def read_table(path: Path) -> dict[str, str]:
    """Document -> split, of lines `SPLIT<TAB>DOCUMENT` or the `division.parquet` of a build.

    A folder holds a list of files for each split, whose name says which (`list.train`, `dev.txt`),
    as the coherence papers divide the Wall Street Journal; a document is called as its file,
    without folders and suffixes. Raises `ConfigError` for what is none of these, and for a
    document in two splits.
    """
    try:
        listed = list(_listed(path))
    except (OSError, ValueError, pa.ArrowException, TypeError, IndexError) as error:
        raise ConfigError(f"no table of splits: {error}", where=str(path), hint=_TABLE) from error
    if path.is_dir() and not listed:
        raise ConfigError("no list of files in this folder", where=str(path), hint=_TABLE)
    found: dict[str, str] = {}
    for split, name, where in listed:
        if split not in SPLITS or found.setdefault(name, split) != split:
            other = f"in two splits, {found.get(name)} and {split}"
            said = other if split in SPLITS else f"in no split: {split!r}"
            raise ConfigError(f"the document {name!r} is {said}", where=where, hint=_TABLE)
    return found


_TABLE = (
    "a table has lines SPLIT<TAB>DOCUMENT (train, validation or dev, test), each document once, or "
    "is the division.parquet of a build; in a folder the lists train, dev and test (list.train, "
    "test.txt) name a file a line"
)


_SUFFIXES = re.compile(r"(?:\.(?:txt|out|dis|edus|mrg|pos|prd|pdtb|pipe|conllu|gz))+$")
"""Of the files in lists; an id may have dots of its own."""


def _listed(path: Path) -> Iterator[tuple[str, str, str]]:
    """Split and document of each line, and its place."""
    if path.suffix == ".parquet":
        table = pq.read_table(path, columns=["doc", "split"])
        codes = zip(table["doc"].to_pylist(), table["split"].to_pylist(), strict=True)
        yield from ((SPLITS[code], doc, str(path)) for doc, code in codes if code < len(SPLITS))
        return
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        own = split_of(file.name) if path.is_dir() else ""
        if path.is_dir() and not (own and file.is_file()):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8-sig").splitlines(), 1):
            split, tab, name = line.strip().partition("\t")
            if own:
                split, tab, name = own, "\t", _SUFFIXES.sub("", _last(line.strip()))
            if name or (not tab and split):
                split = SPLIT_NAMES.get(split, split) if tab else repr(split)
                yield split, name, f"{file}:{number}"


def _last(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]
