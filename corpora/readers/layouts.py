"""One record, or one run of records, to one document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corpora.document import PARAGRAPH_BREAK, Document, Sections, Spans, Turns
from corpora.readers.fields import Mapper, Record, strings, typed
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


def as_document(record: Record, mapper: Mapper, source: Source, name: str) -> Document:
    """A record with `text`, or with `paragraphs`, or with `sentences` (five-sentence stories)."""
    if mapper.has(record, "sentences"):
        text, paragraphs, spans = with_sentences([mapper.strings(record, "sentences")])
        layers = {"paragraphs": paragraphs, "sentences": spans}
        return _document(record, mapper, source, name, text, **layers)
    bodies = mapper.strings(record, "paragraphs") or [mapper.string(record, "text")]
    text, paragraphs = joined([p for body in bodies for p in paragraphs_of(body)])
    return _document(record, mapper, source, name, text, paragraphs=paragraphs)


def as_article(record: Record, mapper: Mapper, source: Source, name: str) -> Document:
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


def as_conversation(record: Record, mapper: Mapper, source: Source, name: str) -> Document:
    """A record with `turns` (speaker, conversation, text)."""
    return from_turns(mapper.items(record, "turns"), mapper, source, name, about=record)


def from_turns(
    turns: Sequence[Record], mapper: Mapper, source: Source, name: str, about: Record | None = None
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
    found = [turn.get(field) for turn in turns]
    for value in found:
        if not isinstance(value, int | str | None) or isinstance(value, bool):
            raise Refused(
                f"wrong type: field {field!r} is {typed(value)}, expected a number or a name"
            )
    given = [value for value in found if value is not None]
    if not given:
        return [0] * len(found)
    if all(isinstance(value, int) for value in given):
        return [-1 if value is None else int(value) for value in found]
    names = {name: number for number, name in enumerate(dict.fromkeys(map(str, given)))}
    return [-1 if value is None else names[str(value)] for value in found]


def from_paragraphs(run: Sequence[Record], mapper: Mapper, source: Source, name: str) -> Document:
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
