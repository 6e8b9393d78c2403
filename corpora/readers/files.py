"""The files of a source, their lines and texts: bounded in memory, decoded strictly."""

from __future__ import annotations

import bz2
import glob
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from corpora.errors import BadRecord, InputError, expand_home, nearest

T = TypeVar("T")

# With these each reader stays below a GiB, whatever a file holds (tests/workflows/test_memory.py).
DOCUMENT_LIMIT = 16 << 20
"""Maximum length of a document, in characters."""
LINES_LIMIT = 1 << 20
"""Maximum number of lines of a document; in a treebank these are its words and comments."""
LINE_LIMIT = 16 << 20
"""Maximum length of a line, in bytes: a longer line is skipped without holding it in memory."""

TOO_LONG = f"too long: more than {DOCUMENT_LIMIT:,} characters or {LINES_LIMIT:,} lines"

TO_TEXT = "pandoc --to plain --wrap none -o FILE"
_CHUNK = 1 << 20
_OTHER_FORMATS = {
    b"PAR1": "a Parquet file",
    b"PK\x03\x04": "a zip archive",
    b"BZh": "a bzip2 archive",
    b"\x1f\x8b": "a gzip archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"%PDF": "a PDF",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"": "binary data",
}
"""Formats that are not text, by the bytes at the start of a file; "" stands for a NUL anywhere."""
_ARCHIVES = {".gz": "gzip", ".bz2": "bzip2"}


class Refused(Exception):
    """Raised to reject a record; the loop of the reader catches it.

    The reason is `category: detail`, so that rejects can be counted by category. `where` is the
    place, `value` the rejected text, if they are known where it is raised.
    """

    def __init__(self, reason: str, where: str = "", value: str | None = None) -> None:
        self.where, self.value = where, value
        super().__init__(reason)

    def record(self, where: object, value: object = "") -> BadRecord:
        """Return the bad record; `where` and `value` are used if the exception has none."""
        value = value if self.value is None else self.value
        return BadRecord(self.where or str(where), str(self), str(value)[:200])


def expect(condition: object, reason: str, where: str = "") -> None:
    """Raise `Refused` with `reason`, which rejects the record or file, if `condition` is falsy."""
    if not condition:
        raise Refused(reason, where)


def good_record(record: T | BadRecord) -> T:
    """Return the record if it is good; raise `Refused` with its reason if it is bad."""
    if isinstance(record, BadRecord):
        raise Refused(record.reason, record.where, record.value)
    return record


def find_files(target: str, suffixes: Sequence[str], *, kind: str) -> list[Path]:
    """Return the files of `target` (a file, a folder, a glob), sorted; at least one.

    A folder is searched recursively for names that end in one of `suffixes`, hidden files and
    folders aside; a file or a glob is used as given. Raises `InputError` if there are none.
    """
    # Find the files.
    path, has_wildcard = expand_home(target), glob.has_magic(target)
    matches = [path] if target and (path.is_file() or path.is_dir()) else []
    if has_wildcard and not matches:
        matches = [Path(match) for match in glob.glob(str(path), recursive=True)]  # noqa: PTH207
    files: set[Path] = set()
    for match in matches:
        if match.is_dir():
            named = (f for f in match.rglob("*") if f.name.endswith(tuple(suffixes)))
            files.update(f for f in named if f.is_file() and not is_hidden(f.relative_to(match)))
        else:
            files.add(match)
    if files:
        return sorted(files)
    # No file: say why.
    if not target:
        problem, hint = f"{kind}: needs a path", f"write {kind}:PATH with a file, folder or glob"
    elif path.is_dir():
        problem = f"no {' or '.join(f'*{suffix}' for suffix in suffixes)} in folder {str(path)!r}"
        hint = "give a folder with such files, or another kind of source"
        if ".txt" in suffixes:
            hint = f"convert other files to text first: {TO_TEXT}.txt FILE.html"
    else:
        problem = f"{'no file matches' if has_wildcard else 'no such file or folder:'} {target!r}"
        siblings = path.parent.iterdir() if path.parent.is_dir() else ()
        hint = f"{nearest(path.name, (entry.name for entry in siblings))}check the path"
    raise InputError(problem, hint=hint)


