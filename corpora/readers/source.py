"""A source that is being read: its files, its options, and what happens to bad records."""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.document import PARAGRAPH_BREAK, Spans
from corpora.errors import BadRecord, ConfigError, InputError

OnBad = Callable[[BadRecord], None]

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
    """`kind:target` with its files and options; `on_bad` takes the bad records, if it is there.

    `skipped` counts what is no document by design (a redirect, a page of another namespace).
    """

    kind: str
    target: str
    files: list[Path]
    options: Mapping[str, Any] = field(default_factory=dict)
    on_bad: OnBad | None = None
    good: int = 0
    bad: int = 0
    first_bad: BadRecord | None = None
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def language(self) -> str:
        return str(self.options.get("language", "en"))

    @property
    def name(self) -> str:
        """What stands in `Document.source`: free of the machine's own folders."""
        parts = [part for part in Path(self.target).parts if not glob.has_magic(part)]
        last = self.target if self.kind == "hub" else (parts[-1] if parts else "")
        return str(self.options.get("name") or f"{self.kind}:{last}")

    def stem(self, path: Path, suffixes: Sequence[str]) -> str:
        """What names the documents of a file: its path below the source's folder, no suffix."""
        name = below(self.target, path)
        found = [suffix for suffix in suffixes if name.endswith(suffix)]
        return name.removesuffix(max(found, key=len)) if found else name

    def folder(self, path: Path) -> str:
        """The folder that a file lies in: its path below the source's, and of that one its name."""
        inside = below(self.target, path).rpartition("/")[0]
        return inside or path.parent.resolve().name

    def refuse(self, where: str, reason: str, value: str = "") -> None:
        """Hand a bad record to `on_bad`; raise `InputError` without one or where all are bad."""
        self.note(BadRecord(where, reason, value[:200]))
        if not self.good and self.bad >= BAD_FROM_THE_START:
            raise InputError(
                f"the first {self.bad} records are all bad, the last one: {reason}",
                where=where,
                hint=f"is this the format that {self.kind!r} reads?",
            )

    def note(self, record: BadRecord) -> None:
        """Count a bad record, keep the first, hand it to `on_bad`; `InputError` without one."""
        if self.on_bad is None:
            raise InputError(record.reason, where=record.where)
        self.bad += 1
        self.first_bad = self.first_bad or record
        self.on_bad(record)

    def option(self, key: str, kind: type, default: Any = None) -> Any:
        """The value of an option, refused with `ConfigError` if it is of another type.

        A number or a switch may be written as text, as on the command line: `2`, `true`.
        """
        value = self.options.get(key, default)
        if isinstance(value, str) and kind is int and re.fullmatch(r"-?\d+", value):
            return int(value)
        if kind is bool and value in ("true", "false"):
            return value == "true"
        if value is not None and not isinstance(value, kind):
            raise ConfigError(f"{value!r} is no {kind.__name__}", where=f"{self.kind}: {key}")
        return value


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
