"""Score explicit discourse relations against gold: connectives, senses and arguments.

A connective is right if it covers the words of a gold one, none more and none less. This is the
measure of the DISRPT shared task (exact spans, micro F1), where each run of words counts by itself:
"if ... then" is two spans there (`spans`), and one connective in all other figures.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document, Relation, Span
from corpora.errors import InputError, amount, expand_home
from corpora.readers.disrpt import read_disrpt
from corpora.readers.fields import Fields
from corpora.readers.files import Refused, expect, good_record
from corpora.readers.pdtb import read_gold
from corpora.readers.rows import json_rows
from corpora.rng import stream
from extract.formats import file_name
from extract.validate import strict
from extract.validate.material import DESCRIPTION, GoldText, WordMap, Words, last_subsequence
from extract.validate.report import cells, decimal, with_interval
from extract.validate.scoring import RESAMPLES, SEED

STAGE = "validate.relations"
METRICS = ("connectives", "spans", "sense1", "sense2", "exact", "dice", "arg1", "arg2")
"""Connectives, and their runs of words; with the sense of level 1, of level 2; with both arguments
equal, both of a Dice of at least .7, Arg1 of such a Dice, Arg2."""
_NAMES = {
    "connectives": "connective",
    "spans": "connective, each run of words (shared task)",
    "sense1": "connective and sense, level 1",
    "sense2": "connective and sense, level 2",
    "exact": "connective and both arguments, exact",
    "dice": "connective and both arguments, Dice ≥ .7",
    "arg1": "connective and Arg1, Dice ≥ .7",
    "arg2": "connective and Arg2, Dice ≥ .7",
}
SHOWN = 20
"""Connectives in the report; the JSON has all."""
_KINDS = "write FILE.jsonl, pdtb:DIR or disrpt:DIR"
Counts = NDArray[np.int64]


class Figure(strict.Score):
    """A score with the numbers of predicted and gold items that it is about."""

    predicted: int
    gold: int
    right: int


class Block(TypedDict):
    """The figures over some documents.

    `accuracy` is the share of right senses among the connectives found, by level.
    """

    documents: int
    figures: dict[str, Figure]
    accuracy: dict[str, float | None]
    per_connective: dict[str, dict[str, int | float | None]]


class Relations(Block):
    """The JSON of `discorpora validate --relations`; `unseen` is None if all documents are."""

    unseen: Block | None
    settings: dict[str, Any]


@dataclass
class Mark:
    """A connective as words of the gold text, with all annotations of it.

    `words` are those of the connective itself, `covered` all under its spans.
    """

    name: str
    words: Words
    covered: Words
    sides: list[tuple[Words, Words]]
    senses: set[str]


class _Row(Fields):
    """A relation in the JSON Lines of `discorpora parse`."""

    doc: str
    connective: str
    connective_spans: list[list[int]]
    arg1_spans: list[list[int]]
    arg2_spans: list[list[int]]
    sense: str


def read_relations(spec: str, documents: Sequence[Document]) -> Iterator[Document]:
    """Yield documents with relations, read from an output of `discorpora parse` or from gold.

    `spec` is `FILE.jsonl` (also `jsonl:FILE`), `pdtb:DIR` or `disrpt:DIR`. `documents` are those
    that were parsed: JSON Lines have spans of their texts, and the files in PDTB's folders are
    named after their ids. Raises `InputError` for another kind and for a relation of a document
    that is not among them or of a span outside its text.
    """
    kind, colon, target = spec.partition(":")
    if not colon and spec.endswith(".jsonl"):
        kind, target = "jsonl", spec
    if kind == "pdtb":
        ids = {file_name(document.id): document.id for document in documents}
        for document in read_gold(expand_home(target)):
            yield replace(document, id=ids.get(document.id, document.id))
    elif kind == "disrpt":
        yield from read_disrpt(target)
    elif kind == "jsonl":
        yield from _read_json(expand_home(target), documents)
    else:
        raise InputError(f"cannot read relations from {spec!r}", hint=_KINDS)


def _read_json(path: Path, documents: Sequence[Document]) -> Iterator[Document]:
    """Yield the documents with the relations in the JSON Lines of `discorpora parse`."""
    if not path.is_file():
        raise InputError("no such file", where=str(path), hint=_KINDS)
    texts = {document.id: document.text for document in documents}
    relations: defaultdict[str, list[Relation]] = defaultdict(list)
    for where, record in json_rows(path):
        try:
            row = _Row.of(good_record(record))
            expect(row.doc in texts, f"the document {row.doc[:80]!r} is not in the source")
            sides = row.connective_spans, row.arg1_spans, row.arg2_spans
            mark, arg1, arg2 = (_spans(side, len(texts[row.doc])) for side in sides)
            name = row.connective.replace(" ... ", " ")
            relations[row.doc].append(
                Relation("Explicit", name, mark, arg1, arg2, (row.sense,), where)
            )
        except Refused as refusal:
            hint = "expected the output of `discorpora parse` for the same source"
            raise InputError(str(refusal), where=where, hint=hint) from None
    for document in documents:
        yield replace(document, relations=relations[document.id])


def _spans(values: list[list[int]], length: int) -> tuple[Span, ...]:
    """Return spans as tuples. Raises `Refused` for one outside of a text of this length."""
    for value in values:
        good = len(value) == 2 and 0 <= value[0] < value[1] <= length
        expect(good, f"bad span {value!r}: expected [start, end] inside the text, of {length:,}")
    return tuple((start, end) for start, end in values)


def validate_relations(
    predicted: Iterable[Document],
    gold: Iterable[Document],
    sources: Sequence[Document],
    *,
    seen: Collection[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Relations:
    """Score the explicit relations of `predicted` against those of `gold`.

    Documents are matched by id; those of `sources` count, and one without predictions has none
    right. `seen` are ids of documents that models were fitted to. A gold connective annotated
    twice counts once, and any of its senses and pairs of arguments is right. Gold relations
    without a sense or an argument are not in those figures. Raises `InputError` if no document of
    the gold is in the sources, and if two texts differ.
    """
    ids = {document.id for document in sources}
    by_id = {document.id: document for document in predicted if document.id in ids}
    left_out = Counter[str]()
    counts: list[Counts] = []
    names: list[dict[str, Counts]] = []
    known: list[str] = []
    for document in gold:
        if document.id not in ids:
            left_out["gold_documents_outside_source"] += 1
            continue
        text = GoldText(len(known), document.id, document.text)
        known.append(document.id)
        expected = _marks(text, WordMap(text), document.relations, left_out)
        found: dict[Words, Mark] = {}
        if parsed := by_id.get(document.id):
            to_words = WordMap(text, parsed.text)
            found = _marks(text, to_words, parsed.relations, Counter())
        table = _count(found, expected)
        counts.append(sum(table.values(), np.zeros((len(METRICS), 4), dtype=np.int64)))
        names.append(table)
        counts[-1][METRICS.index("spans")] = _count_runs(found, expected)
    if not known:
        some = ", ".join(sorted(ids)[:3])
        raise InputError(
            "no document of the gold is in the source",
            where="validate",
            hint=f"documents match by id; the source has {amount(len(ids), 'document')}: {some}",
        )
    left_out["source_documents_without_gold"] += len(ids) - len(known)
    new = [number for number, id in enumerate(known) if id not in seen]
    return {
        **_block(counts, names, list(range(len(known)))),
        "unseen": None if len(new) == len(known) else _block(counts, names, new),
        "settings": {
            **(settings or {}),
            "unit": DESCRIPTION,
            "dice_at_least": strict.DICE,
            "interval": {"share": strict.INTERVAL, "resamples": RESAMPLES, "seed": SEED},
            "left_out": dict(sorted((+left_out).items())),
        },
    }


def _marks(
    text: GoldText,
    to_words: WordMap,
    relations: Iterable[Relation] | None,
    left_out: Counter[str],
) -> dict[Words, Mark]:
    """Return the explicit connectives of a document by their words."""
    marks: dict[Words, Mark] = {}
    for relation in relations or ():
        if relation.kind != "Explicit":
            continue
        covered = to_words(relation.connective_spans)
        if not covered:
            left_out["gold_without_connective"] += 1
            continue
        parts = tuple(relation.connective.lower().split())
        places = last_subsequence(parts, [text.words[word] for word in covered])
        words = tuple(covered[place] for place in places) if places else covered
        mark = marks.setdefault(words, Mark(" ".join(parts), words, covered, [], set()))
        mark.sides.append((to_words(relation.arg1_spans), to_words(relation.arg2_spans)))
        mark.senses.update(sense.lower() for sense in relation.senses)
    return marks


def _count(found: Mapping[Words, Mark], expected: Mapping[Words, Mark]) -> dict[str, Counts]:
    """Return by connective the numbers of predicted, gold, right and found items [METRICS, 4].

    A found item is a gold connective that is also predicted; it is right if the metric holds too.
    A connective that the gold has counts under the gold's name.
    """
    table: defaultdict[str, Counts] = defaultdict(
        lambda: np.zeros((len(METRICS), 4), dtype=np.int64)
    )
    for words in dict.fromkeys((*expected, *found)):
        mark, gold = found.get(words), expected.get(words)
        of_name = table[(gold or found[words]).name]
        sides = [pair for pair in gold.sides if all(pair)] if gold else []
        for place, metric in enumerate(METRICS):
            annotated = gold is None or bool(
                gold.senses if metric.startswith("sense") else metric in METRICS[:2] or sides
            )
            if annotated:
                right = bool(mark and gold) and _agrees(metric, mark, gold, sides)
                of_name[place] += (bool(mark), bool(gold), right, bool(mark and gold))
    return dict(table)


def _agrees(
    metric: str, mark: Mark | None, gold: Mark | None, sides: Sequence[tuple[Words, Words]]
) -> bool:
    """Return whether a predicted connective that is in the gold is right by this metric."""
    assert mark is not None and gold is not None
    if metric.startswith("sense"):
        level = int(metric[-1])
        ours, theirs = ({_cut(s, level) for s in one.senses} for one in (mark, gold))
        return not ours.isdisjoint(theirs)
    if metric in ("connectives", "spans"):
        return True
    for arg1, arg2 in mark.sides:
        for gold1, gold2 in sides:
            first, second = strict.alike(arg1, gold1), strict.alike(arg2, gold2)
            agreement = {
                "exact": (arg1, arg2) == (gold1, gold2),
                "dice": first and second,
                "arg1": first,
                "arg2": second,
            }
            if agreement[metric]:
                return True
    return False


def _cut(sense: str, level: int) -> str:
    return ".".join(sense.split(".")[:level])


def _count_runs(found: Mapping[Words, Mark], expected: Mapping[Words, Mark]) -> tuple[int, ...]:
    """Return the numbers of predicted, gold and right runs of words."""
    ours, theirs = (
        {run for m in marks.values() for run in _runs(m.covered)} for marks in (found, expected)
    )
    return len(ours), len(theirs), len(ours & theirs), len(ours & theirs)


def _runs(words: Words) -> Iterator[Words]:
    """Yield the runs of consecutive words."""
    start = 0
    for place, (word, after) in enumerate(pairwise(words), 1):
        if after != word + 1:
            yield words[start:place]
            start = place
    yield words[start:]


def _block(
    counts: Sequence[Counts], names: Sequence[Mapping[str, Counts]], documents: Sequence[int]
) -> Block:
    """Return the figures over some documents, by their indices."""
    table = np.array([counts[d] for d in documents]).reshape(-1, len(METRICS), 4)
    weights = strict.draws(len(documents), RESAMPLES, stream(SEED, STAGE))
    resampled = np.tensordot(weights, table.astype(np.float64), axes=1)
    figures: dict[str, Figure] = {}
    accuracy: dict[str, float | None] = {}
    for place, metric in enumerate(METRICS):
        predicted, gold, right, found = table[:, place].sum(axis=0).tolist()
        accuracy[metric] = right / found if found else None
        sizes = resampled[:, place, :2].sum(axis=1)
        ci = strict.interval(2 * resampled[sizes > 0, place, 2] / sizes[sizes > 0], len(documents))
        scores = strict.score(predicted, gold, right, ci)
        if not gold:
            scores = {"p": None, "r": None, "f1": None, "ci": None}
        figures[metric] = {**scores, "predicted": predicted, "gold": gold, "right": right}
    by_name: defaultdict[str, Counts] = defaultdict(
        lambda: np.zeros((len(METRICS), 4), dtype=np.int64)
    )
    for number in documents:
        for name, of_name in names[number].items():
            by_name[name] += of_name
    per_connective: dict[str, dict[str, int | float | None]] = {}
    for name in sorted(by_name, key=lambda name: (-int(by_name[name][0, 1]), name)):
        predicted, gold, right, _ = by_name[name][0].tolist()
        per_connective[name] = {"predicted": predicted, "gold": gold, "right": right}
        for metric in ("connectives", "sense2", "dice"):
            values = by_name[name][METRICS.index(metric)].tolist()
            per_connective[name][metric] = strict.score(*values[:3])["f1"]
    return {
        "documents": len(documents),
        "figures": figures,
        "accuracy": {metric: accuracy[metric] for metric in ("sense1", "sense2")},
        "per_connective": per_connective,
    }


def to_markdown(result: Relations) -> str:
    """Return the result of `validate_relations` as Markdown."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Relations) -> Iterator[str]:
    """Yield the lines of the report."""
    if (unseen := result["unseen"]) and unseen["documents"]:
        count = amount(unseen["documents"], "document")
        yield f"## {count} that the shipped models were not fitted to"
        yield from _tables(unseen)
        yield f"\n## All {amount(result['documents'], 'document')}"
    else:
        seen = ", which the shipped models were fitted to" if unseen else ""
        yield f"## {amount(result['documents'], 'document')}{seen}"
    yield from _tables(result)
    if left_out := result["settings"]["left_out"]:
        counts = (f"{why.replace('_', ' ')}: {n}" for why, n in left_out.items())
        yield "\nLeft out: " + ", ".join(counts) + "."


def _tables(block: Block) -> Iterator[str]:
    """Yield the tables of one block: all connectives together, then the most frequent ones."""
    yield from (
        "",
        "| right | predicted | gold | P | R | F1 [95 %] |",
        "|---|---:|---:|---:|---:|---:|",
    )
    for metric, figure in block["figures"].items():
        counts = figure["predicted"], figure["gold"]
        scores = decimal(figure["p"]), decimal(figure["r"]), with_interval(figure)
        yield cells(_NAMES[metric], *counts, *scores)
    senses = (decimal(block["accuracy"][metric]) for metric in ("sense1", "sense2"))
    yield f"\nRight senses among the connectives found, levels 1 and 2: {', '.join(senses)}."
    yield from ("", "| connective | predicted | gold | F1 | sense F1 | Dice F1 |")
    yield "|---|---:|---:|---:|---:|---:|"
    for name, row in list(block["per_connective"].items())[:SHOWN]:
        f1 = [decimal(row[metric]) for metric in ("connectives", "sense2", "dice")]
        yield cells(name, row["predicted"], row["gold"], *f1)
