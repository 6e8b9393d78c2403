"""Texts: `text:`, `cnn:` (Hermann et al. 2015), `wsj:`, the raw Wall Street Journal; and papers:
`arxiv:`, abstracts of arXiv's metadata, and `peerread:` (Kang et al. 2018)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from corpora.document import Document
from corpora.errors import ConfigError, InputError, expand_home
from corpora.readers.fields import Fields
from corpora.readers.fields import Text as TextField
from corpora.readers.files import TO_TEXT, Refused, find_files, good_record, read_lines, read_whole
from corpora.readers.gutenberg import without_licence
from corpora.readers.records import (
    as_article,
    as_document,
    check_document_lines,
    sentence_documents,
)
from corpora.readers.rows import json_rows, json_value
from corpora.readers.source import (
    Encoded,
    Reader,
    Source,
    Whole,
    blocks_of,
    join_paragraphs,
    paragraphs_from_blocks,
    paragraphs_of,
    path_below,
    text_and_sentences,
)

log = logging.getLogger("discorpora")

_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)\.?\s+\S")  # a heading such as 3.1 Data
_HTML = re.compile(
    r"\s*(<\?xml[^>]*>|<!--.*?-->|\s)*<(!doctype\s+html|html|head|body)\b", re.I | re.S
)
_NOTES = re.compile(
    r"(?:\A|(?<=\n\n))(?:(?:WEBVTT|NOTE|STYLE|REGION)\b[^\n]*(?:\n[^\n]+)*|[^\n]+\n(?=[^\n]*-->))"
)
"""The header, notes and styles of a WebVTT file, and the names of its cues."""
START = ".START"
_HIGHLIGHT = "@highlight"
_TOO_LONG_HINT = ' (or set document_lines with layout = "lines")'


def _check_regular_expression(text: str) -> str:
    """Return `text`; `ConfigError` if it is not a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        message = f"{text!r} is not a regular expression: {error}"
        raise ConfigError(message, hint='such as chapters = "CHAPTER [IVXLC]+[.]?"') from None
    return text


class Text(Encoded):
    """Plain text, a document per file."""

    name = "text"
    suffixes = (".txt", ".txt.gz")

    layout: Literal["paragraphs", "lines"] = "paragraphs"
    """`paragraphs`: blank lines separate paragraphs. `lines`: every line is also a sentence."""
    document_lines: Annotated[Whole, Field(ge=1)] | None = None
    """With the layout `lines`: maximum sentences of a document."""
    chapters: Annotated[str, AfterValidator(_check_regular_expression)] = ""
    """A regular expression: each line that it matches is a heading, and begins a document."""
    group: Literal["file", "folder"] = "file"
    """What splits keep together: the documents of a file, or of its folder."""

    _lines = model_validator(mode="after")(check_document_lines)

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the document of a file, or one for each chapter.

        The id is the path below the source's folder, without suffix, and for a chapter its number
        behind that. The group is the path without the number, or with `group` = `folder` the path
        of the file's folder (for files directly in the source's folder, its name). Project
        Gutenberg's header and licence are left out.
        """
        group = stem
        if self.group == "folder":
            group = path_below(source.target, path).rpartition("/")[0]
            group = group or path.parent.resolve().name
        if limit := self.document_lines:
            yield from sentence_documents(
                read_lines(path, self.encoding), source, stem, limit, group
            )
            return
        content = read_whole(path, self.encoding, hint=_TOO_LONG_HINT)
        if _HTML.match(content) and not source.warned:
            source.warned = True
            problem = f"{path} is HTML: its tags will be read as words"
            log.warning("%s: %s\n  convert it first: %s.txt FILE", source.name, problem, TO_TEXT)
        if content.startswith("WEBVTT"):
            content = _NOTES.sub("", content)
        chapters: list[tuple[str, list[str]]] = [("", [])]  # titles and lines
        for line in without_licence(content.split("\n"), source):
            if self.chapters and re.fullmatch(self.chapters, line.strip()):
                chapters.append((line.strip(), []))
            else:
                chapters[-1][1].append(line)
        # Headings without text are those of a table of contents.
        with_text = [chapter for chapter in chapters if any(map(str.strip, chapter[1]))]
        chapters = with_text or chapters[:1]
        first_title = chapters[0][0]  # "": the text before the first chapter, with the number 0
        for number, (title, lines) in enumerate(chapters, 1 if first_title else 0):
            blocks = blocks_of(lines)
            text, sentences = join_paragraphs(paragraphs_from_blocks(blocks))[0], None
            if self.layout == "lines":
                text, sentences = text_and_sentences(blocks)
            name = f"{stem}/{number}" if self.chapters else stem
            with source.refusing(path, title):
                yield source.document(name, text, group=group, title=title, sentences=sentences)


class Cnn(Encoded):
    """CNN and Daily Mail .story files, without their highlights."""

    name = "cnn"
    suffixes = (".story", ".story.gz")

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the document of a file, without the summary.

        A point of the summary is the paragraph after the mark `@highlight`.
        """
        body: list[str] = []
        point_follows = False
        for paragraph in paragraphs_of(read_whole(path, self.encoding)):
            if paragraph.startswith(_HIGHLIGHT):
                # Some files have the point on the line after the mark, without a blank line.
                point_follows = paragraph == _HIGHLIGHT
            elif point_follows:
                point_follows = False
            else:
                body.append(paragraph)
        yield as_document({"paragraphs": body}, source, stem)


