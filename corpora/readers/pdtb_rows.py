"""The three file formats of the Penn Discourse Treebank, read into the same rows.

- PDTB 3.0 and GDTB: one relation a line, 34 fields separated by `|`.
- PDTB 2.0, pipe form (the distribution's `convert.pl`, the CoNLL tools): 48 fields.
- PDTB 2.0, `.pdtb`: blocks between lines of underscores, headed by `____Explicit____` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from corpora.document import Relation, Span
from corpora.errors import BadRecord

KINDS = ("Explicit", "Implicit", "AltLex", "AltLexC", "Hypophora", "EntRel", "NoRel")


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where a pipe format keeps what; the connective is the first of its columns not empty."""

    connective_spans: int
    arg1: int
    arg2: int
    connective: tuple[int, ...]
    senses: tuple[int, ...]


_COLUMNS = {
    34: _Columns(1, 14, 20, connective=(7,), senses=(8, 9, 11, 12)),
    # 8 is the connective's head, 9 the annotators' choice for Implicit, 5 the text (AltLex).
    48: _Columns(3, 22, 32, connective=(8, 9, 5), senses=(11, 12, 13, 14)),
}
_SPAN = re.compile(r"(\d+)\.\.(\d+)")
_RULE = re.compile(r"_{20,}")
_HEADING = re.compile(r"____([A-Za-z0-9]+)____")
_TEXT, _TEXT_END, _FEATURES = "#### Text ####", "##############", "#### Features ####"


class _Unreadable(ValueError):
    """Reason and value of a relation that cannot be read."""


def parse_rows(text: str, name: str) -> Iterator[Relation | BadRecord]:
    """The relations of one gold file, whose format its content tells.

    Spans are in the offsets of the raw file, not yet checked. `name` is the file's path for
    `file:line`. What cannot be read comes as a `BadRecord`.
    """
    lines = text.split("\n")
    in_blocks = any(_HEADING.fullmatch(line.strip()) for line in lines)
    rows = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    pipes = ((number, line.rstrip("\r").split("|")) for number, line in rows)
    parse = _block_row if in_blocks else _pipe_row
    for number, part in _blocks(lines) if in_blocks else pipes:
        where = f"{name}:{number}"
        try:
            yield parse(part, where)
        except _Unreadable as error:
            yield BadRecord(where, *error.args)


def parse_spans(value: str) -> tuple[Span, ...]:
    """`3..9;12..20` as sorted spans; an empty field and empty spans (`5..5`) give none."""
    spans = []
    for part in filter(None, (part.strip() for part in value.split(";"))):
        found = _SPAN.fullmatch(part)
        if not found:
            raise _Unreadable("a span is not START..END", part)
        start, end = int(found[1]), int(found[2])
        if start > end:
            raise _Unreadable("a span ends before it starts", part)
        if start < end:
            spans.append((start, end))
    return tuple(sorted(spans))


def _pipe_row(fields: list[str], where: str) -> Relation:
    columns = _COLUMNS.get(len(fields))
    if columns is None:
        expected = "expected 34 (PDTB 3, GDTB) or 48 (PDTB 2)"
        raise _Unreadable(
            f"{len(fields)} fields separated by '|', {expected}", "|".join(fields)[:120]
        )
    return Relation(
        _known_kind(fields[0].strip()),
        _connective(next((fields[c] for c in columns.connective if fields[c].strip()), "")),
        parse_spans(fields[columns.connective_spans]),
        parse_spans(fields[columns.arg1]),
        parse_spans(fields[columns.arg2]),
        tuple(filter(None, (fields[column].strip() for column in columns.senses))),
        where,
    )


def _known_kind(kind: str) -> str:
    if kind not in KINDS:
        raise _Unreadable(f"unknown relation type, expected one of {', '.join(KINDS)}", kind[:40])
    return kind


def _connective(value: str) -> str:
    folded = " ".join(value.lower().split())
    return "" if folded == "_" else folded


def _blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines of each relation, from its heading to the next rule, with the heading's number."""
    block: list[str] = []
    first = 0
    for number, line in enumerate(lines, 1):
        line = line.strip()
        heading = _HEADING.fullmatch(line)
        starts = heading is not None and not re.fullmatch(r"(?:Arg|Sup)\d", heading[1])
        if block and (starts or _RULE.fullmatch(line)):
            yield first, block
            block = []
        if starts:
            first, block = number, [line]
        elif block:
            block.append(line)
    if block:
        yield first, block


def _block_row(block: list[str], where: str) -> Relation:
    kind = _known_kind(block[0].strip("_"))
    sections = _sections(block)
    for part in ("Arg1", "Arg2"):
        if not sections.get(part):
            raise _Unreadable(f"{kind} relation without its ____{part}____ section", block[0])
    head = sections[kind]
    connective, senses = _features(kind, head)
    marked = kind in ("Explicit", "AltLex", "AltLexC")
    return Relation(
        kind,
        _connective(connective),
        parse_spans(head[0]) if marked and head else (),
        parse_spans(sections["Arg1"][0]),
        parse_spans(sections["Arg2"][0]),
        senses,
        where,
    )


def _sections(block: list[str]) -> dict[str, list[str]]:
    """The lines under each `____Heading____` of a relation, the quoted text left out."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    quoting = False
    for line in block:
        if quoting or line == _TEXT:
            quoting = line != _TEXT_END
        elif heading := _HEADING.fullmatch(line):
            lines = sections.setdefault(heading[1], [])
        else:
            # A blank line stays: where the spans belong it is a connective without any.
            lines.append(line)
    return sections


def _features(kind: str, head: list[str]) -> tuple[str, tuple[str, ...]]:
    """The connective (its head, or the one inferred) and the senses of a `.pdtb` relation."""
    if _FEATURES not in head:
        return "", ()
    # First the attribution; its own span and Gorn address follow where it has any.
    rest = [line for line in head[head.index(_FEATURES) + 2 :] if line]
    if rest and _SPAN.match(rest[0]):
        rest = rest[2:]
    rows = [[part.strip() for part in line.split(",")] for line in rest]
    if kind in ("Explicit", "Implicit"):
        named = rows[0][0] if rows else ""
        return named, tuple(sense for row in rows for sense in row[1:] if sense)
    return "", tuple(sense for row in rows for sense in row if sense)
