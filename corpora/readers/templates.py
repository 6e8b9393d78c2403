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
Renderer = Callable[[Values, Named], str]
"""A function that returns what a template shows for its values: those without a name, in order (an
empty one is "", except at the end), and those with a name (none is empty). Raises `IndexError` for
a missing value.
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
_AS_GIVEN = frozenset(("", "b", "or", "comma", "br", "br()", "x", "sqbr", "/", "s"))
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


def superscript(digits: str) -> str:
    """Return an exponent in superscript characters (`10` as `¹⁰`); any other text unchanged."""
    return digits.translate(_RAISED) if _EXPONENT.fullmatch(digits) else digits


def formatted_number(number: str, language: str = "en") -> str:
    """Return a number as MediaWiki's `formatnum` shows it in a language; `GAP` if that is unknown.

    On an English wiki any text but a plain number comes back unchanged.
    """
    parts, separators = _PLAIN.fullmatch(number), _SEPARATORS.get(language, {})
    if not parts or not separators:
        return number if language == "en" else GAP
    whole, least_digits = parts["whole"], separators.get("from", 4)
    if len(whole) == 4 and not least_digits:
        return GAP
    if len(whole) >= least_digits:
        whole = f"{int(whole):,}".replace(",", separators["thousands"])
    return parts["sign"] + whole + parts["decimals"].replace(".", separators["decimals"])


def _value_at(values: Values, index: int) -> str:
    """Return the value at an index; `IndexError` if it is missing or blank."""
    value = values[index]
    if value.strip():
        return value
    raise IndexError


def _shown_unit(code: str) -> str:
    """Return the unit that a code of `convert` shows (`m²` for `m2`, `km/h`); "" if unknown."""
    if code in _UNITS:
        return _UNITS[code]
    parts = code.split("/")
    if not all(_POWER.sub("", part) in _UNITS for part in parts):
        return ""
    powers = (_POWER.sub(lambda m: "²³"[int(m[0]) - 2], part) for part in parts)
    return "/".join(_UNITS.get(part, part) for part in powers)


def _render_measure(values: Values, named: Named) -> str:
    """Return what `convert` shows: the measure as given (`12 km`), without its conversion. Where
    the conversion comes first (`flip`), what it shows is unknown."""
    if (
        named.get("disp", "") not in _AS_GIVEN
        or named.get("order") in ("out", "flip")
        or "spell" in named
    ):
        return GAP
    pieces: list[str] = []
    for place, value in enumerate(values):
        if _NUMBER.fullmatch(value):
            whole, _, part = re.sub(r"(?<=\d)[+-](?=\d+/)", " ", value).partition(" ")
            pieces.append(f"{formatted_number(whole)} {part}".strip().replace("//", "/"))
        elif not pieces or not _NUMBER.fullmatch(values[place - 1]):
            return GAP
        elif value in _BETWEEN:
            pieces.append(_BETWEEN[value])
        elif unit := _shown_unit(value):
            pieces.append(unit)
            # In `6 ft 2 in` a unit follows the second number; a precision stands alone.
            next_number, next_unit = (*values[place + 1 : place + 3], "", "")[:2]
            if not (_NUMBER.fullmatch(next_number) and next_unit):
                break
        else:
            return GAP
    adj = named.get("adj")
    between = "-" if adj in ("on", "mid") and len(pieces) == 2 else " "
    # `adj=mid` puts the last value behind the unit: `12-km-long` of `12|km|mi|adj=mid|-long`.
    behind = values[-1] if adj == "mid" and len(values) > 2 else ""
    if _NUMBER.fullmatch(behind) or _shown_unit(behind):
        behind = ""
    if behind and not behind.startswith("-"):
        return GAP
    return between.join(pieces).replace(" – ", "–") + behind or GAP


def _render_date(values: Values, named: Named) -> str:
    """Return year, month and day as `May 4, 2001`, or with `df` as `4 May 2001`. A single value
    that is more than digits is a date already, and comes back unchanged. Else returns `GAP`."""
    year = _value_at(values, 0)
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


def _render_moment(values: Values, named: Named) -> str:
    """Return a date as `_render_date` does; `GAP` if it has a time of day."""
    return GAP if len(values) > 3 else _render_date(values, named)


def _render_as_of(values: Values, named: Named) -> str:
    """Return `As of May 2001`, or `Since ...`, as `{{as of|2001|5}}` shows it."""
    if "alt" in named or "bare" in named:
        return named.get("alt", GAP)
    american = named.get("df", "").lower() == "us"
    date = _render_date(values, {} if american else {"df": "y"})
    word = "Since" if "since" in named else "As of"
    return f"{word.lower() if 'lc' in named else word} {date}"


def _render_circa(values: Values, named: Named) -> str:
    """Return one year or two after `c.`: `c. 1200 – c. 1250`."""
    return " – ".join(f"c. {year}" for year in values[:2]) or "c."


def _render_fraction(values: Values, named: Named) -> str:
    """Return a fraction: `1/4` for `{{frac|4}}`, `2 1/4` for `{{frac|2|1|4}}`."""
    if not 0 < len(values) < 4 or not all(values):
        return GAP
    *whole, above, below = ("1", *values) if len(values) == 1 else values
    return " ".join((*whole, f"{above}/{below}"))


def _render_value(values: Values, named: Named) -> str:
    """Return a value with its unit: `1200×10³ m` for `{{val|1200|u=m|e=3}}`, or `1.5±0.2`. Returns
    `GAP` for other values or names."""
    unit = named.get("u") or named.get("ul") or ""
    is_known = {"u", "ul", "e", "fmt", "p", "s"} >= named.keys()
    if not is_known or len(values) > 2 or not all(map(_PLAIN.fullmatch, values)):
        return GAP
    format_number = formatted_number if named.get("fmt") == "commas" else str
    number = "±".join(map(format_number, values)) if _value_at(values, 0) else ""
    power = f"×10{superscript(named['e'])}" if "e" in named else ""
    text = f"{named.get('p', '')}{number}{power}{named.get('s', '')}"
    return f"{text} {unit}".strip()


def _render_first(values: Values, named: Named) -> str:
    """Return the text that a template shows: its named `text` or `lt`, else its first value."""
    return named.get("text") or named.get("lt") or _value_at(values, 0)


def _render_last(values: Values, named: Named) -> str:
    """Return the text that a template shows: its named `text`, else its last value. The first value
    is a language or a colour."""
    return named.get("text") or _value_at(values[1:], -1)


def _render_joined(values: Values, named: Named) -> str:
    """Join the pieces of a word, which editors split so that no program corrects it."""
    return "".join(values[1:] if values[:1] == ["?"] else values)


def _render_sound(values: Values, named: Named) -> str:
    """Return the label of a sound file, or "" for a button's label such as `listen`."""
    label = values[1] if len(values) > 1 else ""
    return "" if label.lower() in ("listen", "play", "pronunciation") else label


