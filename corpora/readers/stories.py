"""Stories of five sentences (Mostafazadeh et al. 2016): `rocstories:` and `storycloze:`, in CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from corpora.document import Document
from corpora.errors import BadRecord, InputError
from corpora.readers.files import expect, read_lines
from corpora.readers.records import as_document
from corpora.readers.source import Encoded, OnBad, Source, fail, rows_of

Row = dict[str, str]

_SENTENCES = tuple(f"sentence{i}" for i in range(1, 6))
_CONTEXT = tuple(f"InputSentence{i}" for i in range(1, 5))
_QUIZ = ("RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2")
_ANSWER = "AnswerRightEnding"


class RocStories(Encoded):
    """ROCStories, CSV."""

    name = "rocstories"
    suffixes = (".csv", ".tsv")
    own_licence = "research-only"

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """A document for each story: its sentences are the sentence layer, its title the title."""

        def build(row: Row, where: str) -> Iterator[Document]:
            story = {"title": row["storytitle"], "sentences": _texts(row, _SENTENCES)}
            yield as_document(story, source, row["storyid"].strip())

        columns = ("storyid", "storytitle", *_SENTENCES)
        hint = "a file of the Story Cloze Test is read with storycloze:"
        rows = table_rows(path, columns, encoding=self.encoding, hint=hint)
        yield from rows_of(rows, build, source.refuse)


@dataclass(frozen=True, slots=True)
class ClozeStory:
    """A story without its end, and its two endings."""

    id: str
    context: tuple[str, ...]
    right: str
    wrong: str
    where: str


class StoryCloze(Encoded):
    """The Story Cloze Test, CSV: four sentences, two endings."""

    name = "storycloze"
    suffixes = (".csv", ".tsv")
    own_licence = "research-only"

    ending: Literal["right", "wrong", "both"] = "right"
    """The endings of the documents; with both, the ids are `ID/right` and `ID/wrong`."""

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """A document for each story, or two in the group of the story."""
        for story in read_storycloze(path, source.refuse, encoding=self.encoding):
            ends = {f"{story.id}/right": story.right, f"{story.id}/wrong": story.wrong}
            if self.ending != "both":
                ends = {story.id: ends[f"{story.id}/{self.ending}"]}
            with source.refusing(story.where):
                for id, end in ends.items():
                    record = {"group": story.id, "sentences": [*story.context, end]}
                    yield as_document(record, source, id)


def read_storycloze(
    path: Path, on_bad: OnBad = fail, *, encoding: str = "utf-8"
) -> Iterator[ClozeStory]:
    """The stories of a Story Cloze file with both endings, for the pairwise test set.

    A bad row goes to `on_bad`; by default the first one raises `InputError`.
    """

    def build(row: Row, where: str) -> Iterator[ClozeStory]:
        answer = row[_ANSWER].strip()
        reason = f"no answer: {_ANSWER} is {answer[:20]!r}, expected 1 or 2"
        expect(answer in ("1", "2"), reason)
        right, wrong = _texts(row, _QUIZ)[:: 1 if answer == "1" else -1]
        id, context = row["InputStoryid"].strip(), tuple(_texts(row, _CONTEXT))
        yield ClozeStory(id, context, right, wrong, where)

    columns = ("InputStoryid", *_CONTEXT, *_QUIZ, _ANSWER)
    hint = "the test of 2018 hides its answers; a file of ROCStories is read with rocstories:"
    return rows_of(table_rows(path, columns, encoding=encoding, hint=hint), build, on_bad)


def _texts(row: Row, columns: Sequence[str]) -> list[str]:
    """The texts in `columns`; `Refused` if one is empty."""
    for column in columns:
        expect(row[column].strip(), f"no text: {column} is empty")
    return [row[column].strip() for column in columns]


def table_rows(
    path: Path,
    columns: Sequence[str],
    *,
    encoding: str = "utf-8",
    hint: str = "",
    quoted: bool = True,
    header: Sequence[str] = (),
) -> Iterator[tuple[str, Row | BadRecord]]:
    """The rows of a CSV file, or of a TSV file (its header has tabs), each with `file:line`.

    A record is one line: a quote that is not closed on its line invalidates only that record.
    Without `quoted`, fields are separated by tabs and a quote is text. Blank lines are left out.
    `header` is for a file without one. Raises `InputError` with `hint` if the header lacks one of
    `columns`.
    """
    delimiter = "," if quoted else "\t"
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    for number, line in enumerate(read_lines(path, encoding), 1):
        where = f"{path}:{number}"
        if isinstance(line, BadRecord):
            if not header:
                raise InputError(line.reason, where=where, hint=hint)
            yield where, line
            continue
        if not line.strip():
            continue
        delimiter = delimiter if header or "\t" not in line else "\t"
        reason, cells = "", list[str]()
        try:
            reader = csv.reader([line], delimiter=delimiter, quoting=quoting, strict=True)
            cells = next(reader)
        except csv.Error as error:
            reason = f"not CSV: {error}"
        if not header:
            header = [cell.strip() for cell in cells]
            if missing := [column for column in columns if column not in header]:
                raise InputError(
                    f"no column {', '.join(missing)} in the header {line[:100]!r}",
                    where=where,
                    hint=hint or f"the first line must name the columns {', '.join(columns)}",
                )
            continue
        if not reason and len(cells) != len(header):
            reason = f"wrong number of fields: {len(cells)}, the header has {len(header)}"
        row = dict(zip(header, cells, strict=False))
        yield where, BadRecord(where, reason, line[:200]) if reason else row
