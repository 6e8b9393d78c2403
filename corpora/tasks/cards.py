"""The prose of the builders' cards: a TOML file beside each module; common reasons of rejected
candidates in `cards.toml`, citations in `cards.bib`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from corpora.store.card import Card

CITATIONS = Path(__file__).with_suffix(".bib")


def card_beside(module: str, name: str) -> Card:
    """The table `name` of the TOML file beside a module, given by its `__file__`.

    `reasons` are added to the common ones. `cites` are keys of
    `cards.bib`, in the order of the card.
    """
    table = texts_beside(module)[name]
    keys = table.pop("cites")
    table["reasons"] = REASONS | table.get("reasons", {})
    return Card(**table, citation="\n".join(map(_citations().__getitem__, keys)))


def texts_beside(module: str) -> dict[str, Any]:
    """The TOML file beside a module, given by its `__file__`; lines of a text are joined."""
    file = Path(module).with_suffix(".toml")
    texts: dict[str, Any] = _joined(tomllib.loads(file.read_text("utf-8")))
    return texts


def _joined(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _joined(each) for key, each in value.items()}
    return list(map(_joined, value)) if isinstance(value, list) else " ".join(value.split())


@cache
def _citations() -> dict[str, str]:
    """The entries by their keys."""
    entries = CITATIONS.read_text("utf-8").strip().split("\n\n")
    return {re.split("[{,]", entry, maxsplit=2)[1]: entry for entry in entries}


REASONS = texts_beside(__file__)
"""Why several builders reject candidates."""
