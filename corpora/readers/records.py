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
from corpora.readers.fields import NONE, Fields, Record, Strings, Text, Texts, typed
from corpora.readers.files import DOCUMENT_LIMIT, LINES_LIMIT, TOO_LONG, Refused, expect, taken
from corpora.readers.gutenberg import without_licence
from corpora.readers.source import (
    Reader,
    SeenIds,
    Source,
    Whole,
    blocks_of,
    clean,
    joined,
    paragraphs_of,
    run_on,
    with_sentences,
)

R = TypeVar("R", bound=Reader)
Place = tuple[str, Record | BadRecord]
"""The place of a record, and the record."""
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
"""The fewest words of a long text, and their share of the words that are read."""
log = logging.getLogger("discorpora")


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
        super().__init__((role, record[name]) for role, name in names.items() if name in record)
        self.record, self.names = record, names

    def __str__(self) -> str:
        return str(self.record)


def role(description: str, *usual: str) -> Any:
    """An option that names the field of a role; by default it is the first of the `usual` names
    that the first record has, or has the name of the role."""
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
    id: str | None = role("with the document's id", "id", "document", "doc", "doc_id", "chapter_id")
    group: str | None = role(
        "with the group that splits keep together, such as a book", "group", "book"
    )
    title: str | None = role("with the title", "title", "chapter")
    text: str | None = role("with the text", "text", "sentence", "content")
    url: str | None = role("with the address")
    author: str | None = role("with the author, or a list of them", "author", "authors")
    categories: str | None = role("with a list of categories")
    paragraphs: str | None = role("with a list of paragraphs")
    paragraph: str | None = role("that marks a record as a paragraph")
    sentences: str | None = role("with a list of sentences")
    sections: str | None = role("with a list of sections: heading, level, paragraphs")
    abstract: str | None = role("with the text before the sections")
    turns: str | None = role(
        "with a list of turns: speaker, conversation, text", "turns", "messages"
    )
    speaker: str | None = role("with the speaker of a turn", *SPEAKERS[:2])
    conversation: str | None = role(
        "with the name or number of a turn's conversation", "conversation", "thread"
    )

    _lines = model_validator(mode="after")(lines_have_the_layout)

    @field_validator("id_prefix")
    @classmethod
    def _file_only(cls, prefix: str) -> str:
        """`{file}` is the only placeholder."""
        if other := re.search(r"\{\w*\}", prefix.replace("{file}", "")):
            raise ConfigError(
                f"id_prefix = {prefix!r} has an unknown placeholder {other[0]}",
                hint="the only one is {file}, the file's path without suffix",
            )
        return prefix

    def documents(self, records: Iterable[Place], source: Source, stem: str) -> Iterator[Document]:
        """The documents of the records of one file; `stem` names the nameless, and is `{file}`.

        Raises `InputError` if the layout cannot be detected, if a mapped field is missing, or if
        the records of one document are not consecutive.
        """
        prefix = self.id_prefix.replace("{file}", stem)
        for document in self._documents(records, source, stem):
            if document.group == document.id:
                document.group = prefix + document.group
            document.id = prefix + document.id
            yield document

    def _documents(self, records: Iterable[Place], source: Source, stem: str) -> Iterator[Document]:
        """The documents with the ids of their records."""
        records = iter(records)
        where, first = next(records, ("", None))
        while isinstance(first, BadRecord):
            source.refuse(first)
            where, first = next(records, ("", None))
        if first is None:
            return
        names = self._names(first, where)
        self._warn_of_unread(first, names, where, source)
        has = {role for role in names if names[role] in first or role in self.model_fields_set}
        layout: str = self.layout or _detected(first, has, where)
        single = layout == "turns" and "turns" not in has
        if layout == "turns" and not single:
            names |= self._names_in_turns(first.get(names["turns"]))
        if not self.id and (single or layout == "paragraph"):
            # Of the records of a run their own `id` is the last choice.
            own, *others = _usual()["id"]
            names["id"] = next((name for name in (*others, own) if name in first), others[0])
        as_turns = partial(as_conversation, speakers=(self.speaker,) if self.speaker else SPEAKERS)
        rows: Iterator[tuple[str, Roles | BadRecord]] = (
            (here, record if isinstance(record, BadRecord) else Roles(record, names))
            for here, record in chain([(where, first)], records)
        )
        if layout == "lines":
            lines = self.document_lines or LINES_PER_DOCUMENT
            yield from sentence_documents(map(_sentence, rows), source, stem, lines)
        elif single or layout == "paragraph":
            for where, key, run in _runs(rows, source, stem if single else ""):
                with source.refusing(where, f"document {key!r}"):
                    whole = Roles(run[0][0], names)
                    whole |= {"id": key, "turns": [record for record, _ in run]}
                    whole |= {"paragraphs": [text for _, text in run], "sentences": None}
                    yield (as_turns if single else as_document)(whole, source, key)
        else:
            layouts: dict[str, Callable[[Record, Source, str], Document]]
            layouts = {"article": as_article, "turns": as_turns}
            build = layouts.get(layout, as_document)
            for number, (where, row) in enumerate(rows, 1):
                with source.refusing(where, row):
                    yield build(taken(row), source, f"{stem}:{number:06d}")

    def _warn_of_unread(
        self, first: Record, names: Mapping[str, str], where: str, source: Source
    ) -> None:
        """Warn once a source of long texts in the first record that no role reads.

        There is no warning if the user mapped a field of texts.
        """
        if source.warned or self.model_fields_set & TEXTS:
            return
        sizes = {name: _size(value) for name, value in first.items()}
        least = max(LONG, UNREAD * sum(sizes.get(names[role], 0) for role in TEXTS))
        read = set(names.values())
        unread = [name for name, size in sizes.items() if size >= least and name not in read]
        if unread:
            source.warned = True
            said = 'no role reads the long text of %s; the option text = "%s" reads that field'
            log.warning(f"%s: {said}", where, " and ".join(map(repr, sorted(unread))), unread[0])

    def _names(self, first: Record, where: str) -> dict[str, str]:
        """The field of each role: the given one, else the first usual one that `first` has.

        Raises `InputError` if `first` lacks a given field, which is usually a misspelling, unless
        it may be a field of a turn.
        """
        names = {}
        turns = any(name in first for name in (self.turns, *_usual()["turns"]))
        elsewhere = IN_TURNS if turns else IN_TURNS[:2]
        for role, usual in _usual().items():
            own = getattr(self, role) if role not in ABOUT else None
            if own and own not in first and role not in elsewhere:
                raise InputError(
                    f"{role} = {own!r} is not a field of the first record",
                    where=where,
                    hint=f"{nearest(own, first)}its fields are {', '.join(first)}",
                )
            names[role] = own or next((field for field in usual if field in first), usual[0])
        if self.replace_licences:
            del names["licence"]
        return names

    def _names_in_turns(self, turns: Any) -> dict[str, str]:
        """The fields of the roles of a turn: as `_names`, by the first of a record's `turns`."""
        first = turns[0] if isinstance(turns, list) and turns else None
        turn = first if isinstance(first, Mapping) else {}
        usual = {role: _usual()[role] for role in IN_TURNS}
        return {
            role: getattr(self, role) or next((name for name in names if name in turn), names[0])
            for role, names in usual.items()
        }


