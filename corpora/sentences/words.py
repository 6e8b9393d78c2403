"""The word lists of the languages that sentence splitting knows (`words.toml`)."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from corpora.sentences.rules import Language

LISTS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
LANGUAGES = {code: Language.of(lists) for code, lists in LISTS.items()}
_TITLES = frozenset[str]().union(*(language.titles for language in LANGUAGES.values()))
GENERIC = replace(LANGUAGES.pop("generic"), titles=_TITLES)
"""The lists for a language that has none."""
