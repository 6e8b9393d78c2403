"""`text:` plain text, a document per file: paragraphs by blank lines, or one sentence a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpora.document import Document
from corpora.errors import BadRecord, ConfigError, nearest
from corpora.readers.files import read_lines
from corpora.readers.layouts import with_sentences
from corpora.readers.lines import check_layout, sentence_documents
from corpora.readers.source import DOCUMENT_LIMIT, Refused, Source, check_id, joined

SUFFIXES = (".txt", ".txt.gz")
OPTIONS = frozenset({"layout", "document_lines"})
LAYOUTS = ("paragraphs", "lines")


def read(source: Source) -> Iterator[Document]:
    """The documents of text files: id = group = path below the folder, without its suffix."""
    layout = source.option("layout", str, "paragraphs")
    if layout not in LAYOUTS:
        raise ConfigError(
            f"unknown layout {layout!r}",
            where="text: layout",
            hint=f"{nearest(layout, LAYOUTS)}layouts are {', '.join(LAYOUTS)}",
        )
    check_layout(layout, source)
    cut = layout == "lines" and source.option("document_lines", int) is not None
    for path in source.files:
        name = source.stem(path, SUFFIXES)
        if cut:
            yield from sentence_documents(read_lines(path), source, name)
            continue
        try:
            yield _document(path, name, layout, source)
        except Refused as refusal:
            source.refuse(refusal.where or str(path), str(refusal))


def _document(path: Path, name: str, layout: str, source: Source) -> Document:
    blocks = _blocks(path)
    if not blocks:
        raise Refused("no text: the file has none")
    if layout == "lines":
        text, paragraphs, sentences = with_sentences(blocks)
    else:
        text, paragraphs = joined([" ".join(block) for block in blocks])
        sentences = None
    return Document(
        id=check_id(name),
        text=text,
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
