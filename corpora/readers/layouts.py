"""One record, or one run of records, to one document: which field plays which role, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from corpora.document import PARAGRAPH_BREAK, Document, Sections, Spans, Turns
from corpora.errors import BadRecord, InputError, nearest
from corpora.readers.source import (
    DOCUMENT_LIMIT,
    Refused,
    Source,
    check_id,
    check_unicode,
    clean,
    joined,
    paragraphs_of,
)

Record = Mapping[str, Any]

FIELDS: dict[str, tuple[str, ...]] = {
    "id": ("id", "document", "doc", "doc_id", "chapter_id"),
    "group": ("group", "book"),
    "title": ("title", "chapter"),
    "text": ("text", "sentence", "content"),
    "url": ("url",),
    "categories": ("categories",),
    "licence": ("licence", "license"),
    "language": ("language", "lang"),
    "paragraphs": ("paragraphs",),
    "paragraph": ("paragraph",),
    "sentences": ("sentences",),
    "sections": ("sections",),
    "abstract": ("abstract",),
    "turns": ("turns", "messages"),
    "speaker": ("speaker", "nick"),
    "conversation": ("conversation", "thread"),
}
"""The usual names of the fields; the first one that the first record has is taken."""

RUN_ID = ("document", "doc", "doc_id", "chapter_id", "id")
"""As `FIELDS["id"]` where a document is a run of records: their own `id` is the last choice."""


class Mapper:
    """Reads a record's fields by role; `names` maps each role to the field that holds it.

    `named` gives the fields of some roles; `first` is the first record, at `where`. Raises
    `InputError` if a named field is not in it: a misspelling more often than a gap.
    """

    def __init__(
        self, named: Mapping[str, str], first: Record, where: str, *, runs: bool = False
    ) -> None:
        usual = {**FIELDS, "id": RUN_ID} if runs else FIELDS
        self.names = {
            role: next((f for f in fields if f in first), fields[0])
            for role, fields in usual.items()
        }
        self.names |= named
        for role, name in sorted(named.items()):
            if name not in first and role not in ("speaker", "conversation"):
                raise InputError(
                    f"{role} = {name!r} names no field of the first record",
                    where=where,
                    hint=f"{nearest(name, first)}its fields are {', '.join(first)}",
                )

    def has(self, record: Record, role: str) -> bool:
        return record.get(self.names[role]) is not None

    def string(self, record: Record, role: str, default: str = "") -> str:
        """The field of `role` as a string (numbers too); `Refused` if it is of another type."""
        value = record.get(self.names[role])
        if value is None:
            return default
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise wrong_type(self.names[role], value, "a string")

    def strings(self, record: Record, role: str) -> list[str]:
        return strings(record.get(self.names[role]), self.names[role])

    def items(self, record: Record, role: str) -> list[Record]:
        """The field of `role` as a list of objects; `Refused` if it is not one."""
        value = record.get(self.names[role])
        if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            return value
        raise wrong_type(self.names[role], value, "a list of objects")


def strings(value: object, name: str) -> list[str]:
    """A list of strings, or one string as a list of one; `Refused` for anything else."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise wrong_type(name, value, "a list of strings")


def filled(record: Record, name: str) -> str:
    """The text of a field without the white space around it; `Refused` if it is none or empty."""
    value = record.get(name)
    if not isinstance(value, str):
        raise wrong_type(name, value, "a string")
    if not value.strip():
        raise Refused(f"no text: {name!r} is empty")
    check_unicode(value)
    return value.strip()


def wrong_type(name: str, value: object, expected: str) -> Refused:
    """Why the value of a field is not taken."""
    return Refused(f"wrong type: field {name!r} is {typed(value)}, expected {expected}")


def typed(value: object) -> str:
    """The JSON type of a value with its article, for a message."""
    if isinstance(value, list | tuple) and value:
        return f"a list that holds {' and '.join(sorted(set(map(_typed, value[:100]))))}"
    return _typed(value)