class Wsj(Encoded):
    """The Penn Treebank's raw Wall Street Journal (`raw/wsj/00/wsj_0001`)."""

    name = "wsj"
    suffixes = (".txt",)
    own_licence = "LDC"

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """Return the files `wsj_*` of a folder, or the given files; `InputError` if none exists."""
        files = find_files(target, ("",), kind=cls.name)
        articles = [path for path in files if path.name.startswith("wsj_")]
        if articles or not expand_home(target).is_dir():
            return articles or files
        raise InputError(
            f"no file wsj_* in folder {target!r}",
            hint="wsj: expects the Penn Treebank's raw text, FOLDER/00/wsj_0001 and so on",
        )

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the document of a file: every line is a sentence, blank lines separate paragraphs.

        Lines `.START` are left out.
        """
        try:
            lines = read_whole(path, self.encoding).split("\n")
        except Refused as refusal:
            if not str(refusal).startswith("not UTF-8"):
                raise
            hint = " (a file of the treebank? set encoding to latin-1)"
            raise Refused(f"{refusal}{hint}", refusal.where) from None
        blocks = blocks_of("" if line.strip() == START else line for line in lines)
        text, sentences = text_and_sentences(blocks)
        yield source.document(stem, text, sentences=sentences)


class _Abstract(Fields):
    """A line of the arXiv metadata."""

    id: str
    abstract: str
    title: Any = None
    authors: Any = None
    categories: TextField = ""


class Arxiv(Reader):
    """Abstracts of the Kaggle arXiv metadata, which are CC0."""

    name = "arxiv"
    suffixes = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
    own_licence = "CC0-1.0"

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield a document for each abstract, a line of `arxiv-metadata-oai-snapshot.json`.

        Id, title and categories are arXiv's.
        """
        for where, record in json_rows(path):
            with source.refusing(where, record):
                fields = _Abstract.of(good_record(record))
                paper = {
                    "title": fields.title,
                    "author": fields.authors,
                    "text": fields.abstract,
                    "url": f"https://arxiv.org/abs/{fields.id}",
                    "categories": fields.categories.split(),
                }
                yield as_document(paper, source, fields.id)


class _PaperSection(Fields):
    heading: str | None = None
    text: TextField = ""


class _Metadata(Fields):
    """The content of a paper of PeerRead: title, authors, abstract and sections."""

    title: Any = None
    authors: Any = None
    abstractText: TextField = ""
    sections: Annotated[list[_PaperSection], Field(fail_fast=True)] | None = None


class _Paper(Fields):
    metadata: _Metadata


class PeerRead(Reader):
    """PeerRead's parsed papers: abstract and sections (`parsed_pdfs/*.pdf.json`)."""

    name = "peerread"
    suffixes = (".pdf.json",)

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the document of a paper, with an id such as `acl_2017/train/104`.

        The abstract is the first section (level 1, heading `Abstract`); the number of a heading
        gives the level of the others (`3.1 Data` is 3, without a number 2). A line of the PDF's
        text is a paragraph; lines without any letter (line and page numbers) are left out.
        """
        paper = _Paper.of(json_value(read_whole(path))).metadata
        record = {
            "title": paper.title,
            "author": paper.authors,
            "abstract": _lines_with_letters(paper.abstractText),
            "sections": [
                {
                    "heading": section.heading,
                    "level": _heading_level((section.heading or "").strip()),
                    "paragraphs": _lines_with_letters(section.text),
                }
                for section in paper.sections or ()
            ],
        }
        yield as_article(record, source, stem.replace("parsed_pdfs/", ""))  # the same for all


def _lines_with_letters(text: str) -> list[str]:
    return [line for line in text.split("\n") if any(map(str.isalpha, line))]


def _heading_level(heading: str) -> int:
    """Return the level of a heading: 1 for an empty one, 2 for one without a number or with a whole
    number, 3 for `3.1 Data`, and so on."""
    numbered = _NUMBERED.match(heading)
    if numbered:
        return min(99, 2 + numbered[1].count("."))
    return 2 if heading else 1
