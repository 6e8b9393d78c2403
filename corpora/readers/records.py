"""Records (JSON objects, rows of Parquet or of a Hub dataset) to documents, by layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from corpora.document import Document
from corpora.errors import BadRecord, ConfigError, InputError
from corpora.readers.base import Reader, Whole
from corpora.readers.layouts import (
    FIELDS,
    Mapper,
    Record,
    as_article,
    as_conversation,
    as_document,
    from_paragraphs,
    from_turns,
    sentence_documents,
)
from corpora.readers.source import DOCUMENT_LIMIT, Refused, SeenIds, Source, bad_record, clean

Place = tuple[str, Record | BadRecord]
"""Where a record stands, and the record."""
FieldName = str | None
"""The field of a role; without it one of the usual names (`corpora.readers.layouts.FIELDS`)."""
LINES_PER_DOCUMENT = 2_000


def check_layout(layout: str, document_lines: int | None) -> None:
    """Raise `ConfigError` for `document_lines` with a layout that it does not cut."""
    if layout != "lines" and document_lines is not None:
        raise ConfigError(
            f"document_lines cuts the layout 'lines' alone, and this is {layout!r}",
            hint='set layout = "lines", or leave it out',
        )


class RecordReader(Reader):
    """A source of records, whose fields play roles: what JSON Lines, Parquet and the Hub share."""

    layout: Literal["document", "article", "turns", "paragraph", "lines"] | None = None
    """What one record is: a whole document, an article with sections, a conversation or one of its
    turns, a paragraph, a sentence. Without it the fields of the first record tell (never `lines`).
    """
    document_lines: Annotated[Whole, Field(ge=1)] | None = None
    """With the layout `lines`: how many sentences are a document (2,000)."""
    id: FieldName = None
    """Field with what tells documents apart."""
    group: FieldName = None
    """Field with what splits keep together: a book."""
    title: FieldName = None
    """Field with the title."""
    text: FieldName = None
    """Field with the text."""
    url: FieldName = None
    """Field with the address."""
    categories: FieldName = None
    """Field with a list of categories."""
    paragraphs: FieldName = None
    """Field with a list of paragraphs."""
    paragraph: FieldName = None
    """Field that says that a record is a paragraph."""
    sentences: FieldName = None
    """Field with a list of sentences."""
    sections: FieldName = None
    """Field with a list of sections: heading, level, paragraphs."""
    abstract: FieldName = None
    """Field with what stands before the sections."""
    turns: FieldName = None
    """Field with a list of turns: speaker, conversation, text."""
    speaker: FieldName = None
    """Field with who says a turn."""
    conversation: FieldName = None
    """Field with the name or number of a turn's conversation."""

    @model_validator(mode="after")
    def _lines_have_the_layout(self) -> Self:
        if self.layout is not None:
            check_layout(self.layout, self.document_lines)
        return self

    def documents(self, records: Iterable[Place], source: Source, stem: str) -> Iterator[Document]:
        """The documents of the records of one file; `stem` names the nameless.

        Raises `InputError` if the layout cannot be told, if a mapped field is not there, or if the
        records of one document do not follow each other.
        """
        records = iter(records)
        good = next(source.taken(records), None)
        if good is None:
            return
        where, first = good
        given = {role: getattr(self, role, None) for role in FIELDS.keys() - _VALUES}
        named = {role: name for role, name in given.items() if name is not None}
        layout: str = self.layout or _detected(first, named, where)
        check_layout(layout, self.document_lines)
        single = layout == "turns" and not ("turns" in named or {"turns", "messages"} & {*first})
        mapper = Mapper(named, first, where, runs=single or layout == "paragraph")
        records = chain([good], records)
        if layout == "lines":
            lines = self.document_lines or LINES_PER_DOCUMENT
            yield from sentence_documents(_sentences(records, mapper), source, stem, lines)
        elif single:
            yield from _runs(records, source, mapper, from_turns, stem)
        elif layout == "paragraph":
            yield from _runs(records, source, mapper, from_paragraphs)
        else:
            build = {"document": as_document, "article": as_article, "turns": as_conversation}
            for number, (where, record) in enumerate(records, 1):
                if isinstance(record, BadRecord):
                    source.refuse(record)
                    continue
                with source.refusing(where, record):
                    name = mapper.string(record, "id") or f"{stem}:{number:06d}"
                    yield build[layout](record, source, name, mapper)