def _typed(value: object) -> str:
    """As `typed`, but never looks into a list: it may be nested without end."""
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if value is None or isinstance(value, bool):
        return "null" if value is None else "a boolean"
    if isinstance(value, Mapping):
        return "an object"
    return "a string" if isinstance(value, str) else "a number"


CANONICAL = Mapper({}, dict.fromkeys(FIELDS, ""), "")
"""The mapper of records whose fields a reader has already named after their roles."""


def as_document(record: Record, source: Source, name: str, mapper: Mapper = CANONICAL) -> Document:
    """A record with `text`, or with `paragraphs`, or with `sentences` (five-sentence stories)."""
    if mapper.has(record, "sentences"):
        text, paragraphs, spans = with_sentences([mapper.strings(record, "sentences")])
        layers = {"paragraphs": paragraphs, "sentences": spans}
        return _document(record, mapper, source, name, text, **layers)
    bodies = mapper.strings(record, "paragraphs") or [mapper.string(record, "text")]
    text, paragraphs = joined([p for body in bodies for p in paragraphs_of(body)])
    return _document(record, mapper, source, name, text, paragraphs=paragraphs)


def as_article(record: Record, source: Source, name: str, mapper: Mapper = CANONICAL) -> Document:
    """A record with `sections` (heading, level, paragraphs), and perhaps an `abstract` before.

    Headings are no part of the text; a section's span covers its own paragraphs.
    """
    parts: list[tuple[int, str, list[str]]] = []
    if abstract := paragraphs_of("\n\n".join(mapper.strings(record, "abstract"))):
        parts.append((1, "Abstract", abstract))
    if mapper.has(record, "sections"):
        parts += [_section(section) for section in mapper.items(record, "sections")]
    else:
        bodies = mapper.strings(record, "paragraphs") or mapper.strings(record, "text")
        if body := [p for body in bodies for p in paragraphs_of(body)]:
            parts.append((1, "", body))
    text, paragraphs = joined([p for _, _, body in parts for p in body])
    sections, row = Sections(), 0
    for level, heading, body in parts:
        start = paragraphs.start[row] if row < len(paragraphs) else len(text)
        row += len(body)
        sections.level.append(level)
        sections.heading.append(heading)
        sections.start.append(start)
        sections.end.append(paragraphs.end[row - 1] if body else start)
    layers = {"paragraphs": paragraphs, "sections": sections}
    return _document(record, mapper, source, name, text, **layers)


def _section(section: Record) -> tuple[int, str, list[str]]:
    heading = section.get("heading") or section.get("title") or ""
    if not isinstance(heading, str):
        raise Refused(f"wrong type: a section's heading is {typed(heading)}, expected a string")
    check_unicode(heading)
    level = section.get("level", 2 if heading else 1)
    if type(level) is not int or not 0 < level < 100:
        raise Refused(f"wrong type: a section's level is {str(level)[:40]}, expected 1 to 99")
    bodies = strings(section.get("paragraphs", section.get("text")), "paragraphs")
    return level, clean(heading), [p for body in bodies for p in paragraphs_of(body)]


def as_conversation(
    record: Record, source: Source, name: str, mapper: Mapper = CANONICAL
) -> Document:
    """A record with `turns` (speaker, conversation, text)."""
    return from_turns(mapper.items(record, "turns"), source, name, mapper, about=record)


def from_turns(
    turns: Sequence[Record], source: Source, name: str, mapper: Mapper, about: Record | None = None
) -> Document:
    """Turns as a document: each that has text is a paragraph and a row of the turns layer."""
    said = [(text, turn) for turn in turns if (text := clean(mapper.string(turn, "text")))]
    text, spans = joined([text for text, _ in said])
    layer = Turns(start=list(spans.start), end=list(spans.end))
    for _, turn in said:
        speaker = mapper.string(turn, "speaker")
        check_unicode(speaker)
        layer.speaker.append(speaker)
    layer.conversation = _conversations([turn for _, turn in said], mapper.names["conversation"])
    return _document(about or turns[0], mapper, source, name, text, paragraphs=spans, turns=layer)


