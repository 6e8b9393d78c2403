"""Language data of the sentence splitter: abbreviations and words that begin sentences."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Language:
    """Word lists, abbreviations without their last stop and in lower case.

    `titles` precede a name and never end a sentence; nor do `inner` ones. `numbered` do not end one
    before a number. `ending` (`etc.`, `Inc.`) and abbreviations with inner stops (`U.S.`) end one
    if a word of `starters` follows. `reporting` verbs follow a quotation whose question or
    exclamation does not end the sentence; `cries` are names with an exclamation mark. `proper`:
    abbreviations that are also words (`Sun.`, `Rep.`) count only with a capital. `calendar`: names
    of months and days of the week, in lower case.
    """

    titles: frozenset[str] = frozenset()
    inner: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()
    ending: frozenset[str] = frozenset()
    starters: frozenset[str] = frozenset()
    reporting: frozenset[str] = frozenset()
    cries: frozenset[str] = frozenset()
    proper: frozenset[str] = frozenset()
    calendar: frozenset[str] = frozenset()

    @cached_property
    def abbreviations(self) -> frozenset[str]:
        return self.titles | self.inner | self.numbered | self.ending


_LISTS = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
LANGUAGES = {
    code: Language(**{name: frozenset(words.split()) for name, words in lists.items()})
    for code, lists in _LISTS.items()
}
_TITLES = frozenset[str]().union(*(language.titles for language in LANGUAGES.values()))
GENERIC = replace(LANGUAGES.pop("generic"), titles=_TITLES)
"""The lists for a language that has none."""
