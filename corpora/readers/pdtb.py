"""Gold discourse relations in the folders of the Penn Discourse Treebank.

`DIR/gold/SECTION/ID` holds the relations and `DIR/raw/SECTION/ID` the text that their offsets
point into. GDTB and PDTB 3.0 come this way; for PDTB 2.0 link its annotation folder as `gold`
(files `wsj_0001.pdtb` or `wsj_0001.pipe`) and the Wall Street Journal's raw text as `raw`.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator
from pathlib import Path

from corpora.document import Document, Relation, Spans
from corpora.errors import BadRecord, InputError
from corpora.readers.base import Encoding, Reader
from corpora.readers.files import find_files, refuse_binary
from corpora.readers.news import START
from corpora.readers.pdtb_rows import parse_rows
from corpora.readers.source import OnBad, Refused, Source

SIZE_LIMIT = 64 << 20
"""Largest file taken, in bytes: gold and raw files are read whole."""

_SUFFIXES = (".pdtb", ".pipe", ".txt")
_LAYOUT = "expected DIR/gold/SECTION/ID with the relations and DIR/raw/SECTION/ID with the texts"


class Pdtb(Reader):
    """PDTB folders: raw text and gold relations."""

    name = "pdtb"

    encoding: Encoding = "utf-8"
    """The encoding of the files: `latin-1` for the Wall Street Journal where its files are."""

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """The relations and the raw texts."""
        folder = Path(target).expanduser()
        if not (target and folder.is_dir()):
            find_files(target, ("",), kind=cls.name)  # says what of the path is not there
        return gold_files(folder)

    def read(self, source: Source) -> Iterator[Document]:
        folder = Path(source.target).expanduser()
        on_bad = source.note if source.on_bad else None
        for document in read_gold(folder, on_bad=on_bad, encoding=self.encoding):
            document.language = source.language
            kept = Spans()
            # The Wall Street Journal's .START is no paragraph; offsets count it in the text.
            for start, end in document.paragraphs or ():
                if document.text[start:end].strip() != START:
                    kept.add(start, end)
            document.paragraphs = kept
            yield document


def read_gold(
    folder: Path,
    ids: Collection[str] | None = None,
    on_bad: OnBad | None = None,
    *,
    encoding: str = "utf-8",
) -> Iterator[Document]:
    """The documents of a PDTB 2.0, PDTB 3.0 or GDTB folder, in the order of their ids.

    A document's `text` is its raw file as it is (offsets count from after a byte-order mark),
    its `relations` those of the gold file; `Relation.where` is `file:line`. `ids` narrows to
    these documents. A relation with an empty connective span is kept, with no spans.

    Bad relations (too few fields, spans that are unreadable or outside of the text) and whole
    documents (raw text missing, empty, over 64 MiB, not in `encoding`) go to `on_bad` and are
    left out; without it the first one raises `InputError`. So does a folder that is not laid out
    as expected.
    `encoding` is `latin-1` for the Wall Street Journal where its files are.
    """
    folder = Path(folder)
    texts = _files(folder, "raw")
    for name, path in _files(folder, "gold").items():
        if ids is not None and name not in ids:
            continue
        try:
            yield _read_document(name, path, texts.get(name), folder, on_bad, encoding)
        except Refused as refusal:
            _refuse(BadRecord(refusal.where, str(refusal)), on_bad)


def gold_files(folder: Path) -> list[Path]:
    """All files that `read_gold` reads, sorted: the source's fingerprint is theirs."""
    folder = Path(folder)
    return sorted([*_files(folder, "gold").values(), *_files(folder, "raw").values()])


def _files(folder: Path, part: str) -> dict[str, Path]:
    """The files of `folder/part/*/` by document id, sorted by it."""
    if not (folder / part).is_dir():
        what = "has no folder" if folder.is_dir() else "is no folder, so it has no"
        raise InputError(f"{str(folder)!r} {what} {part!r}", where="pdtb", hint=_LAYOUT)
    found: dict[str, Path] = {}
    for path in sorted((folder / part).glob("*/*")):
        if path.name.startswith(".") or not path.is_file():
            continue
        name = path.stem if path.suffix in _SUFFIXES else path.name
        if name in found:
            raise InputError(
                f"document {name!r} is there twice", where=str(path), hint=f"also {found[name]}"
            )
        found[name] = path
    if not found:
        raise InputError(f"no files in {str(folder / part)!r}/*/", where="pdtb", hint=_LAYOUT)
    return dict(sorted(found.items()))


def _read_document(
    name: str, path: Path, raw: Path | None, folder: Path, on_bad: OnBad | None, encoding: str
) -> Document:
    if raw is None:
        where = str(folder / "raw" / path.parent.name / name)
        raise Refused(f"the raw text of {str(path)!r} is missing", where)
    rows = []
    for row in parse_rows(_read(path, encoding), str(path)):
        if isinstance(row, BadRecord):
            _refuse(row, on_bad)
        else:
            rows.append(row)
    text = _reading(_read(raw, encoding), rows)
    if not text.strip():
        raise Refused("no text: the raw file has none", str(raw))
    relations = []
    for row in rows:
        spans = (*row.connective_spans, *row.arg1_spans, *row.arg2_spans)
        if outside := next((f"{a}..{b}" for a, b in spans if b > len(text)), ""):
            reason = f"a span lies outside of the text, which has {len(text)} characters ({raw})"
            _refuse(BadRecord(row.where, reason, outside), on_bad)
        else:
            relations.append(row)
    return Document(id=name, text=text, source=f"pdtb:{folder.name}", relations=relations)


def _refuse(record: BadRecord, on_bad: OnBad | None) -> None:
    if on_bad is None:
        shown = f": {record.value!r}" if record.value else ""
        raise InputError(record.reason + shown, where=record.where)
    on_bad(record)


def _read(path: Path, encoding: str) -> str:
    if path.stat().st_size > SIZE_LIMIT:
        raise Refused(f"too long: more than {SIZE_LIMIT >> 20} MiB", str(path))
    data = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    refuse_binary(data, path)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"byte 0x{data[error.start]:02x} at offset {error.start} is not {encoding}"
        hint = " (a Wall Street Journal file? set encoding to latin-1)"
        raise Refused(reason + hint, f"{path}:{line}") from None


def _reading(text: str, rows: list[Relation]) -> str:
    """The text, with `\\r\\n` as one character if the offsets were counted so.

    A checkout may have given a file other line ends than its annotators saw. The explicit
    connectives tell: they must stand under their spans.
    """

    def misfits(text: str) -> int:
        count = 0
        for row in rows:
            if row.kind == "Explicit" and row.connective and row.connective_spans:
                under = " ".join(text[start:end] for start, end in row.connective_spans).lower()
                count += not any(word in under for word in row.connective.split())
        return count

    return min((text.replace("\r\n", "\n"), text), key=misfits)
