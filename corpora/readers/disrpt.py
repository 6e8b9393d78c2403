"""Gold explicit relations in the files of the DISRPT shared task, as documents with relations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from corpora.document import Document, Relation, Span, Tokens
from corpora.errors import InputError
from corpora.readers import open_reader, read_documents
from corpora.readers.files import Refused, good_record
from corpora.readers.released import tagged_sentences
from corpora.readers.rows import table_rows

_COLUMNS = ("doc", "unit1_toks", "unit2_toks", "dir", "label")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
Words = tuple[int, ...]


def read_disrpt(target: str) -> Iterator[Document]:
    """Yield the documents of `.conllu` files with the connectives that their tags mark.

    Each run of words from `B-conn` on is a connective: the format does not say that "if" and "then"
    belong together. The rows of `.rels` whose `rel_type` is `explicit` give its arguments and
    senses (`orig_label`): a row belongs to the first connective in its Arg2 that has none, or else
    to one with the same units, as a further sense. Arg2 is the second unit, with `1>2` in `dir`
    the first. The words of the connective are in no argument. Raises `InputError` for a file of
    another format, and for a document whose words have no trees.
    """
    reader, source = open_reader(f"disrpt:{target}")
    tags: defaultdict[str, list[str]] = defaultdict(list)
    rows: defaultdict[str, list[tuple[str, dict[str, str]]]] = defaultdict(list)
    for path in source.files:
        try:
            if path.suffix == ".rels":
                for where, row in table_rows(path, _COLUMNS, quoted=False):
                    good = good_record(row)
                    if good.get("rel_type", "").lower() == "explicit":
                        rows[good["doc"]].append((where, good))
                continue
            for _, sentence in tagged_sentences(path, source):
                record = good_record(sentence)
                if record["kind"] == "Conn":
                    tags[record["doc"]] += record["tags"]
        except Refused as refusal:
            raise InputError(str(refusal), where=refusal.where or str(path)) from None
    for document in read_documents(reader, source):
        of_document = tags.get(document.id) or tags.get("", [])
        if document.tokens is None or len(document.tokens) != len(of_document):
            raise InputError(
                "its words have no tags of connectives"
                if document.tokens is not None
                else "its trees are broken, so that its words are not known",
                where=f"{source.target}: document {document.id!r}",
                hint="expected Conn=B-conn, Conn=I-conn or Conn=O in the last column of each word",
            )
        document.relations = _relations(document, of_document, rows.get(document.id, []))
        yield document


def _relations(
    document: Document, tags: list[str], rows: Iterable[tuple[str, dict[str, str]]]
) -> list[Relation]:
    """Return the explicit relations of a document, in the order of their connectives."""
    tokens = document.tokens
    assert tokens is not None
    marks: list[Words] = []
    for number, tag in enumerate(tags):
        if tag == "B-conn":
            marks.append((number,))
        elif tag == "I-conn" and marks and marks[-1][-1] == number - 1:
            marks[-1] += (number,)
    units: dict[Words, tuple[Words, Words]] = {}
    senses: defaultdict[Words, list[str]] = defaultdict(list)
    for where, row in rows:
        pair = _unit(row["unit1_toks"], where, tokens), _unit(row["unit2_toks"], where, tokens)
        one, two = pair[::-1] if row["dir"].strip() == "1>2" else pair
        inside = [mark for mark in marks if set(mark) <= set(two)]
        mark = next((m for m in inside if m not in units), None)
        if mark is None:
            mark = next((m for m in inside if units[m] == (one, two)), None)
        if mark is not None:
            units[mark] = one, two
            senses[mark].append(row.get("orig_label") or row["label"])
    relations = []
    for mark in marks:
        name = " ".join(tokens.form[number].lower() for number in mark)
        arg1, arg2 = (
            _spans([word for word in unit if word not in mark], tokens)
            for unit in units.get(mark, ((), ()))
        )
        spans = _spans(mark, tokens)
        relations.append(Relation("Explicit", name, spans, arg1, arg2, tuple(senses[mark])))
    return relations


def _unit(value: str, where: str, tokens: Tokens) -> Words:
    """Return the words of `42-43,52`, which count from 1. Raises `InputError` for another value."""
    words: list[int] = []
    for part in value.split(","):
        ends = _RANGE.fullmatch(part.strip())
        last = int(ends[2] or ends[1]) if ends else 0
        if not ends or not 0 < int(ends[1]) <= last <= len(tokens):
            reason = f"bad token numbers {value[:80]!r}: the document has {len(tokens):,} words"
            raise InputError(reason, where=where, hint="expected numbers such as 42-43,52-64")
        words += range(int(ends[1]) - 1, last)
    return tuple(sorted(set(words)))


def _spans(words: Iterable[int], tokens: Tokens) -> tuple[Span, ...]:
    """Return the spans of words; consecutive words are one span."""
    numbers = list(words)
    starts = [numbers[0]] if numbers else []
    ends = []
    for number, after in pairwise(numbers):
        if after != number + 1:
            ends.append(number)
            starts.append(after)
    ends += numbers[-1:]
    return tuple((tokens.start[a], tokens.end[b]) for a, b in zip(starts, ends, strict=True))
