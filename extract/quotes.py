"""Quotes and brackets of a text that was cut out of another: each has its partner, or goes."""

from __future__ import annotations

import re

CLOSERS = "\"'”’»)]}"
OPENERS = "\"'“‘«([{"
EMPHASIS = "_"
MARKS = frozenset(OPENERS + CLOSERS + EMPHASIS)
SEPARATORS = " ,;:—–"
_PAIRS = {")": "(", "]": "[", "}": "{", "”": "“", "»": "«"}
_CLOSING = {"“": "”", "«": "»", '"': '"'}
"""Quotes that are told apart from other marks; `’` is an apostrophe far more often."""
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_PARTNER = _CLOSING | _BRACKETS
PAIRED = re.compile(r'["“”«»()\[\]{}]')
_EMPTY = re.compile(r"“[\s,;:—–]*”[\s,;:—–]*|«[\s,;:—–]*»[\s,;:—–]*")
_CLOSED = re.compile(r"[,.;:!?…]?([”»])")


def finished(text: str, stop: str, terminal: str) -> str:
    """The text with its quotes and brackets paired, and with a final `stop`.

    A mark at an end whose partner lies outside goes with the separators beside it; so do quotes
    with nothing between them. Inside, a closing quote without its opener goes too ("… have done
    that,” she said"), and a quote that runs on behind the text is closed where the text ends. No
    stop stands behind one of the `terminal` marks; in a closing quote it takes the place of a
    separator: "“There is your bird,”" ends in "bird.”", "he called it “home”" in "“home”.".
    """
    for _ in range(8):
        shorter = _strip_once(text)
        if shorter == text or not shorter:
            break
        text = shorter
    text, closing = _paired(_EMPTY.sub("", text) or text)
    if ends(text, terminal):
        return text + closing
    body = text.rstrip(CLOSERS + " ")
    tail = text[len(body) :].strip()
    if closing:
        text = text.rstrip(SEPARATORS)
        return text + (stop + closing if closing[-1] in _CLOSING.values() else closing + stop)
    if body and tail[:1] in _CLOSING.values() and body[-1] in SEPARATORS:
        return body.rstrip(SEPARATORS) + stop + tail
    return text + stop


def ends(text: str, terminal: str) -> bool:
    """Whether one of the `terminal` marks ends the text, be it inside quotes or brackets."""
    body = text.rstrip(CLOSERS + " ")
    return bool(body) and body[-1] in terminal


def closed_in(gap: str, text: str) -> str:
    """The closing quote in the `gap` behind `text` that the text needs, with its separator.

    Marker and commas between the parts of a clause are left out, and with them the quote would go:
    in "“Well, then,” said he" the parts are "“Well" and "said he".
    """
    found = _CLOSED.search(gap)
    if found is None or text.count(_PAIRS[found[1]]) <= text.count(found[1]):
        return ""
    return found[0]


def _strip_once(text: str) -> str:
    if text.startswith("''"):  # the quotes of the Penn Treebank: `` and ''
        return text[2:].lstrip(SEPARATORS)
    first, last = text[:1], text[-1:]
    if first in _PAIRS or (first in _PAIRS.values() and not _closed(text, first)):
        return text[1:].lstrip(SEPARATORS)
    if first in ('"', EMPHASIS) and text.count(first) % 2:
        return text[1:].lstrip(SEPARATORS)
    if last in _PAIRS.values() or (last in _PAIRS and _PAIRS[last] not in text):
        return text[:-1].rstrip(SEPARATORS)
    if last in ('"', EMPHASIS) and text.count(last) % 2:
        return text[:-1].rstrip(SEPARATORS)
    return text


def _closed(text: str, opener: str) -> bool:
    return any(close in text for close, open_ in _PAIRS.items() if open_ == opener)


def _paired(text: str) -> tuple[str, str]:
    """The text without closing marks that nothing opens, and what closes those left open."""
    opened: list[str] = []
    kept, done = "", 0
    for found in PAIRED.finditer(text):
        mark, at = found[0], found.start()
        before, after = text[max(at - 1, 0) : at], text[at + 1 : at + 2]
        if _opens(mark, before, after, opened):
            opened.append(_PARTNER[mark])
        elif mark in opened:
            while opened.pop() != mark:
                pass
        elif _goes(mark, before):
            kept, done = (kept + text[done:at]).rstrip(" "), at + 1
    return kept + text[done:], "".join(reversed(opened))


def _opens(mark: str, before: str, after: str, opened: list[str]) -> bool:
    """Whether a mark opens: of a straight quote that is not open yet, its neighbours tell.

    A bracket opens behind a blank: the one in ":(" does not.
    """
    if mark in _BRACKETS:
        return not before.strip()
    if mark != '"' or mark in opened:
        return mark in _CLOSING and mark not in opened
    return bool(after) and not (after.isspace() and before.strip())


def _goes(mark: str, before: str) -> bool:
    """Whether a mark without a partner is left out: not in "12\" pipe", "1) this" and ":)"."""
    if mark in _BRACKETS.values():
        return before == " "
    return mark not in _BRACKETS and not (mark == '"' and before.isdigit())
