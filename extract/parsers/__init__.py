"""Parsers by name: `embedded`, `gold`, `spacy:NAME`, `stanza:LANG`.

`get_parser` loads nothing heavy until `parse` is called or the name needs a check on the spot.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from corpora.errors import ConfigError, nearest
from extract.parse import Parser

KINDS = ("embedded", "gold", "spacy:NAME", "stanza:LANG")


def get_parser(name: str, **settings: Any) -> Parser:
    """The parser called `name` (see `KINDS`); ConfigError for an unknown name or setting.

    `settings` are the keywords of `extract.parsers.spacy.SpacyParser` for `embedded` and
    `spacy:NAME`, of `extract.parsers.stanza.StanzaParser` for stanza (which hands those that it
    does not know to `stanza.Pipeline`); `gold` takes none.
    """
    kind, _, target = name.partition(":")
    if kind == "gold" and not target:
        from extract.parsers.gold import GoldParser

        _check_settings(name, GoldParser, settings)
        return GoldParser()
    if kind in ("embedded", "spacy") and bool(target) == (kind == "spacy"):
        from extract.parsers.spacy import SpacyParser

        _check_settings(name, SpacyParser, settings)
        return SpacyParser(target or None, **settings)
    if kind == "stanza" and target:
        from extract.parsers.stanza import StanzaParser

        return StanzaParser(target, **settings)
    raise ConfigError(
        f"unknown parser {name!r}; {nearest(name, KINDS)}choose from {', '.join(KINDS)}"
    )


def check_language(parser: str, language: str) -> None:
    """ConfigError if the parser called `parser` does not know `language`."""
    if parser == "embedded" and language != "en":
        raise ConfigError(
            f"the embedded parser knows English, not {language!r}",
            hint=f"take --parser stanza:{language}, or gold with a conllu: source",
        )


def _check_settings(name: str, parser: type, settings: Mapping[str, Any]) -> None:
    parameters = inspect.signature(parser).parameters.values()
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    for setting in settings:
        if setting not in known:
            choices = f"choose from {', '.join(known)}" if known else "it takes none"
            raise ConfigError(
                f"the parser {name!r} has no setting {setting!r}; "
                f"{nearest(setting, known)}{choices}"
            )
