"""Untrusted XML, pickles and Parquet: checked before a library builds anything from them."""

from __future__ import annotations

import io
import pickle
import pickletools
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.parsers import expat

from corpora.errors import InputError

SIZE_LIMIT = 512 << 20
"""Maximum size of a pickle, in bytes: it cannot be read in pieces."""
DEPTH_LIMIT = 64
GAP_LIMIT = 16 << 20
"""Maximum bytes between two tags: a page of MediaWiki has at most 2 MiB."""
TAGS_LIMIT = 2_000_000
"""Maximum tags inside one child of the root: a page with a hundred thousand revisions."""

PAGE_LIMIT = 128 << 20
"""Largest page of a Parquet file, in bytes when unpacked: a library holds one whole."""

DAMAGED = "the file is truncated, damaged, or in another format"
_PIECE = 1 << 16


class BadXml(InputError):
    """XML that is not well-formed or was rejected."""


class GuardedXml:
    """A file-like object of the XML in `chunks`, whose `read` rejects dangerous input.

    Document types are rejected (so no entities or external files), and nesting and text between two
    tags are bounded, which `defusedxml` does not do: memory is bounded for every file. `lines` are
    the line numbers of the root's children that the caller has not taken yet. `read` raises
    `BadXml`, with the line, for XML that is not well-formed (also a truncated file) or exceeds a
    limit.
    """

    def __init__(self, chunks: Iterable[bytes], path: Path) -> None:
        self.lines: deque[int] = deque()
        # Small pieces: all pages completed by a piece are in memory at once.
        self._pieces = (
            chunk[at : at + _PIECE] for chunk in chunks for at in range(0, len(chunk), _PIECE)
        )
        self._path = path
        self._bytes_read = self._last_tag = self._depth = self._tags = 0
        self._done = False
        # With namespaces, like the libraries, which reject more than a parser without them.
        self._parser = expat.ParserCreate(None, "}")
        self._parser.StartElementHandler = self._on_start_tag
        self._parser.EndElementHandler = self._on_end_tag
        self._parser.StartDoctypeDeclHandler = self._on_doctype

    def read(self, size: int = -1) -> bytes:
        """Return the next checked bytes, at most 64 KiB whatever `size` says; empty at the end."""
        if self._done:
            return b""
        piece = next(self._pieces, b"")
        self._done = not piece
        self._bytes_read += len(piece)
        try:
            self._parser.Parse(piece, self._done)
        except BadXml:
            raise
        except (LookupError, ValueError, expat.ExpatError) as error:  # also unknown encodings
            reason = expat.ErrorString(error.code) if isinstance(error, expat.ExpatError) else error
            raise BadXml(
                f"not well-formed XML: {str(reason)[:80]}",
                where=f"{self._path}:{self._parser.ErrorLineNumber}",
                hint="the file is truncated, damaged, or not XML",
            ) from None
        gap = self._bytes_read - self._last_tag
        self._expect(gap <= GAP_LIMIT, f"more than {GAP_LIMIT >> 20} MiB between two tags")
        return piece

    def _on_start_tag(self, name: str, attributes: dict[str, str]) -> None:
        """Check the depth and the number of tags; note the line of a child of the root."""
        self._last_tag = self._parser.CurrentByteIndex
        self._depth += 1
        self._tags += 1
        if self._depth == 2:  # a child of the root
            self._tags = 0
            self.lines.append(self._parser.CurrentLineNumber)
        self._expect(self._depth <= DEPTH_LIMIT, f"tags nested more than {DEPTH_LIMIT} deep")
        self._expect(self._tags <= TAGS_LIMIT, f"more than {TAGS_LIMIT:,} tags in one record")

    def _on_end_tag(self, name: str) -> None:
        self._last_tag = self._parser.CurrentByteIndex
        self._depth -= 1

    def _on_doctype(self, *declaration: object) -> None:
        self._expect(False, "a document type, which may define entities, is not allowed")

    def _expect(self, good: bool, reason: str) -> None:
        """Raise `BadXml` with `reason` and the current line if `good` is false."""
        if not good:
            raise BadXml(
                f"XML refused: {reason}",
                where=f"{self._path}:{self._parser.CurrentLineNumber}",
                hint="neither MediaWiki nor rstWeb writes such a file",
            )