def is_hidden(path: Path) -> bool:
    """Whether a file is hidden, or in a hidden folder such as `.git` or `.ipynb_checkpoints`."""
    return any(part.startswith(".") for part in path.parts)


@contextmanager
def _open_bytes(path: Path) -> Iterator[BufferedReader | gzip.GzipFile | bz2.BZ2File]:
    """Open a text file as bytes, unpacked if its name ends in `.gz` or `.bz2`. Raises `InputError`
    for a file of another format, a damaged archive and an unreadable file."""
    archive, hint = _ARCHIVES.get(path.suffix, ""), ""
    try:
        with path.open("rb") as packed:
            file: BufferedReader | gzip.GzipFile | bz2.BZ2File = packed
            if archive:
                file = gzip.GzipFile(fileobj=packed) if archive == "gzip" else bz2.BZ2File(packed)
            start = file.peek(8192)[:8192]
            for signature, name in _OTHER_FORMATS.items():
                if start.startswith(signature) if signature else b"\0" in start:
                    raise InputError(
                        f"holds {name}, expected UTF-8 text",
                        where=str(path),
                        hint="check its format (files are unpacked if they end in .gz or .bz2)",
                    )
            yield file
    except (EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and (error.errno is not None or not archive):
            reason = f"cannot read: {error.strerror or error}"
        else:
            early = isinstance(error, EOFError)
            problem = "ends too early" if early else f"is damaged: {error}"
            reason, hint = f"the {archive} archive {problem}", "fetch or copy the file again"
        raise InputError(reason, where=str(path), hint=hint) from None


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[str | BadRecord]:
    """Yield the lines of a text file (also `.gz`, `.bz2`) without line ends, one result for each.

    A line that is not in `encoding` or longer than `LINE_LIMIT` becomes a `BadRecord`. CRLF and a
    byte-order mark are removed; in a file without LF, CR ends a line. Raises `InputError` for a
    file of another format, for a truncated archive and for one that cannot be opened.
    """
    number, limit = 0, LINE_LIMIT + 1
    with _open_bytes(path) as file:
        while line := file.readline(limit):
            if len(line) == limit and not line.endswith(b"\n"):
                number += 1
                while line and not line.endswith(b"\n"):
                    line = file.readline(_CHUNK)
                reason = f"line too long: more than {LINE_LIMIT >> 20} MiB"
                yield BadRecord(f"{path}:{number}", reason)
                continue
            whole_file = not number and not line.endswith(b"\n")
            content = line.removesuffix(b"\n").removesuffix(b"\r")
            for line in content.split(b"\r") if whole_file else [content]:
                number += 1
                try:
                    text = line.decode(encoding)
                    yield text.removeprefix("\ufeff") if number == 1 else text
                except UnicodeDecodeError as error:
                    byte = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
                    line_start = line[:80].decode("utf-8", "replace")
                    yield BadRecord(
                        f"{path}:{number}", f"not {encoding.upper()}: {byte}", line_start
                    )


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a text file, a MiB at a time. Raises `InputError` as `read_lines` does."""
    with _open_bytes(path) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def read_whole(path: Path, encoding: str = "utf-8", hint: str = "") -> str:
    """Return the text of a file, with `\\n` as line ends. `hint` is advice if the file is too long.

    Raises `Refused`, with the line, for invalid bytes, and for a file that is too long.
    """
    lines: list[str] = []
    size = 0
    for line in map(good_record, read_lines(path, encoding)):
        size += len(line) + 1
        if size > DOCUMENT_LIMIT or len(lines) >= LINES_LIMIT:
            raise Refused(f"{TOO_LONG}; split the file{hint}", str(path))
        lines.append(line)
    return "\n".join(lines)
