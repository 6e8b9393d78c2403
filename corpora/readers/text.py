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
from corpora.errors import ConfigError, InputError, expanded
from corpora.readers.fields import Fields
from corpora.readers.fields import Text as TextField
from corpora.readers.files import TO_TEXT, Refused, find_files, read_lines, read_whole, taken
from corpora.readers.gutenberg import without_licence
from corpora.readers.records import (
    as_article,
    as_document,
    lines_have_the_layout,
    sentence_documents,
)
from corpora.readers.rows import json_rows, json_value
from corpora.readers.source import (
    Encoded,
    Reader,
    Source,
    Whole,
    below,
    blocks_of,
    joined,
    paragraphs_of,
    run_on,
    with_sentences,
)

log = logging.getLogger("discorpora")

_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)\.?\s+\S")
_HTML = re.compile(
    r"\s*(<\?xml[^>]*>|<!--.*?-->|\s)*<(!doctype\s+html|html|head|body)\b", re.I | re.S
)
_NOTES = re.compile(
    r"(?:\A|(?<=\n\n))(?:(?:WEBVTT|NOTE|STYLE|REGION)\b[^\n]*(?:\n[^\n]+)*|[^\n]+\n(?=[^\n]*-->))"
)
"""The header, notes and styles of a WebVTT file, and the names of its cues."""
START = ".START"
_HIGHLIGHT = "@highlight"
_CUT = ' (or set document_lines with layout = "lines")'


def _line_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        said = f"{text!r} is not a regular expression: {error}"
        raise ConfigError(said, hint='such as chapters = "CHAPTER [IVXLC]+[.]?"') from None
    return text


class Text(Encoded):
    """Plain text, a document per file."""

    name = "text"
    suffixes = (".txt", ".txt.gz")

    layout: Literal["paragraphs", "lines"] = "paragraphs"
    """`paragraphs`: blank lines separate paragraphs. `lines`: every line is also a sentence."""
    document_lines: Annotated[Whole, Field(ge=1)] | None = None
    """With the layout `lines`: maximum sentences of a document."""
    chapters: Annotated[str, AfterValidator(_line_pattern)] = ""
    """A regular expression: each line that it matches is a heading, and begins a document."""
    group: Literal["file", "folder"] = "file"
    """What splits keep together: the documents of a file, or of its folder."""

    _lines = model_validator(mode="after")(lines_have_the_layout)

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """The id is the path below the folder, without suffix. Project Gutenberg's header and
        licence are left out.

        The group is the same, or with `group` = `folder` the path of the file's folder below the
        source's folder (for files directly in that one, its name).
        """
        group = stem
        if self.group == "folder":
            group = below(source.target, path).rpartition("/")[0] or path.parent.resolve().name
        if limit := self.document_lines:
            yield from sentence_documents(
                read_lines(path, self.encoding), source, stem, limit, group
            )
            return
        whole = read_whole(path, self.encoding, hint=_CUT)
        if _HTML.match(whole) and not source.warned:
            source.warned = True
            said = f"{path} is HTML: its tags will be read as words"
            log.warning("%s: %s\n  convert it first: %s.txt FILE", source.name, said, TO_TEXT)
        if whole.startswith("WEBVTT"):
            whole = _NOTES.sub("", whole)
        parts: list[tuple[str, list[str]]] = [("", [])]
        for line in without_licence(whole.split("\n"), source):
            if self.chapters and re.fullmatch(self.chapters, line.strip()):
                parts.append((line.strip(), []))
            else:
                parts[-1][1].append(line)
        # Headings without text are those of a table of contents.
        parts = [part for part in parts if any(map(str.strip, part[1]))] or parts[:1]
        for number, (title, lines) in enumerate(parts, 1 if parts[0][0] else 0):
            blocks = blocks_of(lines)
            text, sentences = joined(run_on(blocks))[0], None
            if self.layout == "lines":
                text, sentences = with_sentences(blocks)
            name = f"{stem}/{number}" if self.chapters else stem
            with source.refusing(path, title):
                yield source.document(name, text, group=group, title=title, sentences=sentences)


class Cnn(Encoded):
    """CNN and Daily Mail .story files, without their highlights."""

    name = "cnn"
    suffixes = (".story", ".story.gz")

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """A document for each file, without `@highlight` and the paragraph after it, a point of the
        summary.
        """
        body: list[str] = []
        highlight = False
        for paragraph in paragraphs_of(read_whole(path, self.encoding)):
            if paragraph.startswith(_HIGHLIGHT):
                # Some files have the point on the line after the mark, without a blank line.
                highlight = paragraph == _HIGHLIGHT
            elif highlight:
                highlight = False
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
        """The files `wsj_*` of a folder, or the given files."""
        files = find_files(target, ("",), kind=cls.name)
        articles = [path for path in files if path.name.startswith("wsj_")]
        if articles or not expanded(target).is_dir():
            return articles or files
        raise InputError(
            f"no file wsj_* in folder {target!r}",
            hint="wsj: expects the Penn Treebank's raw text, FOLDER/00/wsj_0001 and so on",
        )

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """A document for each file. Every line is a sentence (the sentence layer), blank lines
        separate paragraphs, the lines `.START` are dropped.
        """
        try:
            lines = read_whole(path, self.encoding).split("\n")
        except Refused as refusal:
            if not str(refusal).startswith("not UTF-8"):
                raise
            hint = " (a file of the treebank? set encoding to latin-1)"
            raise Refused(f"{refusal}{hint}", refusal.where) from None
        blocks = blocks_of("" if line.strip() == START else line for line in lines)
        text, sentences = with_sentences(blocks)
        yield source.document(stem, text, sentences=sentences)


class _Abstract(Fields):
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
        """A document for each abstract (a line of `arxiv-metadata-oai-snapshot.json`); id, title
        and categories are arXiv's.
        """
        for where, record in json_rows(path):
            with source.refusing(where, record):
                of = _Abstract.of(taken(record))
                paper = {"title": of.title, "author": of.authors, "text": of.abstract}
                paper |= {"url": f"https://arxiv.org/abs/{of.id}"}
                paper["categories"] = of.categories.split()
                yield as_document(paper, source, of.id)


class _PaperSection(Fields):
    heading: str | None = None
    text: TextField = ""


class _Metadata(Fields):
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
        """A document for each paper, called `acl_2017/train/104`.

        The abstract is the first section (level 1, heading `Abstract`); the number of a heading
        gives the level of the others (`3.1 Data` is 3, without a number 2). A line of the PDF's
        text is a paragraph; lines without any letter (line and page numbers) are dropped.
        """
        paper = _Paper.of(json_value(read_whole(path))).metadata
        record = {
            "title": paper.title,
            "author": paper.authors,
            "abstract": _prose(paper.abstractText),
            "sections": [
                {
                    "heading": section.heading,
                    "level": _level((section.heading or "").strip()),
                    "paragraphs": _prose(section.text),
                }
                for section in paper.sections or ()
            ],
        }
        yield as_article(record, source, stem.replace("parsed_pdfs/", ""))  # the same for all


def _prose(text: str) -> list[str]:
    return [line for line in text.split("\n") if any(map(str.isalpha, line))]


def _level(heading: str) -> int:
    numbered = _NUMBERED.match(heading)
    return min(99, 2 + numbered[1].count(".")) if numbered else 2 if heading else 1
