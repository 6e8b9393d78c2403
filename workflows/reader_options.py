"""The values of readers' options in a build file, checked before anything is read.

Which options a reader takes, and the names that one may have, its own module says; here stands
which are numbers and switches. All others are texts.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Mapping
from typing import Any

from corpora.errors import ConfigError, nearest
from corpora.readers import READERS, discoeval, irc, records, rst, storycloze, superglue, text
from corpora.readers.lines import check_layout
from corpora.readers.source import Source
from corpora.tasks import coherence_tests

LEAST = {"document_lines": 1, "context": 0}
"""Options that are whole numbers, with the smallest one each."""

SWITCHES = frozenset({"system"})

NAMES: Mapping[tuple[str, str], Collection[str]] = {
    ("text", "layout"): text.LAYOUTS,
    ("text", "group"): text.GROUPS,
    **{(kind, "layout"): sorted(records.LAYOUTS) for kind in ("jsonl", "parquet", "hub")},
    ("irc", "layout"): irc.LAYOUTS,
    ("rst", "text"): rst.TEXTS,
    ("storycloze", "ending"): storycloze.ENDINGS,
    ("discoeval", "task"): tuple(discoeval.TASKS),
    ("superglue", "config"): tuple(superglue.TASKS),
    ("superglue", "split"): tuple(superglue.SPLIT_NAMES),
    ("coherence", "set"): coherence_tests.SETS,
}
"""The names that an option of a kind of source may have."""


def check_option(kind: str, key: str, value: Any) -> None:
    """Raise `ConfigError` for a value that the reader of `kind` would refuse when it runs."""
    if key in LEAST:
        _check_number(value, LEAST[key])
    elif key in SWITCHES:
        if not isinstance(value, bool) and value not in ("true", "false"):
            raise ConfigError(f"{value!r} is no switch", hint="true or false")
    elif not isinstance(value, str):
        raise ConfigError(f"{value!r} is no text", hint=f'write it in quotes: {key} = "..."')
    elif value not in (names := NAMES.get((kind, key), (value,))):
        raise ConfigError(
            f"{value!r} is no {key} of {kind}:", hint=f"{nearest(value, names)}{' or '.join(names)}"
        )
    elif key == "encoding":
        _check_encoding(value)


def check_together(kind: str, options: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for `document_lines` with a layout that it does not cut.

    A reader of records that is told no layout finds it in the records: that is not known here.
    """
    if "document_lines" in READERS[kind].options:
        layout = options.get("layout", "paragraphs" if kind == "text" else "lines")
        check_layout(layout, Source(kind, "", [], options))


def _check_number(value: Any, least: int) -> None:
    plain = isinstance(value, int) and not isinstance(value, bool)
    written = isinstance(value, str) and re.fullmatch(r"-?\d+", value)
    if not (plain or written) or int(value) < least:
        raise ConfigError(f"{value!r} is no whole number", hint=f"{least} or more")


def _check_encoding(name: str) -> None:
    try:
        codecs.lookup(name)
    except (LookupError, UnicodeError):
        hint = "utf-8 is the default; old corpora are often in latin-1 or cp1252"
        raise ConfigError(f"no encoding {name!r}", hint=hint) from None
