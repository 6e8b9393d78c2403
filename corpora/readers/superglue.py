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
from corpora.readers.fields import Fields, Filled, Record, Strings, json_type
from corpora.readers.files import expect, good_record
from corpora.readers.records import PlacedRecord, as_document
from corpora.readers.rows import JSON_LINES, json_rows
from corpora.readers.source import OnBad, Reader, Source, fail, refusing
from corpora.splits import split_of

HIGHLIGHT = "@highlight"
PLACEHOLDER = "@placeholder"

SuperGlueRow = dict[str, Any]


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
        """Yield the premises and passages as documents, a passage once for all of its queries."""
        task, split = self.task_and_split(path)
        is_record = task == "record"

        def document_key(placed_row: tuple[str, SuperGlueRow]) -> tuple[str, str]:
            """Return the number of a row's document, and a value that no other document has."""
            where, row = placed_row
            if is_record:  # it numbers its queries PASSAGE-QUERY
                return row["id"].partition("-")[0], row["passage"]
            return row["id"], where

        placed_rows = example_rows(task, json_rows(path), source.refuse)
        for (number, _), rows_of_document in groupby(placed_rows, document_key):
            where, row = next(rows_of_document)
            with source.refusing(where):
                text = row["passage" if is_record else "premise"]
                text = text.replace(HIGHLIGHT, "\n\n")  # a point of the article's summary follows
                yield as_document({"text": text}, source, f"{task}/{split}/{number}")

    def task_and_split(self, path: Path) -> tuple[str, str]:
        """Return the task and split of a file, by the options or by its path (`RTE/val.jsonl`).

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


def example_rows(
    task: str, records: Iterable[PlacedRecord], on_bad: OnBad = fail
) -> Iterator[tuple[str, SuperGlueRow]]:
    """Yield the rows of the task `rte`, `copa` or `record`, each with its place, `file:line`.

    `label` of RTE is 0 (entailment) or 1, of COPA 0 (the first choice) or 1, -1 if hidden. A
    passage of ReCoRD gives a row for each of its queries, with empty `answers` if hidden. A bad
    record goes to `on_bad`; by default the first one raises `InputError`.
    """
    for where, record in records:
        with refusing(on_bad, where, record):
            # A passage gives all of its rows or, if one is bad, none.
            for row in list(TASKS[task](good_record(record))):
                yield where, row


def _record_id(value: Any) -> str:
    """Return the id of a record from its field `idx`, a number or text. In the Hub's ReCoRD the
    field is a table with the numbers of passage and query: `12-3`."""
    parts = value.values() if isinstance(value, dict) else [value]
    expect({*map(type, parts)} <= {int, str}, f"no id: field 'idx' is {json_type(value)}")
    return "-".join(str(part)[:80] for part in parts)


def _label_number(value: Any) -> Any:
    """Return the number of a label's name, -1 for null, any other value unchanged."""
    numbers = {"entailment": 0, "not_entailment": 1, None: -1}
    return numbers.get(value, value) if isinstance(value, str | None) else value


Label = Annotated[Literal[-1, 0, 1], BeforeValidator(_label_number)]


class _Identified(Fields):
    idx: Annotated[Any, AfterValidator(_record_id)] = Field(default=None, validate_default=True)


class _Rte(_Identified):
    premise: Filled
    hypothesis: Filled
    label: Label = -1


class _Copa(_Identified):
    """A record of COPA: which of two choices is the cause or the effect of the premise."""

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


class _Query(_Identified):
    query: Filled
    answers: Annotated[list[_Answer], Field(fail_fast=True)] | None = None


class _Record(_Identified):
    passage: _Passage
    qas: Annotated[list[_Query], Field(fail_fast=True)]


class _HubRecord(_Identified):
    """A record of ReCoRD on the Hub: a passage with one query."""

    passage: Filled
    query: Filled
    entities: Strings
    answers: Strings


def _row_as_it_is(record: Record, kind: type[_Rte | _Copa]) -> Iterator[SuperGlueRow]:
    """Yield the row of a record of RTE or COPA, which is one example."""
    fields = kind.of(record).model_dump()
    yield {"id": fields.pop("idx"), **fields}


def _rows_of_passage(record: Record) -> Iterator[SuperGlueRow]:
    """Yield a row for each query of a record of ReCoRD. The Hub's records have one query, the
    benchmark's a passage with several."""
    if isinstance(record.get("passage"), str):
        fields = _HubRecord.of(record)
        yield _query_row(fields.idx, fields.passage, fields.query, fields.entities, fields.answers)
        return
    passage = _Record.of(record)
    text = passage.passage.text
    # A span of ReCoRD ends at the entity's last character, not behind it.
    bounds = [(span.start, span.end + 1) for span in passage.passage.entities]
    within = all(0 <= start < end <= len(text) for start, end in bounds)
    expect(within, f"bad span: an entity is outside of its passage of {len(text)} characters")
    entities = [text[start:end] for start, end in bounds]
    for query in passage.qas:
        answers = [answer.text for answer in query.answers or ()]
        yield _query_row(f"{passage.idx}-{query.idx}", text, query.query, entities, answers)


def _query_row(
    id: str, passage: str, query: str, entities: list[str], answers: list[str]
) -> SuperGlueRow:
    """Return the row of a query, with its entities and answers without repetitions. Raises
    `Refused` for a query without `@placeholder`."""
    expect(PLACEHOLDER in query, f"no {PLACEHOLDER}: {query[:60]!r} leaves nothing out")
    lists = {"entities": list(dict.fromkeys(entities)), "answers": list(dict.fromkeys(answers))}
    return {"id": id, "passage": passage, "query": query, **lists}


TASKS: dict[str, Callable[[Record], Iterator[SuperGlueRow]]] = {
    "rte": partial(_row_as_it_is, kind=_Rte),
    "copa": partial(_row_as_it_is, kind=_Copa),
    "record": _rows_of_passage,
}
