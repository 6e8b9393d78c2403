"""A table of a build file as the settings dataclass of a room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from corpora.errors import ConfigError, nearest

Settings = TypeVar("Settings")


def settings_of(kind: type[Settings], table: Mapping[str, Any], where: str) -> Settings:
    """`kind(**table)` with types checked; an unknown key is an error with the nearest name.

    What the dataclass itself refuses comes as it says it, with `where` before it.
    """
    names = [field.name for field in fields(kind) if field.init]  # type: ignore[arg-type]
    for key in table:
        if key not in names:
            raise ConfigError(
                f"unknown key {key!r}; {nearest(key, names)}".rstrip("; "),
                where=where,
                hint=f"valid here: {', '.join(sorted(names))}",
            )
    try:
        return TypeAdapter(kind).validate_python(dict(table))
    except ValidationError as error:
        first = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, ConfigError):
            said = f"{cause.where}: {cause.message}" if cause.where else cause.message
            raise ConfigError(said, where=where, hint=cause.hint) from None
        key = ".".join(str(part) for part in first["loc"])
        message = f"{key} = {first['input']!r}: {first['msg'].lower()}"
        raise ConfigError(message, where=where) from None
