"""`superglue:` RTE, COPA and ReCoRD in SuperGLUE's own JSON Lines (Wang et al. 2019).

`FOLDER/TASK/SPLIT.jsonl`, as the benchmark's archives unpack; rows of the Hub's version
(`aps/super_glue`) are understood too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from corpora.document import Document
from corpora.errors import InputError
from corpora.readers import jsonl
from corpora.readers.base import Reader
from corpora.readers.layouts import as_document, typed
from corpora.readers.records import Place
from corpora.readers.source import OnBad, Refused, Source, check_unicode, rows_of

SPLIT_NAMES = {
    "train": "train",
    **dict.fromkeys(("val", "valid", "validation", "dev"), "validation"),
    "test": "test",
}
PLACEHOLDER = "@placeholder"

Row = dict[str, Any]


class Part(NamedTuple):
    """A task of SuperGLUE and one of its splits."""

    task: str
    split: str


class SuperGlue(Reader):
    """RTE, COPA and ReCoRD of SuperGLUE."""

    name = "superglue"
    suffixes = jsonl.SUFFIXES
    paper = "Wang et al. 2019"

    config: Literal["rte", "copa", "record"] | None = None
    """The task, where the files' names do not tell."""
    split: Literal["train", "val", "valid", "validation", "dev", "test"] | None = None
    """The split, where the files' names do not tell."""

    def read(self, source: Source) -> Iterator[Document]:
        """The premises and passages, a document each; queries of one passage share its document."""
        for path in source.files:
            task, split = self.part_of(path)
            last = ""
            for where, row in rows(task, jsonl.records(path), source.refuse):
                if where == last:
                    continue
                last = where
                name = f"{task}/{split}/{row['id'].partition('-')[0]}"
                text = row["passage" if task == "record" else "premise"]
                with source.refusing(where):
                    yield as_document({"text": text}, source, name)

    def part_of(self, path: Path) -> Part:
        """Task and split of a file, by the options or by its name and folder (`RTE/val.jsonl`).

        Raises `InputError` if neither tells.
        """
        words = path.name.lower().replace(".", "/").replace("_", "/").split("/")
        words.append(path.parent.name.lower())
        task: str = self.config or next((word for word in words if word in TASKS), "")
        split: str = self.split or next((word for word in words if word in SPLIT_NAMES), "")
        if not task or not split:
            raise InputError(
                "its name does not say which task and split it is",
                where=str(path),
                hint="name it TASK/SPLIT.jsonl (RTE/val.jsonl), or set "
                'config = "rte", split = "train"',
            )
        return Part(task, SPLIT_NAMES[split])


def rows(task: str, records: Iterable[Place], on_bad: OnBad | None) -> Iterator[tuple[str, Row]]:
    """The examples of `rte`, `copa` or `record`, each with its place.

    `label` of RTE is 0 (entailment) or 1, of COPA 0 (the first choice) or 1, -1 where it is
    hidden. A passage of ReCoRD gives a row for each of its queries, `answers` empty where hidden.
    A bad record goes to `on_bad`; without it the first one raises `InputError`.
    """

    def build(record: Mapping[str, Any], where: str) -> Iterator[tuple[str, Row]]:
        for row in TASKS[task](record):
            yield where, row

    return rows_of(records, build, on_bad)


def _rte(record: Mapping[str, Any]) -> list[Row]:
    names = {"entailment": 0, "not_entailment": 1}
    texts = {name: _text(record, name) for name in ("premise", "hypothesis")}
    return [{"id": _id(record), **texts, "label": _label(record, names)}]


def _copa(record: Mapping[str, Any]) -> list[Row]:
    texts = {name: _text(record, name) for name in ("premise", "question", "choice1", "choice2")}
    if texts["question"] not in ("cause", "effect"):
        raise Refused(f"no question: {texts['question'][:40]!r}, expected cause or effect")
    return [{"id": _id(record), **texts, "label": _label(record, {})}]


def _record(record: Mapping[str, Any]) -> list[Row]:
    if isinstance(record.get("passage"), str):
        texts = {name: _text(record, name) for name in ("passage", "query")}
        lists = {name: _distinct(_list(record, name)) for name in ("entities", "answers")}
        return [_with_placeholder({"id": _id(record), **texts, **lists})]
    passage = record.get("passage")
    if not isinstance(passage, Mapping):
        raise Refused(f"wrong type: field 'passage' is {typed(passage)}, expected an object")
    text = _text(passage, "text")
    entities = _distinct([_span(text, span) for span in _list(passage, "entities")])
    rows: list[Row] = []
    for query in _list(record, "qas"):
        if not isinstance(query, Mapping):
            raise Refused(f"wrong type: 'qas' holds {typed(query)}, expected objects")
        answers = [_text(a, "text") if isinstance(a, Mapping) else a for a in _answers(query)]
        row = {"id": f"{_id(record)}-{_id(query)}", "passage": text, "query": _text(query, "query")}
        rows.append(_with_placeholder({**row, "entities": entities, "answers": _distinct(answers)}))
    return rows


TASKS: dict[str, Callable[[Mapping[str, Any]], list[Row]]] = {
    "rte": _rte,
    "copa": _copa,
    "record": _record,
}


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise Refused(f"wrong type: field {name!r} is {typed(value)}, expected a string")
    if not value.strip():
        raise Refused(f"no text: {name!r} is empty")
    check_unicode(value)
    return value.strip()


def _label(record: Mapping[str, Any], names: Mapping[str, int]) -> int:
    value = record.get("label")
    if value is None or value == -1:
        return -1
    label = names.get(value, value) if isinstance(value, str) else value
    if isinstance(label, bool) or label not in (0, 1):
        raise Refused(
            f"no label: {str(value)[:40]!r}, expected one of {', '.join(names) or '0, 1'}"
        )
    return int(label)


def _id(record: Mapping[str, Any]) -> str:
    value = record.get("idx")
    if isinstance(value, Mapping):  # the Hub's ReCoRD: passage and query
        return "-".join(str(part)[:40] for part in value.values())
    if isinstance(value, int | str) and not isinstance(value, bool):
        return str(value)[:80]
    raise Refused(f"no id: field 'idx' is {typed(value)}, expected a number")


def _list(record: Mapping[str, Any], name: str) -> list[Any]:
    value = record.get(name)
    if not isinstance(value, list):
        raise Refused(f"wrong type: field {name!r} is {typed(value)}, expected a list")
    return value


def _answers(query: Mapping[str, Any]) -> list[Any]:
    return _list(query, "answers") if query.get("answers") is not None else []


def _span(text: str, span: Any) -> str:
    """The entity at `start` to `end`; ReCoRD counts the last character in."""
    start, end = (span.get(k) for k in ("start", "end")) if isinstance(span, Mapping) else (0, -1)
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start <= end < len(text):
        raise Refused(f"bad span: {str(span)[:60]} in a passage of {len(text)} characters")
    return text[start : end + 1]


def _distinct(values: list[Any]) -> list[str]:
    if not all(isinstance(value, str) for value in values):
        raise Refused("wrong type: entities and answers are expected to be strings")
    check_unicode("".join(values))
    return list(dict.fromkeys(values))


def _with_placeholder(row: Row) -> Row:
    if PLACEHOLDER not in row["query"]:
        raise Refused(f"no {PLACEHOLDER}: {row['query'][:60]!r} leaves nothing out")
    return row
