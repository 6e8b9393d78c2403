"""The Arrow schemas of what passes from room to room and of the datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa

from corpora.store.rows import class_label

MARKERS_5 = ("and", "but", "because", "if", "when")
MARKERS_8 = (*MARKERS_5, "before", "though", "so")
MARKERS_ALL = (*MARKERS_8, "as", "while", "after", "still", "also", "then", "although")
"""The marker sets of DisSent (table 4); each is a prefix of the next, in the table's order."""

SPAN = pa.list_(pa.int32(), 2)
"""One `[start, end)`: two integers of fixed length, so that JSON shows `[start, end]`."""

SPANS = pa.list_(SPAN)
STRING = pa.string()


def _field(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


PAIRS = pa.schema(
    [
        _field("doc", STRING),
        _field("group", STRING),
        _field("source", STRING),
        _field("licence", STRING),
        _field("language", STRING),
        _field("sentence", pa.int32()),
        _field("marker", STRING),
        _field("marker_spans", SPANS),
        _field("s1_spans", SPANS),
        _field("s2_spans", SPANS),
        _field("s1", STRING),
        _field("s2", STRING),
        _field("position", STRING),
        _field("order", STRING),
        _field("has_clauses", pa.bool_()),
        _field("pattern", STRING),
        _field("s2_added", STRING),
    ]
)
"""The fields of `extract.pairs.Pair`."""

REJECTS = pa.schema(
    [
        _field("reason", STRING),
        _field("marker", STRING),
        _field("span", SPAN),
        _field("doc", STRING),
        _field("sentence", pa.int32()),
    ]
)
"""The fields of `extract.pairs.Reject`."""


def dissent(markers: Sequence[str]) -> pa.Schema:
    """DisSent with these label names: two clauses, and the marker that joined them."""
    return pa.schema(
        [
            _field("doc", STRING),
            _field("group", STRING),
            _field("s1", STRING),
            _field("s2", STRING),
            class_label("label", markers),
            _field("position", STRING),
            _field("order", STRING),
        ]
    )


DISSENT = dissent(MARKERS_ALL)

SP = pa.schema(
    [
        _field("doc", STRING),
        class_label("label", ["0", "1", "2", "3", "4"]),
        _field("sentences", pa.list_(STRING)),
    ]
)
"""Sentence position: the first of the five sentences stood at position `label`."""

BSO = pa.schema(
    [
        _field("doc", STRING),
        class_label("label", ["swapped", "original"]),
        _field("sentence1", STRING),
        _field("sentence2", STRING),
    ]
)
"""Binary sentence ordering: label 1 if the two sentences stand as in the document."""

DC = pa.schema(
    [
        _field("doc", STRING),
        _field("pair", pa.int32()),
        class_label("label", ["incoherent", "coherent"]),
        _field("position", pa.int8()),
        _field("donor", STRING),
        _field("found_by", STRING),
        _field("sentences", pa.list_(STRING)),
    ]
)
"""Discourse coherence: six sentences, of which the one at `position` is from `donor` (label 0)."""

SSP = pa.schema(
    [
        _field("doc", STRING),
        class_label("label", ["body", "abstract"]),
        _field("section", STRING),
        _field("sentence", STRING),
    ]
)
"""Sentence section prediction: label 1 if the sentence is from the abstract."""

INTRUSION_DETECTION = pa.schema(
    [
        _field("doc", STRING),
        class_label("label", ["coherent", "intruded"]),
        _field("position", pa.int8()),
        _field("sentences", pa.list_(STRING)),
    ]
)
"""A text, and at which position (-1: none) a sentence of another one stands in it."""

INTRUSION_PAIRWISE = pa.schema(
    [
        _field("doc", STRING),
        _field("donor", STRING),
        _field("position", pa.int8()),
        _field("similarity", pa.float32()),
        _field("replaced_similarity", pa.float32()),
        _field("pos", pa.list_(STRING)),
        _field("neg", pa.list_(STRING)),
    ]
)
"""A text (`pos`) and the same with one sentence replaced (`neg`)."""

CONPONO = pa.schema(
    [
        _field("doc", STRING),
        _field("group", STRING),
        _field("sentences", pa.list_(STRING)),
        _field("bounds", pa.list_(pa.int32())),
    ]
)
"""Sentences of a document; paragraph `k` is `sentences[bounds[k]:bounds[k + 1]]`."""

CRITERIA = pa.schema(
    [
        _field("doc", STRING),
        _field("group", STRING),
        _field("title", STRING),
        _field("sentences", pa.list_(STRING)),
        _field("section", pa.list_(pa.int32())),
        _field("level", pa.list_(pa.int8())),
        _field("headings", pa.list_(STRING)),
        _field("paragraph", pa.list_(pa.int32())),
        _field("sentence_position", pa.list_(pa.int32())),
        _field("sentence_bin", pa.list_(pa.int8())),
        _field("paragraph_bin", pa.list_(pa.int8())),
    ]
)
"""Sentences of a document in order, and where each stands; `headings[section[i]]` is over it."""


def pdtb(names: Sequence[str]) -> pa.Schema:
    """Relations with these label names: the two arguments without the connective."""
    return pa.schema(
        [
            _field("doc", STRING),
            class_label("label", names),
            _field("arg1", STRING),
            _field("arg2", STRING),
            _field("connective", STRING),
            _field("sense", STRING),
        ]
    )


def rst(names: Sequence[str]) -> pa.Schema:
    """Nodes of rhetorical structure trees with these label names: the EDUs of both subtrees."""
    return pa.schema(
        [
            _field("doc", STRING),
            class_label("label", names),
            _field("relation", STRING),
            _field("left", pa.list_(STRING)),
            _field("right", pa.list_(STRING)),
        ]
    )


PDTB_MARKED = pa.schema(
    [
        _field("doc", STRING),
        class_label("label", ["unmarked", "marked"]),
        _field("arg1", STRING),
        _field("arg2", STRING),
    ]
)
"""Two arguments: does a connective stand between them in the text (label 1)?"""

COHERENCE_TESTS = pa.schema(
    [
        _field("id", STRING),
        _field("group", STRING),
        _field("prompt", pa.list_(STRING)),
        _field("pos", pa.list_(STRING)),
        _field("neg", pa.list_(STRING)),
        _field("votes", pa.list_(pa.int8())),
    ]
)
"""Two texts, of which `pos` is the more coherent; `votes`: 1 for it, 0 against, -1 for neither."""

RTE = pa.schema(
    [
        _field("id", STRING),
        _field("premise", STRING),
        _field("hypothesis", STRING),
        class_label("label", ["entailment", "not_entailment"]),
    ]
)
COPA = pa.schema(
    [
        _field("id", STRING),
        _field("premise", STRING),
        _field("question", STRING),
        _field("choice1", STRING),
        _field("choice2", STRING),
        class_label("label", ["choice1", "choice2"]),
    ]
)
RECORD = pa.schema(
    [
        _field("id", STRING),
        _field("passage", STRING),
        _field("query", STRING),
        _field("entities", pa.list_(STRING)),
        _field("answers", pa.list_(STRING)),
    ]
)
"""RTE, COPA and ReCoRD of SuperGLUE; ReCoRD's answers are those of its entities that fit."""

PERMUTED_DOCUMENTS = pa.schema(
    [_field("id", STRING), _field("group", STRING), _field("sentences", pa.list_(STRING))]
)
"""The sentences, once, in their original order."""

PERMUTED_ORDERS = pa.schema(
    [
        _field("document", STRING),
        _field("repetition", pa.uint8()),
        _field("orders", pa.list_(pa.list_(pa.uint8()))),
    ]
)
"""One positive (`document`) with its negatives: `sentences[i] for i in order` each."""

PERMUTED_PAIRWISE = PERMUTED_CONTRASTIVE = PERMUTED_RANKED = PERMUTED_ORDERS


def pairs_to_batch(pairs: Sequence[Any]) -> pa.RecordBatch:
    """`Pair` objects, or dictionaries with their fields, as one record batch of `PAIRS`."""
    return _columns_to_batch(pairs, PAIRS)


def rejects_to_batch(rejects: Sequence[Any]) -> pa.RecordBatch:
    """`Reject` objects, or dictionaries with their fields, as one record batch of `REJECTS`."""
    return _columns_to_batch(rejects, REJECTS)


def spans_array(spans: Iterable[Sequence[Sequence[int]]]) -> pa.ListArray:
    """One list of spans a row, from nested Python sequences, without a Python loop a span."""
    rows = list(spans)
    offsets = pa.array(list(accumulate(map(len, rows), initial=0)), pa.int32())
    return pa.ListArray.from_arrays(offsets, span_array(list(chain.from_iterable(rows))))


def span_array(spans: Sequence[Sequence[int]]) -> pa.FixedSizeListArray:
    """One span a row."""
    bounds = pa.array(list(chain.from_iterable(spans)), pa.int32())
    return pa.FixedSizeListArray.from_arrays(bounds, 2)


def _columns_to_batch(rows: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    mapping = bool(rows) and isinstance(rows[0], Mapping)
    get = itemgetter if mapping else attrgetter
    columns = [_column(list(map(get(field.name), rows)), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == SPANS:
        return spans_array(values).cast(SPANS)
    if kind == SPAN:
        return span_array(values).cast(SPAN)
    return pa.array(values, kind)
