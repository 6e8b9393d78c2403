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
from itertools import chain, compress, product
from pathlib import Path
from typing import Annotated

from pydantic import Field

from corpora.document import Document, Relation, Span, Spans, paragraph_spans
from corpora.errors import BadRecord, InputError, amount, expand_home
from corpora.languages import UNSPACED
from corpora.readers.files import Refused, expect, find_files, read_chunks
from corpora.readers.source import Encoded, OnBad, Source, Whole, fail
from corpora.readers.text import START
from corpora.vocabulary import limit_vocabulary, most_frequent, words_of

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
"""Three tuples of column numbers, by a line's number of fields: (kind, spans of the connective, of
Arg1, of Arg2); the connective, of which the first column that is not empty counts; the senses.
"""
REJECTED = "rejected"
"""The mark of an adjudicator, in a column behind the arguments'."""
_ADJUDICATION = 26  # the first of these columns
_SPAN = re.compile(r"(\d{1,9})\.\.(\d{1,9})")
_RULE = re.compile(r"_{20,}")
_HEADING = re.compile(r"____([A-Za-z0-9]+)____")
_LETTER = rf"[^\W_{UNSPACED}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
_INSIDE = re.compile(_LETTER * 2)
"""Two letters of one word. Those of scripts without blanks between words (Chinese, Thai, Lao,
Burmese, Khmer) do not count."""
_BOM = "\ufeff"
_EDGES = " \t\r\n,;:.!?…\"'`“”„‘’‚«»‹›()[]{}<>-\u2010\u2011\u2012–—―" + _BOM
"""Characters at the edges of a connective's span that are not part of it."""
_EMPTY = ("_", "null")
"""The values of a column that stand for no connective."""
_TEXT, _TEXT_END, _FEATURES = "#### Text ####", "##############", "#### Features ####"


class Pdtb(Encoded):
    """PDTB folders: raw text and gold relations."""

    name = "pdtb"

    vocabulary: Annotated[Whole, Field(ge=0)] = 0
    """If not 0, only so many words are kept, those most frequent in the source; all others become
    `unk`, numbers `N`, and the text is in lower case (DisSent, appendix A.2: 10,000). Such
    documents have no relations: they are to be parsed."""

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """Return the files of relations and of raw texts in the folder `target`, sorted."""
        folder = expand_home(target)
        if not (target and folder.is_dir()):
            find_files(target, ("",), kind=cls.name)  # raises an error that names the missing part
        relations = _files_by_document(folder, _relations_folder(folder))
        return sorted([*relations.values(), *_files_by_document(folder, "raw").values()])

    def read(self, source: Source) -> Iterator[Document]:
        """Yield the documents of the folder with their relations, as `read_gold` does."""
        folder = expand_home(source.target)
        frequent: frozenset[str] = frozenset()
        if self.vocabulary:
            texts = read_gold(folder, on_bad=lambda record: None, encoding=self.encoding)
            words = chain.from_iterable(words_of(document.text) for document in texts)
            frequent = frozenset(most_frequent(words, self.vocabulary))
        documents = read_gold(
            folder, on_bad=source.refuse, encoding=self.encoding, skipped=source.skipped
        )
        for document in documents:
            document.language = source.language
            spans = document.paragraphs or Spans()
            # The Wall Street Journal's .START is not a paragraph; offsets count it.
            is_paragraph = [document.text[start:end].strip() != START for start, end in spans]
            if self.vocabulary:
                document.text, document.relations = limit_vocabulary(document.text, frequent), None
                spans = paragraph_spans(document.text)
            document.paragraphs = Spans()
            for start, end in compress(spans, is_paragraph):
                document.paragraphs.add(start, end)
            yield document


