"""Records (JSON objects, rows of Parquet or of a Hub dataset) as documents: roles and layouts.

A reader of one corpus names the fields of its records after their roles and calls `as_document` or
`as_article`; a `RecordReader` detects the field of each role.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from corpora.document import Document, Sections, Turns
from corpora.errors import BadRecord, ConfigError, InputError, nearest
from corpora.readers.fields import NONE, Fields, Record, Strings, Text, Texts, json_type
from corpora.readers.files import (
    DOCUMENT_LIMIT,
    LINES_LIMIT,
    TOO_LONG,
    Refused,
    expect,
    good_record,
)
from corpora.readers.gutenberg import without_licence
from corpora.readers.source import (
    Reader,
    SeenIds,
    Source,
    Whole,
    blocks_of,
    clean_paragraph,
    join_paragraphs,
    paragraphs_from_blocks,
    paragraphs_of,
    text_and_sentences,
)

R = TypeVar("R", bound=Reader)
PlacedRecord = tuple[str, Record | BadRecord]
"""The place of a record, `file:line`, and the record."""
IN_TURNS = ("speaker", "conversation", "text")
"""The roles of a turn; a turn may lack the first two."""
SPEAKERS = ("speaker", "nick", "name", "user", "author", "role")
"""The usual fields of a turn's speaker. By the first two a record is a turn; one with a `name` or
`role` may be a document."""
ABOUT = {"licence": ("licence", "license"), "language": ("language", "lang")}
"""Roles whose options are not names of fields: the usual names."""
LINES_PER_DOCUMENT = 2_000
TEXTS = frozenset({"text", "paragraphs", "sentences", "sections", "abstract", "turns"})
"""Roles of fields with the text of a document."""
LONG, UNREAD = 8, 0.25
"""A text that no role reads is long if it has at least `LONG` words, and at least this share of the
number of words that are read."""
log = logging.getLogger("discorpora")


def check_document_lines(reader: R) -> R:
    """Return the reader; `ConfigError` for `document_lines` with another layout than `lines`."""
    layout, lines = getattr(reader, "layout", None), getattr(reader, "document_lines", None)
    if layout != "lines" and lines is not None:
        raise ConfigError(
            f"document_lines = {lines} needs the layout 'lines', not {layout!r}",
            hint='set layout = "lines", or leave it out',
        )
    return reader


class Roles(dict[str, Any]):
    """The values of a record by role: `names` maps roles to the record's fields.

    The unchanged record is in the attribute `record`.
    """

    def __init__(self, record: Record, names: Mapping[str, str]) -> None:
        super().__init__((role, record[name]) for role, name in names.items() if name in record)
        self.record, self.names = record, names

    def __str__(self) -> str:
        return str(self.record)


def role_field(description: str, *usual: str) -> Any:
    """Return an option of a reader that names the field of a role.

    By default the field is the first of the `usual` names (else the name of the role) that the
    first record has. `description` says what the field holds.
    """
    extra: Any = {"usual": usual}
    return Field(None, description=f"Field {description}.", json_schema_extra=extra)


class RecordReader(Reader):
    """A source of records with roles of fields: shared by JSON Lines, Parquet and the Hub."""

    layout: Literal["document", "article", "turns", "paragraph", "lines"] | None = None
    """What one record is: a document, an article with sections, a conversation or one of its turns,
    a paragraph, a sentence. Default: detected from the first record's fields (never `lines`).
    """
    document_lines: Annotated[Whole, Field(ge=1)] | None = None
    """With the layout `lines`: maximum sentences of a document (default 2,000)."""
    replace_licences: bool = False
    """Whether all documents get the option `licence`, whatever licences their records name."""
    id_prefix: str = ""
    """Text before each id, for sources that number their documents alike; `{file}` in it is the
    file's path below the source's folder, without suffix."""
    id: str | None = role_field(
        "with the document's id", "id", "document", "doc", "doc_id", "chapter_id"
    )
    group: str | None = role_field(
        "with the group that splits keep together, such as a book", "group", "book"
    )
    title: str | None = role_field("with the title", "title", "chapter")
    text: str | None = role_field("with the text", "text", "sentence", "content")
    url: str | None = role_field("with the address")
    author: str | None = role_field("with the author, or a list of them", "author", "authors")
    categories: str | None = role_field("with a list of categories")
    paragraphs: str | None = role_field("with a list of paragraphs")
    paragraph: str | None = role_field("that marks a record as a paragraph")
    sentences: str | None = role_field("with a list of sentences")
    sections: str | None = role_field("with a list of sections: heading, level, paragraphs")
    abstract: str | None = role_field("with the text before the sections")
    turns: str | None = role_field(
        "with a list of turns: speaker, conversation, text", "turns", "messages"
    )
    speaker: str | None = role_field("with the speaker of a turn", *SPEAKERS[:2])
    conversation: str | None = role_field(
        "with the name or number of a turn's conversation", "conversation", "thread"
    )

    _lines = model_validator(mode="after")(check_document_lines)

    @field_validator("id_prefix")
    @classmethod
    def _check_placeholders(cls, prefix: str) -> str:
        """Return the prefix; `ConfigError` for another placeholder than `{file}`."""
        if unknown := re.search(r"\{\w*\}", prefix.replace("{file}", "")):
            raise ConfigError(
                f"id_prefix = {prefix!r} has an unknown placeholder {unknown[0]}",
                hint="the only one is {file}, the file's path without suffix",
            )
        return prefix

    def documents(
        self, records: Iterable[PlacedRecord], source: Source, stem: str
    ) -> Iterator[Document]:
        """Yield the documents of `records`, those of one file.

        `stem`, the file's path without suffix, replaces `{file}` in `id_prefix`, and makes the ids
        of records without one. Raises `InputError` if the layout cannot be detected, if a mapped
        field is missing, or if the records of one document are not consecutive.
        """
        prefix = self.id_prefix.replace("{file}", stem)
        for document in self._documents_without_prefix(records, source, stem):
            if document.group == document.id:
                document.group = prefix + document.group
            document.id = prefix + document.id
            yield document

    def _documents_without_prefix(
        self, records: Iterable[PlacedRecord], source: Source, stem: str
    ) -> Iterator[Document]:
        """Yield what `documents` does, with ids that still lack `id_prefix`."""
        # The first good record shows the layout and the names of the fields.
        records = iter(records)
        where, first = next(records, ("", None))
        while isinstance(first, BadRecord):
            source.refuse(first)
            where, first = next(records, ("", None))
        if first is None:
            return
        names = self._field_names(first, where)
        self._warn_of_unread(first, names, where, source)
        roles = {role for role in names if names[role] in first or role in self.model_fields_set}
        layout: str = self.layout or _detect_layout(first, roles, where)
        if not self.layout and layout == "document" and {"role", "content"} <= first.keys():
            advice = 'a record with a role may be a turn of a chat, which layout = "turns" reads'
            log.warning("%s: %s; it is read as a document", where, advice)
        is_turn = layout == "turns" and "turns" not in roles  # a record is one turn
        if layout == "turns" and not is_turn:
            names |= self._field_names_in_turns(first.get(names["turns"]))
        if not self.id and (is_turn or layout == "paragraph"):
            # A field `id` is then probably that of the turn or paragraph: it is the last choice.
            id, *others = _usual_names()["id"]
            names["id"] = next((name for name in (*others, id) if name in first), others[0])
        # Make documents from all records by the layout.
        turns_as_document = partial(
            as_conversation, speakers=(self.speaker,) if self.speaker else SPEAKERS
        )
        rows: Iterator[tuple[str, Roles | BadRecord]] = (
            (place, record if isinstance(record, BadRecord) else Roles(record, names))
            for place, record in chain([(where, first)], records)
        )
        if layout == "lines":
            lines = self.document_lines or LINES_PER_DOCUMENT
            yield from sentence_documents(map(_text_of, rows), source, stem, lines)
        elif is_turn or layout == "paragraph":
            for where, key, members in _document_runs(rows, source, stem if is_turn else ""):
                with source.refusing(where, f"document {key!r}"):
                    merged = Roles(members[0][0], names)
                    merged |= {"id": key, "turns": [record for record, _ in members]}
                    merged |= {"paragraphs": [text for _, text in members], "sentences": None}
                    yield (turns_as_document if is_turn else as_document)(merged, source, key)
        else:
            layouts: dict[str, Callable[[Record, Source, str], Document]]
            layouts = {"article": as_article, "turns": turns_as_document}
            as_layout = layouts.get(layout, as_document)
            for number, (where, row) in enumerate(rows, 1):
                with source.refusing(where, row):
                    yield as_layout(good_record(row), source, f"{stem}:{number:06d}")

    def _warn_of_unread(
        self, first: Record, names: Mapping[str, str], where: str, source: Source
    ) -> None:
        """Log a warning if the first record has a long text that no role reads.

        A source gets one warning at most, and none if the user mapped a field of texts.
        """
        if source.warned or self.model_fields_set & TEXTS:
            return
        words = {name: _count_words(value) for name, value in first.items()}
        least = max(LONG, UNREAD * sum(words.get(names[role], 0) for role in TEXTS))
        fields = set(names.values())
        unread = [name for name, count in words.items() if count >= least and name not in fields]
        if unread:
            source.warned = True
            message = 'no role reads the long text of %s; the option text = "%s" reads that field'
            log.warning(f"%s: {message}", where, " and ".join(map(repr, sorted(unread))), unread[0])

    def _field_names(self, first: Record, where: str) -> dict[str, str]:
        """Return the field of each role: that of the option, else the first usual one in `first`.

        Raises `InputError` if the first record lacks the field of an option, which is usually a
        misspelling, unless it may be a field of a turn.
        """
        names = {}
        has_turns = any(name in first for name in (self.turns, *_usual_names()["turns"]))
        roles_of_a_turn = IN_TURNS if has_turns else IN_TURNS[:2]
        for role, usual in _usual_names().items():
            option = getattr(self, role) if role not in ABOUT else None
            if option and option not in first and role not in roles_of_a_turn:
                raise InputError(
                    f"{role} = {option!r} is not a field of the first record",
                    where=where,
                    hint=f"{nearest(option, first)}its fields are {', '.join(first)}",
                )
            names[role] = option or next((field for field in usual if field in first), usual[0])
        # An article has its abstract before its text: one field is only one of the two.
        if not self.abstract and names["abstract"] in {getattr(self, role) for role in TEXTS}:
            del names["abstract"]
        elif self.abstract == names["text"] and self.layout in (None, "article"):
            del names["text"]
        if self.replace_licences:
            del names["licence"]
        return names

    def _field_names_in_turns(self, turns: Any) -> dict[str, str]:
        """Return the name of the field of a turn that has each role (`text`, `speaker`, ...).

        It is that of the reader's option, else the first usual name that the first turn has.
        """
        first = turns[0] if isinstance(turns, list) and turns else None
        turn = first if isinstance(first, Mapping) else {}
        usual = {role: _usual_names()[role] for role in IN_TURNS}
        return {
            role: getattr(self, role) or next((name for name in names if name in turn), names[0])
            for role, names in usual.items()
        }


def _count_words(value: Any) -> int:
    """Count the words in a value, those in its lists and tables included."""
    if isinstance(value, str):
        return len(value.split())
    parts = value.values() if isinstance(value, Mapping) else value
    return sum(map(_count_words, parts)) if isinstance(parts, list | tuple | ValuesView) else 0


@cache
def _usual_names() -> dict[str, tuple[str, ...]]:
    """Return the usual names of each role's field, the likeliest first."""
    extras = ((name, field.json_schema_extra) for name, field in RecordReader.model_fields.items())
    roles: Any = {role: e["usual"] or (role,) for role, e in extras if isinstance(e, dict)}
    return {**ABOUT, **roles}


