"""Records (JSON objects, rows of Parquet or of a Hub dataset) as documents: roles and layouts.

A reader of one corpus names the fields of its records after their roles and calls `as_document` or
`as_article`; a `RecordReader` detects the field of each role.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from corpora.document import Document, Sections, Turns
from corpora.errors import BadRecord, ConfigError, InputError, nearest
from corpora.readers.files import DOCUMENT_LIMIT, LINES_LIMIT, TOO_LONG, Refused, taken
from corpora.readers.source import (
    Reader,
    SeenIds,
    Source,
    Whole,
    check_id,
    check_unicode,
    clean,
    joined,
    paragraphs_of,
    with_sentences,
)

R = TypeVar("R", bound=Reader)
Record = Mapping[str, Any]
Place = tuple[str, Record | BadRecord]
"""The place of a record, and the record."""
FieldName = str | None
"""The field of a role; default: one of the usual names (`FIELDS`)."""

FIELDS: dict[str, tuple[str, ...]] = {
    "id": ("id", "document", "doc", "doc_id", "chapter_id"),
    "group": ("group", "book"),
    "title": ("title", "chapter"),
    "text": ("text", "sentence", "content"),
    "author": ("author", "authors"),
    "licence": ("licence", "license"),
    "language": ("language", "lang"),
    "turns": ("turns", "messages"),
    "speaker": ("speaker", "nick"),
    "conversation": ("conversation", "thread"),
    **{name: (name,) for name in ("url", "categories", "paragraphs", "paragraph", "sentences")},
    **{name: (name,) for name in ("sections", "abstract")},
}
"""The usual names of the fields; the first one found in the first record is used."""

RUN_ID = ("document", "doc", "doc_id", "chapter_id", "id")
"""As `FIELDS["id"]` if a document is a run of records: their own `id` is the last choice."""

LINES_PER_DOCUMENT = 2_000


def lines_have_the_layout(reader: R) -> R:
    """Raise `ConfigError` for `document_lines` with another layout than `lines`."""
    layout, lines = getattr(reader, "layout", None), getattr(reader, "document_lines", None)
    if layout != "lines" and lines is not None:
        raise ConfigError(
            f"document_lines = {lines} needs the layout 'lines', not {layout!r}",
            hint='set layout = "lines", or leave it out',
        )
    return reader


class Roles(dict[str, Any]):
    """A record by role. `names` are the fields' names in the file, `record` is unchanged."""

    def __init__(self, record: Record, names: Mapping[str, str]) -> None:
        self.record, self.names = record, names
        for role, name in names.items():
            if name in record:
                self[role] = record[name]

    def __str__(self) -> str:
        return str(self.record)


