"""The base of readers, a source being read, and the parts of every document: id and text."""

from __future__ import annotations

import glob
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, field_validator

from corpora import licences
from corpora.declared import Declared
from corpora.document import PARAGRAPH_BREAK, Document, Spans, paragraph_spans
from corpora.errors import BadRecord, ConfigError, InputError, expand_home
from corpora.languages import Language
from corpora.readers.files import DOCUMENT_LIMIT, TOO_LONG, Refused, expect, find_files
from corpora.splits import split_of

OnBad = Callable[[BadRecord], None]
"""Called with each record that is rejected; it may raise an error."""

BAD_FROM_THE_START = 100
"""This many bad records before the first good document mean another format."""

_BAD_ID = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|^[/\\]|(?:^|[/\\])\.\.(?:[/\\]|$)"
)
"""A control character, a leading slash, or a part `..` of a path."""


def known_encoding(name: str) -> str:
    """Return `name` if it is an encoding that contains ASCII; else raise `ConfigError`."""
    try:
        if b"\n".decode(name) == "\n":
            return name
    except (LookupError, ValueError):
        pass
    raise ConfigError(
        f"no encoding {name!r} (of those that contain ASCII)",
        hint="the default is utf-8; old corpora are often in latin-1 or cp1252",
    )


Encoding = Annotated[str, AfterValidator(known_encoding)]
"""An encoding that contains ASCII: `utf-8`, `latin-1`, `cp1252`."""


def _refuse_boolean(value: Any) -> Any:
    """Return `value`; `ConfigError` if it is a boolean, which Python counts as a whole number."""
    if isinstance(value, bool):
        raise ConfigError(f"{value!r}: expected a whole number")
    return value


Whole = Annotated[int, BeforeValidator(_refuse_boolean)]
"""A whole number; the command line gives it as text."""


class Reader(Declared):
    """One kind of source. `name` is the kind in a spec `KIND:PATH`.

    The options of a source are the fields, and `name` (`corpora.readers.open_reader`).
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    """Suffixes of the files to read from a folder."""
    licence_by: ClassVar[str] = ""
    """The key of a table of licences: the `genre` of documents, or the `set` of tests."""
    own_licence: ClassVar[str] = "unknown"
    """The licence of documents without one if the options give none."""

    licence: str | dict[str, str] = ""
    """SPDX identifier for documents without a licence; for conllu also a table by genre, for
    coherence by test set."""
    language: Language = "en"
    """ISO 639-1 code for documents without a language."""

    @field_validator("licence")
    @classmethod
    def _check_licences(cls, licence: str | dict[str, str]) -> str | dict[str, str]:
        """Return the licence, or the table of licences, with its names as ids. Raises `ConfigError`
        for an unknown name, and for a table if the reader takes none."""
        table = licence if isinstance(licence, dict) else {"": licence}
        ids = {key: value and licences.lookup(value).id for key, value in table.items()}
        if isinstance(licence, dict) and not cls.licence_by:
            raise ConfigError(
                f"{licence!r} is not a licence",
                hint="give an SPDX identifier such as CC-BY-4.0; a table is for conllu: (by genre) "
                "and coherence: (by test set)",
            )
        return ids if isinstance(licence, dict) else ids[""]

    def licence_of(self, key: str = "") -> str:
        """Return the licence for documents without one; `key` is their genre or test set.

        Raises `ConfigError` if the table has neither the key nor `default`.
        """
        if isinstance(self.licence, str):
            return self.licence or self.own_licence
        licence = self.licence.get(key, self.licence.get("default"))
        if licence is None:
            raise ConfigError(
                f"there is no licence for the {self.licence_by} {key!r}",
                where=f"source {self.name}: licence",
                hint=f'add the {self.licence_by} to the table, or the key "default"',
            )
        return licence

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """Return every file that a source of this kind opens, sorted; they make its fingerprint.

        Raises `InputError` if there are none.
        """
        return find_files(target, cls.suffixes, kind=cls.name)

    def read(self, source: Source) -> Iterator[Document]:
        """Yield the documents of a source; by default the documents of its files in order."""
        for path in source.files:
            with source.refusing(path):
                split = split_of(path_below(source.target, path))
                documents = self.read_file(path, source.stem(path, self.suffixes), source)
                for document in self.documents_only(documents, "read_file"):
                    document.split = document.split or split
                    yield document

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the documents of a file; their ids are `stem`, or begin with it.

        `stem` is the file's path below the source's folder, without suffix. `Refused` rejects the
        whole file; a bad record goes to `source.refuse`.
        """
        raise NotImplementedError

    def documents_only(
        self, documents: Iterable[Document] | None, method: str = "read"
    ) -> Iterator[Document]:
        """Yield what `method` of the reader returned; `ConfigError` for anything but documents."""
        for document in documents if isinstance(documents, Iterable) else [documents]:
            if not (
                isinstance(document, Document)
                and isinstance(document.id, str)
                and isinstance(document.text, str)
            ):
                code = inspect.unwrap(getattr(type(self), method)).__code__
                raise ConfigError(
                    f"{type(self).__name__}.{method} gave {repr(document)[:80]}, "
                    "expected a corpora.document.Document whose id and text are strings",
                    where=f"{code.co_filename}:{code.co_firstlineno}",
                    hint="correct the reader: yield as_document(record, source, stem)",
                )
            yield document


