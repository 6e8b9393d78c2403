"""A source that is being read: its files, its options, and what happens to bad records."""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from corpora.document import PARAGRAPH_BREAK, Spans
from corpora.errors import BadRecord, InputError

OnBad = Callable[[BadRecord], None]
T = TypeVar("T")
R = TypeVar("R")

DOCUMENT_LIMIT = 64 << 20
"""Longest document taken, in characters."""

BAD_FROM_THE_START = 100
"""So many bad records before the first good document mean another format, not bad luck."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Refused(Exception):
    """One record cannot be taken; the reader's loop catches it.

    The reason is `category: detail`, so that counts by what stands before the colon make sense.
    """

    def __init__(self, reason: str, where: str = "") -> None:
        self.where = where
        super().__init__(reason)


@dataclass(slots=True)
class Source:
    """`kind:target` and its files while they are read; `on_bad` takes the bad records, if it is
    there.

    `language` is that of documents that bring none. `name` is what stands in `Document.source`; by
    default it is free of the machine's own folders. `skipped` counts what is no document by design
    (a redirect, a page of another namespace).
    """

    kind: str
    target: str
    files: list[Path]
    language: str = "en"
    name: str = ""
    on_bad: OnBad | None = None
    good: int = 0
    bad: int = 0
    first_bad: BadRecord | None = None
    skipped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if not self.name:
            parts = [part for part in Path(self.target).parts if not glob.has_magic(part)]
            last = self.target if self.kind == "hub" else (parts[-1] if parts else "")
            self.name = f"{self.kind}:{last}"

    def stem(self, path: Path, suffixes: Sequence[str]) -> str:
        """What names the documents of a file: its path below the source's folder, no suffix."""
        name = below(self.target, path)
        fitting = [suffix for suffix in suffixes if name.endswith(suffix)]
        return name.removesuffix(max(fitting, key=len)) if fitting else name

    def folder(self, path: Path) -> str:
        """The folder that a file lies in: its path below the source's, and of that one its name."""
        inside = below(self.target, path).rpartition("/")[0]
        return inside or path.parent.resolve().name

    def refuse(self, record: BadRecord) -> None:
        """Hand a bad record to `on_bad`; raise `InputError` without one or where all are bad."""
        self.note(record)
        if not self.good and self.bad >= BAD_FROM_THE_START:
            raise InputError(
                f"the first {self.bad} records are all bad, the last one: {record.reason}",
                where=record.where,
                hint=f"is this the format that {self.kind!r} reads?",
            )

    def note(self, record: BadRecord) -> None:
        """Count a bad record, keep the first, hand it to `on_bad`; `InputError` without one."""
        if self.on_bad is None:
            raise InputError(record.reason, where=record.where)
        self.bad += 1
        self.first_bad = self.first_bad or record
        self.on_bad(record)

    @contextmanager
    def refusing(self, where: object, record: object = "") -> Iterator[None]:
        """Refuse the record of this block if `Refused` is raised in it; `where` is its place."""
        try:
            yield
        except Refused as refusal:
            self.refuse(bad_record(refusal, str(where), record))

    def taken(self, records: Iterable[tuple[str, T | BadRecord]]) -> Iterator[tuple[str, T]]:
        """The good ones of the records, with their places; the bad ones are refused."""
        for where, record in records:
            if isinstance(record, BadRecord):
                self.refuse(record)
            else:
                yield where, record


def bad_record(refusal: Refused, where: str, record: object) -> BadRecord:
    """A record that was refused, with the start of what it holds."""
    value = record.value if isinstance(record, BadRecord) else str(record)
    return BadRecord(refusal.where or where, str(refusal), value[:200])


def rows_of(
    records: Iterable[tuple[str, T | BadRecord]],
    build: Callable[[T, str], Iterable[R]],
    on_bad: OnBad | None,
    shown: Callable[[T], object] = str,
) -> Iterator[R]:
    """The rows that `build` makes of each record and its place.

    A record that is bad, or that `build` refuses, goes to `on_bad` with what `shown` makes of it;
    without `on_bad` the first one raises `InputError`.
    """
    for where, record in records:
        try:
            if isinstance(record, BadRecord):
                raise Refused(record.reason)
            rows = list(build(record, where))
        except Refused as refusal:
            if on_bad is None:
                raise InputError(str(refusal), where=where) from None
            value = record if isinstance(record, BadRecord) else shown(record)
            on_bad(bad_record(refusal, where, value))
            continue
        yield from rows


def root_of(target: str) -> Path:
    """The folder below which the paths of a spec's files count.

    It is what stands before `/./` (`books/./emma`, as in rsync), else before the first part with a
    wildcard, else all of `target`, a folder or a file.
    """
    head, mark, _ = target.partition("/./")
    if mark:
        return Path(head or "/").expanduser()
    return Path(*takewhile(lambda part: not glob.has_magic(part), Path(target).parts)).expanduser()


def below(target: str, path: Path) -> str:
    """A file's path below the folder that a spec's `target` names; its name if that is a file."""
    root = root_of(target)
    inside = root.is_dir() and path.is_relative_to(root)
    return path.relative_to(root).as_posix() if inside else path.name


class SeenIds:
    """A set of ids in about eight bytes each: sorted hashes, and a small set of the latest."""

    def __init__(self) -> None:
        self._latest: set[int] = set()
        self._sorted: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def add(self, key: str) -> bool:
        """Whether `key` is new; it is known from then on."""
        code = hash(key)
        if code in self._latest or self._settled(code):
            return False
        self._latest.add(code)
        if len(self._latest) > max(1 << 15, len(self._sorted) // 4):
            latest = np.fromiter(self._latest, dtype=np.int64)
            self._sorted = np.sort(np.concatenate((self._sorted, latest)))
            self._latest.clear()
        return True

    def _settled(self, code: int) -> bool:
        place = int(np.searchsorted(self._sorted, code)) if len(self._sorted) else 0
        return place < len(self._sorted) and int(self._sorted[place]) == code


def check_id(name: str) -> str:
    """`name`, if it may be a document's id or group; `Refused` otherwise.

    Ids are labels, but labels end up in file names: no control characters, no `..` segment, no
    leading slash, at most 512 characters.
    """
    if not name or len(name) > 512 or _CONTROL.search(name):
        raise Refused(f"bad id: {name[:80]!r} is empty, too long or holds control characters")
    if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name):
        raise Refused(f"bad id: {name[:80]!r} leads out of its folder")
    return name


def clean(paragraph: str) -> str:
    """A paragraph as written, but for line breaks (now a space) and white space around it."""
    lines = paragraph.splitlines()
    if len(lines) < 2:
        return paragraph.strip()
    return " ".join(filter(None, map(str.strip, lines)))


def paragraphs_of(text: str) -> list[str]:
    """The paragraphs of a running text: blocks of lines that blank lines separate."""
    paragraphs: list[str] = []
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line := line.strip():
            block.append(line)
        elif block:
            paragraphs.append(" ".join(block))
            block = []
    return paragraphs


def joined(paragraphs: list[str]) -> tuple[str, Spans]:
    """The text of a document and its paragraph layer; `Refused` if it cannot be stored."""
    text = PARAGRAPH_BREAK.join(paragraphs)
    if not text.isascii():
        check_unicode(text)
    spans, start = Spans(), 0
    for paragraph in paragraphs:
        spans.add(start, start + len(paragraph))
        start += len(paragraph) + len(PARAGRAPH_BREAK)
    return text, spans


def check_unicode(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise Refused(f"not text: U+{code:04X} is half a surrogate pair") from None