class RecordReader(Reader):
    """A source of records with roles of fields: shared by JSON Lines, Parquet and the Hub."""

    layout: Literal["document", "article", "turns", "paragraph", "lines"] | None = None
    """What one record is: a document, an article with sections, a conversation or one of its turns,
    a paragraph, a sentence. Default: detected from the first record's fields (never `lines`).
    """
    document_lines: Annotated[Whole, Field(ge=1)] | None = None
    """With the layout `lines`: maximum sentences of a document (default 2,000)."""
    id: FieldName = None
    """Field with the document's id."""
    group: FieldName = None
    """Field with the group that splits keep together, such as a book."""
    title: FieldName = None
    """Field with the title."""
    text: FieldName = None
    """Field with the text."""
    url: FieldName = None
    """Field with the address."""
    author: FieldName = None
    """Field with the author, or a list of them."""
    categories: FieldName = None
    """Field with a list of categories."""
    paragraphs: FieldName = None
    """Field with a list of paragraphs."""
    paragraph: FieldName = None
    """Field that marks a record as a paragraph."""
    sentences: FieldName = None
    """Field with a list of sentences."""
    sections: FieldName = None
    """Field with a list of sections: heading, level, paragraphs."""
    abstract: FieldName = None
    """Field with the text before the sections."""
    turns: FieldName = None
    """Field with a list of turns: speaker, conversation, text."""
    speaker: FieldName = None
    """Field with the speaker of a turn."""
    conversation: FieldName = None
    """Field with the name or number of a turn's conversation."""

    _lines = model_validator(mode="after")(lines_have_the_layout)

    def documents(self, records: Iterable[Place], source: Source, stem: str) -> Iterator[Document]:
        """The documents of the records of one file; `stem` names the nameless.

        Raises `InputError` if the layout cannot be detected, if a mapped field is missing, or if
        the records of one document are not consecutive.
        """
        records = iter(records)
        where, first = next(records, ("", None))
        while isinstance(first, BadRecord):
            source.refuse(first)
            where, first = next(records, ("", None))
        if first is None:
            return
        names = self._names(first, where)
        has = {role for role in names if names[role] in first or role in self.model_fields_set}
        layout: str = self.layout or _detected(first, has, where)
        single = layout == "turns" and "turns" not in has
        if not self.id and (single or layout == "paragraph"):
            # Of the records of a run their own `id` is the last choice.
            names["id"] = next((field for field in RUN_ID if field in first), RUN_ID[0])
        rows: Iterator[tuple[str, Roles | BadRecord]] = (
            (here, record if isinstance(record, BadRecord) else Roles(record, names))
            for here, record in chain([(where, first)], records)
        )
        if layout == "lines":
            lines = self.document_lines or LINES_PER_DOCUMENT
            yield from sentence_documents(_sentences(rows), source, stem, lines)
        elif single or layout == "paragraph":
            for where, key, run in _runs(rows, source, stem if single else ""):
                whole = Roles(run[0].record, names)
                whole |= {"turns": [row.record for row in run], "sentences": None}
                whole["paragraphs"] = [clean(string(row, "text")) for row in run]
                with source.refusing(where, f"document {key!r}"):
                    yield (as_conversation if single else as_document)(whole, source, key)
        else:
            build = {"article": as_article, "turns": as_conversation}.get(layout, as_document)
            for number, (where, row) in enumerate(rows, 1):
                with source.refusing(where, row):
                    good = taken(row)
                    yield build(good, source, string(good, "id") or f"{stem}:{number:06d}")

    def _names(self, first: Record, where: str) -> dict[str, str]:
        """The field of each role: the given one, else the first usual one that `first` has.

        Raises `InputError` if `first` lacks a given field, which is usually a misspelling.
        """
        names = {}
        for role, usual in FIELDS.items():
            own = None if role in ("licence", "language") else getattr(self, role)
            if own and own not in first and role not in ("speaker", "conversation"):
                raise InputError(
                    f"{role} = {own!r} is not a field of the first record",
                    where=where,
                    hint=f"{nearest(own, first)}its fields are {', '.join(first)}",
                )
            names[role] = own or next((field for field in usual if field in first), usual[0])
        return names


def _detected(record: Record, has: AbstractSet[str], where: str) -> str:
    """The layout implied by the roles of the first record, or by the mapped ones."""
    if has & {"sections", "abstract"}:
        return "article"
    if "turns" in has or has >= {"speaker", "text"}:
        return "turns"
    if "text" in has and ("paragraph" in has or "chapter_id" in record):
        return "paragraph"
    if has & {"text", "paragraphs", "sentences"}:
        return "document"
    raise InputError(
        f"no known field in the first record, only {', '.join(map(str, record)) or 'none at all'}",
        where=where,
        hint='map its fields with options, such as layout = "document", id = "key", text = "body"',
    )


def _sentences(rows: Iterable[tuple[str, Roles | BadRecord]]) -> Iterator[str | BadRecord]:
    """The text of each record, of the layout `lines`."""
    for where, row in rows:
        try:
            yield string(taken(row), "text")
        except Refused as refusal:
            yield refusal.record(where, row)