class Encoded(Reader):
    """A reader of texts that may be in another encoding than UTF-8."""

    encoding: Encoding = "utf-8"
    """The encoding of the files, such as `latin-1`."""


def fail(record: BadRecord) -> None:
    """Raise `InputError` for a bad record: the default of `on_bad`."""
    raise InputError(record.reason, where=record.where)


@dataclass(slots=True)
class Source:
    """The source `kind:target` and its files while they are read, with counts of what was read.

    `on_bad` is called with bad records. `language` is that of documents without one. `name` is the
    value of `Document.source`. `skipped` counts entries that are not documents by design (a
    redirect, a page of another namespace). `remarks` counts documents by a warning about them,
    which `read_documents` gives at the end.
    """

    kind: str
    target: str
    files: list[Path]
    language: str = "en"
    name: str = ""
    on_bad: OnBad = fail
    good: int = 0
    bad: int = 0
    first_bad: BadRecord | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)
    warned: bool = False
    """Whether a warning has named an odd file of the source: it names one, not all."""
    where: object = ""
    """The place of the record that was read last, or of its file."""

    def stem(self, path: Path, suffixes: Sequence[str]) -> str:
        """Return a file's path below the source's folder, without suffix: its documents' id."""
        name = path_below(self.target, path)
        return name.removesuffix(max(filter(name.endswith, suffixes), key=len, default=""))

    def refuse(self, record: BadRecord) -> None:
        """Count a bad record and call `on_bad`; `InputError` if the first 100 are all bad."""
        self.on_bad(record)
        self.bad += 1
        self.first_bad = self.first_bad or record
        if not self.good and self.bad >= BAD_FROM_THE_START:
            raise InputError(
                f"the first {self.bad} records are all bad, the last one: {record.reason}",
                where=record.where,
                hint=f"check that it has the format that {self.kind!r} reads",
            )

    def refusing(self, where: object, record: object = "") -> AbstractContextManager[None]:
        """Return a context that rejects the record at `where` if its block raises `Refused`."""
        self.where = where
        return refusing(self.refuse, where, record)

    def document(self, name: str, text: str, *, language: str = "", **about: Any) -> Document:
        """Return a document with the id `name`; `Refused` for a bad id, no or too much text."""
        expect(text, "no text: there is none in it")
        expect(len(text) <= DOCUMENT_LIMIT, TOO_LONG)
        document = Document(name, text, language=language or self.language, **about)
        check_id(document.group)
        check_id(document.id)
        return document


@contextmanager
def refusing(on_bad: OnBad, where: object, record: object = "") -> Iterator[None]:
    """Give the record to `on_bad` if the block raises `Refused`; `where` is its place."""
    try:
        yield
    except Refused as refusal:
        on_bad(refusal.record(where, record))


def root_of(target: str) -> Path:
    """Return the folder that the paths of a spec's files are relative to.

    It is the part before `/./` (`books/./emma`, as in rsync), else all of `target` if there is such
    a folder or file, whatever brackets are in its name, else the part before the first wildcard.
    """
    head, mark, _ = target.partition("/./")
    root = expand_home((head or "/") if mark else target)
    is_pattern = not mark and not root.exists()
    while is_pattern and glob.has_magic(str(root)):
        root = root.parent
    return root