_VALUES = {"licence", "language"}
"""Roles whose options are values, not names of fields."""


def _detected(record: Record, named: Mapping[str, str], where: str) -> str:
    """The layout that the fields of the first record, or the mapped roles, point to."""

    def has(role: str) -> bool:
        return role in named or any(field in record for field in FIELDS[role])

    if has("sections") or has("abstract"):
        return "article"
    if has("turns") or (has("speaker") and has("text")):
        return "turns"
    if has("text") and (has("paragraph") or "chapter_id" in record):
        return "paragraph"
    if has("text") or has("paragraphs") or has("sentences"):
        return "document"
    raise InputError(
        f"no known field in the first record, only {', '.join(map(str, record)) or 'none at all'}",
        where=where,
        hint='map its fields with options, such as layout = "document", id = "key", text = "body"',
    )


def _sentences(records: Iterable[Place], mapper: Mapper) -> Iterator[str | BadRecord]:
    """The text of each record, of the layout `lines`."""
    for where, record in records:
        if isinstance(record, BadRecord):
            yield record
            continue
        try:
            yield mapper.string(record, "text")
        except Refused as refusal:
            yield bad_record(refusal, where, record)


class _Run:
    """The records of one document so far; `hole` is where a bad one stood among them."""

    def __init__(self, key: str, where: str) -> None:
        self.key, self.where, self.hole = key, where, ""
        self.records: list[Record] = []
        self.size = 0

    def add(self, record: Record, size: int) -> None:
        self.records.append(record)
        self.size += size
        if self.size > DOCUMENT_LIMIT:
            raise InputError(
                f"document {self.key!r} is longer than {DOCUMENT_LIMIT:,} characters",
                where=self.where,
                hint="does the option id name the field that tells documents apart?",
            )


def _runs(
    records: Iterable[Place],
    source: Source,
    mapper: Mapper,
    build: Callable[[list[Record], Source, str, Mapper], Document],
    stem: str = "",
) -> Iterator[Document]:
    """Consecutive records of one key are a document that `build` makes.

    A document never has a hole: one with a bad record between two good ones is left out. With a
    `stem`, records without an id are one document of that name.
    """
    run, broken, seen = _Run("", ""), "", SeenIds()

    def finished() -> Iterator[Document]:
        if not run.records:
            return
        try:
            if run.hole:
                raise Refused(f"hole: left out, as a record at {run.hole} is bad")
            document = build(run.records, source, run.key, mapper)
        except Refused as refusal:
            source.refuse(BadRecord(run.where, f"{refusal} (document {run.key!r})"))
            return
        yield document

    for where, record in records:
        try:
            if isinstance(record, BadRecord):
                raise Refused(record.reason)
            key = _key(record, mapper) or stem
            size = _size(record, mapper, key)
        except Refused as refusal:
            source.refuse(bad_record(refusal, where, record))
            broken = where
            continue
        if key != run.key:
            yield from finished()
            if not seen.add(key):
                raise InputError(
                    f"document {key!r} comes back after another one",
                    where=where,
                    hint="sort the file, so that the records of a document follow each other",
                )
            run = _Run(key, where)
        elif broken:
            run.hole = run.hole or broken
        broken = ""
        run.add(record, size)
    yield from finished()


def _key(record: Record, mapper: Mapper) -> str:
    """The id of the document that a record is a part of: `group/id`, as ids repeat over books."""
    name, group = mapper.string(record, "id"), mapper.string(record, "group")
    return f"{group}/{name}" if group and name and not name.startswith(f"{group}/") else name


def _size(record: Record, mapper: Mapper, key: str) -> int:
    if not key:
        raise Refused(f"no id: no {mapper.names['id']!r} names the document")
    text = clean(mapper.string(record, "text"))
    if not text:
        raise Refused("no text: the record has none")
    return len(text)
