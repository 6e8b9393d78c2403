"""What pydantic says against a build file, as one sentence: place, value, what was expected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from corpora.errors import ConfigError, nearest
from workflows.tables import BuildFile, Table


def refusal(path: Path, table: Mapping[str, Any], error: ValidationError) -> ConfigError:
    """The first problem of a build file as one sentence: place, value, what was expected."""
    first = error.errors()[0]
    place, key = _place(table, first["loc"])
    where = f"{path}: {place}" if place else str(path)
    if first["loc"][-1:] == ("[key]",):
        return ConfigError(
            f"[{first['loc'][0]}.NAME]: {first['input']!r} is no name",
            where=str(path),
            hint="small letters, digits, and . _ - after one: a folder is named after it",
        )
    if first["type"] == "extra_forbidden":
        valid = _fields_at(first["loc"][:-1])
        name = str(first["loc"][-1])
        return ConfigError(
            f"unknown key {key!r}; {nearest(name, valid)}".rstrip("; "),
            where=where,
            hint=_own_settings(first["loc"], first["input"]) + f"valid here: {', '.join(valid)}",
        )
    if first["type"] == "missing":
        return ConfigError(f"the key {key!r} is missing", where=where)
    if first["type"] == "string_pattern_mismatch":
        hint = "small letters, digits, and _ - after one: folders are named after it"
        return ConfigError(f"{key} = {first['input']!r} is no name", where=where, hint=hint)
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ConfigError):
        return ConfigError(cause.message, where=f"{where}: {key}", hint=cause.hint)
    return ConfigError(f"{key} = {first['input']!r}: {first['msg'].lower()}", where=where)


def _place(table: Mapping[str, Any], loc: tuple[int | str, ...]) -> tuple[str, str]:
    """The table that an error is in, where it is one of a list, and the rest of its key.

    A `[[sources]]` or `[[validation]]` is called by its name, or by its number if it has none.
    """
    if len(loc) < 2 or not isinstance(loc[1], int):
        return "", ".".join(map(str, loc))
    kind, number = str(loc[0]), loc[1]
    entry = table[kind][number]
    name = entry.get("name") if isinstance(entry, dict) else None
    called = f"{kind.removesuffix('s')} {name}" if name else f"[[{kind}]] number {number + 1}"
    rest = ".".join(map(str, loc[2:]))
    return (called, rest) if rest else ("", called)


def _own_settings(loc: tuple[int | str, ...], value: Any) -> str:
    """Where a setting of a recipe or suite stands that was written beside its keys."""
    if loc[0] not in ("models", "evaluations") or len(loc) != 3 or isinstance(value, dict):
        return ""
    whose = "recipe" if loc[0] == "models" else "suite"
    pasted = json.dumps(value, default=str)  # as TOML writes texts, numbers, switches and lists
    return f"one of the {whose} is written settings = {{ {loc[2]} = {pasted} }}; "


def _fields_at(place: tuple[int | str, ...]) -> list[str]:
    """The valid keys of the table at `place` of a build file."""
    model: Any = BuildFile
    for part in place:
        if isinstance(part, str) and isinstance(model, type) and part in model.model_fields:
            model = model.model_fields[part].annotation
        arguments = [a for a in getattr(model, "__args__", ()) if isinstance(a, type)]
        tables = [a for a in arguments if issubclass(a, Table)]
        model = tables[0] if tables else model
    fields = getattr(model, "model_fields", {})
    return sorted(name for name in fields if name != "path")