def path_below(target: str, path: Path) -> str:
    """Return a file's path below the folder of a spec's `target`; its name if that is a file."""
    root = root_of(target)
    is_below = root.is_dir() and path.is_relative_to(root)
    return path.relative_to(root).as_posix() if is_below else path.name


def without_folder(target: str, message: str) -> str:
    """Return `message` with paths of files of a spec's `target` relative to their folder."""
    root = root_of(target)
    folder = str(root if root.is_dir() else root.parent)
    # The folder itself only where its name cannot be a word of the reason.
    or_folder_alone = r"|(?![\w./~-])" if root.is_absolute() else ""
    pattern = rf"(?<![\w./~-]){re.escape(folder)}(?:/{or_folder_alone})"
    return message if folder in (".", "/") else re.sub(pattern, "", message)


class SeenIds:
    """A set of ids that takes about eight bytes for each: it stores their hashes only."""

    def __init__(self) -> None:
        self._latest: set[int] = set()
        self._sorted: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def add(self, key: str) -> bool:
        """Add `key`; return whether it was new."""
        code = hash(key)
        place = int(np.searchsorted(self._sorted, code))
        if code in self._latest or code in self._sorted[place : place + 1]:
            return False
        self._latest.add(code)
        if len(self._latest) > max(1 << 15, len(self._sorted) // 4):
            latest = np.fromiter(self._latest, dtype=np.int64)
            self._sorted = np.sort(np.concatenate((self._sorted, latest)))
            self._latest.clear()
        return True


def check_id(name: str) -> str:
    """Return `name` if it is valid as a document's id or group; else raise `Refused`.

    Ids end up in file names: no control characters, no `..` segment, no leading slash, at most 512
    characters.
    """
    if 0 < len(name) <= 512 and not _BAD_ID.search(name):
        return name
    problem = "is empty, too long, holds control characters or leads out of its folder"
    raise Refused(f"bad id: {name[:80]!r} {problem}")


def check_unicode(text: str) -> None:
    """Raise `Refused` for half a surrogate pair, which UTF-8 cannot encode."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise Refused(f"not text: U+{code:04X} is half a surrogate pair") from None


def clean_paragraph(paragraph: str) -> str:
    """Return a paragraph as one line, without white space around it or around its old lines."""
    return " ".join(filter(None, map(str.strip, paragraph.splitlines())))


def blocks_of(lines: Iterable[str]) -> list[list[str]]:
    """Return the lines, without white space around them, in blocks that blank lines separate."""
    return [list(block) for filled, block in groupby(map(str.strip, lines), bool) if filled]


def paragraphs_of(*texts: str) -> list[str]:
    """Return the paragraphs of running texts, by `paragraphs_from_blocks` of their lines."""
    return paragraphs_from_blocks(blocks_of("\n\n".join(texts).splitlines()))


def paragraphs_from_blocks(blocks: Iterable[Sequence[str]]) -> list[str]:
    """Return the paragraphs of a running text from its lines, in blocks that blank lines separate.

    A block is one paragraph, but within it another paragraph begins

    - where quoted mail begins or ends (its marks `>` are left out);
    - before and after a short line without small letters that is in front of others (a speaker, a
      running head, a page number, a time);
    - in a subtitle at a line that begins with a dash, in captions at the mark `>>`, which is left
      out: another speaker.

    Lines are joined by a space, but not behind a hyphen (except in "two- or"). The hyphen stays
    before a capital or digit ("Neo-Gothic"), and if the text never has the word without it.
    """
    # Divide the lines into paragraphs.
    groups: list[list[str]] = []  # the lines of each paragraph
    blocks = list(blocks)
    are_captions = _are_captions(blocks)
    for block in blocks:
        last = max((n for n, line in enumerate(block) if _SMALL.search(line)), default=0)
        previous, in_subtitle = None, False
        for number, original in enumerate(block):
            line = _QUOTED.sub("", original, count=1)
            depth = original.count(">", 0, len(original) - len(line))
            is_turn = are_captions and depth > 0
            kind = line and (depth * (not is_turn), number < last and _stands_alone(line))
            in_subtitle |= _TIMES in line
            new_speaker = is_turn or (in_subtitle and line[:1] in _DASHES)
            if kind and kind == previous and not new_speaker:
                groups[-1].append(line)
            elif kind:
                groups.append([line])
            previous = kind
    # Join the lines, and the words that a line break divides.
    paragraphs = [_HYPHENS.sub("-\n", "\n".join(group).replace("\u00ad\n", "")) for group in groups]
    if any("-\n" in paragraph for paragraph in paragraphs):
        words = {word for text in paragraphs for word in _LETTERS.findall(text.lower())}

        def without_hyphen(match: re.Match[str]) -> str:
            joined = match[1] + match[2]
            return joined if joined.lower() in words else f"{match[1]}-{match[2]}"

        def with_hyphen(match: re.Match[str]) -> str:
            return f"-{match[1]}" if match[1].isupper() or match[1].isdigit() else match[0]

        paragraphs = [
            _COMPOUND.sub(with_hyphen, _BROKEN.sub(without_hyphen, text)) for text in paragraphs
        ]
    return [paragraph.replace("\n", " ") for paragraph in paragraphs]


_HYPHENS = re.compile("[\u2010\u2011]\n")
_TIMES = " --> "  # between the times of a subtitle: 00:01:20 --> 00:01:24
_DASHES = "-–—―‐"
_QUOTED = re.compile(r"^(?:>\s?)+(?![\s\d.=])")  # the marks of quoted mail: "> > "
_TURN = re.compile(r">>>?\s?[^\W\d_a-zß-öø-ÿ]")  # a new speaker in captions: ">> Good evening."
_SMALL = re.compile(r"[a-zß-öø-ÿ]")
_LETTERS = re.compile(r"[^\W\d_]+")
_BROKEN = re.compile(
    r"(?<![^\W_])([^\W_]++)-\n"
    r"(?!(?:and|or|nor|to|und|bis|et|ou|y|o|e)\b(?!-))([a-zß-öø-ÿ][^\W\d_]*)"
)
"""A word in two parts, with a hyphen at a line's end between them."""
_COMPOUND = re.compile(r"(?<=[^\W_])-\n([^\W_])")
"""A hyphen at a line's end, where a capital or a digit shows that it belongs to the word."""
_LONGEST_ALONE = 40


def _are_captions(blocks: Iterable[Sequence[str]]) -> bool:
    """Whether the marks `>>` of a text are those of speakers: all stand before a capital, and at
    least one before a single line. Mail marks each line that it quotes, and first with one `>`."""
    runs = [
        list(lines)
        for block in blocks
        for quoted, lines in groupby(block, lambda line: bool(_QUOTED.match(line)))
        if quoted
    ]
    turns = all(_TURN.match(line) for run in runs for line in run)
    return turns and any(len(run) == 1 for run in runs)


def _stands_alone(line: str) -> bool:
    """Whether a line is short and has no letters, or capitals only: a speaker, a page number."""
    return len(line) <= _LONGEST_ALONE and all(map(str.isupper, filter(str.isalpha, line)))


def join_paragraphs(paragraphs: Sequence[str]) -> tuple[str, Spans]:
    """Return the text of a document and the spans of its paragraphs.

    Raises `Refused` if the text cannot be stored.
    """
    text = PARAGRAPH_BREAK.join(paragraphs)
    check_unicode(text)
    return text, paragraph_spans(text)


def text_and_sentences(paragraphs: Iterable[Iterable[str]]) -> tuple[str, Spans]:
    """Return the text of paragraphs that are lists of sentences, and the spans of its sentences.

    A space joins sentences. Raises `Refused` if the text cannot be stored.
    """
    blocks = [list(filter(None, map(clean_paragraph, sentences))) for sentences in paragraphs]
    blocks = [block for block in blocks if block]
    text, spans = join_paragraphs([" ".join(block) for block in blocks])
    sentence_spans = Spans()
    for start, block in zip(spans.start, blocks, strict=True):
        for sentence in block:
            sentence_spans.add(start, start + len(sentence))
            start += len(sentence) + 1
    return text, sentence_spans
