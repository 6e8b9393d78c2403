"""Parsers of a build file: whether a source has what one reads, and whether one is installed."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from corpora.errors import ConfigError
from corpora.readers import parse_spec

TREEBANKS = frozenset({"conllu"})
"""Kinds of sources that have trees of their own."""


def check_trees(parser: str, spec: str, source: str) -> None:
    """Raise `ConfigError` for the parser `gold` on a source without trees."""
    kind = parse_spec(spec)[0].name
    if parser == "gold" and kind not in TREEBANKS:
        raise ConfigError(
            f"'gold' takes trees that are there, and the source {source!r} ({kind}:) has none",
            hint=f'take parser = "embedded", or a source of the kind {", ".join(TREEBANKS)}:',
        )


def lacking(parser: str) -> tuple[str, str]:
    """What of `parser` is not on this machine, and how to get it; empty where nothing lacks.

    Nothing is loaded: what is there may still be of another version.
    """
    kind, _, name = parser.partition(":")
    if kind == "spacy" and not (_installed(name) or Path(name).exists()):
        return f"no package {name} is installed", f"python -m spacy download {name}"
    if kind != "stanza":
        return "", ""
    download = f"python -c \"import stanza; stanza.download('{name}')\""
    if not _installed("stanza"):
        install = "pip install 'discorpora[stanza]'"
        return "the package stanza is not installed", f"{install}; {download}"
    usual = Path.home() / "stanza_resources"
    models = Path(os.environ.get("STANZA_RESOURCES_DIR", usual)) / name
    return ("", "") if models.is_dir() else (f"no models in {models}", download)


def _installed(package: str) -> bool:
    with suppress(ModuleNotFoundError, ValueError):
        return find_spec(package) is not None
    return False
