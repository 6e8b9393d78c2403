"""Wikitext to sections of plain paragraphs: what a reader sees, without tables and templates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from corpora.readers.source import Refused, paragraphs_of

UNCLOSED_LIMIT = 50
"""Most brackets and tags left open in a page that is parsed."""

DISAMBIGUATION = re.compile(
    r"\{\{\s{0,9}(?:[\w ]{0,40}[ _-])?(?:disambig\w*|disamb|dab|hndis|geodis|desambig\w*|homonymie"
    r"|begriffsklärung|doorverwijspagina|förgrening|ujednoznacznienie)\s{0,9}[|}]|__DISAMBIG__",
    re.IGNORECASE,
)
REDIRECT = re.compile(r"\s*#(?:REDIRECT|WEITERLEITUNG|REDIRECCIÓN|REDIRECTION|RINVIA)\b", re.I)

_DROPPED = frozenset(
    """ref references table gallery math chem ce score timeline syntaxhighlight source imagemap
    hiero style script templatedata graph mapframe maplink section indicator""".split()  # noqa: SIM905
)
_BLOCKS = frozenset(("p", "div", "blockquote", "center", "ul", "ol", "dl", "hr", "poem", "pre")) | {
    f"h{level}" for level in range(1, 7)
}
_ITEMS = frozenset(("li", "dt", "dd"))
_LANGUAGE_LINK = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:(?!\s)")
"""Wikis' names are written small, without a blank behind; `CSI: Miami` and `Re:Zero` are titles."""
_MAGIC_WORD = re.compile(r"__[A-Z]+__")
_PARAGRAPH_TAG = re.compile(r"</?p\b[^<>]*>", re.IGNORECASE)
_EMPTY_BRACKETS = re.compile(r" ?[(（][\s,;:]*[)）]")
_BRACKET_START = re.compile(r"([(（])[\s,;]+")
_SPACES = re.compile(r" {2,}")
_LEFT_OVER = re.compile(r"\{\{|\}\}|\{\||\|\}|^[|!]")


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The names of the namespaces that a link's prefix may mean, in lower case."""

    categories: frozenset[str] = frozenset(("category",))
    files: frozenset[str] = frozenset(("file", "image", "media"))


@dataclass(slots=True)
class Article:
    """Categories and sections (level, heading, paragraphs) of a page."""

    categories: list[str] = field(default_factory=list)
    sections: list[tuple[int, str, list[str]]] = field(default_factory=list)


def parse_article(text: str, parser: Any, names: Namespaces) -> Article:
    """The sections and categories of a page's wikitext; `parser` is `mwparserfromhell`.

    Templates, tables, references, files, comments and formulas are dropped, links and
    formatting leave their text. A list item is a paragraph. Brackets that a template has left
    empty go with it, and a paragraph in which markup is left over (a table or template that
    its author did not close) is dropped. The lead is level 1, `== x ==` level 2.
    Raises `Refused` for wikitext that the parser cannot take.
    """
    text = _PARAGRAPH_TAG.sub("\n\n", text)
    if unclosed(text, UNCLOSED_LIMIT) > UNCLOSED_LIMIT:
        raise Refused(f"not wikitext: more than {UNCLOSED_LIMIT} brackets or tags are not closed")
    try:
        code = parser.parse(text)
    except (parser.parser.ParserError, RecursionError) as error:
        raise Refused(f"not wikitext: {error}"[:200]) from None
    extract = _Extract(names)
    extract.walk(code)
    extract.close()
    return extract.article


class _Extract:
    """Walks the parsed nodes and collects the text of the section that it is in."""

    def __init__(self, names: Namespaces) -> None:
        self.names = names
        self.article = Article()
        self.level, self.heading = 1, ""
        self.parts: list[str] = []
        self.in_item = False
        self._handlers: dict[str, Callable[[Any], None]] = {
            "Text": self._text,
            "Heading": self._heading,
            "Wikilink": self._link,
            "ExternalLink": self._external,
            "HTMLEntity": self._entity,
            "Tag": self._tag,
        }

    def walk(self, code: Any) -> None:
        for node in code.nodes:
            handler = self._handlers.get(type(node).__name__)
            if handler:
                handler(node)

    def close(self) -> None:
        """End the section."""
        body = _MAGIC_WORD.sub("", "".join(self.parts))
        paragraphs = [mended for p in paragraphs_of(body) if (mended := _mended(p))]
        if paragraphs or self.heading:
            self.article.sections.append((self.level, self.heading, paragraphs))
        self.parts = []
        self.in_item = False

    def _text(self, node: Any) -> None:
        value = str(node.value)
        if self.in_item and "\n" in value:
            # The item ends with its line; what follows is another paragraph.
            value = value.replace("\n", "\n\n", 1)
            self.in_item = False
        self.parts.append(value)

    def _heading(self, node: Any) -> None:
        self.close()
        inner = _Extract(self.names)
        inner.walk(node.title)
        self.level = node.level
        self.heading = _mended(" ".join("".join(inner.parts).split()))

    def _link(self, node: Any) -> None:
        title = str(node.title).strip()
        written, colon, name = title.partition(":")
        prefix = written.strip().lower()
        if colon and prefix in self.names.categories:
            self.article.categories.append(" ".join(name.replace("_", " ").split()))
        elif colon and (prefix in self.names.files or _LANGUAGE_LINK.match(title)):
            pass
        elif node.text is not None and str(node.text):
            self.walk(node.text)
        else:
            self.parts.append(title.removeprefix(":").replace("_", " "))

    def _external(self, node: Any) -> None:
        if node.title is not None:
            self.walk(node.title)
        elif not node.brackets:
            self.parts.append(str(node.url))

    def _entity(self, node: Any) -> None:
        try:
            character = node.normalize()
        except (ValueError, OverflowError):
            return
        if not "\ud800" <= character <= "\udfff" and character != "\0":
            self.parts.append(character)

    def _tag(self, node: Any) -> None:
        name = str(node.tag).strip().lower()
        if name in _DROPPED:
            return
        if name in _ITEMS and node.self_closing:
            self.parts.append("\n\n")
            self.in_item = True
        elif name == "br":
            self.parts.append("\n")
        elif name in _BLOCKS or name in _ITEMS:
            self.parts.append("\n\n")
            if node.contents is not None:
                self.walk(node.contents)
            self.parts.append("\n\n")
        elif node.contents is not None:
            self.walk(node.contents)


