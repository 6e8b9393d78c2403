"""HTML and SVG: every text of the report becomes markup here, and only here."""

from __future__ import annotations

import json
from typing import Any

from corpora import escape


class Html(str):
    """A text that is markup already."""

    __slots__ = ()


def escaped(value: Any) -> Html:
    """A value as markup: its characters, whatever they are; markup stays as it is."""
    return value if isinstance(value, Html) else Html(escape.html(value))


def joined(*children: Any) -> Html:
    """Texts and markup, one after the other."""
    return Html("".join(map(escaped, children)))


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """An element. Attributes that are None or False are left out; `class_` is written `class`,
    `aria_label` is written `aria-label`.
    """
    words = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(attribute)
        elif value is not None and value is not False:
            words.append(f'{attribute}="{escaped(value)}"')
    return Html(f"<{' '.join(words)}>{joined(*children)}</{name}>")


def link(text: str, url: str) -> Html:
    """A text that leads to `url`, if that is an address on the web."""
    return tag("a", text, href=url) if url.startswith(("https://", "http://")) else escaped(text)


def script_json(value: Any) -> str:
    """A value as JSON that a `<script>` can hold: it ends no script and no line.

    What JSON lacks, such as a date, is a text.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.translate({ord(mark): f"\\u{ord(mark):04x}" for mark in "<\u2028\u2029"})
