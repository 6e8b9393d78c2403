"""Wikipedia's templates in running text, as a reader of the article sees them.

A template with a value shows it (`{{convert|12|km|mi}}` as `12 km`); one that marks a place or
gives a reference shows nothing. All others are unknown: `GAP`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

GAP = "\ufdd0"
"""Stands for something missing that a reader of the article sees. No text has this code."""

Values = Sequence[str]
Named = Mapping[str, str]
Show = Callable[[Values, Named], str]
"""What a template shows for its values: unnamed in order, and named; none is empty. Raises
`IndexError` for a missing value.
"""

_SILENT = re.compile(
    r"sfn\w*|harv\w*|efn\b.*|refn?|ref label|notetag|note|rp?|cite\b.*|citation( needed)?|cn|fact"
    r"|.* needed|who|whom|what|when|where|which|why|by whom.*|according to whom.*|clarif.*|vague"
    r"|dubious.*|disputed.*|failed verification|verif.*|better source.*|unreliable.*|or"
    r"|self-published.*|original research.*|pov.*|weasel.*|dead link|full|update\b.*|anchors?"
    r"|sic|short description|use .*|flag ?icon.*|respell|ipa.*|pron.*|audio|listen|clear|shy"
    r"|post-?nominals|defaultsort.*|displaytitle.*"
)
"""References, notes of editors, pictures, sounds and pronunciations."""

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_UNITS = {
    "sqmi": "sq mi", "sqft": "sq ft", "cuft": "cu ft", "cumi": "cu mi", "C": "°C", "F": "°F",
    "kph": "km/h", "nmi": "nautical miles", "impgal": "gallons", "usgal": "gallons",
}  # fmt: skip
_SECOND_UNITS = frozenset(("in", "oz", "lb", "yd", "ft", "s", "min"))
"""Units of values such as `6 ft 2 in`; any other number after a unit is a precision."""
_POWER = re.compile(r"(?<=[a-z])[23]$")
_BETWEEN = {"-": "–", "x": "×", "*": "×", "+/-": "±"} | {
    w: w for w in ("–", "by", "to", "and", "or")
}
_NUMBER = re.compile(r"[-−+]?\d[\d,.]*(?:[+-]\d+/\d+)?|\d+/\d+")


def grouped(number: str) -> str:
    """A number with thousands separators, as English Wikipedia shows it."""
    return f"{int(number):,}" if number.isdecimal() and 3 < len(number) < 30 else number


def _converted(values: Values, named: Named) -> str:
    """A measure as given, without its conversion."""
    shown: list[str] = []
    for place, value in enumerate(values):
        if _NUMBER.fullmatch(value):
            shown.append(grouped(value))
        elif not shown or not _NUMBER.fullmatch(values[place - 1]):
            return GAP
        elif value in _BETWEEN:
            shown.append(_BETWEEN[value])
        else:
            shown.append(_UNITS.get(value) or _POWER.sub(lambda m: "²³"[int(m[0]) - 2], value))
            if not set(values[place + 2 : place + 3]) & _SECOND_UNITS:
                break
    between = "-" if named.get("adj") in ("on", "mid") and len(shown) == 2 else " "
    return between.join(shown).replace(" – ", "–") or GAP


def _date(values: Values, named: Named) -> str:
    """`May 4, 2001`, or `4 May 2001` with `df`; other values unchanged."""
    if not values[0].isdecimal():
        return values[0]
    if not all(value.isdecimal() and len(value) < 3 for value in values[1:3]):
        return GAP
    year = values[0]
    month, day, *_ = (*map(int, values[1:3]), 0, 0)
    if not month:
        return year
    name = _MONTHS[month - 1]
    if not day:
        return f"{name} {year}"
    return f"{day} {name} {year}" if {"df", "dmy"} & named.keys() else f"{name} {day}, {year}"


def _as_of(values: Values, named: Named) -> str:
    word = "Since" if "since" in named else "As of"
    return f"{word.lower() if 'lc' in named else word} {_date(values, {'df': 'y'})}"


def _fraction(values: Values, named: Named) -> str:
    whole, parts = (values[0], values[1:]) if len(values) == 3 else ("", values)
    return f"{whole} {'/'.join(parts)}".strip() or GAP


def _measured(values: Values, named: Named) -> str:
    """`{{val|1200|u=m|e=3}}`."""
    power = f"×10^{named['e']}" if "e" in named else ""
    unit = named.get("u") or named.get("ul") or ""
    return f"{grouped(values[0])}{power} {unit}".strip()


_FUNCTIONS: dict[str, Show] = {
    "converted": _converted,
    "measured": _measured,
    "fraction": _fraction,
    "as_of": _as_of,
    "date": _date,
    "first": lambda values, named: named.get("text") or named.get("lt") or values[0],
    "last": lambda values, named: named.get("text") or values[-1],
    "joined": lambda values, named: f"{values[0]} {values[1]}",
    "block": lambda values, named: f"\n\n{_FUNCTIONS['first'](values, named)}\n\n",
}
_KINDS: dict[str, Callable[[str], Show]] = {
    "shows": _FUNCTIONS.__getitem__,
    "sign": lambda text: lambda values, named: text,
    "years": lambda text: lambda values, named: (text + "–".join(values[:2])).strip(),
    "before": lambda text: lambda values, named: text + values[0],
}
_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_SHOWN = {
    name: _KINDS[kind](text)
    for kind, table in _TABLES.items()
    for text, names in table.items()
    for name in names
}


def shown(name: str) -> Show | str:
    """What a template shows: "" or `GAP` if its values do not tell.

    A parser function has its first value after a colon in its name (`formatnum:1200`).
    """
    name = " ".join(name.replace("_", " ").split()).lower().removeprefix("template:")
    function, colon, value = name.partition(":")
    if colon and function == "formatnum":
        return grouped(value.strip())
    return _SHOWN.get(name) or ("" if _SILENT.fullmatch(name) else GAP)
