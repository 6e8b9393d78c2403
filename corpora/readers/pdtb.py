"""Gold discourse relations in the folders of the Penn Discourse Treebank.

`DIR/gold/SECTION/ID` holds the relations and `DIR/raw/SECTION/ID` the text that their offsets
point into. GDTB and PDTB 3.0 have this layout; the PDTB Annotator and the corpora made with it
(TED-MDB) call the first folder `ann`. For PDTB 2.0 link its annotation folder as `gold`
(files `wsj_0001.pdtb` or `wsj_0001.pipe`) and the Wall Street Journal's raw text as `raw`.
Three formats are read into the same rows:

- PDTB 3.0, GDTB and the PDTB Annotator: one relation a line, 34 fields separated by `|` (33 without
  the last separator, 35 with one more, 27 from older versions of the Annotator).
- PDTB 2.0, pipe form (the distribution's `convert.pl`, the CoNLL tools): 48 fields.
- PDTB 2.0, `.pdtb`: blocks between lines of underscores, headed by `____Explicit____` and so on.
"""

from __future__ import annotations

import codecs
import logging
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from corpora.document import Document, Relation, Span, Spans
from corpora.errors import BadRecord, InputError, amount, expanded
from corpora.languages import UNSPACED
from corpora.readers.files import Refused, expect, find_files, read_chunks
from corpora.readers.source import Encoded, OnBad, Source, fail
from corpora.readers.text import START

SIZE_LIMIT = 16 << 20
"""Maximum size of a file, in bytes: gold and raw files are read whole."""
KINDS = ("Explicit", "Implicit", "AltLex", "AltLexC", "Hypophora", "EntRel", "NoRel")

_SUFFIXES = (".pdtb", ".pipe", ".txt")
_LAYOUT = "expected DIR/gold/SECTION/ID with the relations and DIR/raw/SECTION/ID with the texts"
log = logging.getLogger("discorpora")

_PDTB3: tuple[tuple[int, ...], ...] = ((0, 1, 14, 20), (7,), (8, 9, 11, 12))
_COLUMNS: dict[int, tuple[tuple[int, ...], ...]] = {
    **dict.fromkeys((27, 33, 34, 35), _PDTB3),
    # 8 is the connective's head, 9 the annotators' choice for Implicit, 5 the text (AltLex).
    48: ((0, 3, 22, 32), (8, 9, 5), (11, 12, 13, 14)),
}
"""By the number of fields: the columns of kind, connective's span and arguments; those of the
connective (the first that is not empty counts); those of senses.
"""
REJECTED = "rejected"
"""The mark of an adjudicator, in a column behind the arguments' (26 on)."""
_SPAN = re.compile(r"(\d{1,9})\.\.(\d{1,9})")
_RULE = re.compile(r"_{20,}")
_HEADING = re.compile(r"____([A-Za-z0-9]+)____")
_LETTER = rf"[^\W_{UNSPACED}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
_INSIDE = re.compile(_LETTER * 2)
"""A place inside a word. In scripts without blanks between words (Chinese, Thai, Lao, Burmese,
Khmer) none is known."""
_EDGES = " \t\r\n,;:.!?…\"'`“”„‘’‚«»‹›()[]{}<>-\u2010\u2011\u2012–—―"
"""What is no part of a connective at the edges of its span."""
_EMPTY = ("_", "null")
"""How a column without a connective is written."""
_TEXT, _TEXT_END, _FEATURES = "#### Text ####", "##############", "#### Features ####"


class Pdtb(Encoded):
    """PDTB folders: raw text and gold relations."""

    name = "pdtb"

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """The relations and the raw texts."""
        folder = expanded(target)
        if not (target and folder.is_dir()):
            find_files(target, ("",), kind=cls.name)  # says what of the path is not there
        return sorted([*_files(folder, _gold(folder)).values(), *_files(folder, "raw").values()])

    def read(self, source: Source) -> Iterator[Document]:
        folder = expanded(source.target)
        documents = read_gold(
            folder, on_bad=source.refuse, encoding=self.encoding, skipped=source.skipped
        )
        for document in documents:
            document.language = source.language
            kept = Spans()
            # The Wall Street Journal's .START is not a paragraph; offsets count it.
            for start, end in document.paragraphs or ():
                if document.text[start:end].strip() != START:
                    kept.add(start, end)
            document.paragraphs = kept
            yield document


