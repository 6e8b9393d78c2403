"""`wikipedia:` MediaWiki XML dumps (`pages-articles.xml.bz2`), read as a stream.

Wikitext becomes sections of plain paragraphs: what a reader sees, without tables and templates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from corpora.document import Document
from corpora.errors import BadRecord, InputError, require
from corpora.readers.files import Refused, read_chunks
from corpora.readers.guarded import GuardedXml
from corpora.readers.records import as_article
from corpora.readers.source import Reader, Source, paragraphs_of

EXTRA = "wikipedia"

PAGE_LIMIT = 2 << 20
"""Longest wikitext taken, in characters: MediaWiki takes no more bytes."""
UNCLOSED_LIMIT = 50
"""Most brackets and tags left open in a page that is parsed."""

_DISAMBIGUATION = re.compile(
    r"\{\{\s{0,9}(?:[\w ]{0,40}[ _-])?(?:disambig\w*|disamb|dab|hndis|geodis|desambig\w*|homonymie"
    r"|begriffsklärung|doorverwijspagina|förgrening|ujednoznacznienie)\s{0,9}[|}]|__DISAMBIG__",
    re.IGNORECASE,
)
_REDIRECT = re.compile(r"\s*#(?:REDIRECT|WEITERLEITUNG|REDIRECCIÓN|REDIRECTION|RINVIA)\b", re.I)

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


@dataclass(slots=True)
class Site:
    """What the dump says about its wiki: among it the prefixes of links, in lower case."""

    name: str = ""
    pages: str = ""
    language: str = "en"
    categories: set[str] = field(default_factory=lambda: {"category"})
    file_prefixes: set[str] = field(default_factory=lambda: {"file", "image", "media"})


class Wikipedia(Reader):
    """MediaWiki XML dumps, as a stream."""

    name = "wikipedia"
    suffixes = (".xml", ".xml.bz2", ".xml.gz")
    own_licence = "CC-BY-SA-4.0"

    language: str = ""
    """ISO 639-1 code of the articles; without it the dump says it."""

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """The articles of dumps: sections with level and heading, categories, title, address.

        The id is `WIKI:PAGE` (`enwiki:12`). Only the main namespace is read; redirects and
        disambiguation pages are skipped, and counted in `source.skipped`. Of several revisions the
        last is taken. A page that cannot be taken is refused; XML that is not well-formed, nested
        too deep or cut short ends the reading with an `InputError`, as nothing after it is known.
        Raises `DiscorporaError` without the packages of the extra `wikipedia`.
        """
        parser = require("mwparserfromhell", EXTRA, "to read wikitext")
        for where, page, site in _pages(path, source):
            with source.refusing(where, page.title):
                if kind := _skipped(page):
                    source.skipped[kind] += 1
                else:
                    yield _document(page, site, parser, source)


def _pages(path: Path, source: Source) -> Iterator[tuple[str, _Page, Site]]:
    """The pages of a dump with their line; those that `mwxml` cannot read are refused."""
    mwxml = require("mwxml", EXTRA, "to read a Wikipedia dump")
    elements = require("mwxml.element_iterator", EXTRA, "to read a Wikipedia dump")
    xml = GuardedXml(read_chunks(path), path)
    root = elements.ElementIterator.from_file(xml)
    if root.tag != "mediawiki":
        raise InputError(
            f"no MediaWiki dump: its root is <{root.tag}>",
            where=str(path),
            hint="wikipedia: reads pages-articles dumps of https://dumps.wikimedia.org",
        )
    site = Site(language=root.attr("{http://www.w3.org/XML/1998/namespace}lang") or "en")
    structure = TypeError, AttributeError, ValueError, KeyError, AssertionError
    for element in root:
        where = f"{path}:{xml.lines.popleft()}"
        try:
            if element.tag == "siteinfo":
                info = mwxml.SiteInfo.from_element(element)
                site.name, base = info.dbname or "", info.base or ""
                web = base.startswith(("http://", "https://"))
                site.pages = base.rpartition("/")[0] if web else ""
                for space in info.namespaces or ():
                    prefixes = {14: site.categories, 6: site.file_prefixes}.get(space.id, set())
                    prefixes.add((space.name or "").lower())
            elif element.tag == "page":
                yield where, _Page(mwxml.Page.from_element(element)), site
            else:
                source.skipped[f"<{element.tag}>"] += 1
        except InputError:
            raise
        except (mwxml.errors.MalformedXML, *structure) as error:
            source.refuse(BadRecord(where, f"bad page: {error}"[:200]))
        element.clear()
        # mwxml empties the elements that it has read but leaves them in the root: memory
        # would grow with the dump.
        root.element.clear()


class _Page:
    """Title, id, namespace and last text of a page, taken before the stream goes on."""

    def __init__(self, page: Any) -> None:
        self.id, self.title, self.namespace = page.id, page.title, page.namespace
        self.redirect = page.redirect is not None
        self.text = ""
        for revision in page:
            # An older revision of a history dump is overwritten: one is held at a time.
            self.text = revision.text or ""


def _skipped(page: _Page) -> str:
    """Why a page is no article, or nothing."""
    if page.namespace != 0:
        return "other namespace"
    if page.redirect or _REDIRECT.match(page.text):
        return "redirect"
    titled = bool(page.title) and page.title.endswith("(disambiguation)")
    return "disambiguation" if titled or _DISAMBIGUATION.search(page.text) else ""


def _document(page: _Page, site: Site, parser: Any, source: Source) -> Document:
    if len(page.text) > PAGE_LIMIT:
        raise Refused(f"too long: more than {PAGE_LIMIT:,} characters of wikitext")
    if page.id is None or not page.title:
        raise Refused("bad page: it has no id or no title")
    article = _parsed(page.text, parser, site)
    address = quote(page.title.replace(" ", "_"), safe="/:(),'!*")
    record = {
        "title": page.title,
        "url": f"{site.pages}/{address}" if site.pages else None,
        "language": source.language or site.language,
        "categories": list(dict.fromkeys(article.categories)),
        "sections": article.sections,
    }
    name = f"{site.name}:{page.id}" if site.name else str(page.id)
    return as_article(record, source, name)


def _parsed(text: str, parser: Any, site: Site) -> _Extract:
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
    extract = _Extract(site)
    extract.walk(code)
    extract.close()
    return extract


class _Extract:
    """Walks the parsed nodes and collects the text of the section that it is in."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.categories: list[str] = []
        self.sections: list[dict[str, Any]] = []
        self.level, self.heading = 1, ""
        self.parts: list[str] = []
        self.in_item = False

    def close(self) -> None:
        """End the section."""
        body = _MAGIC_WORD.sub("", "".join(self.parts))
        paragraphs = [mended for p in paragraphs_of(body) if (mended := _mended(p))]
        if paragraphs or self.heading:
            section = {"heading": self.heading, "level": self.level, "paragraphs": paragraphs}
            self.sections.append(section)
        self.parts = []
        self.in_item = False

    def walk(self, code: Any) -> None:
        for node in code.nodes:
            kind = type(node).__name__
            if kind == "Text":
                value = str(node.value)
                if self.in_item and "\n" in value:
                    # The item ends with its line; what follows is another paragraph.
                    value = value.replace("\n", "\n\n", 1)
                    self.in_item = False
                self.parts.append(value)
            elif kind == "Heading":
                self.close()
                inner = _Extract(self.site)
                inner.walk(node.title)
                self.level = node.level
                self.heading = _mended(" ".join("".join(inner.parts).split()))
            elif kind == "Wikilink":
                self._link(node, str(node.title).strip())
            elif kind == "ExternalLink":
                if node.title is not None:
                    self.walk(node.title)
                elif not node.brackets:
                    self.parts.append(str(node.url))
            elif kind == "HTMLEntity":
                with suppress(ValueError, OverflowError):
                    character = node.normalize()
                    if not "\ud800" <= character <= "\udfff" and character != "\0":
                        self.parts.append(character)
            elif kind == "Tag":
                self._tag(node, str(node.tag).strip().lower())

    def _link(self, node: Any, title: str) -> None:
        written, colon, name = title.partition(":")
        prefix = written.strip().lower()
        if colon and prefix in self.site.categories:
            self.categories.append(" ".join(name.replace("_", " ").split()))
        elif colon and (prefix in self.site.file_prefixes or _LANGUAGE_LINK.match(title)):
            pass
        elif node.text is not None and str(node.text):
            self.walk(node.text)
        else:
            self.parts.append(title.removeprefix(":").replace("_", " "))

    def _tag(self, node: Any, name: str) -> None:
        around = ["\n\n"] if name in _BLOCKS or name in _ITEMS else []
        if name in _ITEMS and node.self_closing:
            self.parts += around
            self.in_item = True
        elif name == "br":
            self.parts.append("\n")
        elif name not in _DROPPED:
            self.parts += around
            if node.contents is not None:
                self.walk(node.contents)
            self.parts += around


