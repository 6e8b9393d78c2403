"""Texts: `text:`, `cnn:` (Hermann et al. 2015), `wsj:`, the raw Wall Street Journal; and papers:
`arxiv:`, abstracts of arXiv's metadata, and `peerread:` (Kang et al. 2018)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from corpora.document import Document
from corpora.errors import InputError, expanded
from corpora.readers.files import Refused, find_files, read_lines, read_whole
from corpora.readers.records import (
    Record,
    as_article,
    as_document,
    lines_have_the_layout,
    sentence_documents,
    value_of,
    wrong_type,
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
    rows_of,
    with_sentences,
)

_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)\.?\s+\S")
_HTML = re.compile(
    r"\s*(<\?xml[^>]*>|<!--.*?-->|\s)*<(!doctype\s+html|html|head|body)\b", re.I | re.S
)
START = ".START"
_HIGHLIGHT = "@highlight"
_CUT = ' (or set document_lines with layout = "lines")'


class Text(Encoded):
    """Plain text, a document per file."""

    name = "text"
    suffixes = (".txt", ".txt.gz")

    layout: Literal["paragraphs", "lines"] = "paragraphs"
    """`paragraphs`: blank lines separate paragraphs. `lines`: every line is also a sentence."""
    document_lines: Annotated[Whole, Field(ge=1)] | None = None
    """With the layout `lines`: maximum sentences of a document."""
    group: Literal["file", "folder"] = "file"
    """What splits keep together: the documents of a file, or of its folder."""

    _lines = model_validator(mode="after")(lines_have_the_layout)

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """The id is the path below the folder, without suffix.

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
        if _HTML.match(whole):
            source.warn_once(
                f"{path} is HTML: its tags will be read as words",
                "convert it first, for example: pandoc --to plain --wrap none -o FILE.txt FILE",
            )
        blocks = blocks_of(whole.split("\n"))
        text, sentences = joined([" ".join(block) for block in blocks])[0], None
        if self.layout == "lines":
            text, sentences = with_sentences(blocks)
        yield source.document(stem, text, group=group, sentences=sentences)


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


class Arxiv(Reader):
    """Abstracts of the Kaggle arXiv metadata, which are CC0."""

    name = "arxiv"
    suffixes = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
    own_licence = "CC0-1.0"

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """A document for each abstract (a line of `arxiv-metadata-oai-snapshot.json`); id, title
        and categories are arXiv's.
        """

        def build(record: Record, where: str) -> Iterator[Document]:
            id = record.get("id")
            if not isinstance(id, str) or "abstract" not in record:
                expected = "expected the fields 'id' and 'abstract' of arXiv's metadata"
                raise Refused(f"no abstract: {expected}")
            categories = value_of(record, "categories", str | None, "a string") or ""
            paper = {"title": record.get("title"), "author": record.get("authors")}
            paper |= {"text": record["abstract"], "url": f"https://arxiv.org/abs/{id}"}
            yield as_document({**paper, "categories": categories.split()}, source, id)

        yield from rows_of(json_rows(path), build, source.refuse)


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
        name = stem.replace("parsed_pdfs/", "")  # the same for all papers
        yield as_article(_paper(json_value(read_whole(path))), source, name)


def _paper(value: Any) -> Record:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict):
        raise Refused("no paper: expected an object with the object 'metadata'")
    sections = metadata.get("sections") or []
    if not isinstance(sections, list) or not all(isinstance(s, dict) for s in sections):
        raise wrong_type(metadata, "sections", "a list of objects")
    return {
        "title": metadata.get("title"),
        "author": metadata.get("authors"),
        "abstract": _prose(metadata, "abstractText"),
        "sections": [
            {
                "heading": section.get("heading"),
                "level": _level(section.get("heading")),
                "paragraphs": _prose(section, "text"),
            }
            for section in sections
        ],
    }


def _prose(record: Record, name: str) -> list[str]:
    text = value_of(record, name, str | None, "a string") or ""
    return [line for line in text.split("\n") if any(map(str.isalpha, line))]


def _level(heading: Any) -> int:
    if not isinstance(heading, str) or not heading.strip():
        return 1
    numbered = _NUMBERED.match(heading.strip())
    return min(99, 2 + numbered[1].count(".")) if numbered else 2