def _runs(
    rows: Iterable[tuple[str, Roles | BadRecord]], source: Source, stem: str
) -> Iterator[tuple[str, str, list[Roles]]]:
    """The documents, each a run of records with one key: place, key and records.

    A document with a bad record between two good ones is left out. With a `stem`, records
    without an id are one document of that name.
    """
    seen, run, size = SeenIds(), list[Roles](), 0
    key = start = hole = broken = ""
    for where, row in chain(rows, [("", None)]):
        new = text = ""
        try:
            good = taken(row)
            if good is not None:
                # `group/id`, as ids repeat over books.
                new, group = string(good, "id"), string(good, "group")
                new = f"{group}/{new}" if group and new and not new.startswith(f"{group}/") else new
                new, text = new or stem, clean(string(good, "text"))
                if not new:
                    raise Refused(f"no id: no {_field(good, 'id')!r} names the document")
                if not text:
                    raise Refused("no text: the record has none")
        except Refused as refusal:
            source.refuse(refusal.record(where, row))
            broken = where
            continue
        if new == key:
            hole = hole or broken
        else:
            if hole:
                reason = f"hole: left out, as a record at {hole} is bad (document {key!r})"
                source.refuse(BadRecord(start, reason))
            elif run:
                yield start, key, run
            if new and not seen.add(new):
                raise InputError(
                    f"document {new!r} comes back after another one",
                    where=where,
                    hint="sort the file, so that the records of a document are consecutive",
                )
            key, start, run, size, hole = new, where, [], 0, ""
        broken = ""
        if good is None:
            return
        run.append(good)
        size += len(text)
        if size > DOCUMENT_LIMIT or len(run) > LINES_LIMIT:
            raise InputError(
                f"document {key!r} is {TOO_LONG}",
                where=start,
                hint="check that the option id names the field with the document's id",
            )


def sentence_documents(
    lines: Iterable[str | BadRecord], source: Source, stem: str, limit: int, group: str = ""
) -> Iterator[Document]:
    """Documents of one sentence a line, paragraphs between blank lines (BookCorpus style).

    They are named after `stem`, and so is their group, if no `group` is given. A document ends
    after `limit` sentences, and at a bad line, so that only adjacent sentences become neighbours.
    """
    block: list[list[str]] = [[]]
    number = count = size = 0
    for line in chain(lines, [None]):
        if isinstance(line, BadRecord):
            source.refuse(line)
        elif line and not line.isspace():
            block[-1].append(line)
            count, size = count + 1, size + len(line)
            if size > DOCUMENT_LIMIT or count > LINES_LIMIT:
                raise InputError(
                    TOO_LONG, where=stem, hint="set document_lines to a smaller number"
                )
        elif block[-1]:
            block.append([])
        if count and (count >= limit or not isinstance(line, str)):
            number += 1
            with source.refusing(f"{stem}, document {number}"):
                text, sentences = with_sentences(block)
                name = f"{stem}:{number:06d}"
                yield source.document(name, text, group=group or stem, sentences=sentences)
            block, count, size = [[]], 0, 0


# The layouts.


def as_document(record: Record, source: Source, name: str) -> Document:
    """A record with `text`, or with `paragraphs`, or with `sentences` (five-sentence stories)."""
    if record.get("sentences") is not None:
        text, sentences = with_sentences([strings(record, "sentences")])
        return _document(record, source, name, text, sentences=sentences)
    bodies = strings(record, "paragraphs") or [string(record, "text")]
    text, _ = joined([p for body in bodies for p in paragraphs_of(body)])
    return _document(record, source, name, text)


def as_article(record: Record, source: Source, name: str) -> Document:
    """A record with `sections` (heading, level, paragraphs), and optionally an `abstract`.

    Headings are not part of the text; a section's span covers its own paragraphs.
    """
    parts: list[tuple[int, str, list[str]]] = []
    if abstract := paragraphs_of("\n\n".join(strings(record, "abstract"))):
        parts.append((1, "Abstract", abstract))
    if record.get("sections") is not None:
        for section in _objects(record, "sections"):
            heading = section.get("heading") or section.get("title") or ""
            if not isinstance(heading, str):
                what = typed(heading)
                raise Refused(f"wrong type: a section's heading is {what}, expected a string")
            check_unicode(heading)
            level = section.get("level", 2 if heading else 1)
            if type(level) is not int or not 0 < level < 100:
                what = str(level)[:40]
                raise Refused(f"wrong type: a section's level is {what}, expected 1 to 99")
            bodies = strings({"paragraphs": section.get("text"), **section}, "paragraphs")
            parts.append((level, clean(heading), [p for b in bodies for p in paragraphs_of(b)]))
    else:
        bodies = strings(record, "paragraphs") or strings(record, "text")
        if body := [p for b in bodies for p in paragraphs_of(b)]:
            parts.append((1, "", body))
    text, spans = joined([p for _, _, body in parts for p in body])
    sections, row = Sections(), 0
    for level, heading, body in parts:
        start = spans.start[row] if row < len(spans) else len(text)
        row += len(body)
        sections.level.append(level)
        sections.heading.append(heading)
        sections.start.append(start)
        sections.end.append(spans.end[row - 1] if body else start)
    return _document(record, source, name, text, sections=sections)


