"""Records (JSON objects, rows of a Hub dataset) to documents, by layout.

A *layout* says what one record is: a whole document, an article with sections, a conversation
or one of its turns, a paragraph, a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from corpora.document import Document
from corpora.errors import BadRecord, ConfigError, InputError, nearest
from corpora.readers.fields import Mapper, Record, detect
from corpora.readers.layouts import (
    as_article,
    as_conversation,
    as_document,
    from_paragraphs,
    from_turns,
)
from corpora.readers.lines import check_layout, sentence_documents
from corpora.readers.source import DOCUMENT_LIMIT, Refused, SeenIds, Source, clean

Place = tuple[str, Record | BadRecord]
Read = Callable[[Iterable[Place], Mapper, Source, str], Iterator[Document]]


def documents(records: Iterable[Place], source: Source, stem: str) -> Iterator[Document]:
    """The documents of the records of one file, each with its place; `stem` names the nameless.

    Bad records go to `source.refuse`. Raises `InputError` if the layout cannot be told, if a
    mapped field is not there, or if the records of one document do not follow each other.
    """
    records = iter(records)
    found = _first_good(records, source)
    if found is None:
        return
    where, record = found
    name = source.option("layout", str) or detect(record, source.options, where)
    if name not in LAYOUTS:
        raise ConfigError(
            f"unknown layout {name!r}",
            where=f"{source.kind}: layout",
            hint=f"{nearest(name, LAYOUTS)}layouts are {', '.join(sorted(LAYOUTS))}",
        )
    check_layout(name, source)
    runs = name == "paragraph"
    if name == "turns" and not _has_turns(record, source):
        name, runs = "turn", True
    mapper = Mapper(source.options, record, where, runs=runs)
    rest: Iterable[Place] = chain([(where, record)], records)
    yield from (_TURN if name == "turn" else LAYOUTS[name])(rest, mapper, source, stem)


def _first_good(records: Iterator[Place], source: Source) -> tuple[str, Record] | None:
    for where, record in records:
        if not isinstance(record, BadRecord):
            return where, record
        source.refuse(record.where, record.reason, record.value)
    return None


def _has_turns(record: Record, source: Source) -> bool:
    return "turns" in source.options or "turns" in record or "messages" in record


def _one_by_one(build: Callable[[Record, Mapper, Source, str], Document]) -> Read:
    """Every record is a document that `build` makes."""

    def read(
        records: Iterable[Place], mapper: Mapper, source: Source, stem: str
    ) -> Iterator[Document]:
        for number, (where, record) in enumerate(records, 1):
            if isinstance(record, BadRecord):
                source.refuse(record.where, record.reason, record.value)
                continue
            try:
                name = mapper.string(record, "id") or f"{stem}:{number:06d}"
                document = build(record, mapper, source, name)
            except Refused as refusal:
                source.refuse(where, str(refusal), str(record)[:200])
                continue
            yield document

    return read


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
    build: Callable[[list[Record], Mapper, Source, str], Document], *, alone: bool = False
) -> Read:
    """Consecutive records of one key are a document that `build` makes.

    A document never has a hole: one with a bad record between two good ones is left out. With
    `alone`, records without an id are one document, named by the file.
    """

    def read(
        records: Iterable[Place], mapper: Mapper, source: Source, stem: str
    ) -> Iterator[Document]:
        run, broken, seen = _Run("", ""), "", SeenIds()
        for where, record in records:
            try:
                if isinstance(record, BadRecord):
                    raise Refused(record.reason)
                key = _key(record, mapper) or (stem if alone else "")
                size = _size(record, mapper, key)
            except Refused as refusal:
                value = record.value if isinstance(record, BadRecord) else str(record)[:200]
                source.refuse(where, str(refusal), value)
                broken = where
                continue
            if key != run.key:
                yield from _finished(run, build, mapper, source)
                if not seen.add(key):
                    raise _comes_back(key, where)
                run = _Run(key, where)
            elif broken:
                run.hole = run.hole or broken
            broken = ""
            run.add(record, size)
        yield from _finished(run, build, mapper, source)

    return read


def _finished(
    run: _Run,
    build: Callable[[list[Record], Mapper, Source, str], Document],
    mapper: Mapper,
    source: Source,
) -> Iterator[Document]:
    if not run.records:
        return
    try:
        if run.hole:
            raise Refused(f"hole: left out, as a record at {run.hole} is bad")
        document = build(run.records, mapper, source, run.key)
    except Refused as refusal:
        source.refuse(run.where, f"{refusal} (document {run.key!r})")
        return
    yield document


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


def _comes_back(key: str, where: str) -> InputError:
    return InputError(
        f"document {key!r} comes back after another one",
        where=where,
        hint="sort the file, so that the records of a document follow each other",
    )


def _lines(
    records: Iterable[Place], mapper: Mapper, source: Source, stem: str
) -> Iterator[Document]:
    """Every record is a sentence; `document_lines` of them are a document."""

    def sentences() -> Iterator[str | BadRecord]:
        for where, record in records:
            if isinstance(record, BadRecord):
                yield record
                continue
            try:
                yield mapper.string(record, "text")
            except Refused as refusal:
                yield BadRecord(where, str(refusal), str(record)[:200])

    yield from sentence_documents(sentences(), source, stem)


LAYOUTS: dict[str, Read] = {
    "document": _one_by_one(as_document),
    "article": _one_by_one(as_article),
    "turns": _one_by_one(as_conversation),
    "paragraph": _runs(from_paragraphs),
    "lines": _lines,
}
_TURN = _runs(from_turns, alone=True)