def read_gold(
    folder: Path,
    ids: Collection[str] | None = None,
    on_bad: OnBad = fail,
    *,
    encoding: str = "utf-8",
    skipped: Counter[str] | None = None,
) -> Iterator[Document]:
    """Yield the documents of a PDTB 2.0, PDTB 3.0 or GDTB folder, in the order of their ids.

    A document's `text` is its raw file without a byte-order mark, its `relations` those of the gold
    file; `Relation.where` is `file:line`, with the file's path below `folder`. `ids` selects
    documents. A relation with an empty connective span is kept, with no spans. An explicit relation
    without a connective is named by the text under its span. Relations that an adjudicator marked
    as rejected are left out, and counted in `skipped`. A warning names a document whose offsets do
    not fit its text, and counts explicit relations with neither connective nor span.

    Bad relations (too few fields, spans that are unreadable or outside the text) and whole
    documents (raw text missing, empty, over 16 MiB, not in `encoding`) go to `on_bad` and are left
    out; by default the first one raises `InputError`, as does a folder with another layout.
    `encoding` is that of the raw and gold files; some copies of the Wall Street Journal are in
    `latin-1`.
    """
    folder = Path(folder)
    texts = _files_by_document(folder, "raw")
    unnamed, misfits = 0, list[str]()
    for name, path in _files_by_document(folder, _relations_folder(folder)).items():
        if ids is not None and name not in ids:
            continue
        # Read the gold file and the raw text that its offsets fit best.
        rows, relations = [], []
        try:
            where = str(folder / "raw" / path.parent.name / name)
            expect(name in texts, f"no raw text: it is missing for {str(path)!r}", where)
            for row in parse_rows(_read_text(path, encoding), str(path), skipped):
                if isinstance(row, BadRecord):
                    on_bad(row)
                else:
                    rows.append(row)
            raw = texts[name]
            text, offset, fits = _best_form(_read_text(raw, encoding), rows)
            expect(text.strip(), "no text: the raw file has none", str(raw))
        except Refused as refusal:
            on_bad(refusal.record(path))
            continue
        if not fits:
            misfits.append(str(path))
        # Turn rows into relations: offsets are shifted to those of the text.
        for row in rows:
            spans = (*row.connective_spans, *row.arg1_spans, *row.arg2_spans)
            if bad_span := next((f"{a}..{b}" for a, b in spans if b - offset > len(text)), ""):
                reason = f"a span lies outside of the text: {bad_span}, which has {len(text)}"
                on_bad(BadRecord(row.where, f"{reason} characters ({raw})", bad_span))
                continue
            connective_spans = _shift_spans(row.connective_spans, offset)
            arg1, arg2 = _shift_spans(row.arg1_spans, offset), _shift_spans(row.arg2_spans, offset)
            connective = row.connective
            if row.kind == "Explicit" and not connective:
                connective = _connective_at(text, connective_spans)
                unnamed += not connective
            # No path of this machine goes into documents.
            where = row.where.removeprefix(f"{folder}/")
            relations.append(
                Relation(row.kind, connective, connective_spans, arg1, arg2, row.senses, where)
            )
        yield Document(id=name, text=text, source=f"pdtb:{folder.name}", relations=relations)
    if unnamed:
        count = amount(unnamed, "explicit relation")
        log.warning("%s: %s without a connective and without a span of whole words", folder, count)
    if misfits:
        count = amount(len(misfits), "document")
        problem = "most explicit connectives are not at their offsets: these count another text"
        log.warning("%s: in %s, such as %s, %s", folder, count, misfits[0], problem)


def _relations_folder(folder: Path) -> str:
    """Return the name of the folder of relations: `ann` if only that exists, else `gold`."""
    return "ann" if (folder / "ann").is_dir() and not (folder / "gold").is_dir() else "gold"


def _shift_spans(spans: tuple[Span, ...], offset: int) -> tuple[Span, ...]:
    """Return the spans moved to the left by `offset` characters, without empty spans."""
    shifted = ((max(0, start - offset), max(0, end - offset)) for start, end in spans)
    return tuple((start, end) for start, end in shifted if start < end)


def _connective_at(text: str, spans: tuple[Span, ...]) -> str:
    """Return the connective at `spans` as PDTB writes it: `if then` for "If ... then". It is empty
    if a span cuts a word: then the offsets are of another text."""
    if any(_cuts_word(text, *span) for span in spans):
        return ""
    pieces = (text[start:end].strip(_EDGES) for start, end in spans)
    return " ".join(" ".join(pieces).lower().split())


def _cuts_word(text: str, start: int, end: int) -> bool:
    """Whether the span from `start` to `end` begins or ends inside a word."""
    return bool((start and _INSIDE.match(text, start - 1)) or _INSIDE.match(text, end - 1))


def _files_by_document(folder: Path, part: str) -> dict[str, Path]:
    """Return the files of `folder/part/*/` by document id, sorted by id. Raises `InputError` if
    there is no file, or two of one document."""
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


def _read_text(path: Path, encoding: str) -> str:
    """Return the text of a file with unchanged line ends: offsets count them. Raises `Refused` for
    a file over `SIZE_LIMIT` and for a byte that is not in `encoding`."""
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


def _best_form(text: str, rows: list[Relation]) -> tuple[str, int, bool]:
    """Return the form of `text` that the rows' offsets fit best, their shift, and whether they fit.

    Releases differ in what their offsets count: a line end as one character or two (`\\r\\n`), a
    byte-order mark at the start (a shift of 1) or none (0), and byte-order marks inside a text,
    where files were joined. The file may have lost such characters since. Each form is tried with
    each shift; the first one with the fewest misfits (`_count_misfits`) is returned. The offsets
    fit if at least half of the explicit connectives are at their spans.
    """
    unix = text.replace("\r\n", "\n")
    forms = dict.fromkeys((unix, text, unix.replace("\n", "\r\n")))  # an ordered set
    if _BOM in text:
        forms |= dict.fromkeys([form.replace(_BOM, "") for form in forms])
    best: tuple[str, int] = unix, 0
    fewest = sum(_count_misfits(unix, 0, row) for row in rows)
    for offset, form in product((0, 1), forms):
        if fewest and (count := sum(_count_misfits(form, offset, row) for row in rows)) < fewest:
            best, fewest = (form, offset), count
    explicit = [row for row in rows if row.kind == "Explicit"]
    connectives = [replace(row, arg1_spans=(), arg2_spans=()) for row in explicit]
    misfits = sum(_count_misfits(*best, row) > 0 for row in connectives)
    return *best, 2 * misfits <= len(connectives)


