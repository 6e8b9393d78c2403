"""`irc:` disentangled chat logs: a log as one document, or each conversation as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from corpora.document import Document, Turns
from corpora.errors import BadRecord, ConfigError, InputError, nearest
from corpora.readers.files import find_files
from corpora.readers.irc_log import ANNOTATION, CONTEXT, LOG, Message, annotation_of, read_log
from corpora.readers.source import DOCUMENT_LIMIT, Refused, Source, joined

SUFFIXES = (LOG,)
OPTIONS = frozenset({"layout", "context", "system"})
LICENCE = "CC-BY-4.0"
LAYOUTS = ("log", "conversation")


def find(target: str) -> list[Path]:
    """The logs and the annotations beside them."""
    logs = [path for path in find_files(target, SUFFIXES, kind="irc") if _is_log(path)]
    if not logs:
        raise InputError(f"no log in {target!r}", hint=f"irc: wants NAME{LOG} and NAME{ANNOTATION}")
    return sorted({*logs, *filter(Path.is_file, map(annotation_of, logs))})


def _is_log(path: Path) -> bool:
    return not path.name.endswith(ANNOTATION)


def read(source: Source) -> Iterator[Document]:
    """The logs (`layout` = `log`) or their conversations (`conversation`).

    A turn is a paragraph; its conversation is the number of the conversation's first message,
    -1 where it is not known. Messages without text are no turns, and system messages neither,
    unless `system` is true (then with the speaker ""). The `context` first messages (1,000; 0
    where a log has no annotation) were not annotated and are left out of logs and of
    conversations. A log is the group of its conversations, whose id is `LOG/FIRST`.
    """
    layout = source.option("layout", str, "log")
    if layout not in LAYOUTS:
        raise ConfigError(
            f"unknown layout {layout!r}",
            where="irc: layout",
            hint=f"{nearest(layout, LAYOUTS)}layouts are {', '.join(LAYOUTS)}",
        )
    for path in filter(_is_log, source.files):
        stem = source.stem(path, SUFFIXES)
        try:
            turns = _turns(path, source)
        except Refused as refusal:
            source.refuse(str(path), str(refusal))
            continue
        if layout == "log":
            yield from _documents({stem: turns}, stem, path, source)
        else:
            yield from _documents(_conversations(turns, stem), stem, path, source)


def _turns(path: Path, source: Source) -> list[Message]:
    def on_bad(record: BadRecord) -> None:
        source.refuse(record.where, record.reason, record.value)

    context = source.option("context", int, CONTEXT if annotation_of(path).is_file() else 0)
    system = source.option("system", bool, False)
    everything = read_log(path, on_bad)
    messages = everything[max(0, context) :]
    if everything and not messages:
        reason = f"all {len(everything)} messages are context, before what was annotated"
        raise Refused(f"{reason}; set context to 0 if that is not so")
    source.skipped["system message"] += sum(not (m.speaker or system) for m in messages if m.text)
    return [m for m in messages if m.text and (m.speaker or system)]


def _conversations(turns: Sequence[Message], stem: str) -> dict[str, list[Message]]:
    """The turns by conversation, in the order of the first turns; unknown ones are left out."""
    found: dict[str, list[Message]] = {}
    for turn in turns:
        if turn.conversation >= 0:
            found.setdefault(f"{stem}/{turn.conversation:06d}", []).append(turn)
    return found


def _documents(
    parts: dict[str, list[Message]], stem: str, path: Path, source: Source
) -> Iterator[Document]:
    build = partial(_document, group=stem, language=source.language)
    for name, turns in parts.items():
        try:
            yield build(name, turns)
        except Refused as refusal:
            source.refuse(str(path), str(refusal))


def _document(name: str, turns: Sequence[Message], *, group: str, language: str) -> Document:
    text, spans = joined([turn.text for turn in turns])
    if not text:
        raise Refused("no text: the log has no message")
    if len(text) > DOCUMENT_LIMIT:
        raise Refused(f"too long: more than {DOCUMENT_LIMIT:,} characters")
    layer = Turns(
        [turn.speaker for turn in turns],
        [turn.conversation for turn in turns],
        list(spans.start),
        list(spans.end),
    )
    return Document(
        id=name, text=text, group=group, language=language, paragraphs=spans, turns=layer
    )
