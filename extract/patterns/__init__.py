"""Pattern tables: which trees make a word a discourse marker, as data.

The table of a language consists of the shipped `LANGUAGE.toml`, the files of plug-ins, and the
user's files. A plug-in declares its file as an entry point of the group `discorpora.patterns`: the
entry's name is the language, its value the package and file (`en = "my_package:markers.toml"`).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from corpora.declared import Loc
from corpora.errors import ConfigError, InputError, expand_home, nearest
from corpora.languages import frequent_words
from extract.patterns.table import SCHEMES, PatternFile, PatternTable, fold

GROUP = "discorpora.patterns"
FOLDER = Path(__file__).parent
NAMED = FOLDER / "named"
"""Shipped files that are no language's table: they are used by their names."""
Files = Sequence[str | Path]
"""The user's pattern files: a later file replaces an earlier one's rows of a marker."""


def table_languages() -> tuple[str, ...]:
    """The languages with a table, shipped or from a plug-in."""
    shipped = {path.stem for path in FOLDER.glob("*.toml")}
    return tuple(sorted(shipped | {entry.name for entry in _plugins()}))


def is_shipped(file: str | Path) -> bool:
    """Return True for the name of a shipped pattern file, such as `dissent2019`."""
    return Path(file).name == str(file) and (NAMED / f"{file}.toml").is_file()


def pattern_path(file: str | Path) -> Path:
    """Return the path of a pattern file: of a shipped one by its name, else the path itself."""
    return NAMED / f"{file}.toml" if is_shipped(file) else expand_home(file)


def load_patterns(language: str = "en", scheme: str = "ud", files: Files = ()) -> PatternTable:
    """The table of `language` for the label scheme `scheme`, with the rows of `files`.

    Raises `ConfigError` if there is no such table, if two plug-ins have the same marker, or for an
    invalid entry, with file and line.
    """
    if scheme not in SCHEMES:
        raise ConfigError(f"unknown label scheme {scheme!r}; choose from {', '.join(SCHEMES)}")
    shipped, users = _shipped(language), tuple(map(pattern_path, files))
    if not shipped and not users:
        raise ConfigError(
            f"no patterns for language {language!r}; choose from {', '.join(table_languages())}",
            hint="docs/reference/extraction.md says how to add a language in one file",
        )
    for path in users:
        if not path.is_file():
            raise InputError(
                "no such pattern file",
                where=str(path),
                hint="--patterns expects the path of a TOML file, or the name of a shipped one: "
                + ", ".join(sorted(named.stem for named in NAMED.glob("*.toml"))),
            )
    # With its modification time: a changed file is read again.
    files_with_times = tuple((path, path.stat().st_mtime_ns) for path in (*shipped, *users))
    return _merged(language, scheme, files_with_times, len(shipped))


def patterns_hash(language: str, files: Files = ()) -> str:
    """The sha256 of all files of a language's table: part of a stage's hash."""
    digest = hashlib.sha256()
    for path in (*_shipped(language), *map(pattern_path, files)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def resolve_markers(
    spec: str | Iterable[str], language: str = "en", files: Files = ()
) -> tuple[str, ...]:
    """The markers of `spec`: markers and sets of the table (`all15`), separated by commas.

    `all` means every marker of the table that is one word or phrase.
    """
    table = load_patterns(language, "ud", files)
    sets = {"all": table.markers, **table.sets}
    parts = spec.split(",") if isinstance(spec, str) else spec
    entries = [fold(name) for name in parts if name.strip()]
    names = tuple(dict.fromkeys(m for name in entries for m in sets.get(name, (name,))))
    for name in names:
        if name not in table.choices:
            raise ConfigError(
                f"no pattern for {name!r} in language {language!r}; "
                f"{nearest(name, (*table.choices, *sets))}list them with: discorpora markers"
            )
    if not names:
        raise ConfigError(
            "no marker given; name a set such as all15, or markers separated by commas"
        )
    return names


@functools.cache
def _plugins() -> tuple[metadata.EntryPoint, ...]:
    """The entry points, each once: an editable installation may be listed twice."""
    return tuple(dict.fromkeys(metadata.entry_points(group=GROUP)))


def _shipped(language: str) -> list[Path]:
    """The shipped table of the language, if any, and those of installed plug-ins."""
    paths = [path for path in [FOLDER / f"{language}.toml"] if path.is_file()]
    for entry in sorted(_plugins()):
        if entry.name != language:
            continue
        place = f"entry point {entry.name} = {entry.value!r} of {GROUP}"
        try:
            path = Path(str(resources.files(entry.module) / (entry.attr or "")))
        except ImportError as error:
            raise ConfigError(f"cannot be imported: {error}", where=place) from error
        if not path.is_file():
            raise ConfigError(
                f"no file {str(path)!r}", where=place, hint='expected "PACKAGE:FILE.toml"'
            )
        paths.append(path)
    return paths


@functools.cache
def _merged(
    language: str, scheme: str, files_with_times: tuple[tuple[Path, int], ...], shipped: int
) -> PatternTable:
    """The table of several files; the first `shipped` of them are ours or a plug-in's.

    Only a user's file may replace entries of another.
    """
    # Collect the entries of all files; a later file replaces entries of an earlier one.
    files = [PatternFile.read(path) for path, _ in files_with_times]
    entries_by_key: dict[Loc, Any] = {}
    stated_in: dict[Loc, PatternFile] = {}
    for number, file in enumerate(files):
        if file.language not in ("", language):
            raise ConfigError(
                f"language = {file.language!r}: this is the table of {language!r}",
                where=file.where(("language",)),
            )
        if file.replaces:
            kept = {k: e for k, e in entries_by_key.items() if k[0] not in ("pattern", "multiword")}
            entries_by_key = kept
        entries = file.entries()
        for keys in entries:
            if keys in stated_in and number < shipped:
                raise ConfigError(
                    f"{' '.join(map(str, keys))} is in another pattern table too: "
                    f"{stated_in[keys].where()}",
                    where=file.where(),
                    hint="uninstall one of the two; a file given with --patterns may replace it",
                )
            stated_in[keys] = file
        entries_by_key |= entries

    def entries_under(*kind: str) -> dict[str, Any]:
        """Return the entries under a table of the file, by their last key."""
        return {str(keys[-1]): entry for keys, entry in entries_by_key.items() if keys[:-1] == kind}

    # Check that the scheme has classes, and that the ids of patterns differ.
    rows = [row for of_marker in entries_under("pattern").values() for row in of_marker]
    classes = entries_under("classes", scheme)
    if not classes:
        raise ConfigError(f"no [classes.{scheme}] in this table", where=files[0].where())
    ids = [row.id for row in rows]
    for row in reversed(rows):  # of two files the later one is at fault
        if ids.count(row.id) > 1:
            place = stated_in["pattern", row.marker].where()
            raise ConfigError(f"two patterns have the id {row.id!r}", where=place)
    # Make the table. At the end each file's names are checked against it.
    table = PatternTable.of(
        {
            "language": language,
            "scheme": scheme,
            "frequent": tuple(sorted(frequent_words().get(language, ()))),
            "classes": classes,
            "multiwords": tuple(entries_under("multiword").values()),
            "patterns": tuple(row for row in rows if scheme in row.schemes),
            "markers": tuple(entries_under("pattern")),
            **{key: entries_under(key) for key in ("sets", "properties", "spans", "standalone")},
            **entries_under(),
        }
    )
    for file in files:
        file.check(table)
    return table
