"""The files of a source, their lines and texts: bounded in memory, decoded strictly."""

from __future__ import annotations

import bz2
import codecs
import glob
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from corpora.errors import BadRecord, ConfigError, InputError, nearest
from corpora.readers.source import DOCUMENT_LIMIT, Refused

LINE_LIMIT = 64 << 20
"""Longest line taken, in bytes: a longer one is skipped while reading, never held."""

_CHUNK = 1 << 20
_FOREIGN = (
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"%PDF", "a PDF"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)
_GZIP = b"\x1f\x8b"
_ARCHIVES = {".gz": "gzip", ".bz2": "bzip2"}


def find_files(target: str, suffixes: Sequence[str], *, kind: str) -> list[Path]:
    """The files that `target` (a file, a folder, a glob) means, sorted, never none.

    A folder is searched through and through for names that end in one of `suffixes`; a file or
    a glob is taken at its word. Raises `InputError` that says what is missing and where.
    """
    if not target:
        raise InputError(
            f"{kind}: names no path", hint=f"write {kind}:PATH with a file, a folder or a glob"
        )
    path = Path(target).expanduser()
    if path.is_file():
        return [path]
    if path.is_dir():
        return _in_folder(path, suffixes, kind)
    if glob.has_magic(target):
        matches = [Path(match) for match in glob.glob(str(path), recursive=True)]  # noqa: PTH207
        files = [
            file
            for match in matches
            for file in (_with_suffix(match, suffixes) if match.is_dir() else [match])
        ]
        if files:
            return sorted(set(files))
        raise InputError(f"no file matches {target!r}", hint=_where_it_ends(path))
    raise InputError(f"no such file or folder: {target!r}", hint=_where_it_ends(path))