def _size(value: Any) -> int:
    """The number of words in a value, those in its lists and tables included."""
    if isinstance(value, str):
        return len(value.split())
    inside = value.values() if isinstance(value, Mapping) else value
    return sum(map(_size, inside)) if isinstance(inside, list | tuple | ValuesView) else 0


@cache
def _usual() -> dict[str, tuple[str, ...]]:
    """The usual names of the field of each role."""
    extra = ((name, field.json_schema_extra) for name, field in RecordReader.model_fields.items())
    roles: Any = {name: said["usual"] or (name,) for name, said in extra if isinstance(said, dict)}
    return {**ABOUT, **roles}


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


class _Key(Fields):
    """The fields of a record that is a part of a document."""

    id: Text = ""
    group: Text = ""
    text: Text = ""


def _sentence(placed: tuple[str, Roles | BadRecord]) -> str | BadRecord:
    """The text of a record of the layout `lines`."""
    where, row = placed
    try:
        return _Key.of(taken(row)).text
    except Refused as refusal:
        return refusal.record(where, row)


def _runs(
    rows: Iterable[tuple[str, Roles | BadRecord]], source: Source, stem: str
) -> Iterator[tuple[str, str, list[tuple[Record, str]]]]:
    """The documents, each a run of records with one key: place, key, and records with their text.

    A document with a bad record between two good ones is left out; only the record counts as bad,
    and its reason names the document. With a `stem`, records without an id are one document of
    that name.
    """
    seen, run, size = SeenIds(), list[tuple[Record, str]](), 0
    key = start = ""
    broken: BadRecord | None = None  # the last one after the last good one
    hole = False  # a bad record between two of the document `key`
    for where, row in chain(rows, [("", None)]):
        new = text = ""
        try:
            good = taken(row)
            if good is not None:
                part = _Key.of(good)
                # `group/id`, as ids repeat over books.
                below = part.group and part.id and not part.id.startswith(f"{part.group}/")
                new = (f"{part.group}/{part.id}" if below else part.id) or stem
                text = clean(part.text)
                expect(new, f"no id: no {good.names['id']!r} names the document")
                expect(text, _no_text([good.record], good.names))
        except Refused as refusal:
            if broken:
                source.refuse(broken)
            broken = refusal.record(where, row)
            continue
        if broken:
            if run and new == key:
                hole = True
                lacks = f"{broken.reason} (document {key!r} is incomplete without it)"
                broken = replace(broken, reason=lacks)
            source.refuse(broken)
        if new != key:
            if run and not hole:
                yield start, key, run
            if new and not seen.add(new):
                raise InputError(
                    f"document {new!r} comes back after another one",
                    where=where,
                    hint="sort the file, so that the records of a document are consecutive",
                )
            key, start, run, size, hole = new, where, [], 0, False
        broken = None
        if good is None:
            return
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