# A pickle is a program that can run anything: its instructions are read first, and only those that
# make lists, tuples, dicts, strings, numbers, booleans and None are allowed.

PLAIN = frozenset(
    """PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE
    INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8
    EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT
    SETITEM SETITEMS GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE""".split()  # noqa: SIM905
)
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
_OPENING = _PUTS | {"MEMOIZE", "MARK", "LIST", "DICT", "EMPTY_LIST", "EMPTY_TUPLE", "EMPTY_DICT"}
_OPENING |= {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}
_MAX_OPENED_IN_A_ROW = 10_000
"""More instructions of `_OPENING` in a row are lists nested too deep: Python's own pickles of many
empty lists have an `APPENDS` after each thousand.
"""


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that refuses every class: a second protection behind `_check_instructions`."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"refused: it refers to {module}.{name}")


def load_plain(path: Path) -> Any:
    """Return the value of a pickle of lists, tuples, dicts, strings, numbers, booleans and None.

    Raises `InputError` for anything else, with its name and offset in the file, and for a file that
    is larger than `SIZE_LIMIT`, truncated, or not a pickle.
    """
    problem = "cannot read"
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise InputError(f"too large: more than {SIZE_LIMIT >> 20} MiB", where=str(path))
        data = path.read_bytes()
        problem = "not a complete pickle"
        _check_instructions(data, path)
        problem = "a damaged pickle"
        return _PlainUnpickler(io.BytesIO(data), encoding="utf-8").load()
    except InputError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        message = f"{problem}: {type(error).__name__}: {error}"[:200]
        raise InputError(message, where=str(path), hint=DAMAGED) from None


def _check_instructions(data: bytes, path: Path) -> None:
    """Raise `InputError` for an instruction of a pickle that plain values do not need. Loading a
    pickle that passes takes memory in proportion to its bytes."""
    strings: deque[str] = deque(("?", "?"), maxlen=2)  # the last two: module and name of a class
    opened_in_a_row = 0
    for count, (operation, argument, position) in enumerate(pickletools.genops(data), 1):
        name, reason = operation.name, ""
        opened_in_a_row = opened_in_a_row + 1 if name in _OPENING else 0
        if name == "STACK_GLOBAL":
            reason = f"it refers to {strings[0][:60]}.{strings[1][:60]}"
        elif name in ("GLOBAL", "INST"):
            reason = f"it refers to {str(argument)[:120].replace(' ', '.')}"
        elif name not in PLAIN:
            reason = f"it holds the instruction {name}"
        elif name in _PUTS and int(argument or 0) > count:
            reason = "absurd memo number"  # the unpickler would allocate this many objects
        elif opened_in_a_row > _MAX_OPENED_IN_A_ROW:
            reason = "nested too deep"
        if reason:
            raise InputError(
                f"a pickle refused: {reason}",
                where=f"{path}: byte {position}",
                hint="only lists, tuples, dicts, strings, numbers, booleans and None are read "
                "from a pickle",
            )
        if isinstance(argument, str):
            strings.append(argument)


# A page of Parquet is unpacked whole. Its size is in a header of its own, which no library shows:
# a struct in Thrift's compact protocol, whose first fields are the page's kind and its two sizes.
# The file's footer is such a struct too: pyarrow ends the process at a damaged column in it.
# Thrift numbers the fields of a struct.

FOOTER_LIMIT = 16 << 20
_FOOTER_END = 8  # bytes after the footer: its size and the mark PAR1, 4 each
_ROW_GROUPS, _COLUMNS, _METADATA = 4, 1, 3
"""Fields of the footer, of a row group and of a column."""
_NAME, _SIZE, _DATA_START, _DICTIONARY_START = 3, 7, 9, 11
"""Fields of a column's metadata."""
_PAGE_FIELDS = 1, 2, 3  # of a page's header: its kind, unpacked size, packed size
_DICTIONARY = 2  # the kind of a page that holds a dictionary


