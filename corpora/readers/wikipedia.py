"""`wikipedia:` MediaWiki XML dumps (`pages-articles.xml.bz2`), read as a stream.

Wikitext becomes sections of plain paragraphs: the prose that a reader sees, without tables, lists
and bibliographies. A sentence with something that cannot be rendered (a formula, an unknown
template) is left out.
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

from corpora.document import Document, Spans
from corpora.errors import BadRecord, InputError, require
from corpora.languages import Language
from corpora.readers.files import Refused, expect, read_chunks
from corpora.readers.guarded import GuardedXml
from corpora.readers.records import as_article
from corpora.readers.source import Reader, Source, blocks_of
from corpora.readers.templates import GAP, render_gap, render_nothing, renderer_of, superscript
from corpora.sentences import split

EXTRA = "wikipedia"

PAGE_LIMIT = 2 << 20
"""Maximum length of wikitext, in characters: MediaWiki's own limit in bytes."""
UNCLOSED_LIMIT = 50
"""Maximum open brackets and tags of a page to parse."""

_DISAMBIGUATION = re.compile(
    r"\{\{\s{0,9}(?:[\w ]{0,40}[ _-])?(?:disambig\w*|disamb|dab|hndis|geodis|desambig\w*|homonymie"
    r"|begriffsklärung|doorverwijspagina|förgrening|ujednoznacznienie)\s{0,9}[|}]|__DISAMBIG__",
    re.IGNORECASE,
)
_REDIRECT = re.compile(r"\s*#(?:REDIRECT|WEITERLEITUNG|REDIRECCIÓN|REDIRECTION|RINVIA)\b", re.I)

_APPARATUS = re.compile(
    r"see also|external links?|(?:further|additional) reading|(?:selected |general |cited |primary "
    r"|secondary )*(?:references|notes|footnotes|citations|sources|bibliography|works cited"
    r"|literature)(?: (?:and|&) (?:references|notes|footnotes|citations|sources|further reading))?"
    r"|siehe auch|weblinks|literatur|einzelnachweise|anmerkungen|quellen|belege"
    r"|voir aussi|liens externes|notes et références|références|bibliographie|annexes"
    r"|véase también|enlaces externos|referencias|bibliografía|notas"
    r"|voci correlate|collegamenti esterni|bibliografia|note",
    re.IGNORECASE,
)
"""Headings of sections that are not prose, with their subsections."""
_DROPPED = frozenset(
    """ref references table gallery timeline syntaxhighlight source imagemap style script
    templatedata graph mapframe maplink section indicator""".split()  # noqa: SIM905
)
_UNREADABLE = frozenset(("math", "chem", "ce", "score", "hiero"))
_ITEM = "\ufdd1"
"""Marks a paragraph that is a list item. No text has this code."""
_WITHOUT_CODES = dict.fromkeys(map(ord, (GAP, _ITEM)))  # for `str.translate`: deletes both codes
_GAPS_ALONE = re.compile(rf"^[ \t]*{GAP}[{GAP} \t]*$", re.MULTILINE)
_GAP_AFTER_STOP = re.compile(rf"([.!?…][\"”’»]?){GAP}+")
_BRACKETS = re.compile(r"[(（]([^()（）]*)[)）]")
_BLOCKS = frozenset(("p", "div", "blockquote", "center", "ul", "ol", "dl", "hr", "poem", "pre")) | {
    f"h{level}" for level in range(1, 7)
}
_ITEMS = frozenset(("li", "dt", "dd"))
_LANGUAGE_LINK = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:(?!\s)")
"""Names of wikis are lower case, without a space after the colon (`CSI: Miami` is a title)."""
_MAGIC_WORD = re.compile(r"__[A-Z]+__")
_PARAGRAPH_TAG = re.compile(r"</?p\b[^<>]*>", re.IGNORECASE)
_EMPTY_BRACKETS = re.compile(r" ?[(（][\s,;:]*[)）]")
_BRACKET_START = re.compile(r"([(（])[\s,;]+")
_SPACES = re.compile(r" {2,}")
_POSSESSIVE = re.compile(r"'''(?=[a-z]{1,2}\b)")
_QUOTE_MARKS = re.compile(r"'{2,}")
"""Bold and italic that the parser could not pair, as in `''Antigone'''s`."""
_FRACTION = re.compile(r"\d+/\d")
_EDGES = re.compile(r"^[ \t\n]+|[ \t\n]+\Z")
_PLACE = re.compile(r"[1-9]\d?")
_VARIANTS = re.compile(r"-\{([^{}]*)\}-")
_VARIANT = re.compile(r"(?:.*=>\s*)?[a-z]{2,3}(?:-[a-z]+)?")
"""Text that depends on the reader's variant of a language (Chinese, Serbian)."""
_LEFT_OVER = re.compile(r"\{\{|\}\}|\{\||\|\}|-\{|\}-|^[|!]")
_OPENS_OR_CLOSES = re.compile(
    r"(?P<open>\{\{|\[\[|^[ \t:]*\{\||\[(?=https?:|//))"
    r"|(?P<close>\}\}|\]\]|^[ \t]*\|\}(?!\})|\])"
    r"|<!--|<(?P<slash>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)(?P<rest>[^<>]*)(?P<end>>?)",
    re.MULTILINE,
)
"""What opens or closes a template, link, table, comment or tag."""
_CLOSERS = {"{{": "}}", "[[": "]]", "{|": "|}", "[": "]"}
_RAW = frozenset(("math", "nowiki", "pre", "syntaxhighlight", "source", "score", "timeline"))
"""Elements whose content is not wikitext."""
_NESTING_LIMIT = 10_000
"""Properly nested marks are easy to parse, but an article does not have this many."""
_VOID = frozenset(("br", "hr", "wbr", "img", "li", "dt", "dd", "td", "th", "tr"))
"""Elements that need no closing tag."""