def _render_honours(values: Values, named: Named) -> str:
    """Return the letters behind a name: `OBE FRS` for `{{post-nominals|country=GBR|OBE|FRS}}`."""
    return " ".join(values) if "country" in named and values else GAP


def _render_country(values: Values, named: Named) -> str:
    """Return a country's name; `GAP` for a code such as `GBR`, whose name is not known."""
    name = named.get("name") or _value_at(values, 0)
    return GAP if name.isupper() else name


def _render_ship(values: Values, named: Named) -> str:
    """Return the name of a ship in one of its forms: `HMS Kite (1805)` for `HMS|Kite|1805`. The
    values are prefix, name, what tells the ship from others, and the number of the form."""
    prefix, name, distinction, form = (*values, "", "", "", "")[:4]
    pieces = {
        "": (prefix, name, f"({distinction})" if distinction else ""),
        "2": (name,),
        "3": (name, f"({distinction})"),
        "6": (prefix, name),
    }.get(form)
    return " ".join(filter(None, pieces)) if pieces and name else GAP


def _with_stripped_values(render: Renderer) -> Renderer:
    """Return `render` with blanks around values removed: for values that are not running text."""

    def render_stripped(values: Values, named: Named) -> str:
        stripped = [value.strip() for value in values]
        while stripped and not stripped[-1]:
            stripped.pop()
        return render(stripped, named)

    return render_stripped


