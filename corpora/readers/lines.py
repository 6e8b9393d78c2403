"""One sentence a line, BookCorpus style: lines to documents of a bounded number of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from corpora.document import Document
from corpora.errors import BadRecord, ConfigError
from corpora.readers.layouts import with_sentences
from corpora.readers.source import Refused, Source

LINES_PER_DOCUMENT = 2_000


def check_layout(layout: str, source: Source) -> None:
    """Raise `ConfigError` for `document_lines` with a layout that it does not cut."""
    if layout != "lines" and "document_lines" in source.options:
        raise ConfigError(
            f"document_lines cuts the layout 'lines' alone, and this is {layout!r}",
            where=f"{source.kind}: document_lines",
            hint='set layout = "lines", or leave it out',
        )


def sentence_documents(
    lines: Iterable[str | BadRecord], source: Source, stem: str, group: str = ""
) -> Iterator[Document]:
    """Documents of one sentence a line, paragraphs between blank lines (BookCorpus style).

    They are named after `stem`, and so is their group, if no `group` is given.

    A document ends after `document_lines` sentences, and at a bad line, so that no two
    sentences become neighbours that were not.
    """
    limit = source.option("document_lines", int, LINES_PER_DOCUMENT)
    number = 0
    for block in _blocks(lines, limit, source):
        number += 1
        try:
            text, paragraphs, sentences = with_sentences(block)
        except Refused as refusal:
            source.refuse(f"{stem}, document {number}", str(refusal))
            continue
        name = f"{stem}:{number:06d}"
        yield Document(
            id=name,
            text=text,
            group=group or stem,
            language=source.language,
            paragraphs=paragraphs,
            sentences=sentences,
        )


def _blocks(
    lines: Iterable[str | BadRecord], limit: int, source: Source
) -> Iterator[list[list[str]]]:
    block: list[list[str]] = [[]]
    count = 0
    for line in lines:
        bad = isinstance(line, BadRecord)
        if isinstance(line, BadRecord):
            source.refuse(line.where, line.reason, line.value)
        elif line.strip():
            block[-1].append(line)
            count += 1
        elif block[-1]:
            block.append([])
        if count and (bad or count >= limit):
            yield block
            block, count = [[]], 0
    if count:
        yield block
