"""`text:` plain text, a document per file: paragraphs by blank lines, or one sentence a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from corpora.document import Document
from corpora.errors import BadRecord, ConfigError, nearest
from corpora.readers.files import read_lines
from corpora.readers.layouts import with_sentences
from corpora.readers.lines import check_layout, sentence_documents
from corpora.readers.source import DOCUMENT_LIMIT, Refused, Source, check_id, joined

SUFFIXES = (".txt", ".txt.gz")
OPTIONS = frozenset({"layout", "document_lines", "group"})
LAYOUTS = ("paragraphs", "lines")
GROUPS = ("file", "folder")


def read(source: Source) -> Iterator[Document]:
    """The documents of text files: id = path below the folder, without its suffix.

    So is the group, or with `group` = `folder` the folder that the file lies in: its path below
    the source's folder, and of files right in that one its name.
    """
    layout, by = _choice(source, "layout", LAYOUTS), _choice(source, "group", GROUPS)
    check_layout(layout, source)
    cut = layout == "lines" and source.option("document_lines", int) is not None
    for path in source.files:
        name = source.stem(path, SUFFIXES)
        group = source.folder(path) if by == "folder" else name
        if cut:
            yield from sentence_documents(read_lines(path), source, name, group)
            continue
        try:
            yield _document(path, name, group, layout, source)
        except Refused as refusal:
            source.refuse(refusal.where or str(path), str(refusal))


def _choice(source: Source, key: str, choices: Sequence[str]) -> str:
    """The value of an option that is one of `choices`, by default the first; else `ConfigError`."""
    value = str(source.option(key, str, choices[0]))
    if value not in choices:
        raise ConfigError(
            f"unknown {key} {value!r}",
            where=f"text: {key}",
            hint=f"{nearest(value, choices)}{key}s are {', '.join(choices)}",
        )
    return value


def _document(path: Path, name: str, group: str, layout: str, source: Source) -> Document:
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
