"""`superglue:` RTE, COPA and ReCoRD in SuperGLUE's own JSON Lines (Wang et al. 2019).

`FOLDER/TASK/SPLIT.jsonl`, as in the benchmark's archives; rows of the Hub's version
(`aps/super_glue`) are read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from corpora.document import Document
from corpora.errors import InputError
from corpora.readers.files import Refused
from corpora.readers.records import Place, Record, as_document, filled, typed, value_of, wrong_type
from corpora.readers.rows import JSON_LINES, json_rows
from corpora.readers.source import OnBad, Reader, Source, check_unicode, fail, rows_of

SPLIT_NAMES = {
    "train": "train",
    **dict.fromkeys(("val", "valid", "validation", "dev"), "validation"),
    "test": "test",
}
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
        (task, split), last = self.part_of(path), ""
        for where, row in rows(task, json_rows(path), source.refuse):
            if where != last:
                last, name = where, f"{task}/{split}/{row['id'].partition('-')[0]}"
                with source.refusing(where):
                    text = row["passage" if task == "record" else "premise"]
                    yield as_document({"text": text}, source, name)

    def part_of(self, path: Path) -> tuple[str, str]:
        """Task and split of a file, by the options or by its name and folder (`RTE/val.jsonl`).

        Raises `InputError` if neither tells.
        """
        words = path.name.lower().replace(".", "/").replace("_", "/").split("/")
        words.append(path.parent.name.lower())
        task: str = self.config or next((word for word in words if word in TASKS), "")
        split: str = self.split or next((word for word in words if word in SPLIT_NAMES), "")
        if not task or not split:
            hint = (
                'name it TASK/SPLIT.jsonl (RTE/val.jsonl), or set config = "rte", split = "train"'
            )
            message = "its name does not say which task and split it is"
            raise InputError(message, where=str(path), hint=hint)
        return task, SPLIT_NAMES[split]


def rows(task: str, records: Iterable[Place], on_bad: OnBad = fail) -> Iterator[tuple[str, Row]]:
    """The examples of `rte`, `copa` or `record`, each with its place.

    `label` of RTE is 0 (entailment) or 1, of COPA 0 (the first choice) or 1, -1 if hidden. A
    passage of ReCoRD gives a row for each of its queries, with empty `answers` if hidden. A bad
    record goes to `on_bad`; by default the first one raises `InputError`.
    """
    return rows_of(records, lambda record, where: ((where, r) for r in TASKS[task](record)), on_bad)


def _rte(record: Record) -> Iterator[Row]:
    texts = {name: filled(record, name) for name in ("premise", "hypothesis")}
    label = _label(record, {"entailment": 0, "not_entailment": 1})
    yield {"id": _id(record), **texts, "label": label}


def _copa(record: Record) -> Iterator[Row]:
    texts = {name: filled(record, name) for name in ("premise", "question", "choice1", "choice2")}
    if texts["question"] not in ("cause", "effect"):
        raise Refused(f"no question: {texts['question'][:40]!r}, expected cause or effect")
    yield {"id": _id(record), **texts, "label": _label(record, {})}


def _record(record: Record) -> Iterator[Row]:
    """Both forms: the Hub's rows of one query, and the benchmark's passages with several."""
    passage, name = record.get("passage"), _id(record)
    if isinstance(passage, Mapping):
        text = filled(passage, "text")
        entities = [_entity(text, span) for span in value_of(passage, "entities", list, "a list")]
        queries = value_of(record, "qas", list, "a list")
    elif isinstance(passage, str):
        text, queries = filled(record, "passage"), [record]
        entities = value_of(record, "entities", list, "a list")
    else:
        raise wrong_type(record, "passage", "an object")
    for one in queries:
        if not isinstance(one, Mapping):
            raise Refused(f"wrong type: 'qas' holds {typed(one)}, expected objects")
        hidden = one is not record and one.get("answers") is None
        given = [] if hidden else value_of(one, "answers", list, "a list")
        answers = [filled(a, "text") if isinstance(a, Mapping) else a for a in given]
        id, query = name if one is record else f"{name}-{_id(one)}", filled(one, "query")
        if PLACEHOLDER not in query:
            raise Refused(f"no {PLACEHOLDER}: {query[:60]!r} leaves nothing out")
        if not all(isinstance(value, str) for value in (*entities, *answers)):
            raise Refused("wrong type: entities and answers are expected to be strings")
        check_unicode("".join((*entities, *answers)))
        lists = {"entities": list(dict.fromkeys(entities)), "answers": list(dict.fromkeys(answers))}
        yield {"id": id, "passage": text, "query": query, **lists}


TASKS = {"rte": _rte, "copa": _copa, "record": _record}


def _entity(text: str, span: Any) -> str:
    """The entity at `start` to `end`; ReCoRD counts the last character in."""
    start, end = (span.get(k) for k in ("start", "end")) if isinstance(span, Mapping) else (0, -1)
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start <= end < len(text):
        raise Refused(f"bad span: {str(span)[:60]} in a passage of {len(text)} characters")
    return text[start : end + 1]


def _label(record: Record, names: Mapping[str, int]) -> int:
    value = record.get("label")
    if value is None or value == -1:
        return -1
    label = names.get(value, value) if isinstance(value, str) else value
    if isinstance(label, bool) or label not in (0, 1):
        expected = ", ".join(names) or "0, 1"
        raise Refused(f"no label: {str(value)[:40]!r}, expected one of {expected}")
    return int(label)


def _id(record: Record) -> str:
    value = record.get("idx")
    if isinstance(value, Mapping):  # the Hub's ReCoRD: passage and query
        return "-".join(str(part)[:40] for part in value.values())
    if isinstance(value, int | str) and not isinstance(value, bool):
        return str(value)[:80]
    raise Refused(f"no id: field 'idx' is {typed(value)}, expected a number")
