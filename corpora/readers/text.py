"""`text:` plain text, a document per file: paragraphs by blank lines, or one sentence a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from corpora.document import Document
from corpora.errors import BadRecord
from corpora.readers.base import Reader, Whole
from corpora.readers.files import read_lines
from corpora.readers.layouts import sentence_documents, with_sentences
from corpora.readers.records import check_layout
from corpora.readers.source import DOCUMENT_LIMIT, Refused, Source, check_id, joined


class Text(Reader):
    """Plain text, a document per file."""

    name = "text"
    suffixes = (".txt", ".txt.gz")

    layout: Literal["paragraphs", "lines"] = "paragraphs"
    """`paragraphs`: blank lines separate them. `lines`: every line is a sentence as well."""
    document_lines: Annotated[Whole, Field(ge=1)] | None = None
    """With the layout `lines`: cut a file into documents of so many sentences."""
    group: Literal["file", "folder"] = "file"
    """What splits keep together: the documents of a file, or of the folder that it lies in."""

    @model_validator(mode="after")
    def _lines_have_the_layout(self) -> Self:
        check_layout(self.layout, self.document_lines)
        return self

    def read(self, source: Source) -> Iterator[Document]:
        """Id = path below the folder, without its suffix.

        So is the group, or with `group` = `folder` the folder that the file lies in: its path below
        the source's folder, and of files right in that one its name.
        """
        for path in source.files:
            name = source.stem(path, self.suffixes)
            group = source.folder(path) if self.group == "folder" else name
            if limit := self.document_lines:
                yield from sentence_documents(read_lines(path), source, name, limit, group)
                continue
            with source.refusing(path):
                blocks = _blocks(path)
                if not blocks:
                    raise Refused("no text: the file has none")
                sentences = None
                if self.layout == "lines":
                    text, paragraphs, sentences = with_sentences(blocks)
                else:
                    text, paragraphs = joined([" ".join(block) for block in blocks])
                yield Document(
                    id=check_id(name),
                    text=text,
                    group=group,
                    language=source.language,
                    paragraphs=paragraphs,
                    sentences=sentences,
                )


def _blocks(path: Path) -> list[list[str]]:
    """The lines of a file, grouped by blank lines; `Refused` for a bad line: no text has holes."""
    blocks: list[list[str]] = [[]]
    size = 0
    for line in read_lines(path):
        if isinstance(line, BadRecord):
            raise Refused(line.reason, line.where)
        size += len(line)
        if size > DOCUMENT_LIMIT:
            raise Refused(
                f"too long: more than {DOCUMENT_LIMIT:,} characters; split the file"
                ' (or set document_lines with layout = "lines")'
            )
        if line := line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]
