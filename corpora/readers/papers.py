"""Papers: `arxiv:`, abstracts of arXiv's metadata, and `peerread:` (Kang et al. 2018)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.readers.files import Refused, read_whole
from corpora.readers.records import Record, as_article, as_document, wrong_type
from corpora.readers.rows import json_rows, json_value
from corpora.readers.source import Reader, Source, rows_of

_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)\.?\s+\S")


class Arxiv(Reader):
    """Abstracts of the Kaggle arXiv metadata, which are CC0."""

    name = "arxiv"
    suffixes = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
    own_licence = "CC0-1.0"

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """A document an abstract (a line of `arxiv-metadata-oai-snapshot.json`); id, title and
        categories are arXiv's."""

        def build(record: Record, where: str) -> Iterator[Document]:
            id, categories = record.get("id"), record.get("categories") or ""
            if not isinstance(id, str) or "abstract" not in record:
                expected = "expected the fields 'id' and 'abstract' of arXiv's metadata"
                raise Refused(f"no abstract: {expected}")
            if not isinstance(categories, str):
                raise wrong_type(record, "categories", "a string")
            paper = {
                "title": record.get("title"),
                "text": record["abstract"],
                "url": f"https://arxiv.org/abs/{id}",
                "author": record.get("authors"),
                "categories": categories.split(),
            }
            yield as_document(paper, source, id)

        yield from rows_of(json_rows(path), build, source.refuse)


class PeerRead(Reader):
    """PeerRead's parsed papers: abstract and sections (`parsed_pdfs/*.pdf.json`)."""

    name = "peerread"
    suffixes = (".pdf.json",)

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """A document a paper, called `acl_2017/train/104`.

        The abstract is the first section (level 1, heading `Abstract`); the depth of a heading's
        number gives the level of the others (`3.1 Data` is 3, without a number 2). A line of the
        PDF's text is a paragraph; lines without any letter (line and page numbers) are dropped.
        """
        name = stem.replace("parsed_pdfs/", "")  # the folder says nothing
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
    text = record.get(name)
    if not isinstance(text, str | None):
        raise wrong_type(record, name, "a string")
    return [line for line in (text or "").split("\n") if any(map(str.isalpha, line))]


def _level(heading: Any) -> int:
    if not isinstance(heading, str) or not heading.strip():
        return 1
    numbered = _NUMBERED.match(heading.strip())
    return min(99, 2 + numbered[1].count(".")) if numbered else 2
