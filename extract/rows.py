"""The rows of a pattern table: what a row may say, and the check of each as it is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from corpora.errors import ConfigError, nearest

SCHEMES = ("ud", "clear")
PLACES = ("any", "initial", "edge", "before", "after", "after_governor")
S2_CHOICES = ("head", "edge_clause", "self", "right_conjunct", "complement")
S1_CHOICES = (
    "parent",
    "clause",
    "sentence",
    "conjunct",
    "first_conjunct",
    "marker_head",
    "previous",
)
ORDERS = ("any", "s1_first", "s2_first")
SPAN_KEYS = ("s1_drop", "s2_drop", "s1_mute", "s2_mute")
CHILD_SPEC = re.compile(r"(<|>>?)?[=@]?[a-z]+(:[a-z]+)*(\+(clause|subject))?")
DERIVED = ("subject", "copula", "finite", "complement", "clause", "statement")
TAG_COLUMNS = ("upos", "xpos", "feats")
LABEL_KEYS = ("deprels", "s2_deprels", "s1_deprels", "s1_not", "climb", *SPAN_KEYS)
CLASSES = (
    "subject",
    "copula",
    "auxiliary",
    "conjunct",
    "punctuation",
    "core",
    "opener",
    "dependent",
    "remnant",
    "complement",
    "subordinator",
    "modifier",
    "stray",
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One marker in one construction: a row of a table.

    The marker token has one of `deprels`; S2's head is found from it by `s2`, S1's head from
    S2's by `s1`. Labels match their subtypes (`acl` also `acl:relcl`), `=acl` only itself.
    """

    id: str
    marker: str
    deprels: tuple[str, ...]
    comment: str
    example: str
    schemes: tuple[str, ...] = SCHEMES
    place: str = "any"
    tags: tuple[str, ...] = ()
    not_before: tuple[str, ...] = ()
    s2: str = "head"
    s2_deprels: tuple[str, ...] = ()
    s2_needs: tuple[str, ...] = ()
    s2_lacks: tuple[str, ...] = ()
    s1: str = "parent"
    s1_deprels: tuple[str, ...] = ()
    s1_not: tuple[str, ...] = ()
    s1_needs: tuple[str, ...] = ()
    s1_lacks: tuple[str, ...] = ()
    climb: tuple[str, ...] = ()
    apart: bool = False
    alike: bool = False
    uninverted: bool = False
    order: str = "any"
    s1_drop: tuple[str, ...] | None = None
    s2_drop: tuple[str, ...] | None = None
    s1_mute: tuple[str, ...] | None = None
    s2_mute: tuple[str, ...] | None = None


KINDS: dict[str, type] = {
    f.name: list if "tuple" in str(f.type) else bool if f.type == "bool" else str
    for f in fields(Pattern)
}
CHOICES = {"place": PLACES, "s2": S2_CHOICES, "s1": S1_CHOICES, "order": ORDERS, "schemes": SCHEMES}


@dataclass(frozen=True, slots=True)
class Multiword:
    """A connective of several words; `second` are those that stand further on (`if ... then`).

    Its rows are those of the marker `like`. It is labelled as itself where it was asked for and
    left out otherwise, never counted as one of its words.
    """

    words: tuple[str, ...]
    like: str
    second: tuple[str, ...] = ()
    last_deprels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        parts = [" ".join(self.words)] + ([" ".join(self.second)] if self.second else [])
        return " ... ".join(parts)


def read_pattern(row: Mapping[str, Any], where: str, properties: Mapping[str, Any]) -> Pattern:
    refuse_unknown(row, {f.name for f in fields(Pattern)}, where)
    for key in ("id", "marker", "deprels", "comment", "example"):
        if not row.get(key):
            raise ConfigError(f"the key {key!r} is missing or empty", where=where)
    for key, value in row.items():
        check_kind(key, value, KINDS[key], where)
    for key, choices in CHOICES.items():
        for value in [row[key]] if isinstance(row.get(key), str) else row.get(key, ()):
            _check_choice(key, value, choices, where)
    for key in ("tags", "s2_needs", "s2_lacks", "s1_needs", "s1_lacks"):
        for name in row.get(key, ()):
            _check_choice(key, name, (*properties, *DERIVED), where)
    for key in SPAN_KEYS:
        check_children(key, row.get(key, ()), where)
    if row.get("s2") == "complement" and not row.get("s2_deprels"):
        raise ConfigError("s2 = 'complement' needs s2_deprels, its labels", where=where)
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return Pattern(**values)


def check_kind(key: str, value: Any, kind: type, where: str) -> None:
    """ConfigError unless `value` is of `kind`; a list must hold strings, or tables."""
    names = {str: "string", bool: "boolean (true or false)", list: "list", dict: "table"}
    if not isinstance(value, kind):
        raise ConfigError(f"{key} = {value!r} is no {names[kind]}", where=where)
    inner = dict if key in ("pattern", "multiword") else str
    for member in value if isinstance(value, list) else ():
        if not isinstance(member, inner):
            raise ConfigError(f"{key} holds {member!r}, no {names[inner]}", where=where)


def check_references(
    key: str, specs: Iterable[str], classes: Mapping[str, Any], where: str
) -> None:
    """ConfigError if one of the labels names a class (`@name`) that the table has not."""
    for spec in specs:
        name = spec.lstrip("<>").partition("+")[0]
        if name.startswith("@"):
            _check_choice(key, name, [f"@{known}" for known in classes], where)


def _check_choice(key: str, value: Any, choices: Iterable[str], where: str) -> None:
    if value not in tuple(choices):
        near = nearest(str(value), choices)
        raise ConfigError(f"{key} = {value!r}; {near}choose from {', '.join(choices)}", where=where)


def check_children(key: str, specs: Iterable[str], where: str) -> None:
    for spec in specs:
        if not CHILD_SPEC.fullmatch(spec):
            raise ConfigError(
                f"{key} holds {spec!r}; expected a label, with `<`, `>` or `>>` before it and "
                "`+clause` or `+subject` behind it where wanted",
                where=where,
            )


def read_multiword(row: Mapping[str, Any], where: str, rows: Iterable[Pattern]) -> Multiword:
    where = f"{where}, multiword {row.get('words')!r}"
    kinds: dict[str, type] = {"words": str, "second": str, "like": str, "last_deprels": list}
    refuse_unknown(row, kinds, where)
    for key, value in row.items():
        check_kind(key, value, kinds[key], where)
    if not row.get("words", "").split():
        raise ConfigError("the key 'words' is missing or empty", where=where)
    found = Multiword(
        words=tuple(row["words"].split()),
        like=row.get("like", ""),
        second=tuple(row.get("second", "").split()),
        last_deprels=tuple(row.get("last_deprels", ())),
    )
    if found.like and found.like not in {p.marker for p in rows}:
        raise ConfigError(f"like = {found.like!r} has no pattern", where=where)
    return found


def refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    for key in given:
        if key not in known:
            raise ConfigError(
                f"unknown key {key!r}; {nearest(key, known)}choose from {', '.join(sorted(known))}",
                where=where,
            )