def _detect_layout(record: Record, roles: AbstractSet[str], where: str) -> str:
    """Return the layout that the first record's roles imply; `InputError` if they imply none."""
    if roles & {"sections", "abstract"}:
        return "article"
    if "turns" in roles or roles >= {"speaker", "text"}:
        return "turns"
    if "text" in roles and ("paragraph" in roles or "chapter_id" in record):
        return "paragraph"
    if roles & {"text", "paragraphs", "sentences"}:
        return "document"
    raise InputError(
        f"no known field in the first record, only {', '.join(map(str, record)) or 'none at all'}",
        where=where,
        hint='map its fields with options, such as layout = "document", id = "key", text = "body"',
    )


class _DocumentPart(Fields):
    """The fields of a record that is a part of a document: a turn, a paragraph or a sentence."""

    id: Text = ""
    group: Text = ""
    text: Text = ""


def _text_of(placed: tuple[str, Roles | BadRecord]) -> str | BadRecord:
    """Return the text of a record of the layout `lines`, or why it is bad."""
    where, row = placed
    try:
        return _DocumentPart.of(good_record(row)).text
    except Refused as refusal:
        return refusal.record(where, row)


def _document_runs(
    rows: Iterable[tuple[str, Roles | BadRecord]], source: Source, stem: str
) -> Iterator[tuple[str, str, list[tuple[Record, str]]]]:
    """Yield (place, key, records) of each document: consecutive records with the same key.

    The key is the id of the records, or `stem` if they have none. Each record comes with its text.
    A document with a bad record between two good ones is left out; only the record counts as bad,
    and its reason names the document.
    """
    seen_keys, run, size = SeenIds(), list[tuple[Record, str]](), 0
    key = start = ""
    bad: BadRecord | None = None  # the last one after the last good one
    has_gap = False  # whether a bad record is between two of the document `key`
    for where, row in chain(rows, [("", None)]):
        # Read the record's key and text.
        next_key = text = ""
        try:
            good = good_record(row)
            if good is not None:
                part = _DocumentPart.of(good)
                # `group/id`, as ids repeat over books.
                needs_group = part.group and part.id and not part.id.startswith(f"{part.group}/")
                next_key = (f"{part.group}/{part.id}" if needs_group else part.id) or stem
                text = clean_paragraph(part.text)
                expect(next_key, f"no id: no {good.names['id']!r} names the document")
                expect(text, _no_text([good.record], good.names))
        except Refused as refusal:
            if bad:
                source.refuse(bad)
            bad = refusal.record(where, row)
            continue
        if bad:
            if run and next_key == key:
                has_gap = True
                reason = f"{bad.reason} (document {key!r} is incomplete without it)"
                bad = replace(bad, reason=reason)
            source.refuse(bad)
        # Another document begins: yield the one that ended.
        if next_key != key:
            if run and not has_gap:
                yield start, key, run
            if next_key and not seen_keys.add(next_key):
                raise InputError(
                    f"document {next_key!r} comes back after another one",
                    where=where,
                    hint="sort the file, so that the records of a document are consecutive",
                )
            key, start, run, size, has_gap = next_key, where, [], 0, False
        bad = None
        if good is None:
            return
        # Add the record to its document.
        run.append((good.record, text))
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
    """Yield the documents of lines that are a sentence each; blank lines end a paragraph.

    BookCorpus has this form. The documents' ids begin with `stem`, which is also their group if no
    `group` is given. A document ends after `limit` sentences, and at a bad line, so that only
    adjacent sentences become neighbours.
    """
    paragraphs: list[list[str]] = [[]]
    number = count = size = 0
    for line in chain(lines, [None]):
        if isinstance(line, BadRecord):
            source.refuse(line)
        elif line and not line.isspace():
            paragraphs[-1].append(line)
            count, size = count + 1, size + len(line)
            if size > DOCUMENT_LIMIT or count > LINES_LIMIT:
                raise InputError(
                    TOO_LONG, where=stem, hint="set document_lines to a smaller number"
                )
        elif paragraphs[-1]:
            paragraphs.append([])
        if count and (count >= limit or not isinstance(line, str)):
            number += 1
            with source.refusing(f"{stem}, document {number}"):
                text, sentences = text_and_sentences(paragraphs)
                name = f"{stem}:{number:06d}"
                yield source.document(name, text, group=group or stem, sentences=sentences)
            paragraphs, count, size = [[]], 0, 0


