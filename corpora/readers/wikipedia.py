"""`wikipedia:` MediaWiki XML dumps (`pages-articles.xml.bz2`), read as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from corpora.document import Document
from corpora.errors import BadRecord, InputError, require
from corpora.readers.base import Reader
from corpora.readers.files import read_chunks
from corpora.readers.layouts import as_article
from corpora.readers.source import Refused, Source
from corpora.readers.wikitext import DISAMBIGUATION, REDIRECT, Namespaces, parse_article
from corpora.readers.xmlguard import GuardedXml

EXTRA = "wikipedia"

PAGE_LIMIT = 2 << 20
"""Longest wikitext taken, in characters: MediaWiki takes no more bytes."""

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


@dataclass(slots=True)
class Site:
    """What the dump says about its wiki."""

    name: str = ""
    pages: str = ""
    language: str = "en"
    names: Namespaces = field(default_factory=Namespaces)


class Wikipedia(Reader):
    """MediaWiki XML dumps, as a stream."""

    name = "wikipedia"
    suffixes = (".xml", ".xml.bz2", ".xml.gz")
    own_licence = "CC-BY-SA-4.0"

    language: str = ""
    """ISO 639-1 code of the articles; without it the dump says it."""

    def read(self, source: Source) -> Iterator[Document]:
        """The articles of dumps: sections with level and heading, categories, title, address.

        The id is `WIKI:PAGE` (`enwiki:12`). Only the main namespace is read; redirects and
        disambiguation pages are skipped, and counted in `source.skipped`. Of several revisions the
        last is taken. A page that cannot be taken is refused; XML that is not well-formed, nested
        too deep or cut short ends the reading with an `InputError`, as nothing after it is known.
        Raises `DiscorporaError` without the packages of the extra `wikipedia`.
        """
        parser = require("mwparserfromhell", EXTRA, "to read wikitext")
        for path in source.files:
            for where, page, site in _pages(path, source):
                with source.refusing(where, page.title):
                    if kind := _skipped(page):
                        source.skipped[kind] += 1
                    else:
                        yield _document(page, site, parser, source)


def _pages(path: Path, source: Source) -> Iterator[tuple[str, Any, Site]]:
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
    site = Site(language=root.attr(_LANGUAGE) or "en")
    for element in root:
        where = f"{path}:{xml.lines.popleft()}"
        try:
            if element.tag == "siteinfo":
                _describe(site, mwxml.SiteInfo.from_element(element))
            elif element.tag == "page":
                yield where, _Page(mwxml.Page.from_element(element)), site
            else:
                source.skipped[f"<{element.tag}>"] += 1
        except InputError:
            raise
        except (mwxml.errors.MalformedXML, AssertionError, *_NOT_A_PAGE) as error:
            source.refuse(BadRecord(where, f"bad page: {error}"[:200]))
        element.clear()
        # mwxml empties the elements that it has read but leaves them in the root: memory
        # would grow with the dump.
        root.element.clear()


_NOT_A_PAGE = (TypeError, AttributeError, ValueError, KeyError)


class _Page:
    """Title, id, namespace and last text of a page, taken before the stream goes on."""

    def __init__(self, page: Any) -> None:
        self.id, self.title, self.namespace = page.id, page.title, page.namespace
        self.redirect = page.redirect is not None
        self.text = ""
        for revision in page:
            # An older revision of a history dump is overwritten: one is held at a time.
            self.text = revision.text or ""


def _describe(site: Site, info: Any) -> None:
    site.name = info.dbname or ""
    base = info.base or ""
    site.pages = base.rpartition("/")[0] if base.startswith(("http://", "https://")) else ""
    local: dict[int, set[str]] = {}
    for namespace in info.namespaces or ():
        local.setdefault(namespace.id, set()).add((namespace.name or "").lower())
    usual = Namespaces()
    site.names = Namespaces(
        usual.categories | local.get(14, set()), usual.files | local.get(6, set())
    )


def _document(page: _Page, site: Site, parser: Any, source: Source) -> Document:
    if len(page.text) > PAGE_LIMIT:
        raise Refused(f"too long: more than {PAGE_LIMIT:,} characters of wikitext")
    if page.id is None or not page.title:
        raise Refused("bad page: it has no id or no title")
    article = parse_article(page.text, parser, site.names)
    address = quote(page.title.replace(" ", "_"), safe="/:(),'!*")
    record = {
        "title": page.title,
        "url": f"{site.pages}/{address}" if site.pages else None,
        "language": source.language or site.language,
        "categories": list(dict.fromkeys(article.categories)),
        "sections": [
            {"heading": heading, "level": level, "paragraphs": paragraphs}
            for level, heading, paragraphs in article.sections
        ],
    }
    name = f"{site.name}:{page.id}" if site.name else str(page.id)
    return as_article(record, source, name)


def _skipped(page: _Page) -> str:
    """Why a page is no article, or nothing."""
    if page.namespace != 0:
        return "other namespace"
    if page.redirect or REDIRECT.match(page.text):
        return "redirect"
    if page.title and page.title.endswith("(disambiguation)"):
        return "disambiguation"
    return "disambiguation" if DISAMBIGUATION.search(page.text) else ""
