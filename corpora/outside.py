"""JSON from outside: read within bounds of size, depth and length of numbers, checked by a schema.

Anybody may have written a manifest, a result, a pair or an answer of the Hub. Whatever is wrong
with one is an `InputError`; a value that passes has the types of its schema.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from corpora.declared import config_error
from corpora.errors import ConfigError, InputError

M = TypeVar("M")

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
"""OWNER/NAME of a dataset or model of the Hub."""
SIZE, DEPTH, DIGITS = 32 << 20, 100, 40
"""Bounds of a JSON text: its characters, levels of nested tables, and digits of an integer."""
_LONG = re.compile(rf"\d{{{DIGITS + 1}}}")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Half a surrogate pair, unless the other half is beside it."""


def split_config(spec: str, config: str = "") -> tuple[str, str]:
    """Split `FOLDER@CONFIG` or `HUB_ID@CONFIG` into its two parts; without `@` the second is
    `config`. Raises `ConfigError` if both name a configuration, and not the same one."""
    place, at, suffix = spec.rpartition("@")
    if not at or Path(spec).exists():
        return spec, config
    if config and suffix and config != suffix:
        raise ConfigError(
            f"two configurations are named: {suffix!r} and {config!r}",
            where=spec,
            hint=f"leave out @{suffix}, or name the one that is set besides it: {place}@{config}",
        )
    return place, suffix or config


def parse_json(text: str | bytes, *, where: str = "", hint: str = "") -> Any:
    """Return the value of a JSON text. Raises `InputError` if it is not JSON or exceeds a bound."""
    try:
        if len(text) > SIZE:
            raise ValueError(f"longer than {SIZE >> 20} MiB")
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value = json.loads(text, parse_int=_parse_integer if _LONG.search(text) else None)
        if text.count("[") + text.count("{") > DEPTH:
            _check_depth(value)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except RecursionError:
        problem = f"JSON too deep: more than {DEPTH} lists and tables in each other"
    except UnicodeEncodeError as error:
        problem = f"not text: U+{ord(error.object[error.start]):04X} is half a surrogate pair"
    except ValueError as error:  # also text that is not UTF-8, and a number that is too long
        problem = f"not JSON: {error}"[:200]
    message = f"is {problem}" if where and problem.startswith("not ") else problem
    raise InputError(message, where=where, hint=hint)


def read_json(path: Path, hint: str = "") -> Any:
    """Return the value of a JSON file.

    Raises `InputError` for a file that cannot be read, and as `parse_json` does.
    """
    try:
        with path.open("rb") as file:
            text = file.read(SIZE + 1)  # a longer one is refused by its length
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise InputError(problem, where=str(path), hint=hint) from error
    return parse_json(text, where=str(path), hint=hint)


def read_record(kind: type[M], path: Path, hint: str = "") -> M:
    """Return the record in a JSON file. Raises `InputError` for a file that holds none."""
    return record_of(kind, read_json(path, hint), str(path), hint)


def record_of(kind: type[M], value: Any, where: str, hint: str = "") -> M:
    """Return a JSON value as a record of type `kind`; raises `InputError` if its types differ."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        problem = config_error(error, BaseModel, value, where)
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower().removesuffix("s")
    raise InputError(f"is no {name}: {problem.message}"[:300], where=problem.where, hint=hint)


def _parse_integer(digits: str) -> int:
    """Return an integer of at most `DIGITS` digits; raises `ValueError` for a longer one."""
    if len(digits) > DIGITS + 1:  # and its sign
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _check_depth(value: Any) -> None:
    """Raise `RecursionError` for a value with lists or tables nested deeper than `DEPTH`."""
    level = [value]
    for _ in range(DEPTH + 1):
        lists = (each.values() if isinstance(each, dict) else each for each in level)
        level = [inner for each in lists for inner in each if isinstance(inner, dict | list)]
        if not level:
            return
    raise RecursionError
