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
    """Return the card `name` from the TOML file beside a module, which is given by its `__file__`.

    The table's `reasons` are added to the common ones; its `cites` are keys of `cards.bib`, in the
    order of the card.
    """
    table = texts_beside(module)[name]
    keys = table.pop("cites")
    table["reasons"] = REASONS | table.get("reasons", {})
    return Card(**table, citation="\n".join(map(_citations().__getitem__, keys)))


def texts_beside(module: str) -> dict[str, Any]:
    """Return the TOML file beside a module (its `__file__`), each text's lines joined to one."""
    file = Path(module).with_suffix(".toml")
    texts: dict[str, Any] = _in_one_line(tomllib.loads(file.read_text("utf-8")))
    return texts


def _in_one_line(value: Any) -> Any:
    """Return a value of a TOML table with the lines of each text in it joined to one."""
    if isinstance(value, dict):
        return {key: _in_one_line(each) for key, each in value.items()}
    if isinstance(value, bool):
        return value
    return list(map(_in_one_line, value)) if isinstance(value, list) else " ".join(value.split())


@cache
def _citations() -> dict[str, str]:
    """Return the entries of `cards.bib` by their keys."""
    entries = CITATIONS.read_text("utf-8").strip().split("\n\n")
    return {re.split("[{,]", entry, maxsplit=2)[1]: entry for entry in entries}


REASONS = texts_beside(__file__)
"""The meanings of the reasons for rejecting candidates that several builders share."""