# The layouts.


def _join_authors(value: Any) -> str:
    """Return the names in a string or list, joined by `; `; a value of another type gives ""."""
    names = value if isinstance(value, list | tuple) else [value]
    return "; ".join(
        clean_paragraph(name) for name in names if isinstance(name, str) and name.strip()
    )


class _DocumentRecord(Fields):
    """The fields of a document by role."""

    id: Text = ""
    group: Text = ""
    licence: Text = ""
    language: Text = ""
    title: Annotated[Text, AfterValidator(clean_paragraph)] = ""
    url: Text = ""
    categories: Texts = NONE
    author: Annotated[str, BeforeValidator(_join_authors)] = ""
    text: Any = None
    paragraphs: Texts = NONE
    sentences: Strings | None = None

    def document(self, source: Source, name: str, text: str, **layers: Any) -> Document:
        """Return a document of `text` and the other fields; its id is `name` if they have none."""
        return source.document(
            self.id or name,
            text,
            group=self.group,
            licence=self.licence,
            language=self.language,
            title=self.title,
            url=self.url,
            author=self.author,
            categories=tuple(self.categories),
            **layers,
        )


class _TextRecord(_DocumentRecord):
    text: Text = ""


class _Section(Fields):
    """A section of an article: its `heading` or `title`, and its `paragraphs` or `text`."""

    heading: str | None = None
    title: str | None = None
    level: Annotated[int, Field(ge=1, le=99)] | None = None
    paragraphs: Texts | None = None
    text: Texts = NONE


