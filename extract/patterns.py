"""Pattern tables: which trees make a word a discourse marker, as data (`patterns/LANGUAGE.toml`).

A table is read once, checked row by row (an error names file and row) and compiled to integers by
`extract.compiled`. What each key means is in `docs/extraction.md`.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from corpora.errors import ConfigError, nearest
from extract.rows import (
    CLASSES,
    DERIVED,
    LABEL_KEYS,
    SCHEMES,
    SPAN_KEYS,
    TAG_COLUMNS,
    Multiword,
    Pattern,
    check_children,
    check_kind,
    check_references,
    read_multiword,
    read_pattern,
    refuse_unknown,
)

__all__ = [
    "DERIVED",
    "Multiword",
    "Pattern",
    "PatternTable",
    "load_patterns",
    "read_table",
    "resolve_markers",
    "table_languages",
]


KEYS: dict[str, type] = {
    **dict.fromkeys(("language", "stop"), str),
    **dict.fromkeys(("spaces", "pro_drop"), bool),
    **dict.fromkeys(("sets", "classes", "properties", "spans"), dict),
    **dict.fromkeys(("multiword", "pattern"), list),
}


@dataclass(frozen=True, slots=True)
class PatternTable:
    """All rows of one language, restricted to one label scheme.

    `spaces`: words are parted by blanks. `stop` ends a written sentence. `pro_drop`: a finite
    verb needs no overt subject to be a clause.
    """

    language: str
    scheme: str
    sets: Mapping[str, tuple[str, ...]]
    classes: Mapping[str, tuple[str, ...]]
    properties: Mapping[str, Mapping[str, tuple[str, ...]]]
    multiwords: tuple[Multiword, ...]
    patterns: tuple[Pattern, ...]
    spans: Mapping[str, tuple[str, ...]]
    markers: tuple[str, ...] = ()
    spaces: bool = True
    stop: str = "."
    pro_drop: bool = False


def table_languages() -> tuple[str, ...]:
    """The languages that have a table."""
    folder = resources.files("extract") / "patterns"
    return tuple(sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml")))


@functools.cache
def load_patterns(language: str = "en", scheme: str = "ud") -> PatternTable:
    """The table of `language` for the label scheme `scheme`; ConfigError if there is none."""
    if language not in table_languages():
        raise ConfigError(
            f"no patterns for language {language!r}; there are {', '.join(table_languages())}",
            hint="docs/extraction.md says how to add a language in one file",
        )
    if scheme not in SCHEMES:
        raise ConfigError(f"unknown label scheme {scheme!r}; choose from {', '.join(SCHEMES)}")
    path = resources.files("extract") / "patterns" / f"{language}.toml"
    return read_table(path.read_text(encoding="utf-8"), f"{language}.toml", scheme)


def read_table(text: str, where: str, scheme: str) -> PatternTable:
    """The table written in `text` (TOML); every error names `where` and the row."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}", where=where) from None
    refuse_unknown(raw, KEYS, where)
    for key, value in raw.items():
        check_kind(key, value, KEYS[key], where)
    if scheme not in raw.get("classes", {}):
        raise ConfigError(f"no [classes.{scheme}] in this table", where=where)
    refuse_unknown(raw["classes"], SCHEMES, f"{where}, [classes]")
    classes = _lists(raw["classes"][scheme], f"{where}, [classes.{scheme}]", CLASSES)
    for name, labels in classes.items():
        check_references(name, labels, classes, f"{where}, [classes.{scheme}]")
    properties = {
        name: _lists(columns, f"{where}, [properties.{name}]", TAG_COLUMNS)
        for name, columns in raw.get("properties", {}).items()
    }
    rows = [
        read_pattern(row, f"{where}, pattern {n} ({row.get('id', 'without id')})", properties)
        for n, row in enumerate(raw.get("pattern", []), start=1)
    ]
    _refuse_twice([row.id for row in rows], where)
    patterns = tuple(row for row in rows if scheme in row.schemes)
    for row in patterns:
        for key in LABEL_KEYS:
            check_references(key, getattr(row, key) or (), classes, f"{where}, pattern {row.id}")
    spans = _lists(raw.get("spans", {}), f"{where}, [spans]", SPAN_KEYS)
    for key, specs in spans.items():
        check_children(key, specs, f"{where}, [spans]")
        check_references(key, specs, classes, f"{where}, [spans]")
    markers = tuple(dict.fromkeys(row.marker for row in rows))
    multiwords = tuple(read_multiword(m, where, rows) for m in raw.get("multiword", []))
    sets = _lists(raw.get("sets", {}), f"{where}, [sets]")
    _refuse_strangers(sets, (*markers, *(m.name for m in multiwords if m.like)), where)
    return PatternTable(
        language=raw.get("language", ""),
        scheme=scheme,
        sets=sets,
        classes=classes,
        properties=properties,
        multiwords=multiwords,
        patterns=patterns,
        spans=spans,
        markers=markers,
        spaces=raw.get("spaces", True),
        stop=raw.get("stop", "."),
        pro_drop=raw.get("pro_drop", False),
    )


def resolve_markers(spec: str | Iterable[str], language: str = "en") -> tuple[str, ...]:
    """The markers that `spec` names: markers and sets of the table (`all15`), parted by commas.

    `all` are all markers of one word or phrase that the table has rows for.
    """
    table = load_patterns(language, "ud")
    sets = {"all": table.markers, **table.sets}
    given = spec.split(",") if isinstance(spec, str) else spec
    folded = [" ".join(name.split()).lower() for name in given if name.strip()]
    names = tuple(dict.fromkeys(m for name in folded for m in sets.get(name, (name,))))
    choices = (*table.markers, *(m.name for m in table.multiwords if m.like))
    for name in names:
        if name not in choices:
            raise ConfigError(
                f"no pattern for {name!r} in language {language!r}; "
                f"{nearest(name, (*choices, *sets))}list them with: discorpora markers"
            )
    if not names:
        raise ConfigError("no marker given; name a set such as all15, or markers parted by commas")
    return names


def _lists(
    table: Any, where: str, known: Iterable[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """A table of lists of strings, under keys that are `known`."""
    check_kind("this", table, dict, where)
    refuse_unknown(table, table if known is None else known, where)
    for key, members in table.items():
        check_kind(key, members, list, where)
    return {key: tuple(members) for key, members in table.items()}


def _refuse_strangers(
    sets: Mapping[str, tuple[str, ...]], markers: Iterable[str], where: str
) -> None:
    for name, members in sets.items():
        for marker in members:
            if marker not in markers:
                raise ConfigError(
                    f"{name} holds {marker!r}, which has no pattern; {nearest(marker, markers)}",
                    where=f"{where}, [sets]",
                )


def _refuse_twice(ids: list[str], where: str) -> None:
    for name in ids:
        if ids.count(name) > 1:
            raise ConfigError(f"two patterns have the id {name!r}", where=where)
