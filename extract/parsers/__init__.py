"""Parsers by name: `embedded`, `gold`, `spacy:NAME`, `stanza:LANG`.

`get_parser` loads nothing heavy before `parse` is called, unless a name must be checked at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

from corpora.errors import ConfigError, nearest
from extract.parse import Parser
from extract.settings import Check

KINDS = ("embedded", "gold", "spacy:NAME", "stanza:LANG")


def get_parser(name: str, **settings: Any) -> Parser:
    """The parser called `name` (see `KINDS`); ConfigError for an unknown name or setting.

    `settings` are the keywords of `extract.parsers.spacy.SpacyParser` for `embedded` and
    `spacy:NAME`, of `extract.parsers.stanza.StanzaParser` for stanza (unknown ones
    are passed to `stanza.Pipeline`); `gold` has none.
    """
    kind, _, target = name.partition(":")
    if kind == "gold" and not target:
        from extract.parsers.gold import GoldParser

        _check_settings(name, settings, [])
        return GoldParser()
    if kind in ("embedded", "spacy") and bool(target) == (kind == "spacy"):
        from extract.parsers.spacy import SpacyParser

        names = [field.name for field in fields(SpacyParser) if field.name != "pipeline"]
        _check_settings(name, settings, names)
        return SpacyParser(target or None, **settings)
    if kind == "stanza" and target:
        from extract.parsers.stanza import StanzaParser

        names = [field.name for field in fields(StanzaParser)]
        pipeline = {key: settings.pop(key) for key in list(settings) if key not in names}
        return StanzaParser(target, **settings, pipeline=pipeline)
    raise ConfigError(
        f"unknown parser {name!r}; {nearest(name, KINDS)}choose from {', '.join(KINDS)}"
    )


def is_checked(parser: str, check: str | None) -> bool:
    """Whether the second embedded parser checks the trees of the parser called `parser`.

    `check` is `second` or `none`; None stands for `second` with the embedded parser. Raises
    ConfigError for another word, and for `second` with another parser, whose trees it was not
    fitted to check.
    """
    if check not in (None, *get_args(Check)):
        raise ConfigError(f"unknown check {check!r}; choose from {', '.join(get_args(Check))}")
    if check == "second" and parser != "embedded":
        raise ConfigError(
            f"the second parser checks the embedded one, not {parser!r}",
            hint="set check to none, or leave it out",
        )
    return check != "none" and parser == "embedded"


def check_language(parser: str, language: str) -> None:
    """Raise ConfigError if the parser called `parser` does not support `language`."""
    kind, _, target = parser.partition(":")
    if kind == "embedded" and language != "en":
        raise ConfigError(
            f"the embedded parser parses English only, not {language!r}",
            hint=f"use --parser stanza:{language}, or gold with a conllu: source",
        )
    if kind == "stanza" and target.split("-")[0] != language.split("-")[0]:  # zh-hans is zh
        raise ConfigError(
            f"the parser {parser!r} is for texts in {target!r}, and these are in {language!r}",
            hint=f"use --parser stanza:{language}, or correct the language",
        )


def _check_settings(name: str, settings: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise `ConfigError` for a setting that is not one of the `names` of the parser's settings."""
    for setting in settings:
        if setting not in names:
            choices = f"choose from {', '.join(names)}" if names else "it has none"
            raise ConfigError(
                f"the parser {name!r} has no setting {setting!r}; "
                f"{nearest(setting, names)}{choices}"
            )