class _ArticleRecord(_DocumentRecord):
    text: Texts = NONE
    abstract: Texts = NONE
    sections: Annotated[list[_Section], Field(fail_fast=True)] | None = None


class _ConversationRecord(_DocumentRecord):
    author: Annotated[str, BeforeValidator(lambda value: "")] = ""  # the field names a speaker
    turns: Annotated[list[dict[str, Any]], Field(fail_fast=True)]


class _Turn(Fields):
    speaker: Text = ""
    conversation: Any = None
    text: Text = ""


def as_document(record: Record, source: Source, name: str) -> Document:
    """Return the document of a record that has `sentences`, `paragraphs` or a `text` (a string).

    Its id is `name` if the record has none. Raises `Refused` for a record without text.
    """
    fields = _TextRecord.of(record)
    if fields.sentences:
        text, sentences = text_and_sentences([fields.sentences])
        return fields.document(source, name, text, sentences=sentences)
    lines = "\n\n".join(fields.paragraphs or [fields.text]).splitlines()
    blocks = blocks_of(without_licence(lines, source))
    text, spans = join_paragraphs(paragraphs_from_blocks(blocks))
    expect(text, _no_text([record], getattr(record, "names", {})))
    return fields.document(source, name, text, paragraphs=spans)


def as_article(record: Record, source: Source, name: str) -> Document:
    """Return the document of a record with `sections`, and maybe an `abstract`.

    A section has a heading, a level and paragraphs. Headings are not part of the text; a section's
    span covers its paragraphs. The id is `name` if the record has none.
    """
    fields = _ArticleRecord.of(record)
    # Abstract, sections, or else the text alone
    parts: list[tuple[int, str, list[str]]] = []  # level, heading, paragraphs
    if abstract := paragraphs_of(*fields.abstract):
        parts.append((1, "Abstract", abstract))
    for section in fields.sections or ():
        heading = clean_paragraph(section.heading or section.title or "")
        texts = section.text if section.paragraphs is None else section.paragraphs
        level = section.level or (2 if heading else 1)
        parts.append((level, heading, paragraphs_of(*texts)))
    if not fields.sections and (body := paragraphs_of(*(fields.paragraphs or fields.text))):
        parts.append((1, "", body))
    # Join the paragraphs; a section covers the spans of its own.
    text, spans = join_paragraphs([p for _, _, body in parts for p in body])
    sections, paragraph = Sections(), 0
    for level, heading, body in parts:
        start = spans.start[paragraph] if paragraph < len(spans) else len(text)
        paragraph += len(body)
        sections.level.append(level)
        sections.heading.append(heading)
        sections.start.append(start)
        sections.end.append(spans.end[paragraph - 1] if body else start)
    return fields.document(source, name, text, sections=sections)