def read_gold(
    folder: Path,
    ids: Collection[str] | None = None,
    on_bad: OnBad = fail,
    *,
    encoding: str = "utf-8",
    skipped: Counter[str] | None = None,
) -> Iterator[Document]:
    """The documents of a PDTB 2.0, PDTB 3.0 or GDTB folder, in the order of their ids.

    A document's `text` is its raw file without a byte-order mark, its `relations` those of the gold
    file; `Relation.where` is `file:line`, with the file's path below `folder`. `ids` selects
    documents. A relation with an empty connective span is kept, with no spans. An explicit relation
    without a connective is named by the text under its span. Relations that an adjudicator marked
    as rejected are left out, and counted in `skipped`. A warning names a document whose offsets fit
    no reading of its text, and counts explicit relations with neither connective nor span.

    Bad relations (too few fields, spans that are unreadable or outside the text) and whole
    documents (raw text missing, empty, over 16 MiB, not in `encoding`) go to `on_bad` and are left
    out; by default the first one raises `InputError`, as does a folder with another layout.
    `encoding` is `latin-1` for the Wall Street Journal where its files are.
    """
    folder = Path(folder)
    texts = _files(folder, "raw")
    unnamed, unfit = 0, list[str]()
    for name, path in _files(folder, _gold(folder)).items():
        if ids is not None and name not in ids:
            continue
        rows, relations = [], []
        try:
            where = str(folder / "raw" / path.parent.name / name)
            expect(name in texts, f"no raw text: it is missing for {str(path)!r}", where)
            for row in parse_rows(_read(path, encoding), str(path), skipped):
                if isinstance(row, BadRecord):
                    on_bad(row)
                else:
                    rows.append(row)
            raw = texts[name]
            text, ahead, fits = _reading(_read(raw, encoding), rows)
            expect(text.strip(), "no text: the raw file has none", str(raw))
        except Refused as refusal:
            on_bad(refusal.record(path))
            continue
        if not fits:
            unfit.append(str(path))
        for row in rows:
            parts = (row.connective_spans, row.arg1_spans, row.arg2_spans)
            if outside := next(
                (f"{a}..{b}" for part in parts for a, b in part if b - ahead > len(text)), ""
            ):
                reason = f"a span lies outside of the text: {outside}, which has {len(text)}"
                on_bad(BadRecord(row.where, f"{reason} characters ({raw})", outside))
                continue
            marker, arg1, arg2 = (_moved(part, ahead) for part in parts)
            connective = row.connective
            if row.kind == "Explicit" and not connective:
                connective = _named(text, marker)
                unnamed += not connective
            # No path of this machine goes into documents.
            where = row.where.removeprefix(f"{folder}/")
            relations.append(Relation(row.kind, connective, marker, arg1, arg2, row.senses, where))
        yield Document(id=name, text=text, source=f"pdtb:{folder.name}", relations=relations)
    if unnamed:
        many = amount(unnamed, "explicit relation")
        log.warning("%s: %s without a connective and without a span of whole words", folder, many)
    if unfit:
        many = amount(len(unfit), "document")
        said = "most explicit connectives are not at their offsets: these count another text"
        log.warning("%s: in %s, such as %s, %s", folder, many, unfit[0], said)


def _gold(folder: Path) -> str:
    """The name of the folder of relations."""
    return "ann" if (folder / "ann").is_dir() and not (folder / "gold").is_dir() else "gold"


def _moved(spans: tuple[Span, ...], ahead: int) -> tuple[Span, ...]:
    """The spans without the `ahead` characters that they count in front of the text."""
    moved = ((max(0, start - ahead), max(0, end - ahead)) for start, end in spans)
    return tuple((start, end) for start, end in moved if start < end)


