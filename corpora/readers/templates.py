"""Wikipedia's templates in running text, as a reader of the article sees them.

A template with a value shows it (`{{convert|12|km|mi}}` as `12 km`); one that marks a place or
gives a reference shows nothing. All others are unknown: `GAP`. The names are those of the English
Wikipedia; on a wiki in another language the same name may show something else, so that only what
MediaWiki itself defines (`formatnum:`) and footnotes are known there.
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
"""What a template shows for its values: unnamed in order (an empty one is "", except at the end),
and named (none is empty). Raises `IndexError` for a missing value.
"""

_FOOTNOTES = re.compile(r"sfn\w*|efn\b.*|refn|#tag:ref|(defaultsort|displaytitle)\b.*")
"""Templates and functions that show nothing on any wiki."""
_SILENT = re.compile(
    r"harv|harvcol|ref|ref label|notetag|note|rp?|cite (quote|check)|cn|fact|dn"
    r"|.* needed\??|(who|whom|what|when|where|which|why)\??|by whom.*|according to whom.*|clarif.*"
    r"|vague|dubious.*|disputed.*|failed verification|verif.*|better source.*|unreliable.*|or"
    r"|self-published.*|original research.*|pov.*|weasel.*|.*[ -]inline|(permanent )?dead link|full"
    r"|update\b.*|anchors?|short description|use .*|flag ?icon.*|listen|clear"
)
"""References, notes of editors, pictures and sounds."""
_WRAPPED = re.compile(r".*\bspan")
"""Notes of editors on words, which they show: `{{clarify span|almost flat}}`."""
_FRACTION = re.compile(r"\d{1,3}/\d{1,3}")

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_POWER = re.compile(r"(?<=[a-z])[23]$")
_AS_GIVEN = frozenset(("", "b", "or", "comma", "br", "br()", "x", "sqbr", "/", "s", "flip"))
"""What the argument `disp` of a measure may be for the first value to be shown with its unit."""
_BETWEEN = {"-": "–", "x": "×", "*": "×", "+/-": "±"} | {
    w: w for w in ("–", "by", "to", "and", "or")
}
_NUMBER = re.compile(r"[-−+]?\d[\d,.]*(?:[+-]\d+/+\d+)?|\d+/+\d+")
_PLAIN = re.compile(r"(?P<sign>[-−]?)(?P<whole>\d{1,30})(?P<decimals>(?:\.\d+)?)")
_EXPONENT = re.compile(r"[-−+]?\d+")
_RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_SEPARATORS = _TABLES.pop("numbers")
_UNITS = {
    unit: unit if text == "as written" else text
    for text, units in _TABLES.pop("units").items()
    for unit in units
}


def raised(digits: str) -> str:
    """An exponent as superscript characters; anything else unchanged."""
    return digits.translate(_RAISED) if _EXPONENT.fullmatch(digits) else digits


def grouped(number: str, language: str = "en") -> str:
    """A number as MediaWiki's `formatnum` shows it in a language; `GAP` if that is not known.

    Anything but a plain number is given back on an English wiki.
    """
    parts, known = _PLAIN.fullmatch(number), _SEPARATORS.get(language, {})
    if not parts or not known:
        return number if language == "en" else GAP
    whole, least = parts["whole"], known.get("from", 4)
    if len(whole) == 4 and not least:
        return GAP
    if len(whole) >= least:
        whole = f"{int(whole):,}".replace(",", known["thousands"])
    return parts["sign"] + whole + parts["decimals"].replace(".", known["decimals"])


def _at(values: Values, place: int) -> str:
    """The value at a place, which is not empty."""
    value = values[place]
    if value.strip():
        return value
    raise IndexError


def _unit(code: str) -> str:
    """The unit that a code of `convert` shows, part by part (`km/h`, `m2`); "" if unknown."""
    if code in _UNITS:
        return _UNITS[code]
    parts = code.split("/")
    if not all(_POWER.sub("", part) in _UNITS for part in parts):
        return ""
    powers = (_POWER.sub(lambda m: "²³"[int(m[0]) - 2], part) for part in parts)
    return "/".join(_UNITS.get(part, part) for part in powers)


def _converted(values: Values, named: Named) -> str:
    """A measure as given, without its conversion."""
    if named.get("disp", "") not in _AS_GIVEN or named.get("order") == "out" or "spell" in named:
        return GAP
    shown: list[str] = []
    for place, value in enumerate(values):
        if _NUMBER.fullmatch(value):
            whole, _, part = re.sub(r"(?<=\d)[+-](?=\d+/)", " ", value).partition(" ")
            shown.append(f"{grouped(whole)} {part}".strip().replace("//", "/"))
        elif not shown or not _NUMBER.fullmatch(values[place - 1]):
            return GAP
        elif value in _BETWEEN:
            shown.append(_BETWEEN[value])
        elif unit := _unit(value):
            shown.append(unit)
            # In `6 ft 2 in` a unit follows the second number; a precision stands alone.
            number, second = (*values[place + 1 : place + 3], "", "")[:2]
            if not (_NUMBER.fullmatch(number) and second):
                break
        else:
            return GAP
    between = "-" if named.get("adj") in ("on", "mid") and len(shown) == 2 else " "
    return between.join(shown).replace(" – ", "–") or GAP


def _date(values: Values, named: Named) -> str:
    """`May 4, 2001`, or `4 May 2001` with `df`; a date that is written out unchanged."""
    year = _at(values, 0)
    if not year.isdecimal():
        return GAP if len(values) > 1 or re.fullmatch(r"[\d-]+", year) else year
    if not all(value.isdecimal() and len(value) < 3 for value in values[1:3]):
        return GAP
    month, day, *_ = (*map(int, values[1:3]), 0, 0)
    if not month:
        return year
    name = _MONTHS[month - 1]
    if not day:
        return f"{name} {year}"
    return f"{day} {name} {year}" if {"df", "dmy"} & named.keys() else f"{name} {day}, {year}"


def _moment(values: Values, named: Named) -> str:
    """A date that may have a time of day, which is not known how to show."""
    return GAP if len(values) > 3 else _date(values, named)


def _as_of(values: Values, named: Named) -> str:
    if "alt" in named or "bare" in named:
        return named.get("alt", GAP)
    american = named.get("df", "").lower() == "us"
    date = _date(values, {} if american else {"df": "y"})
    word = "Since" if "since" in named else "As of"
    return f"{word.lower() if 'lc' in named else word} {date}"


def _circa(values: Values, named: Named) -> str:
    return " – ".join(f"c. {year}" for year in values[:2]) or "c."


def _fraction(values: Values, named: Named) -> str:
    """`{{frac|4}}` is a quarter, `{{frac|2|1|4}}` two and a quarter."""
    if not 0 < len(values) < 4 or not all(values):
        return GAP
    *whole, above, below = ("1", *values) if len(values) == 1 else values
    return " ".join((*whole, f"{above}/{below}"))


def _measured(values: Values, named: Named) -> str:
    """`{{val|1200|u=m|e=3}}`, `{{val|1.5|0.2}}`."""
    unit = named.get("u") or named.get("ul") or ""
    known = {"u", "ul", "e", "fmt", "p", "s"} >= named.keys()
    if not known or len(values) > 2 or not all(map(_PLAIN.fullmatch, values)):
        return GAP
    commas = grouped if named.get("fmt") == "commas" else str
    number = "±".join(map(commas, values)) if _at(values, 0) else ""
    power = f"×10{raised(named['e'])}" if "e" in named else ""
    shown = f"{named.get('p', '')}{number}{power}{named.get('s', '')}"
    return f"{shown} {unit}".strip()


def _first(values: Values, named: Named) -> str:
    return named.get("text") or named.get("lt") or _at(values, 0)


def _last(values: Values, named: Named) -> str:
    return named.get("text") or _at(values[1:], -1)  # the first one is a language or a colour


def _joined(values: Values, named: Named) -> str:
    """Words that the editors wrote in pieces, to keep programs from correcting them."""
    return "".join(values[1:] if values[:1] == ["?"] else values)


def _sound(values: Values, named: Named) -> str:
    """The label of a file; one that says that it is a sound is no part of the sentence."""
    label = values[1] if len(values) > 1 else ""
    return "" if label.lower() in ("listen", "play", "pronunciation") else label


def _honours(values: Values, named: Named) -> str:
    """`{{post-nominals|country=GBR|OBE|FRS}}`."""
    return " ".join(values) if "country" in named and values else GAP


def _country(values: Values, named: Named) -> str:
    """A country's name; the name for a code is not known."""
    name = named.get("name") or _at(values, 0)
    return GAP if name.isupper() else name


