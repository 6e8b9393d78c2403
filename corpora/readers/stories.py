"""Stories of five sentences (Mostafazadeh et al. 2016): `rocstories:` and `storycloze:`, in CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from corpora.document import Document
from corpora.readers.coherence import CoherencePair
from corpora.readers.files import expect, good_record
from corpora.readers.records import as_document
from corpora.readers.rows import table_rows
from corpora.readers.source import Encoded, OnBad, Source, fail, refusing

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
        """Yield a document for each story, with its title, and its sentences as a layer."""
        columns = ("storyid", "storytitle", *_SENTENCES)
        hint = "a file of the Story Cloze Test is read with storycloze:"
        for where, record in table_rows(path, columns, encoding=self.encoding, hint=hint):
            with source.refusing(where, record):
                row = good_record(record)
                story = {"title": row["storytitle"], "sentences": _filled_texts(row, _SENTENCES)}
                yield as_document(story, source, row["storyid"].strip())


class StoryCloze(Encoded):
    """The Story Cloze Test, CSV: four sentences, two endings."""

    name = "storycloze"
    suffixes = (".csv", ".tsv")
    own_licence = "research-only"

    ending: Literal["right", "wrong", "both"] = "right"
    """The endings of the documents; with both, the ids are `ID/right` and `ID/wrong`."""

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield a document for each story, or with both endings two in the group of the story."""
        for story in read_storycloze(path, source.refuse, encoding=self.encoding):
            versions = {f"{story.id}/right": story.pos, f"{story.id}/wrong": story.neg}
            if self.ending != "both":
                versions = {story.id: versions[f"{story.id}/{self.ending}"]}
            with source.refusing(story.where):
                for id, sentences in versions.items():
                    record = {"group": story.id, "sentences": list(sentences)}
                    yield as_document(record, source, id)


def read_storycloze(
    path: Path, on_bad: OnBad = fail, *, encoding: str = "utf-8"
) -> Iterator[CoherencePair]:
    """Yield the stories of a Story Cloze file with both endings, as pairs of the pairwise test set.

    `pos` has the right ending, `neg` the wrong one. A bad row goes to `on_bad`; by default the
    first one raises `InputError`.
    """
    columns = ("InputStoryid", *_CONTEXT, *_QUIZ, _ANSWER)
    hint = "the test of 2018 hides its answers; a file of ROCStories is read with rocstories:"
    for where, record in table_rows(path, columns, encoding=encoding, hint=hint):
        with refusing(on_bad, where, record):
            row = good_record(record)
            answer = row[_ANSWER].strip()
            reason = f"no answer: {_ANSWER} is {answer[:20]!r}, expected 1 or 2"
            expect(answer in ("1", "2"), reason)
            right, wrong = _filled_texts(row, _QUIZ if answer == "1" else _QUIZ[::-1])
            id, context = row["InputStoryid"].strip(), _filled_texts(row, _CONTEXT)
            yield CoherencePair(id, id, (*context, right), (*context, wrong), where)


def _filled_texts(row: dict[str, str], columns: Sequence[str]) -> list[str]:
    """Return the texts in `columns` of a row; `Refused` if one is empty."""
    for column in columns:
        expect(row[column].strip(), f"no text: {column} is empty")
    return [row[column].strip() for column in columns]