def _mended(paragraph: str) -> str:
    """A paragraph without what dropped templates leave behind; "" if it is itself left-over."""
    if _LEFT_OVER.search(paragraph):
        return ""
    paragraph = _EMPTY_BRACKETS.sub("", paragraph)
    paragraph = _BRACKET_START.sub(r"\1", paragraph)
    paragraph = _SPACES.sub(" ", paragraph).strip()
    return paragraph if any(map(str.isalnum, paragraph)) else ""


_MARK = re.compile(
    r"(?P<open>\{\{|\[\[|^[ \t:]*\{\||\[(?=https?:|//))"
    r"|(?P<close>\}\}|\]\]|^[ \t]*\|\}(?!\})|\])"
    r"|<!--|<(?P<slash>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)(?P<rest>[^<>]*)(?P<end>>?)",
    re.MULTILINE,
)
_CLOSERS = {"{{": "}}", "[[": "]]", "{|": "|}", "[": "]"}
_RAW = frozenset(("math", "nowiki", "pre", "syntaxhighlight", "source", "score", "timeline"))
_DEEP = 10_000
"""Properly nested marks are no trouble to the parser, but so many are no article."""
_VOID = frozenset(("br", "hr", "wbr", "img", "li", "dt", "dd", "td", "th", "tr"))


def unclosed(text: str, limit: int) -> int:
    """The number of templates, links, tables and tags that are not closed, or closed crosswise.

    The parser of wikitext begins anew behind everything that is opened and not closed, so a page
    of a thousand open templates takes it minutes and one of a hundred thousand hours. Pages that
    people wrote have a few; what has many more is not parsed. Counting takes linear time and ends
    soon after `limit`. Comments and raw elements (`<math>`) are stepped over.
    """
    scan = _Scan()
    at = 0
    while scan.lost + max(0, len(scan.stack) - _DEEP) <= limit:
        found = _MARK.search(text, at)
        if not found:
            return scan.lost + len(scan.stack)
        at = found.end()
        if found["open"]:
            scan.open(_CLOSERS[found["open"].lstrip(" \t:")])
        elif found["close"]:
            scan.close(found["close"].lstrip())
        elif found["name"]:
            at = scan.tag(found, text)
        else:
            at = scan.jump(text, at, "-->")
    return limit + 1


class _Scan:
    """The open marks, innermost last, each named by what closes it."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.held: Counter[str] = Counter()
        self.missing: set[str] = set()
        self.lost = 0

    def open(self, closer: str) -> None:
        self.stack.append(closer)
        self.held[closer] += 1

    def close(self, closer: str) -> None:
        """Close the innermost mark of this kind; what was opened in it is lost."""
        if not self.held[closer]:
            return
        while (innermost := self.stack.pop()) != closer:
            self.held[innermost] -= 1
            self.lost += 1
        self.held[closer] -= 1

    def jump(self, text: str, at: int, end: str) -> int:
        """The place behind `end`; without one in the rest of the text the mark is lost."""
        found = -1 if end in self.missing else text.find(end, at)
        if found < 0:
            self.missing.add(end)
            self.lost += 1
            return at
        return found + len(end)

    def tag(self, found: re.Match[str], text: str) -> int:
        name, rest = found["name"].lower(), found["rest"]
        if not found["end"] or rest.count('"') % 2:
            self.lost += 1
        elif found["slash"]:
            self.close(name)
        elif name in _VOID or rest.endswith("/"):
            pass
        elif name in _RAW:
            return self.jump(text, found.end(), f"</{name}>")
        else:
            self.open(name)
        return found.end()