def as_conversation(
    record: Record, source: Source, name: str, *, speakers: Sequence[str] = SPEAKERS
) -> Document:
    """Return the document of a record with `turns`; each turn with text is a paragraph.

    A turn has a speaker, a conversation and a text. Its speaker is in the first of the fields
    `speakers` that it has. The document's id is `name` if the record has none.
    """
    names: Mapping[str, str] = getattr(record, "names", {})
    fields = _ConversationRecord.of(record)
    roles = {role: names.get(role, role) for role in IN_TURNS}
    turns: list[_Turn] = []
    for turn_record in fields.turns:
        usable = (n for n in speakers if isinstance(turn_record.get(n), str) and turn_record[n])
        speaker = next(usable, roles["speaker"])
        turns.append(_Turn.of(Roles(turn_record, {**roles, "speaker": speaker})))
    with_text = [(text, turn) for turn in turns if (text := clean_paragraph(turn.text))]
    expect(with_text, _no_text(fields.turns, names))
    text, spans = join_paragraphs([text for text, _ in with_text])
    for _, turn in with_text:
        field, value = names.get("conversation", "conversation"), turn.conversation
        is_name = type(value) in (int, str, type(None))
        expected = f"field {field!r} is {json_type(value)}, expected a whole number or a name"
        expect(is_name, f"wrong type: {expected}")
    conversations = conversation_numbers([turn.conversation for _, turn in with_text])
    layer = Turns([turn.speaker for _, turn in with_text], conversations, spans.start, spans.end)
    return fields.document(source, name, text, turns=layer)


def conversation_numbers(names: list[int | str | None]) -> list[int]:
    """Return the number of each turn's conversation from its name or number, -1 if it is unknown.

    Names are numbered in order; if no turn has one, all are of conversation 0.
    """
    known_names = [name for name in names if name is not None]
    if not known_names:
        return [0] * len(names)
    if all(isinstance(name, int) and abs(name) < 2**31 for name in known_names):
        return [-1 if name is None else int(name) for name in names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(map(str, known_names)))}
    return [-1 if name is None else numbers[str(name)] for name in names]


def _no_text(records: Iterable[Record], names: Mapping[str, str]) -> str:
    """Return the reason why records have no text; it lists their fields if none has that role."""
    fields = dict.fromkeys(chain.from_iterable(getattr(each, "record", each) for each in records))
    if names.get("text", "text") in fields or not (names and fields):
        return "no text: there is none in it"
    others = ", ".join(map(str, fields))[:100]
    return f"no text: no field {names['text']!r}, only {others} (the option text names another one)"
