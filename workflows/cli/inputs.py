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
"""Maximum characters of a text: "War and Peace" has 3.2 million."""
STDIN_LIMIT = 1 << 30
"""Maximum bytes of standard input, which is copied to a temporary file."""

Item = TypeVar("Item")


class Choice(NamedTuple):
    """A prompt and the alternatives that may follow it."""

    name: str
    prompt: str | list[str]
    """A text, or its sentences."""
    names: list[str]
    """The names of the alternatives."""
    texts: list[str]
    """The texts of the alternatives."""


def read_parts(texts: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Group texts, each with its name, into parts of bounded size, so that memory stays bounded.

    The first part is read at once, so that its errors are raised before a model is loaded.
    """
    parts = in_parts(texts, lambda named_text: len(named_text[1]))
    return chain(list(islice(parts, 1)), parts)


def read_each(
    files: Sequence[str], records: Callable[[Path], Iterable[Item]]
) -> Iterator[tuple[str, str] | Item]:
    """Yield name and text of each text file, and what `records` reads from each JSON Lines file.

    `-` is standard input, read as JSON Lines if its first line is a JSON object. Raises
    `InputError` for a missing file before it reads the first one.
    """
    for name in files:
        if name != "-" and not Path(name).is_fifo():
            _existing(name)
    for name in files:
        with _as_file(name) as path:
            if path.name.lower().endswith(JSON_LINES):
                yield from records(path)
            else:
                yield name, _read_text(path)


def read_documents(path: Path) -> Iterator[tuple[str, str]]:
    """Yield id and text of each document of a JSON Lines file."""
    # Texts to score need no licence, so an unknown name of one is no error.
    for document in open_source(f"jsonl:{path}", {"replace_licences": True}):
        yield document.id, _checked_length(document.text, f"{path}: {document.id}")


def _checked_length(text: str, where: str) -> str:
    """Return the text. Raises `InputError` if it is longer than `TEXT_LIMIT`."""
    if len(text) > TEXT_LIMIT:
        raise InputError(
            f"too long: more than {TEXT_LIMIT:,} characters",
            where=where,
            hint="score its chapters one by one",
        )
    return text


def read_choices(files: list[str], prompt: str) -> list[Choice]:
    """Read prompts with the alternatives to rank.

    All text files are alternatives after the text of the file `prompt` ("": no text). Each record
    of a JSON Lines file has its own prompt and alternatives.
    """
    prompt_text = ""
    if prompt:
        with _as_file(prompt) as path:
            prompt_text = _read_text(path, empty=True)
    items = [*read_each(files, read_records)]
    records = [item for item in items if isinstance(item, Choice)]
    plain = [item for item in items if not isinstance(item, Choice)]
    if prompt and not plain:
        raise ConfigError(
            "--prompt is for text files: each record of JSON Lines has its prompt",
            hint=f"omit --prompt; {RECORD}",
        )
    if not plain:
        return records
    names, texts = map(list, zip(*plain, strict=True))
    return [Choice(prompt or "(none)", prompt_text, names, texts), *records]


class _Record(Fields):
    """A record of a JSON Lines file: alternatives to rank, and the prompt before them."""

    id: TextField = ""
    prompt: Texts = NONE
    alternatives: Annotated[list[str], Field(min_length=1, fail_fast=True)]


def read_records(path: Path) -> list[Choice]:
    """Read the records of a JSON Lines file, named by `id` or by line. Raises `InputError`."""
    choices, size = [], 0
    for where, row in json_rows(path):
        try:
            fields = good_record(row)
            record = _Record.of(fields)
            expect(all(map(str.strip, record.alternatives)), "no text: an alternative is blank")
            size += sum(map(len, (*record.prompt, *record.alternatives)))
            expect(size <= TEXT_LIMIT, f"too long: more than {TEXT_LIMIT:,} characters in one file")
        except Refused as refusal:
            raise InputError(str(refusal), where=where, hint=RECORD) from None
        numbers = [str(number) for number, _ in enumerate(record.alternatives, 1)]
        name = record.id or where.rpartition(":")[2]
        is_text = isinstance(fields.get("prompt"), str)
        prompt = fields["prompt"] if is_text else list(record.prompt)
        choices.append(Choice(name, prompt, numbers, record.alternatives))
    if not choices:
        raise InputError("has no record to rank", where=str(path), hint=RECORD)
    return choices


@contextmanager
def _as_file(name: str) -> Iterator[Path]:
    """Yield the path of a file; standard input or a pipe is copied to `.jsonl` or `.txt`."""
    if name != "-" and not Path(name).is_fifo():
        yield _existing(name)
        return
    title = STDIN if name == "-" else name
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.txt"
        with (
            path.open("wb") as copy,  # standard input stays open
            nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as pipe,
        ):
            while chunk := pipe.read(1 << 20):
                copy.write(chunk)
                if copy.tell() > STDIN_LIMIT:
                    problem = f"longer than {STDIN_LIMIT >> 20} MiB"
                    raise InputError(problem, where=title, hint="save it in a file")
        # JSON Lines begin with a JSON object in the first line that is not blank.
        with suppress(ValueError, RecursionError):
            first = next((line for line in read_lines(path) if str(line).strip()), "")
            if isinstance(json.loads(str(first)), dict):
                path = path.rename(path.with_suffix(".jsonl"))
        try:
            yield path
        except DiscorporaError as error:
            where = error.where.replace(str(path), title)
            raise type(error)(error.message, where=where, hint=error.hint) from None


def _existing(name: str) -> Path:
    """Return the path of a file. Raises `InputError` if there is no such file."""
    path = Path(name)
    if not path.is_file():
        problem = "is a folder, expected a file" if path.is_dir() else "no such file"
        raise InputError(problem, where=name, hint="give text or JSONL files, or -")
    return path


def _read_text(path: Path, *, empty: bool = False) -> str:
    """Read the text of a file (also `.gz`, `.bz2`), which may be blank only if `empty` is set."""
    try:
        text = _checked_length(read_whole(path), str(path))
    except Refused as refusal:
        where = refusal.where or str(path)
        raise InputError(str(refusal), where=where, hint="give UTF-8 texts") from None
    if not empty and not text.strip():
        raise InputError("holds no text", where=str(path))
    return text