def _with_suffix(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    files = (f for f in folder.rglob("*") if f.name.endswith(tuple(suffixes)))
    return sorted(f for f in files if f.is_file() and not f.name.startswith("."))


def _in_folder(folder: Path, suffixes: Sequence[str], kind: str) -> list[Path]:
    files = _with_suffix(folder, suffixes)
    if files:
        return files
    wanted = " or ".join(f"*{suffix}" for suffix in suffixes)
    seen = sorted(entry.name for entry in folder.iterdir())
    holds = f"it holds {', '.join(seen[:5])}{', ...' if len(seen) > 5 else ''}" if seen else ""
    raise InputError(
        f"no {wanted} in folder {str(folder)!r}",
        hint=holds or f"the folder is empty; {kind}: wants files",
    )


def _where_it_ends(path: Path) -> str:
    """Which part of a path is there and what comes near the first part that is not."""
    parent, missing = path.absolute(), ""
    while not parent.exists() and parent != parent.parent:
        parent, missing = parent.parent, parent.name
    if not parent.is_dir():
        return f"{str(parent)!r} is a file, not a folder"
    if glob.has_magic(missing):
        return f"looked in {str(parent)!r}"
    near = nearest(missing, (entry.name for entry in parent.iterdir()))
    return f"looked in {str(parent)!r}, which has no {missing!r}; {near}".removesuffix("; ").strip()


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[str | BadRecord]:
    """The lines of a text file (also `.gz`, `.bz2`) without their ends, one result for every line.

    A line that is not in `encoding` or longer than `LINE_LIMIT` comes as a `BadRecord`. CRLF and a
    byte-order mark are taken off. Raises `InputError` for a file of another format, for a
    truncated archive and for one that cannot be opened.
    """
    number = 1
    for block in _blocks(path):
        lines = _decoded(block, path, number, encoding)
        if number == 1 and isinstance(lines[0], str):
            lines[0] = lines[0].removeprefix("\ufeff")
        number += len(lines)
        yield from lines


def _decoded(block: bytes | None, path: Path, number: int, encoding: str) -> list[str | BadRecord]:
    if block is None:
        reason = f"line too long: more than {LINE_LIMIT >> 20} MiB"
        return [BadRecord(f"{path}:{number}", reason)]
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").removesuffix(b"\r")
    try:
        return cast(list[str | BadRecord], block.decode(encoding).split("\n"))
    except UnicodeDecodeError:
        lines = enumerate(block.split(b"\n"), number)
        return [_decoded_line(line, f"{path}:{count}", encoding) for count, line in lines]


def _decoded_line(line: bytes, where: str, encoding: str) -> str | BadRecord:
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        byte = line[error.start]
        reason = f"not {encoding.upper()}: byte 0x{byte:02x} at column {error.start + 1}"
        return BadRecord(where, reason, line[:80].decode("utf-8", "replace"))


def _blocks(path: Path) -> Iterator[bytes | None]:
    """Runs of whole lines without the last line end; `None` stands for one line too long."""
    pending: list[bytes] = []
    size = 0
    for chunk in read_chunks(path):
        end = chunk.rfind(b"\n")
        if end < 0:
            size += len(chunk)
            pending = [*pending, chunk] if size <= LINE_LIMIT else []
            continue
        first = 0
        if size > LINE_LIMIT:
            yield None
            first = chunk.find(b"\n") + 1
        if first <= end:
            yield b"".join((*pending, chunk[first:end]))
        pending = [chunk[end + 1 :]] if end + 1 < len(chunk) else []
        size = len(chunk) - end - 1
    if size > LINE_LIMIT:
        yield None
    elif pending:
        yield b"".join(pending)


def read_chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a text file, unpacked if its name ends in `.gz` or `.bz2`, a MiB at a time.

    Raises `InputError` as `read_lines` does.
    """
    try:
        with _open(path) as handle:
            chunk = handle.read(_CHUNK)
            refuse_binary(chunk, path)
            while chunk:
                yield chunk
                chunk = handle.read(_CHUNK)
    except EOFError:
        raise InputError(
            f"the {_ARCHIVES[path.suffix]} archive ends too early",
            where=str(path),
            hint="fetch or copy the file again",
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"the gzip archive is damaged: {error}", where=str(path)) from None
    except OSError as error:
        if error.errno is None and path.suffix in _ARCHIVES:  # bz2 says it this way
            reason = f"the {_ARCHIVES[path.suffix]} archive is damaged: {error}"
        else:
            reason = f"cannot read: {error.strerror or error}"
        raise InputError(reason, where=str(path)) from None


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as handle:
        zipped = handle.read(2) == _GZIP
    if zipped and path.suffix != ".gz":
        raise InputError(
            "a gzip archive under another name", where=str(path), hint="add .gz to its name"
        )
    if path.suffix == ".bz2":
        return cast(IO[bytes], bz2.open(path, "rb"))
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def refuse_binary(chunk: bytes, path: Path) -> None:
    """Raise `InputError` if the first bytes of a file are those of another format than text."""
    found = [name for magic, name in _FOREIGN if chunk.startswith(magic)]
    if not found and b"\0" in chunk[:8192]:
        found = ["binary data"]
    if found:
        raise InputError(
            f"holds {found[0]}, expected UTF-8 text", where=str(path), hint="check what the file is"
        )


def read_whole(path: Path, encoding: str = "utf-8") -> str:
    """The text of a file, line ends as `\\n`; `Refused`, with its line, if it cannot be taken."""
    lines: list[str] = []
    size = 0
    for line in read_lines(path, encoding):
        if isinstance(line, BadRecord):
            raise Refused(line.reason, line.where)
        size += len(line) + 1
        if size > DOCUMENT_LIMIT:
            raise Refused(f"too long: more than {DOCUMENT_LIMIT:,} characters", str(path))
        lines.append(line)
    return "\n".join(lines)


def read_json(path: Path) -> Any:
    """The JSON value of a file; `Refused`, with its line, if it is none or nested too deep."""
    text = read_whole(path)
    try:
        return json.loads(text)
    except RecursionError:
        raise Refused("JSON too deep: nested beyond what can be read", f"{path}:1") from None
    except json.JSONDecodeError as error:
        raise Refused(f"not JSON: {error}"[:200], f"{path}:{error.lineno}") from None
    except ValueError as error:  # a number of thousands of digits
        raise Refused(f"not JSON: {error}"[:200], f"{path}:1") from None


def known_encoding(name: str) -> str:
    """`name`, if it is an encoding that Python knows and that contains ASCII."""
    try:
        codec = codecs.lookup(name)
        if codec.decode(b"\n")[0] != "\n":
            raise LookupError(name)
    except (LookupError, UnicodeError):
        raise ConfigError(
            f"no encoding {name!r} (of those that contain ASCII)",
            hint="utf-8 is the default; old corpora are often in latin-1 or cp1252",
        ) from None
    return name