@dataclass(slots=True)
class Site:
    """Facts about the wiki from the dump: its name, the address of its pages, its language, and the
    prefixes of links to categories and files, in lower case."""

    name: str = ""
    pages: str = ""
    language: str = "en"
    categories: set[str] = field(default_factory=lambda: {"category"})
    file_prefixes: set[str] = field(default_factory=lambda: {"file", "image", "media"})

    def read(self, info: Any) -> None:
        """Fill the fields from `info`, the element `siteinfo` of the dump."""
        self.name, base = info.dbname or "", info.base or ""
        on_web = base.startswith(("http://", "https://"))
        self.pages = base.rpartition("/")[0] if on_web else ""
        for namespace in info.namespaces or ():
            prefixes = {14: self.categories, 6: self.file_prefixes}  # MediaWiki's numbers
            prefixes.get(namespace.id, set()).add((namespace.name or "").lower())


class Wikipedia(Reader):
    """MediaWiki XML dumps, as a stream."""

    name = "wikipedia"
    version = 3
    suffixes = (".xml", ".xml.bz2", ".xml.gz")
    own_licence = "CC-BY-SA-4.0"

    language: Language = ""
    """ISO 639-1 code of the articles; default: that of the dump."""

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the articles of a dump, with title, address, categories, and sections.

        The id is `WIKI:PAGE` (`enwiki:12`). Only the main namespace is read; redirects and
        disambiguation pages are skipped, and counted in `source.skipped`. The last revision of a
        page is used. A bad page is rejected; XML that is not well-formed, nested too deep or
        truncated ends the reading with an `InputError`. Raises `DiscorporaError` without the
        packages of the extra `wikipedia`.
        """
        # Open the dump.
        parser = require("mwparserfromhell", EXTRA, "to read wikitext")
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
            # Read a page, and free its memory.
            where, page, text = f"{path}:{xml.lines.popleft()}", None, ""
            try:
                if element.tag == "siteinfo":
                    site.read(mwxml.SiteInfo.from_element(element))
                elif element.tag == "page":
                    page = mwxml.Page.from_element(element)
                    for revision in page:  # of a history only the last one is held in memory
                        text = revision.text or ""
                else:
                    source.skipped[f"<{element.tag}>"] += 1
            except InputError:
                raise
            except (mwxml.errors.MalformedXML, *structure) as error:
                source.refuse(BadRecord(where, f"bad page: {error}"[:200]))
                page = None
            element.clear()
            # mwxml empties the elements that it has read but leaves them in the root, which would
            # fill memory.
            root.element.clear()
            if page is not None:
                with source.refusing(where, page.title):
                    if reason := _skip_reason(page, text):
                        source.skipped[reason] += 1
                    else:
                        yield _article_document(page, text, site, parser, source)


def _skip_reason(page: Any, text: str) -> str:
    """Return the reason why a page is not an article, "" for an article."""
    if page.namespace != 0:
        return "other namespace"
    if page.redirect is not None or _REDIRECT.match(text):
        return "redirect"
    in_title = (page.title or "").endswith("(disambiguation)")
    return "disambiguation" if in_title or _DISAMBIGUATION.search(text) else ""


def _article_document(page: Any, text: str, site: Site, parser: Any, source: Source) -> Document:
    """Return the document of an article from its wikitext. Raises `Refused` for a page without id
    or title, and for text that is too long or not wikitext."""
    expect(len(text) <= PAGE_LIMIT, f"too long: more than {PAGE_LIMIT:,} characters of wikitext")
    expect(page.id is not None and page.title, "bad page: it has no id or no title")
    text = _PARAGRAPH_TAG.sub("\n\n", text.translate(_WITHOUT_CODES))
    text = _VARIANTS.sub(_text_of_all_variants, text)
    is_closed = count_unclosed(text, UNCLOSED_LIMIT) <= UNCLOSED_LIMIT
    expect(is_closed, f"not wikitext: more than {UNCLOSED_LIMIT} brackets or tags are not closed")
    try:
        code = parser.parse(text)
    except (parser.parser.ParserError, RecursionError) as error:
        raise Refused(f"not wikitext: {error}"[:200]) from None
    article = _TextCollector(site)
    article.walk(code)
    article.close_section()
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


class _TextCollector:
    """Walks parsed wikitext and collects categories and the text of each section.

    Tables, lists, references, files and comments are dropped, links and formatting keep their text,
    templates show their values if `corpora.readers.templates` knows them. A sentence with a
    formula, an unknown template or text in several variants of a language is dropped, and its
    paragraph ends there; templates on their own lines are not part of a sentence. Brackets left
    empty are removed, and a paragraph with remaining markup (a table or template that was not
    closed) is dropped. The lead is level 1, `== x ==` level 2.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.categories: list[str] = []
        self.sections: list[dict[str, Any]] = []
        self.level, self.heading = 1, ""
        self.apparatus = 0
        """The level of the enclosing section without prose, or 0."""
        self.parts: list[str] = []
        self.in_item = False

    def close_section(self) -> None:
        """End the section: add its paragraphs to `sections` unless it is not prose."""
        if self.level <= self.apparatus:
            self.apparatus = 0
        if not self.apparatus and _APPARATUS.fullmatch(self.heading.rstrip(":")):
            self.apparatus = self.level
        body = _GAPS_ALONE.sub("", _MAGIC_WORD.sub("", "".join(self.parts)))
        paragraphs: list[str] = []
        for paragraph in map(" ".join, blocks_of(_GAP_AFTER_STOP.sub(r"\1", body).splitlines())):
            if not paragraph.startswith(_ITEM):
                paragraphs += self._complete_parts(paragraph)
            elif paragraphs and paragraphs[-1].endswith(":"):
                # A sentence that announces a list is incomplete without it.
                spans = self._sentences(paragraphs[-1])
                paragraphs[-1:] = [paragraphs[-1][: spans.end[-2]]] if len(spans) > 1 else []
        if (paragraphs or self.heading) and not self.apparatus:
            section = {"heading": self.heading, "level": self.level, "paragraphs": paragraphs}
            self.sections.append(section)
        self.parts = []
        self.in_item = False

    def _complete_parts(self, paragraph: str) -> list[str]:
        """Return the parts of a paragraph between its incomplete sentences, which are left out."""
        text = _clean_text(_BRACKETS.sub(_drop_incomplete_parts, paragraph))
        parts, part_start = [], 0
        for start, end in self._sentences(text) if GAP in text else ():
            if GAP in text[start:end]:
                parts.append(text[part_start:start])
                part_start = end
        return list(filter(None, map(_clean_text, [*parts, text[part_start:]])))

    def _sentences(self, text: str) -> Spans:
        return split(text, Spans([0], [len(text)]), language=self.site.language)

    def _text(self, code: Any) -> str:
        """Return the text of a part of a page, such as a heading or a template's value."""
        inner = _TextCollector(self.site)
        inner.walk(code)
        return "".join(inner.parts)

    def walk(self, code: Any) -> None:
        """Add the text of parsed wikitext to the section; a heading begins the next section."""
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
                self.close_section()
                self.level = node.level
                heading = self._text(node.title).replace(GAP, "")
                self.heading = _clean_text(" ".join(heading.split()))
            elif kind == "Wikilink":
                self._add_link(node, str(node.title).strip())
            elif kind == "ExternalLink" and node.title is not None:
                self.walk(node.title)
            elif kind == "ExternalLink" and not node.brackets:
                self.parts.append(str(node.url))
            elif kind == "HTMLEntity":
                with suppress(ValueError, OverflowError):
                    character = node.normalize()
                    if not "\ud800" <= character <= "\udfff" and character != "\0":
                        self.parts.append(character)
            elif kind == "Tag":
                self._add_tag(node, str(node.tag).strip().lower())
            elif kind == "Template":
                self._add_template(node)

    def _add_template(self, node: Any) -> None:
        """Add what a template shows; a template of several lines is a box beside the text."""
        render = renderer_of(str(node.name), self.site.language)
        if render in (render_nothing, render_gap) and "\n" in str(node).strip():
            return
        arguments = {}
        for parameter in node.params:  # MediaWiki keeps the blanks around unnamed values
            value = self._text(parameter.value)
            value = value.strip() if parameter.showkey else _EDGES.sub(" ", value)
            arguments[str(parameter.name).strip()] = value
        named = {name: value for name, value in arguments.items() if value}
        places = [int(name) for name in named if _PLACE.fullmatch(name)]  # also `1=a=b`
        values = [named.pop(str(n), "") for n in range(1, max(places, default=0) + 1)]
        text = GAP
        with suppress(IndexError):
            text = render(values, named)
        after_digit = bool(self.parts) and self.parts[-1][-1:].isdigit()
        if _FRACTION.match(text) and after_digit:
            text = f" {text}"  # 5{{frac|1|2}}
        self.parts.append(text)

    def _add_link(self, node: Any, title: str) -> None:
        """Add the text of a link; of a link to a category only the category's name is kept."""
        namespace, colon, name = title.partition(":")
        prefix = namespace.strip().lower()
        if colon and prefix in self.site.categories:
            self.categories.append(" ".join(name.replace("_", " ").split()))
        elif colon and (prefix in self.site.file_prefixes or _LANGUAGE_LINK.match(title)):
            pass
        elif node.text is not None and str(node.text):
            self.walk(node.text)
        else:
            self.parts.append(title.removeprefix(":").replace("_", " "))

    def _add_tag(self, node: Any, name: str) -> None:
        """Add the text of an HTML element; a block is a paragraph, a list item gets its mark."""
        is_item = name in _ITEMS
        blank_line = ["\n\n"] if name in _BLOCKS or is_item else []
        if name == "br":
            self.parts.append("\n")
        elif name in _UNREADABLE:
            self.parts.append(GAP)
        elif name not in _DROPPED:
            self.parts += [*blank_line, _ITEM] if is_item else blank_line
            if is_item and node.self_closing:
                self.in_item = True
                return
            if name == "sup" and node.contents is not None:
                # 10<sup>6</sup> is another number than 106.
                self.parts.append(superscript(self._text(node.contents)))
            elif node.contents is not None:
                self.walk(node.contents)
            self.parts += blank_line