def as_conversation(record: Record, source: Source, name: str) -> Document:
    """A record with `turns` (speaker, conversation, text); each turn with text is a paragraph."""
    names = getattr(record, "names", {role: role for role in FIELDS})
    turns = [Roles(turn, names) for turn in _objects(record, "turns")]
    said = [(text, turn) for turn in turns if (text := clean(string(turn, "text")))]
    text, spans = joined([text for text, _ in said])
    speakers = [string(turn, "speaker") for _, turn in said]
    check_unicode("".join(speakers))
    for _, turn in said:
        value = turn.get("conversation")
        if not isinstance(value, int | str | None) or isinstance(value, bool):
            raise wrong_type(turn, "conversation", "a number or a name")
    conversations = numbered([turn.get("conversation") for _, turn in said])
    layer = Turns(speakers, conversations, spans.start, spans.end)
    return _document(record, source, name, text, turns=layer)


def numbered(names: list[int | str | None]) -> list[int]:
    """The number of each turn's conversation, -1 if unknown.

    Names are numbered in order; if no turn has one, the record is one conversation.
    """
    known = [name for name in names if name is not None]
    if not known:
        return [0] * len(names)
    if all(isinstance(name, int) for name in known):
        return [-1 if name is None else int(name) for name in names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(map(str, known)))}
    return [-1 if name is None else numbers[str(name)] for name in names]


def _document(record: Record, source: Source, name: str, text: str, **layers: Any) -> Document:
    """A document of `text` and the record's other fields; `name` is its id."""
    title, url = clean(string(record, "title")), string(record, "url")
    categories = tuple(strings(record, "categories"))
    # Other values of that name (a table, the first speaker) are not authors.
    written = () if "turns" in layers else record.get("author")
    names = written if isinstance(written, list | tuple) else [written]
    author = "; ".join(clean(name) for name in names if isinstance(name, str) and name.strip())
    check_unicode("".join((title, url, author, *categories)))
    return source.document(
        name,
        text,
        group=check_id(string(record, "group") or name),
        licence=string(record, "licence"),
        language=string(record, "language") or source.language,
        title=title,
        url=url,
        author=author,
        categories=categories,
        **layers,
    )


# The fields.


def string(record: Record, role: str) -> str:
    """A field as a string (numbers too), "" if missing; `Refused` for another type."""
    value = record.get(role)
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise wrong_type(record, role, "a string")


def strings(record: Record, role: str) -> list[str]:
    """A list of strings, or one string as a list of one; `Refused` for anything else."""
    value = record.get(role)
    if value is None or isinstance(value, str):
        return [] if value is None else [value]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise wrong_type(record, role, "a list of strings")


def value_of(record: Record, role: str, kind: Any, expected: str) -> Any:
    """The value of a field; `Refused` if it is not of `kind`, called `expected` in the message."""
    value = record.get(role)
    if not isinstance(value, kind):
        raise wrong_type(record, role, expected)
    return value


def filled(record: Record, role: str) -> str:
    """The stripped text of a field; `Refused` if it is missing or empty."""
    value: str = value_of(record, role, str, "a string").strip()
    if not value:
        raise Refused(f"no text: {_field(record, role)!r} is empty")
    check_unicode(value)
    return value


def _objects(record: Record, role: str) -> list[Record]:
    value = record.get(role)
    if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        return value
    raise wrong_type(record, role, "a list of objects")


def _field(record: Record, role: str) -> str:
    return record.names[role] if isinstance(record, Roles) else role


def wrong_type(record: Record, role: str, expected: str) -> Refused:
    """The reason why the value of a field is rejected."""
    what = typed(record.get(role))
    return Refused(f"wrong type: field {_field(record, role)!r} is {what}, expected {expected}")


def typed(value: object) -> str:
    """The JSON type of a value with its article, for a message; looks into one level of lists."""
    if isinstance(value, list | tuple) and value:
        inside = ("a list" if isinstance(v, list | tuple) else typed(v) for v in value[:100])
        return f"a list that holds {' and '.join(sorted(set(inside)))}"
    for kind, name in _TYPES.items():
        if isinstance(value, kind):
            return name
    return "a number"


_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    str: "a string",
    Mapping: "an object",
    list: "an empty list",
    tuple: "an empty list",
}
