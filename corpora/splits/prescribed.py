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
_WSJ = re.compile(r"(?:.*/)?wsj_(\d\d)\d\d$", re.IGNORECASE)


def prescribed(
    documents: Mapping[str, tuple[str, int]], sections: str, table: str
) -> Assignment | None:
    """The split of each document (id -> group, weight); one without a split is left out.

    `table`: a file of lines `SPLIT<TAB>DOCUMENT` (`dev` is validation), where it is not empty.
    Else, where every id is that of a Wall Street Journal article, by its section (a name of
    `SECTIONS`; empty where sections mean nothing). Else None: nothing is prescribed. Raises
    `ConfigError` for a table that cannot be read.
    """
    if table:
        split = read_table(Path(table))
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
    """sha256 of a table of splits, so that settings that name it change with it; else empty.

    Raises `ConfigError` for a table that cannot be read.
    """
    if not table:
        return ""
    read_table(Path(table))
    return hashlib.sha256(Path(table).read_bytes()).hexdigest()


def read_table(path: Path) -> dict[str, str]:
    """Document -> split, of lines `SPLIT<TAB>DOCUMENT` or the `division.parquet` of a build.

    Raises `ConfigError` for a file that is neither, and for a document in two splits.
    """
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