def _text_of_all_variants(match: re.Match[str]) -> str:
    """Return the text of a match of `-{...}-` if it is the same in all variants of the language.

    The texts of `-{X}-` and `-{R|X}-` (raw) are. With the flags `H` and `T` (a rule for the page,
    its title) nothing is shown: "". Returns `GAP` for other flags, and if the variants differ.
    """
    flags, bar, text = match[1].partition("|")
    if not bar or "[[" in flags:
        flags, bar, text = "", "", match[1]
    if flags.strip() in ("H", "T"):
        return ""
    if flags.strip() not in ("", "R"):
        return GAP
    rules = [rule.partition(":") for rule in text.split(";") if rule.strip()]
    names_variants = any(_VARIANT.fullmatch(name.strip()) for name, colon, _ in rules if colon)
    if flags.strip() == "R" or not names_variants:
        return text
    values = {value.strip() for _, _, value in rules}
    return values.pop() if len(values) == 1 else GAP


def _drop_incomplete_parts(match: re.Match[str]) -> str:
    """Return matched brackets without incomplete parts: `(GAP; born 1978)` as `(born 1978)`."""
    if GAP not in match[0]:
        return match[0]
    parts = [part for part in re.split(r"(?<=[;,])", match[1]) if GAP not in part]
    return f"({''.join(parts).strip(' ;,')})"