def _conversations(turns: Sequence[Record], field: str) -> list[int]:
    """The number of each turn's conversation, -1 where it is unknown.

    Names are numbered as they come; where no turn of the record says one, the record is one.
    """
    names = [turn.get(field) for turn in turns]
    for name in names:
        if not isinstance(name, int | str | None) or isinstance(name, bool):
            raise wrong_type(field, name, "a number or a name")
    given = [name for name in names if name is not None]
    if not given:
        return [0] * len(names)
    if all(isinstance(name, int) for name in given):
        return [-1 if name is None else int(name) for name in names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(map(str, given)))}
    return [-1 if name is None else numbers[str(name)] for name in names]


def from_paragraphs(run: Sequence[Record], source: Source, name: str, mapper: Mapper) -> Document:
    """Records of one paragraph each as a document."""
    text, paragraphs = joined([clean(mapper.string(record, "text")) for record in run])
    return _document(run[0], mapper, source, name, text, paragraphs=paragraphs)


def with_sentences(paragraphs: Sequence[Sequence[str]]) -> tuple[str, Spans, Spans]:
    """Text, paragraph and sentence layer of paragraphs that come as lists of sentences.

    A space joins sentences. Raises `Refused` if the text cannot be stored.
    """
    blocks, starts, ends, sentences = [], [], [], Spans()
    at = 0
    for block in paragraphs:
        kept = [text for sentence in block if (text := clean(sentence))]
        if not kept:
            continue
        starts.append(at)
        for text in kept:
            sentences.add(at, at + len(text))
            at += len(text) + 1
        ends.append(at - 1)
        at += len(PARAGRAPH_BREAK) - 1
        blocks.append(" ".join(kept))
    text = PARAGRAPH_BREAK.join(blocks)
    check_unicode(text)
    return text, Spans(starts, ends), sentences


def _document(
    record: Record, mapper: Mapper, source: Source, name: str, text: str, **layers: Any
) -> Document:
    """A document of `text` and what else the record says about it; `name` is its id."""
    if not text:
        raise Refused("no text: the record has none")
    if len(text) > DOCUMENT_LIMIT:
        raise Refused(f"too long: more than {DOCUMENT_LIMIT:,} characters")
    title, url = clean(mapper.string(record, "title")), mapper.string(record, "url")
    categories = tuple(mapper.strings(record, "categories"))
    for label in (title, url, *categories):
        check_unicode(label)
    return Document(
        id=check_id(name),
        text=text,
        group=check_id(mapper.string(record, "group") or name),
        licence=mapper.string(record, "licence"),
        language=mapper.string(record, "language") or source.language,
        title=title,
        url=url,
        categories=categories,
        **layers,
    )


def sentence_documents(
    lines: Iterable[str | BadRecord], source: Source, stem: str, limit: int, group: str = ""
) -> Iterator[Document]:
    """Documents of one sentence a line, paragraphs between blank lines (BookCorpus style).

    They are named after `stem`, and so is their group, if no `group` is given.

    A document ends after `limit` sentences, and at a bad line, so that no two
    sentences become neighbours that were not.
    """
    for number, block in enumerate(_line_blocks(lines, limit, source), 1):
        with source.refusing(f"{stem}, document {number}"):
            text, paragraphs, sentences = with_sentences(block)
            yield Document(
                id=f"{stem}:{number:06d}",
                text=text,
                group=group or stem,
                language=source.language,
                paragraphs=paragraphs,
                sentences=sentences,
            )


def _line_blocks(
    lines: Iterable[str | BadRecord], limit: int, source: Source
) -> Iterator[list[list[str]]]:
    block: list[list[str]] = [[]]
    count = 0
    for line in lines:
        bad = isinstance(line, BadRecord)
        if isinstance(line, BadRecord):
            source.refuse(line)
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