def _authors(value: Any) -> str:
    """The names of a field; its other values (a table, the first speaker) are not authors."""
    names = value if isinstance(value, list | tuple) else [value]
    return "; ".join(clean(name) for name in names if isinstance(name, str) and name.strip())


class _Whole(Fields):
    """The fields of a document by role."""

    id: Text = ""
    group: Text = ""
    licence: Text = ""
    language: Text = ""
    title: Annotated[Text, AfterValidator(clean)] = ""
    url: Text = ""
    categories: Texts = NONE
    author: Annotated[str, BeforeValidator(_authors)] = ""
    text: Any = None
    paragraphs: Texts = NONE
    sentences: Strings | None = None

    def document(self, source: Source, name: str, text: str, **layers: Any) -> Document:
        """A document of `text` and the other fields; `name` is its id if they have none."""
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


class _Text(_Whole):
    text: Text = ""


class _Section(Fields):
    heading: str | None = None
    title: str | None = None
    level: Annotated[int, Field(ge=1, le=99)] | None = None
    paragraphs: Texts | None = None
    text: Texts = NONE


class _Article(_Whole):
    text: Texts = NONE
    abstract: Texts = NONE
    sections: Annotated[list[_Section], Field(fail_fast=True)] | None = None


class _Conversation(_Whole):
    author: Annotated[str, BeforeValidator(lambda value: "")] = ""  # a speaker is no author
    turns: Annotated[list[dict[str, Any]], Field(fail_fast=True)]