def largest_pages(path: Path) -> tuple[int, int]:
    """Return the sizes of the largest page of a Parquet file and of its largest dictionary.

    Both are in bytes, unpacked. Raises `InputError` for a page beyond `PAGE_LIMIT`, `ValueError`
    for a damaged footer or header.
    """
    largest = {False: 0, True: 0}  # by whether it is a dictionary
    try:
        with path.open("rb") as file:
            # The footer says where the pages of each column are.
            file.seek(-_FOOTER_END, io.SEEK_END)
            size = int.from_bytes(file.read(4), "little")
            if size > FOOTER_LIMIT:
                raise ValueError(f"a footer of {size >> 20} MiB")
            file.seek(-_FOOTER_END - size, io.SEEK_END)
            groups = _read_struct(file)[_ROW_GROUPS]
            for column in [c[_METADATA] for group in groups for c in group[_COLUMNS]]:
                starts = (
                    _byte_count(column, number) for number in (_DATA_START, _DICTIONARY_START)
                )
                end = file.seek(min(filter(None, starts))) + _byte_count(column, _SIZE)
                # Read the header of each page, and skip its content.
                while file.tell() < end:
                    header = _read_struct(file)
                    kind, unpacked, packed = (_byte_count(header, field) for field in _PAGE_FIELDS)
                    if unpacked > PAGE_LIMIT:
                        name = b".".join(column[_NAME]).decode("utf-8", "replace")
                        raise InputError(
                            f"a cell, or a page of them, is too long: {unpacked >> 20} MiB",
                            where=f"{path}: column {name}",
                            hint=f"pages of {PAGE_LIMIT >> 20} MiB are read: leave out such rows, "
                            "or write the file with smaller pages",
                        )
                    largest[kind == _DICTIONARY] = max(largest[kind == _DICTIONARY], unpacked)
                    file.seek(packed, io.SEEK_CUR)
    except (LookupError, TypeError, OverflowError, RecursionError):
        raise ValueError("a damaged footer or page header") from None
    return max(largest.values()), largest[True]


def _byte_count(fields: dict[int, Any], number: int) -> int:
    """Return the field `number`, a count of bytes; 0 if it is missing, `ValueError` if below 0."""
    value: int = fields.get(number, 0)
    if value < 0:
        raise ValueError("a page without a size")
    return value


# A damaged file makes these raise `IndexError` at its end, `KeyError` for an unknown kind of value,
# `OverflowError` for a number without end, `RecursionError` for structs without end.


def _read_struct(file: io.BufferedReader) -> dict[int, Any]:
    """Read a Thrift struct and return its fields by their numbers. Before each field is a byte: its
    upper half is the difference of the field's number from the last one (0: the number follows),
    its lower half is the kind of the value. The struct ends with a byte 0."""
    fields: dict[int, Any] = {}
    number = 0
    while head := file.read(1)[0]:
        delta, kind = head >> 4, head & 15
        number = number + delta if delta else _read_integer(file)
        fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else _READERS[kind](file)
    return fields


def _read_list(file: io.BufferedReader) -> list[Any]:
    """Read a Thrift list: a byte with the size and the kind of the values, then the values. For a
    size of 15 or more the byte has 15, and the size follows."""
    head = file.read(1)[0]
    size = head >> 4 if head >> 4 < 15 else _read_unsigned(file)
    read_value = _READERS[head & 15]
    return [read_value(file) for _ in range(size)]


def _read_bytes(file: io.BufferedReader) -> bytes:
    """Read a text and return its first 200 bytes."""
    size = _read_unsigned(file)
    text = file.read(min(size, 200))
    file.seek(size - len(text), io.SEEK_CUR)
    return text


def _read_integer(file: io.BufferedReader) -> int:
    """Read a signed integer in zigzag code: 0, -1, 1, -2 are stored as 0, 1, 2, 3."""
    value = _read_unsigned(file)
    return (value >> 1) ^ -(value & 1)


def _read_unsigned(file: io.BufferedReader) -> int:
    """Read a number in groups of seven bits, lowest first; all bytes but the last are over 127."""
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)[0]
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise OverflowError


_TRUE, _FALSE = 1, 2  # kinds of a field that is a truth value; no more bytes follow
_READERS: dict[int, Callable[[io.BufferedReader], Any]] = {
    **dict.fromkeys((1, 2, 3), lambda file: file.read(1)[0]),  # a truth value in a list, a byte
    **dict.fromkeys((4, 5, 6), _read_integer),
    7: lambda file: file.read(8),  # a double
    8: _read_bytes,
    **dict.fromkeys((9, 10), _read_list),  # a set is one too
    12: _read_struct,
}
"""The function that reads a value, by its kind in Thrift's compact protocol."""
