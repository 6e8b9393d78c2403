"""`irc:` the disentangled chat logs of Kummerfeld et al. 2019 and their reply links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from corpora.document import Document, Turns
from corpora.errors import InputError
from corpora.readers.files import (
    LINES_LIMIT,
    TOO_LONG,
    Refused,
    expect,
    find_files,
    good_record,
    read_lines,
)
from corpora.readers.source import (
    OnBad,
    Reader,
    Source,
    Whole,
    clean_paragraph,
    join_paragraphs,
    refusing,
)

LOG, ANNOTATION = ".ascii.txt", ".annotation.txt"
CONTEXT = 1000
"""Context messages at the beginning of each annotated log, which were not annotated."""

_MESSAGE = re.compile(r"\[\d\d:\d\d\] <([^>\s]+)>(?: (.*))?$")  # [12:30] <ann> hello
_ACTION = re.compile(r"\[\d\d:\d\d\] +\* +(\S+)(?: (.*))?$")  # [12:30]  * ann waves
_SYSTEM = re.compile(r"=== ?(.*)$")  # === ann has joined
_LINK = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})\s*-?\s*$")  # 1002 1003 -


@dataclass(slots=True)
class Message:
    """One line of a log. `speaker` is empty for a system message; `conversation` -1 if unknown."""

    speaker: str = ""
    text: str = ""
    conversation: int = -1


class Irc(Reader):
    """Disentangled chat logs."""

    name = "irc"
    suffixes = (LOG,)
    own_licence = "CC-BY-4.0"
    paper = "Kummerfeld et al. 2019"

    layout: Literal["log", "conversation"] = "log"
    """Whether a document is a log or one conversation of it."""
    context: Annotated[Whole, Field(ge=0)] | None = None
    """Messages at the beginning to leave out; default: 1,000 if the log has an annotation (these
    were not annotated), else 0.
    """
    system: bool = False
    """Whether system messages are turns with the speaker ""."""

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """Return the logs at `target` and the annotations beside them, sorted."""
        files = find_files(target, cls.suffixes, kind=cls.name)
        logs = [path for path in files if not path.name.endswith(ANNOTATION)]
        if not logs:
            expected = f"irc: expects NAME{LOG} and NAME{ANNOTATION}"
            raise InputError(f"no log in {target!r}", hint=expected)
        return sorted({*logs, *filter(Path.is_file, map(annotation_of, logs))})

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield a log, or with the layout `conversation` each conversation of it.

        A turn is a paragraph; its conversation is the number of the conversation's first message,
        -1 if unknown. Messages without text are not turns. A log is the group of its conversations,
        whose id is `LOG/FIRST`.
        """
        if path.name.endswith(ANNOTATION):
            return
        messages, context = read_log(path, source.refuse), self.context
        if context is None:
            context = CONTEXT if annotation_of(path).is_file() else 0
        if 0 < len(messages) <= context:
            reason = f"only context: all {len(messages)} messages are before what was annotated"
            raise Refused(f"{reason}; set context to 0 if that is not so")
        messages = [message for message in messages[context:] if message.text]
        turns = [message for message in messages if message.speaker or self.system]
        source.skipped["system message"] += len(messages) - len(turns)
        turns_by_id = {stem: turns}
        if self.layout == "conversation":
            with_conversation = [turn for turn in turns if turn.conversation >= 0]
            source.skipped["message of an unknown conversation"] += len(turns) - len(
                with_conversation
            )
            turns_by_id = {}
            for turn in with_conversation:
                turns_by_id.setdefault(f"{stem}/{turn.conversation:06d}", []).append(turn)
        for id, turns in turns_by_id.items():
            text, spans = join_paragraphs([turn.text for turn in turns])
            speakers, numbers = [t.speaker for t in turns], [t.conversation for t in turns]
            layer = Turns(speakers, numbers, spans.start, spans.end)
            yield source.document(id, text, group=stem, turns=layer)


def annotation_of(log: Path) -> Path:
    """Return the path of a log's annotation: `NAME.annotation.txt` of `NAME.ascii.txt`."""
    return log.with_name(log.name.removesuffix(LOG) + ANNOTATION)


def read_log(log: Path, on_bad: OnBad) -> list[Message]:
    """Return the messages of a log, with their conversations by the annotation beside it.

    A conversation is a connected component of the reply links; it is named by the number of
    its first message. Bad lines and links go to `on_bad`; a bad line counts as a message
    without text, since links count lines. Without an annotation conversations are unknown.
    Raises `Refused` for a log of more lines than `LINES_LIMIT`.
    """
    # Messages, one for each line
    messages: list[Message] = []
    for number, line in enumerate(read_lines(log)):
        message = Message()
        with refusing(on_bad, f"{log}:{number + 1}", line):
            text = good_record(line)
            if turn := _MESSAGE.match(text) or _ACTION.match(text):
                message = Message(turn[1], clean_paragraph(turn[2] or ""))
            elif system := _SYSTEM.match(text):
                message = Message(text=clean_paragraph(system[1]))
            elif text.strip():
                raise Refused("not a message: expected '[hh:mm] <nick> text' or '=== text'")
        expect(len(messages) < LINES_LIMIT, TOO_LONG, str(log))
        messages.append(message)
    annotation = annotation_of(log)
    # A forest over linked messages: each has its parent, and a conversation's first message itself.
    parents: dict[int, int] = {}
    for row, line in enumerate(read_lines(annotation) if annotation.is_file() else (), 1):
        with refusing(on_bad, f"{annotation}:{row}", line):
            if not (text := good_record(line)).strip():
                continue
            if not (link := _LINK.match(text)):
                raise Refused("bad link: expected two message numbers, as in '1002 1003 -'")
            ends = int(link[1]), int(link[2])
            reason = f"bad link: the log has only the messages 0 to {len(messages) - 1}"
            expect(max(ends) < len(messages), reason)
            low, high = sorted(_root(parents, number) for number in ends)
            parents[high] = low
    for number in parents:
        messages[number].conversation = _root(parents, number)
    return messages


def _root(parents: dict[int, int], number: int) -> int:
    """Return the root of a node in a forest, which `parents` defines. A new node becomes its own
    root. Paths are shortened on the way (union-find)."""
    while parents.setdefault(number, number) != number:
        parents[number] = number = parents[parents[number]]
    return number