def _named(text: str, spans: tuple[Span, ...]) -> str:
    """A connective as PDTB writes it: `if then` for the spans of "If ... then".

    Empty if a span cuts a word: then the offsets are of another text.
    """
    if any(_cut(text, *span) for span in spans):
        return ""
    pieces = (text[start:end].strip(_EDGES) for start, end in spans)
    return " ".join(" ".join(pieces).lower().split())


def _cut(text: str, start: int, end: int) -> bool:
    """Whether a span begins or ends inside a word."""
    return bool((start and _INSIDE.match(text, start - 1)) or _INSIDE.match(text, end - 1))


def _files(folder: Path, part: str) -> dict[str, Path]:
    """The files of `folder/part/*/` by document id, sorted by it."""
    files: dict[str, Path] = {}
    for path in sorted((folder / part).glob("*/*")):
        if path.name.startswith(".") or not path.is_file():
            continue
        name = path.stem if path.suffix in _SUFFIXES else path.name
        if name in files:
            message = f"there are two files of the document {name!r}"
            raise InputError(message, where=str(path), hint=f"also {files[name]}")
        files[name] = path
    if not files:
        raise InputError(f"no files in {str(folder / part)!r}/*/", where="pdtb", hint=_LAYOUT)
    return dict(sorted(files.items()))


def _read(path: Path, encoding: str) -> str:
    """The text of a file with unchanged line ends: offsets count them."""
    data = b""
    for chunk in read_chunks(path):
        data += chunk
        expect(len(data) <= SIZE_LIMIT, f"too long: more than {SIZE_LIMIT >> 20} MiB", str(path))
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"not {encoding.upper()}: byte 0x{data[error.start]:02x} at offset {error.start}"
        hint = " (a Wall Street Journal file? set encoding to latin-1)"
        raise Refused(reason + hint, f"{path}:{line}") from None


def _reading(text: str, rows: list[Relation]) -> tuple[str, int, bool]:
    """The text as the offsets count it, how many characters they count in front of it, and whether
    they fit.

    Releases differ in what they count: a line end as one character or two (`\\r\\n`), a byte-order
    mark or none; and a file may have lost either since. The reading wins in which the fewest spans
    begin or end inside a word or beside the connective that their row names; of equals the first
    one, the usual count.
    """
    one = text.replace("\r\n", "\n")
    forms = dict.fromkeys((one, text, one.replace("\n", "\r\n")))
    best: tuple[str, int] = one, 0
    fewest = sum(_misfits(one, 0, row) for row in rows)
    for ahead, form in product((0, 1), forms):
        if fewest and (count := sum(_misfits(form, ahead, row) for row in rows)) < fewest:
            best, fewest = (form, ahead), count
    alone = [replace(row, arg1_spans=(), arg2_spans=()) for row in rows if row.kind == "Explicit"]
    misfits = sum(_misfits(*best, row) > 0 for row in alone)
    return *best, 2 * misfits <= len(alone)


def _misfits(text: str, ahead: int, row: Relation) -> int:
    """How many parts of a relation are not where the offsets say: connective and arguments."""
    count = 0
    for part in (row.connective_spans, row.arg1_spans, row.arg2_spans):
        spans = _moved(part, ahead) if ahead else part
        count += any(
            end > len(text) or text[start:end] != text[start:end].strip() or _cut(text, start, end)
            for start, end in spans
        )
    if row.kind == "Explicit" and row.connective and row.connective_spans:
        spans = _moved(row.connective_spans, ahead)
        under = " ".join(text[start:end] for start, end in spans).lower()
        count += not any(word in under for word in row.connective.split())
    return count


