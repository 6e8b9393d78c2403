"""`superglue:` RTE, COPA and ReCoRD in SuperGLUE's own JSON Lines (Wang et al. 2019).

`FOLDER/TASK/SPLIT.jsonl`, as in the benchmark's archives; rows of the Hub's version
(`aps/super_glue`) are read too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from corpora.document import Document
from corpora.errors import InputError
from corpora.readers.fields import Fields, Filled, Record, Strings, typed
from corpora.readers.files import expect, taken
from corpora.readers.records import Place, as_document
from corpora.readers.rows import JSON_LINES, json_rows
from corpora.readers.source import OnBad, Reader, Source, fail, refusing
from corpora.splits import split_of

HIGHLIGHT = "@highlight"
PLACEHOLDER = "@placeholder"

Row = dict[str, Any]


class SuperGlue(Reader):
    """RTE, COPA and ReCoRD of SuperGLUE."""

    name = "superglue"
    suffixes = JSON_LINES
    paper = "Wang et al. 2019"

    config: Literal["rte", "copa", "record"] | None = None
    """The task, if the files' names do not tell."""
    split: Literal["train", "val", "valid", "validation", "dev", "test"] | None = None
    """The split, if the files' names do not tell."""

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """The premises and passages as documents; queries of one passage share its document."""
        task, split = self.part_of(path)
        record = task == "record"

        def document(example: tuple[str, Row]) -> tuple[str, str]:
            where, row = example  # ReCoRD numbers its queries PASSAGE-QUERY
            return (row["id"].partition("-")[0], row["passage"]) if record else (row["id"], where)

        examples = rows(task, json_rows(path), source.refuse)
        for (number, _), of_one in groupby(examples, document):
            where, row = next(of_one)
            with source.refusing(where):
                text = row["passage" if record else "premise"]
                text = text.replace(HIGHLIGHT, "\n\n")  # a point of the article's summary follows
                yield as_document({"text": text}, source, f"{task}/{split}/{number}")

    def part_of(self, path: Path) -> tuple[str, str]:
        """Task and split of a file, by the options or by its name and folder (`RTE/val.jsonl`).

        Raises `InputError` if neither tells.
        """
        place = f"{path.parent.name}/{path.name}".lower()
        task: str = self.config or next(filter(TASKS.__contains__, re.split("[/._]", place)), "")
        split = split_of(self.split or place)
        if not task or not split:
            hint = 'name it as RTE/val.jsonl, or set config = "rte", split = "train"'
            message = "its name does not say which task and split it is"
            raise InputError(message, where=str(path), hint=hint)
        return task, split


def rows(task: str, records: Iterable[Place], on_bad: OnBad = fail) -> Iterator[tuple[str, Row]]:
    """The examples of `rte`, `copa` or `record`, each with its place.

    `label` of RTE is 0 (entailment) or 1, of COPA 0 (the first choice) or 1, -1 if hidden. A
    passage of ReCoRD gives a row for each of its queries, with empty `answers` if hidden. A bad
    record goes to `on_bad`; by default the first one raises `InputError`.
    """
    for where, record in records:
        with refusing(on_bad, where, record):
            # A passage gives all of its rows or, if one is bad, none.
            for row in list(TASKS[task](taken(record))):
                yield where, row


def _id(value: Any) -> str:
    """The number of a record; the Hub's ReCoRD has those of passage and query."""
    parts = value.values() if isinstance(value, dict) else [value]
    expect({*map(type, parts)} <= {int, str}, f"no id: field 'idx' is {typed(value)}")
    return "-".join(str(part)[:80] for part in parts)


def _label(value: Any) -> Any:
    numbers = {"entailment": 0, "not_entailment": 1, None: -1}
    return numbers.get(value, value) if isinstance(value, str | None) else value


Label = Annotated[Literal[-1, 0, 1], BeforeValidator(_label)]


class _Example(Fields):
    idx: Annotated[Any, AfterValidator(_id)] = Field(default=None, validate_default=True)


class _Rte(_Example):
    premise: Filled
    hypothesis: Filled
    label: Label = -1


class _Copa(_Example):
    premise: Filled
    question: Literal["cause", "effect"]
    choice1: Filled
    choice2: Filled
    label: Label = -1


class _Span(Fields):
    start: int
    end: int


class _Passage(Fields):
    text: Filled
    entities: Annotated[list[_Span], Field(fail_fast=True)]


class _Answer(Fields):
    text: Filled


class _Query(_Example):
    query: Filled
    answers: Annotated[list[_Answer], Field(fail_fast=True)] | None = None


class _Record(_Example):
    passage: _Passage
    qas: Annotated[list[_Query], Field(fail_fast=True)]


class _HubRecord(_Example):
    passage: Filled
    query: Filled
    entities: Strings
    answers: Strings


def _example(record: Record, kind: type[_Rte | _Copa]) -> Iterator[Row]:
    fields = kind.of(record).model_dump()
    yield {"id": fields.pop("idx"), **fields}


def _record(record: Record) -> Iterator[Row]:
    """Both forms: the Hub's rows of one query, and the benchmark's passages with several."""
    if isinstance(record.get("passage"), str):
        row = _HubRecord.of(record)
        yield _query(row.idx, row.passage, row.query, row.entities, row.answers)
        return
    passage = _Record.of(record)
    text = passage.passage.text
    # ReCoRD counts the last character of an entity in.
    bounds = [(span.start, span.end + 1) for span in passage.passage.entities]
    within = all(0 <= start < end <= len(text) for start, end in bounds)
    expect(within, f"bad span: an entity is outside of its passage of {len(text)} characters")
    entities = [text[start:end] for start, end in bounds]
    for one in passage.qas:
        answers = [answer.text for answer in one.answers or ()]
        yield _query(f"{passage.idx}-{one.idx}", text, one.query, entities, answers)


def _query(id: str, passage: str, query: str, entities: list[str], answers: list[str]) -> Row:
    expect(PLACEHOLDER in query, f"no {PLACEHOLDER}: {query[:60]!r} leaves nothing out")
    lists = {"entities": list(dict.fromkeys(entities)), "answers": list(dict.fromkeys(answers))}
    return {"id": id, "passage": passage, "query": query, **lists}


TASKS: dict[str, Callable[[Record], Iterator[Row]]] = {
    "rte": partial(_example, kind=_Rte),
    "copa": partial(_example, kind=_Copa),
    "record": _record,
}