def _count_misfits(text: str, offset: int, row: Relation) -> int:
    """Count the parts of a relation, connective and arguments, that are not at their offsets.

    A part is not there if a span of it cuts a word, has white space at its edges or ends behind
    the text. An explicit connective counts once more if its spans hold none of its words.
    """
    count = 0
    for part in (row.connective_spans, row.arg1_spans, row.arg2_spans):
        for start, end in _shift_spans(part, offset) if offset else part:
            piece = text[start:end]
            if end > len(text) or piece != piece.strip() or _cuts_word(text, start, end):
                count += 1
                break
    if row.kind == "Explicit" and row.connective and row.connective_spans:
        spans = _shift_spans(row.connective_spans, offset)
        words = " ".join(text[start:end] for start, end in spans).lower()
        count += not any(word in words for word in row.connective.split())
    return count


def parse_rows(
    text: str, name: str, skipped: Counter[str] | None = None
) -> Iterator[Relation | BadRecord]:
    """Yield the relations in `text`, a gold file; its content determines the format.

    Spans are in the offsets of the raw file, not yet checked. `name` is the file's path for
    `file:line`. An unreadable relation becomes a `BadRecord`; one that an adjudicator rejected is
    counted in `skipped`.
    """
    lines = [line.strip() for line in text.split("\n")]
    in_blocks = any(map(_HEADING.fullmatch, lines))
    single_lines = ((number, [line]) for number, line in enumerate(lines, 1) if line)
    for number, block in _relation_blocks(lines) if in_blocks else single_lines:
        where = f"{name}:{number}"
        if not in_blocks and _is_rejected(block[0]):
            if skipped is not None:
                skipped["relation marked as rejected"] += 1
            continue
        try:
            columns = _columns_of_block(block) if in_blocks else _columns_of_line(block[0])
            kind, spans, arg1, arg2, connective, senses = columns
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
            yield refusal.record(where, block[0])


def parse_spans(value: str) -> tuple[Span, ...]:
    """Return the spans of a field such as `3..9;12..20`, sorted, without empty ones (`5..5`).

    Raises `Refused` for a part that is not `START..END`, and for an end before its start.
    """
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


_Columns = tuple[str, str, str, str, str, list[str]]
"""Kind, spans of connective, arg1 and arg2, connective, and senses, as a file has them."""


def _is_rejected(line: str) -> bool:
    """Whether an adjudicator marked the relation of a line as rejected (PDTB 3.0 only)."""
    fields = line.split("|")
    marked = any(field.strip().lower() == REJECTED for field in fields[_ADJUDICATION:])
    return marked and _COLUMNS.get(len(fields)) is _PDTB3


def _columns_of_line(line: str) -> _Columns:
    """Return the columns of a line whose fields `|` separates; `Refused` for a bad number."""
    fields = line.split("|")
    reason = f"wrong number of fields: {len(fields)} separated by '|'"
    expect(
        len(fields) in _COLUMNS, f"{reason}, expected 34 (PDTB 3, GDTB; 27 to 35) or 48 (PDTB 2)"
    )
    parts = ([fields[column] for column in columns] for columns in _COLUMNS[len(fields)])
    (kind, spans, arg1, arg2), connectives, senses = parts
    return kind.strip(), spans, arg1, arg2, next(filter(str.strip, connectives), ""), senses


def _relation_blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each relation, from its heading to the next rule of underscores. Before
    them comes the number of the heading's line."""
    block: list[str] = []
    first = 0
    closing_rule = "_" * 20
    for number, line in enumerate([*lines, closing_rule], 1):
        heading = _HEADING.fullmatch(line)
        starts = heading is not None and not re.fullmatch(r"(?:Arg|Sup)\d", heading[1])
        if block and (starts or _RULE.fullmatch(line)):
            yield first, block
            block = []
        if starts:
            first, block = number, [line]
        elif block:
            block.append(line)


def _columns_of_block(block: list[str]) -> _Columns:
    """Return the columns of a relation in a `.pdtb` file; `Refused` if an argument is missing.
    `block` are its lines, in sections under a `____Heading____`; quoted text is left out."""
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
    for argument in ("Arg1", "Arg2"):
        expect(sections.get(argument), f"{kind} relation without its ____{argument}____ section")
    head = sections[kind]
    # The first of the features is the attribution, maybe with its span and Gorn address behind it.
    # Then come the connective (its head, or the one inferred) and the senses.
    features: list[str] = []
    if _FEATURES in head:
        features = [line for line in head[head.index(_FEATURES) + 2 :] if line]
    if features and _SPAN.match(features[0]):
        features = features[2:]
    rows = [line.split(",") for line in features]
    has_connective = kind in ("Explicit", "Implicit")
    connective = rows[0][0] if has_connective and rows else ""
    senses = [sense for row in rows for sense in (row[1:] if has_connective else row)]
    spans = head[0] if kind in ("Explicit", "AltLex", "AltLexC") and head else ""
    return kind, spans, sections["Arg1"][0], sections["Arg2"][0], connective, senses
