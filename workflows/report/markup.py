"""HTML and SVG. Every text of the report becomes markup here, so that all texts are escaped."""

from __future__ import annotations

import json
from typing import Any

from corpora import escape


class Html(str):
    """A text that is markup, and is not escaped again."""

    __slots__ = ()


def escaped(value: Any) -> Html:
    """Return a value as markup that shows its characters; markup stays as it is."""
    return value if isinstance(value, Html) else Html(escape.html(value))


def joined(*children: Any) -> Html:
    """Join texts and markup to one markup; texts are escaped."""
    return Html("".join(map(escaped, children)))


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """Write an element with its children, which are texts or markup.

    Attributes that are None or False are left out; `class_` and `aria_label` lose or change `_`.
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
    """Write a text as a link to `url`; without a link if that is not an address on the web."""
    return tag("a", text, href=url) if url.startswith(("https://", "http://")) else escaped(text)


def script_json(value: Any) -> str:
    """Write a value as JSON for a `<script>`, without `<` and line separators (U+2028, U+2029).

    A value that JSON lacks, such as a date, becomes a text.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.translate({ord(mark): f"\\u{ord(mark):04x}" for mark in "<\u2028\u2029"})