def _mended(paragraph: str) -> str:
    """A paragraph without what dropped templates leave behind; "" if it is itself left-over."""
    if _LEFT_OVER.search(paragraph):
        return ""
    paragraph = _EMPTY_BRACKETS.sub("", paragraph)
    paragraph = _BRACKET_START.sub(r"\1", paragraph)
    paragraph = _SPACES.sub(" ", paragraph).strip()
    return paragraph if any(map(str.isalnum, paragraph)) else ""


def unclosed(text: str, limit: int) -> int:
    """The number of templates, links, tables and tags that are not closed, or closed crosswise.

    The parser of wikitext begins anew behind everything that is opened and not closed, so a page
    of a thousand open templates takes it minutes and one of a hundred thousand hours. Pages that
    people wrote have a few; what has many more is not parsed. Counting takes linear time and ends
    soon after `limit`. Comments and raw elements (`<math>`) are stepped over.
    """
    stack: list[str] = []  # what closes the open marks, innermost last
    held: Counter[str] = Counter()
    missing: set[str] = set()  # ends that do not come any more
    lost = at = 0
    while lost + max(0, len(stack) - _DEEP) <= limit:
        mark = _MARK.search(text, at)
        if not mark:
            return lost + len(stack)
        at = mark.end()
        name, rest = (mark["name"] or "").lower(), mark["rest"] or ""
        opens = closes = steps_over = ""
        if mark["open"]:
            opens = _CLOSERS[mark["open"].lstrip(" \t:")]
        elif mark["close"]:
            closes = mark["close"].lstrip()
        elif not name:
            steps_over = "-->"
        elif not mark["end"] or rest.count('"') % 2:
            lost += 1
        elif mark["slash"]:
            closes = name
        elif name not in _VOID and not rest.endswith("/"):
            opens, steps_over = ("", f"</{name}>") if name in _RAW else (name, "")
        if opens:
            stack.append(opens)
            held[opens] += 1
        elif closes and held[closes]:
            while (innermost := stack.pop()) != closes:  # what was opened in it is lost
                held[innermost] -= 1
                lost += 1
            held[closes] -= 1
        elif steps_over:
            end = -1 if steps_over in missing else text.find(steps_over, at)
            at = end + len(steps_over) if end >= 0 else at
            lost += end < 0
            missing |= {steps_over} if end < 0 else set()
    return limit + 1