def parse_rows(
    text: str, name: str, skipped: Counter[str] | None = None
) -> Iterator[Relation | BadRecord]:
    """The relations of one gold file; its content determines the format.

    Spans are in the offsets of the raw file, not yet checked. `name` is the file's path for
    `file:line`. An unreadable relation becomes a `BadRecord`; one that an adjudicator rejected is
    counted in `skipped`.
    """
    lines = [line.strip() for line in text.split("\n")]
    in_blocks = any(map(_HEADING.fullmatch, lines))
    pipes = ((number, [line]) for number, line in enumerate(lines, 1) if line)
    for number, part in _blocks(lines) if in_blocks else pipes:
        where = f"{name}:{number}"
        if not in_blocks and _rejected(part[0]):
            if skipped is not None:
                skipped["relation marked as rejected"] += 1
            continue
        try:
            row = _block_row(part) if in_blocks else _pipe_row(part[0])
            kind, spans, arg1, arg2, connective, senses = row
            connective = " ".join(connective.lower().split())
            expected = f"expected one of {', '.join(KINDS)}"
            expect(kind in KINDS, f"unknown relation type: {kind[:40]!r}, {expected}")
            yield Relation(
                kind,
                "" if connective in _EMPTY else connective,
                parse_spans(spans),
                parse_spans(arg1),
                parse_spans(arg2),
                tuple(filter(None, map(str.strip, senses))),
                where,
            )
        except Refused as refusal:
            yield refusal.record(where, part[0])


def parse_spans(value: str) -> tuple[Span, ...]:
    """`3..9;12..20` as sorted spans; an empty field and empty spans (`5..5`) give none."""
    spans = []
    for part in filter(None, map(str.strip, value.split(";"))):
        ends = _SPAN.fullmatch(part)
        if not ends:
            raise Refused(f"a span is not START..END: {part[:80]!r}")
        start, end = int(ends[1]), int(ends[2])
        expect(start <= end, f"a span ends before it starts: {part!r}")
        if start < end:
            spans.append((start, end))
    return tuple(sorted(spans))


_Row = tuple[str, str, str, str, str, list[str]]
"""Kind, spans of connective, arg1 and arg2, connective, and senses, as a file has them."""


def _rejected(line: str) -> bool:
    fields = line.split("|")
    marked = any(field.strip().lower() == REJECTED for field in fields[26:])
    return marked and _COLUMNS.get(len(fields)) is _PDTB3


def _pipe_row(line: str) -> _Row:
    fields = line.split("|")
    reason = f"wrong number of fields: {len(fields)} separated by '|'"
    expect(
        len(fields) in _COLUMNS, f"{reason}, expected 34 (PDTB 3, GDTB; 27 to 35) or 48 (PDTB 2)"
    )
    ones, connectives, senses = ([fields[c] for c in some] for some in _COLUMNS[len(fields)])
    kind, spans, arg1, arg2 = ones
    return kind.strip(), spans, arg1, arg2, next(filter(str.strip, connectives), ""), senses


def _blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines of each relation, from its heading to the next rule, with the heading's number."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*lines, "_" * 20], 1):
        heading = _HEADING.fullmatch(line)
        starts = heading is not None and not re.fullmatch(r"(?:Arg|Sup)\d", heading[1])
        if block and (starts or _RULE.fullmatch(line)):
            yield first, block
            block = []
        if starts:
            first, block = number, [line]
        elif block:
            block.append(line)


def _block_row(block: list[str]) -> _Row:
    """A `.pdtb` relation: the lines under each `____Heading____`, the quoted text left out."""
    sections: dict[str, list[str]] = {}
    quoting, kind = False, block[0].strip("_")
    for line in block:
        if quoting or line == _TEXT:
            quoting = line != _TEXT_END
        elif heading := _HEADING.fullmatch(line):
            lines = sections.setdefault(heading[1], [])
        else:
            # A blank line stays: in place of spans it means a connective without any.
            lines.append(line)
    for part in ("Arg1", "Arg2"):
        expect(sections.get(part), f"{kind} relation without its ____{part}____ section")
    head = sections[kind]
    # First the attribution; its own span and Gorn address follow where it has any. Then the
    # connective (its head, or the one inferred) and the senses.
    rest = [line for line in head[head.index(_FEATURES) + 2 :] if line] if _FEATURES in head else []
    rest = rest[2:] if rest and _SPAN.match(rest[0]) else rest
    rows = [line.split(",") for line in rest]
    named = kind in ("Explicit", "Implicit")
    connective = rows[0][0] if named and rows else ""
    senses = [sense for row in rows for sense in (row[1:] if named else row)]
    spans = head[0] if kind in ("Explicit", "AltLex", "AltLexC") and head else ""
    return kind, spans, sections["Arg1"][0], sections["Arg2"][0], connective, senses