def _ship(values: Values, named: Named) -> str:
    """`{{ship|HMS|Kite|1805|2}}`: prefix, name, what tells it from others, and which are shown."""
    prefix, name, apart, form = (*values, "", "", "", "")[:4]
    shown = {
        "": (prefix, name, f"({apart})" if apart else ""),
        "2": (name,),
        "3": (name, f"({apart})"),
        "6": (prefix, name),
    }.get(form)
    return " ".join(filter(None, shown)) if shown and name else GAP


def _stripped(show: Show) -> Show:
    """A template whose values are no running text, so that blanks around them mean nothing."""

    def strip(values: Values, named: Named) -> str:
        kept = [value.strip() for value in values]
        while kept and not kept[-1]:
            kept.pop()
        return show(kept, named)

    return strip


def silent(values: Values, named: Named) -> str:
    """A note of editors shows nothing, unless it has a text."""
    return GAP if "text" in named else ""


def unknown(values: Values, named: Named) -> str:
    return GAP


_FUNCTIONS: dict[str, Show] = {
    "converted": _converted,
    "measured": _measured,
    "fraction": _fraction,
    "as_of": _as_of,
    "circa": _circa,
    "date": _date,
    "moment": _moment,
    "first": _first,
    "second": lambda values, named: named.get("text") or _at(values, 1),
    "last": _last,
    "raised": lambda values, named: raised(_at(values, 0)),
    "resized": lambda values, named: _at(values, -1),
    "joined": _joined,
    "spaced": lambda values, named: " ".join(values) or " ",
    "sound": _sound,
    "honours": _honours,
    "country": _country,
    "ship": _ship,
    "mark": lambda values, named: GAP if values else "",
    "old_date": lambda values, named: f"{_at(values, 0)} {_at(values, 1)}",
    "block": lambda values, named: f"\n\n{_first(values, named)}\n\n",
}
_KINDS: dict[str, Callable[[str], Show]] = {
    "shows": _FUNCTIONS.__getitem__,
    "sign": lambda text: lambda values, named: text,
    "years": lambda text: lambda values, named: (text + "–".join(values[:2])).strip(),
    "before": lambda text: lambda values, named: text + _at(values, 0),
    "money": lambda text: lambda values, named: text + grouped(_at(values, 0)),
    "around": lambda text: lambda values, named: text[0] + _at(values, 0) + text[1],
    "ships": lambda text: lambda values, named: _ship([text, *values], named),
}
_RUNNING_TEXT = frozenset(("first", "second", "last", "resized", "joined"))
_SHOWN = {
    name: _KINDS[kind](text) if text in _RUNNING_TEXT else _stripped(_KINDS[kind](text))
    for kind, table in _TABLES.items()
    for text, names in table.items()
    for name in names
}
_MAGIC_WORDS = ("!", "=")
"""Names in `_SHOWN` that MediaWiki defines itself."""


def shown(name: str, language: str = "en") -> Show:
    """What a template shows on a wiki in a language: `silent`, `unknown`, or its value.

    A parser function has its first value after a colon in its name (`formatnum:1200`).
    """
    name = " ".join(name.replace("_", " ").split()).lower().removeprefix("template:")
    function, colon, value = name.partition(":")
    if colon and function == "formatnum":
        number = value.strip()
        plain = re.fullmatch(r"[-−\d.,]+", number)
        return lambda values, named: grouped(number, language) if plain and not values else GAP
    if _FOOTNOTES.fullmatch(name):
        return silent
    if language != "en" and name not in _MAGIC_WORDS:
        return unknown
    if name in _SHOWN:
        return _SHOWN[name]
    if _FRACTION.fullmatch(name):
        return lambda values, named: name
    if _WRAPPED.fullmatch(name):
        return _first
    return silent if _SILENT.fullmatch(name) else unknown
