"""TOML files with the line of each key (`tomllib` gives no positions), and writing of TOML."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.declared import Loc
from corpora.errors import ConfigError

_NAME = r"(?:[\w-]+|\"[^\"]*\"|'[^']*')"
_NAMES = rf"(?P<keys>{_NAME}(?:\s*\.\s*{_NAME})*)"
_TABLE = re.compile(rf"\s*\[(?P<list>\[)?\s*{_NAMES}\s*\]")
_KEY = re.compile(rf"\s*{_NAMES}\s*=")


@dataclass(frozen=True)
class TomlFile:
    """The tables of a TOML file, and the line of each key."""

    path: Path
    table: dict[str, Any]
    lines: dict[Loc, int]

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        """Read a file; raises `ConfigError` if it is not UTF-8 or not TOML."""
        try:
            text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
            return cls(path, tomllib.loads(text), dict(_key_lines(text)))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"not valid TOML: {error}", where=str(path)) from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"not UTF-8 text: {error}", where=str(path)) from None

    def where(self, keys: Loc) -> str:
        """Return `FILE:LINE` of a key, or of the innermost table around it that the file has."""
        for end in range(len(keys), 0, -1):
            if keys[:end] in self.lines:
                return f"{self.path}:{self.lines[keys[:end]]}"
        return str(self.path)


def _key_lines(text: str) -> list[tuple[Loc, int]]:
    """Return (key, number of the first line that has it) for each key of a TOML text. A line inside
    a text over several lines may look like a key; such a key is never looked up."""
    positions: list[tuple[Loc, int]] = []
    counts: dict[Loc, int] = {}
    table: Loc = ()
    for number, line in enumerate(text.split("\n"), 1):
        if match := _TABLE.match(line):
            table = ()
            for key in _split_dotted_key(match["keys"]):
                # `[a.b]` below `[[a]]` is a table of the list's last entry.
                table = (*table, counts[table], key) if table in counts else (*table, key)
            if match["list"]:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            positions.append((table, number))
        elif match := _KEY.match(line):
            positions.append(((*table, *_split_dotted_key(match["keys"])), number))
    return list(dict(reversed(positions)).items())


def _split_dotted_key(dotted: str) -> Loc:
    """Return the keys of a dotted key: `a."b c"` gives `a` and `b c`."""
    return tuple(key.strip("\"'") for key in re.findall(_NAME, dotted))


def toml_lines(table: Mapping[str, Any]) -> list[str]:
    """Return the lines `key = value` of a table, without None values, and an empty line."""
    lines = (f"{key} = {toml_value(v)}" for key, v in table.items() if v is not None)
    return [*lines, ""]


def toml_value(value: Any) -> str:
    """Return a value as TOML; texts and numbers as in JSON. By hand: `tomllib` only reads."""
    if isinstance(value, Mapping):
        entries = ", ".join(f"{toml_value(k)} = {toml_value(v)}" for k, v in value.items())
        return f"{{ {entries} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON allows it