class _Turn(Fields):
    speaker: Text = ""
    conversation: Any = None
    text: Text = ""


def as_document(record: Record, source: Source, name: str) -> Document:
    """A record with `text`, or with `paragraphs`, or with `sentences` (five-sentence stories)."""
    of = _Text.of(record)
    if of.sentences:
        text, sentences = with_sentences([of.sentences])
        return of.document(source, name, text, sentences=sentences)
    lines = "\n\n".join(of.paragraphs or [of.text]).splitlines()
    text, spans = joined(run_on(blocks_of(without_licence(lines, source))))
    expect(text, _no_text([record], getattr(record, "names", {})))
    return of.document(source, name, text, paragraphs=spans)


def as_article(record: Record, source: Source, name: str) -> Document:
    """A record with `sections` (heading, level, paragraphs), and optionally an `abstract`.

    Headings are not part of the text; a section's span covers its own paragraphs.
    """
    of = _Article.of(record)
    parts: list[tuple[int, str, list[str]]] = []
    if abstract := paragraphs_of(*of.abstract):
        parts.append((1, "Abstract", abstract))
    for section in of.sections or ():
        heading = clean(section.heading or section.title or "")
        bodies = section.text if section.paragraphs is None else section.paragraphs
        level = section.level or (2 if heading else 1)
        parts.append((level, heading, paragraphs_of(*bodies)))
    if not of.sections and (body := paragraphs_of(*(of.paragraphs or of.text))):
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
    return of.document(source, name, text, sections=sections)


def as_conversation(
    record: Record, source: Source, name: str, *, speakers: Sequence[str] = SPEAKERS
) -> Document:
    """A record with `turns` (speaker, conversation, text); each turn with text is a paragraph.

    A turn's speaker is in the first of the fields `speakers` that it has.
    """
    names: Mapping[str, str] = getattr(record, "names", {})
    of = _Conversation.of(record)
    fields = {role: names.get(role, role) for role in IN_TURNS}
    turns: list[_Turn] = []
    for record in of.turns:
        named = (name for name in speakers if isinstance(record.get(name), str) and record[name])
        speaker = next(named, fields["speaker"])
        turns.append(_Turn.of(Roles(record, {**fields, "speaker": speaker})))
    said = [(text, turn) for turn in turns if (text := clean(turn.text))]
    expect(said, _no_text(of.turns, names))
    text, spans = joined([text for text, _ in said])
    for _, turn in said:
        field, value = names.get("conversation", "conversation"), turn.conversation
        known = type(value) in (int, str, type(None))
        expected = f"field {field!r} is {typed(value)}, expected a whole number or a name"
        expect(known, f"wrong type: {expected}")
    conversations = numbered([turn.conversation for _, turn in said])
    speakers = [turn.speaker for _, turn in said]
    layer = Turns(speakers, conversations, spans.start, spans.end)
    return of.document(source, name, text, turns=layer)


def numbered(names: list[int | str | None]) -> list[int]:
    """The number of each turn's conversation, -1 if unknown.

    Names are numbered in order; if no turn has one, the record is one conversation.
    """
    known = [name for name in names if name is not None]
    if not known:
        return [0] * len(names)
    if all(isinstance(name, int) and abs(name) < 2**31 for name in known):
        return [-1 if name is None else int(name) for name in names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(map(str, known)))}
    return [-1 if name is None else numbers[str(name)] for name in names]


def _no_text(records: Iterable[Record], names: Mapping[str, str]) -> str:
    """Why records have no text: their fields, if the one of the role `text` is not among them."""
    fields = dict.fromkeys(chain.from_iterable(getattr(each, "record", each) for each in records))
    if names.get("text", "text") in fields or not (names and fields):
        return "no text: there is none in it"
    shown = ", ".join(map(str, fields))[:100]
    return f"no text: no field {names['text']!r}, only {shown} (the option text names another one)"