def _clean_text(paragraph: str) -> str:
    """Return a paragraph without the remains of dropped templates; "" if nothing else is left."""
    if _LEFT_OVER.search(paragraph):
        return ""
    paragraph = _EMPTY_BRACKETS.sub("", paragraph)
    paragraph = _BRACKET_START.sub(r"\1", paragraph)
    paragraph = _QUOTE_MARKS.sub("", _POSSESSIVE.sub("'", paragraph))
    paragraph = _SPACES.sub(" ", paragraph).strip()
    return paragraph if any(map(str.isalnum, paragraph)) else ""


def count_unclosed(text: str, limit: int) -> int:
    """Return the number of templates, links, tables and tags that are not closed or wrongly nested.

    The wikitext parser restarts after each unclosed mark: a page of a thousand open templates takes
    minutes, one of a hundred thousand takes hours. Real pages have few, and pages with more than
    `limit` are not parsed. Counting takes linear time and stops soon after `limit`. Comments and
    the content of raw elements (`<math>`) are skipped.
    """
    stack: list[str] = []  # the closing marks that are still to come, innermost last
    awaited: Counter[str] = Counter()  # how often each mark is in the stack
    missing: set[str] = set()  # closing marks that do not follow
    unclosed = position = 0
    while unclosed + max(0, len(stack) - _NESTING_LIMIT) <= limit:
        mark = _OPENS_OR_CLOSES.search(text, position)
        if not mark:
            return unclosed + len(stack)
        position = mark.end()
        name, rest = (mark["name"] or "").lower(), mark["rest"] or ""
        # What the mark does: it opens a construct, closes one, or begins text to skip.
        opens = closes = skips_to = ""
        if mark["open"]:
            opens = _CLOSERS[mark["open"].lstrip(" \t:")]
        elif mark["close"]:
            closes = mark["close"].lstrip()
        elif not name:
            skips_to = "-->"
        elif not mark["end"] or rest.count('"') % 2:  # a tag or a quoted value is cut off
            unclosed += 1
        elif mark["slash"]:
            closes = name
        elif name not in _VOID and not rest.endswith("/"):
            opens, skips_to = ("", f"</{name}>") if name in _RAW else (name, "")
        # Update the stack.
        if opens:
            stack.append(opens)
            awaited[opens] += 1
        elif closes and awaited[closes]:
            while (innermost := stack.pop()) != closes:  # marks opened inside stay unclosed
                awaited[innermost] -= 1
                unclosed += 1
            awaited[closes] -= 1
        elif skips_to:
            end = -1 if skips_to in missing else text.find(skips_to, position)
            if end >= 0:
                position = end + len(skips_to)
            else:
                unclosed += 1
                missing.add(skips_to)
    return limit + 1
