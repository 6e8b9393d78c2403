"""Pickles of plain values from strangers: nothing in them is ever called.

A pickle is a program, and loading one can run anything. Here its instructions are read first:
only those that make lists, tuples, dicts, strings, numbers, booleans and `None` are admitted.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections import deque
from pathlib import Path
from typing import Any

from corpora.errors import InputError

SIZE_LIMIT = 512 << 20
"""Largest file taken, in bytes: a pickle cannot be read piece by piece."""

_PLAIN = frozenset(
    """PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE
    INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8
    EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT
    SETITEM SETITEMS GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE""".split()  # noqa: SIM905
)
_CLASSES = frozenset(("GLOBAL", "INST", "STACK_GLOBAL"))
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
_OPENING = _PUTS | {"MEMOIZE", "MARK", "LIST", "DICT", "EMPTY_LIST", "EMPTY_TUPLE", "EMPTY_DICT"}
_OPENING |= {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}
_IN_A_ROW = 10_000
"""So many of these with nothing else between them are lists in lists; Python's own pickles of
many empty lists have an `APPENDS` after each thousand."""

_HINT = "only lists, tuples, dicts, strings, numbers, booleans and None are taken from a pickle"


class _PlainUnpickler(pickle.Unpickler):
    """The second lock: looks up no class even if the check of the instructions had a hole."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"refused: it refers to {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("refused: it refers to an object outside of it")


def load_plain(path: Path) -> Any:
    """The value of a pickle that holds plain values only.

    Raises `InputError` for anything else, which it names, with the offset in the file, for a
    file that is larger than `SIZE_LIMIT`, cut short, or no pickle.
    """
    data = _read(path)
    _check(data, path)
    try:
        return _PlainUnpickler(io.BytesIO(data), encoding="utf-8").load()
    except Exception as error:  # a damaged pickle raises whatever its instructions come to
        reason = f"{type(error).__name__}: {error}"[:200]
        raise InputError(f"a damaged pickle: {reason}", where=str(path)) from None


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise InputError(f"too large: more than {SIZE_LIMIT >> 20} MiB", where=str(path))
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", where=str(path)) from None
    if not data:
        raise InputError("no document in it: the file is empty", where=str(path))
    return data


def _check(data: bytes, path: Path) -> None:
    """Admit the instructions of plain values; memory never runs ahead of what was read."""
    strings: deque[str] = deque(("?", "?"), maxlen=2)
    count = opened = 0
    try:
        for operation, argument, position in pickletools.genops(data):
            count += 1
            where = f"{path}: byte {position}"
            if operation.name not in _PLAIN:
                what = _named(operation.name, argument, strings)
                raise InputError(f"a pickle refused: {what}", where=where, hint=_HINT)
            if operation.name in _PUTS and int(argument or 0) > count:
                # The unpickler would make room for so many objects.
                raise InputError("a pickle refused: absurd memo number", where=where, hint=_HINT)
            opened = opened + 1 if operation.name in _OPENING else 0
            if opened > _IN_A_ROW:
                raise InputError("a pickle refused: nested too deep", where=where, hint=_HINT)
            if isinstance(argument, str):
                strings.append(argument)
    except InputError:
        raise
    except Exception as error:
        reason = str(error)[:120]
        raise InputError(
            f"not a whole pickle: {reason}",
            where=str(path),
            hint="the file is cut short, damaged, or another format under this name",
        ) from None


def _named(operation: str, argument: Any, strings: deque[str]) -> str:
    if operation == "STACK_GLOBAL":
        return f"it refers to {strings[0][:60]}.{strings[1][:60]}"
    if operation in _CLASSES:
        return f"it refers to {str(argument)[:120].replace(' ', '.')}"
    return f"it holds the instruction {operation}"