def render_nothing(values: Values, named: Named) -> str:
    """Return "", as a note of editors shows nothing; `GAP` if the note has a `text`."""
    return GAP if "text" in named else ""


def render_gap(values: Values, named: Named) -> str:
    """Return `GAP`: it is unknown what the template shows."""
    return GAP


_FUNCTIONS: dict[str, Renderer] = {
    "converted": _render_measure,
    "measured": _render_value,
    "fraction": _render_fraction,
    "as_of": _render_as_of,
    "circa": _render_circa,
    "date": _render_date,
    "moment": _render_moment,
    "first": _render_first,
    "second": lambda values, named: named.get("text") or _value_at(values, 1),
    "last": _render_last,
    "raised": lambda values, named: superscript(_value_at(values, 0)),
    "resized": lambda values, named: _value_at(values, -1),
    "joined": _render_joined,
    "spaced": lambda values, named: " ".join(values) or " ",
    "sound": _render_sound,
    "honours": _render_honours,
    "country": _render_country,
    "ship": _render_ship,
    "mark": lambda values, named: GAP if values else "",
    "old_date": lambda values, named: f"{_value_at(values, 0)} {_value_at(values, 1)}",
    "block": lambda values, named: f"\n\n{_render_first(values, named)}\n\n",
}
_KINDS: dict[str, Callable[[str], Renderer]] = {
    "shows": _FUNCTIONS.__getitem__,
    "sign": lambda text: lambda values, named: text,
    "years": lambda text: lambda values, named: (text + "–".join(values[:2])).strip(),
    "before": lambda text: lambda values, named: text + _value_at(values, 0),
    "money": lambda text: lambda values, named: text + formatted_number(_value_at(values, 0)),
    "around": lambda text: lambda values, named: text[0] + _value_at(values, 0) + text[1],
    "ships": lambda text: lambda values, named: _render_ship([text, *values], named),
}
_RUNNING_TEXT = frozenset(("first", "second", "last", "resized", "joined"))
_RENDERERS = {
    name: _KINDS[kind](text) if text in _RUNNING_TEXT else _with_stripped_values(_KINDS[kind](text))
    for kind, table in _TABLES.items()
    for text, names in table.items()
    for name in names
}
_MAGIC_WORDS = ("!", "=")
"""Names in `_RENDERERS` that MediaWiki defines itself."""


def renderer_of(name: str, language: str = "en") -> Renderer:
    """Return the function that renders a template on a wiki in a language.

    It is `render_gap` for an unknown template. A parser function has its first value after a colon
    in its name (`formatnum:1200`).
    """
    name = " ".join(name.replace("_", " ").split()).lower().removeprefix("template:")
    function, colon, value = name.partition(":")
    if colon and function == "formatnum":
        number = value.strip()
        plain = re.fullmatch(r"[-−\d.,]+", number)
        return lambda values, named: (
            formatted_number(number, language) if plain and not values else GAP
        )
    if _FOOTNOTES.fullmatch(name):
        return render_nothing
    if language != "en" and name not in _MAGIC_WORDS:
        return render_gap
    if name in _RENDERERS:
        return _RENDERERS[name]
    if _FRACTION.fullmatch(name):
        return lambda values, named: name
    if _WRAPPED.fullmatch(name):
        return _render_first
    return render_nothing if _SILENT.fullmatch(name) else render_gap
