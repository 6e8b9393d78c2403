"""Tables that say which documents are in which split: a treebank's own, or an earlier build's."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import ConfigError
from corpora.splits import SPLITS

_NAMES = {"dev": "validation", "valid": "validation", "val": "validation"}
HINT = "`table` names a file of lines SPLIT<TAB>DOCUMENT, or the division.parquet of a build"


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
    return _of_division(path) if path.suffix == ".parquet" else _of_lines(path)


def _of_lines(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        part, tab, name = line.strip().partition("\t")
        part, name = _NAMES.get(part, part), name.strip()
        if not tab or part not in SPLITS:
            raise ConfigError(
                f"no split and document: {line[:60]!r}",
                where=f"{path}:{number}",
                hint=f"expected SPLIT<TAB>DOCUMENT, with {', '.join(SPLITS)} or dev",
            )
        if found.setdefault(name, part) != part:
            raise ConfigError(
                f"the document {name!r} is in two splits, {found[name]} and {part}",
                where=f"{path}:{number}",
                hint="name each document once",
            )
    return found


def _of_division(path: Path) -> dict[str, str]:
    try:
        table = pq.read_table(path, columns=["doc", "split"])
        codes = table["split"].to_pylist()
        return dict(zip(table["doc"].to_pylist(), map(SPLITS.__getitem__, codes), strict=True))
    except (OSError, pa.ArrowException, TypeError, IndexError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"no table of splits: {error}", where=str(path), hint=HINT)
