"""The inputs of `score`: text files, JSON Lines, standard input and pipes, all bounded in size."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple, TypeVar

from pydantic import Field

from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.readers import open_source
from corpora.readers.fields import NONE, Fields, Texts
from corpora.readers.fields import Text as TextField
from corpora.readers.files import Refused, expect, good_record, read_lines, read_whole
from corpora.readers.rows import JSON_LINES, json_rows
from zoo.texts import in_parts

STDIN = "standard input"
RECORD = 'expected {"prompt": "...", "alternatives": ["...", "..."]}'

TEXT_LIMIT = 4 << 20
"""Longest text scored, in characters: "War and Peace" has 3.2 million."""
STDIN_LIMIT = 1 << 30
"""Most bytes of standard input, which is kept on the disk."""

Read = TypeVar("Read")


class Choice(NamedTuple):
    """A prompt with its name, and the alternatives that may go on from it with theirs."""

    name: str
    prompt: str | list[str]
    """A text, or its sentences."""
    names: list[str]
    texts: list[str]


def read_parts(texts: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Named texts in parts of bounded size, so that memory does not grow with their number.

    The first part is read at once: its errors come before a model is loaded.
    """
    parts = in_parts(texts, lambda named: len(named[1]))
    return chain(list(islice(parts, 1)), parts)


def read_each(
    files: Sequence[str], records: Callable[[Path], Iterable[Read]]
) -> Iterator[tuple[str, str] | Read]:
    """Name and text of each text file, and the `records` of each JSON Lines file.

    `-` is standard input, read as JSON Lines if its first line is a JSON object. Raises
    `InputError` for a file that is not there before the first one is read.
    """
    for name in files:
        if name != "-" and not Path(name).is_fifo():
            _existing(name)
    for name in files:
        with _as_file(name) as path:
            if path.name.lower().endswith(JSON_LINES):
                yield from records(path)
            else:
                yield name, _text(path)


def read_documents(path: Path) -> Iterator[tuple[str, str]]:
    # A score needs no licence, so that it may have any name.
    for document in open_source(f"jsonl:{path}", {"replace_licences": True}):
        yield document.id, _bounded(document.text, f"{path}: {document.id}")


def _bounded(text: str, where: str) -> str:
    if len(text) > TEXT_LIMIT:
        raise InputError(
            f"too long: more than {TEXT_LIMIT:,} characters",
            where=where,
            hint="score its chapters one by one",
        )
    return text


def read_choices(files: list[str], prompt: str) -> list[Choice]:
    """What is ranked: text files are alternatives of one prompt, a record of a JSON Lines file
    holds its own."""
    before = ""
    if prompt:
        with _as_file(prompt) as path:
            before = _text(path, empty=True)
    read = [*read_each(files, read_records)]
    records = [each for each in read if isinstance(each, Choice)]
    plain = [each for each in read if not isinstance(each, Choice)]
    if prompt and not plain:
        raise ConfigError(
            "--prompt is for text files: each record of JSON Lines has its prompt",
            hint=f"omit --prompt; {RECORD}",
        )
    if not plain:
        return records
    names, texts = map(list, zip(*plain, strict=True))
    return [Choice(prompt or "(none)", before, names, texts), *records]


class _Record(Fields):
    id: TextField = ""
    prompt: Texts = NONE
    alternatives: Annotated[list[str], Field(min_length=1, fail_fast=True)]


def read_records(path: Path) -> list[Choice]:
    """The records of a file to rank; one without an `id` is named by its line."""
    choices, size = [], 0
    for where, record in json_rows(path):
        try:
            good = good_record(record)
            of = _Record.of(good)
            expect(all(map(str.strip, of.alternatives)), "no text: an alternative is blank")
            size += sum(map(len, (*of.prompt, *of.alternatives)))
            within = size <= TEXT_LIMIT
            expect(within, f"too long: more than {TEXT_LIMIT:,} characters in one file")
        except Refused as refusal:
            raise InputError(str(refusal), where=where, hint=RECORD) from None
        numbers = [str(number) for number, _ in enumerate(of.alternatives, 1)]
        name = of.id or where.rpartition(":")[2]
        before = good["prompt"] if isinstance(good.get("prompt"), str) else list(of.prompt)
        choices.append(Choice(name, before, numbers, of.alternatives))
    if not choices:
        raise InputError("has no record to rank", where=str(path), hint=RECORD)
    return choices


@contextmanager
def _as_file(name: str) -> Iterator[Path]:
    """The file `name`; standard input (`-`) or a pipe as one: its suffix tells what it holds."""
    if name != "-" and not Path(name).is_fifo():
        yield _existing(name)
        return
    shown = STDIN if name == "-" else name
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.txt"
        with (
            path.open("wb") as kept,  # standard input stays open
            nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as pipe,
        ):
            while chunk := pipe.read(1 << 20):
                kept.write(chunk)
                if kept.tell() > STDIN_LIMIT:
                    problem = f"longer than {STDIN_LIMIT >> 20} MiB"
                    raise InputError(problem, where=shown, hint="save it in a file")
        # JSON Lines begin with a JSON object in the first line that is not blank.
        with suppress(ValueError, RecursionError):
            first = next((line for line in read_lines(path) if str(line).strip()), "")
            if isinstance(json.loads(str(first)), dict):
                path = path.rename(path.with_suffix(".jsonl"))
        try:
            yield path
        except DiscorporaError as error:
            where = error.where.replace(str(path), shown)
            raise type(error)(error.message, where=where, hint=error.hint) from None


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        problem = "is a folder, expected a file" if path.is_dir() else "no such file"
        raise InputError(problem, where=name, hint="give text or JSONL files, or -")
    return path


def _text(path: Path, *, empty: bool = False) -> str:
    """The text of a file (also `.gz`, `.bz2`); `empty` says whether it may hold none."""
    try:
        text = _bounded(read_whole(path), str(path))
    except Refused as refusal:
        where = refusal.where or str(path)
        raise InputError(str(refusal), where=where, hint="give UTF-8 texts") from None
    if not empty and not text.strip():
        raise InputError("holds no text", where=str(path))
    return text
