"""The Arrow schemas of intermediate data and of the datasets."""

from __future__ import annotations

from collections.abc import Sequence

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
STRINGS = pa.list_(STRING)
INT8, INT32 = pa.int8(), pa.int32()
CONFIDENCE = pa.field("confidence", pa.float32())
"""The confidence of a pair; null for a language without a model of it."""


AUDIT = b"discorpora:audit"
"""The key of a schema's metadata that names the kind of the rows."""


def schema(*, audit: str = "", **columns: pa.DataType | Sequence[str]) -> pa.Schema:
    """Return a schema of columns without nulls.

    A column is given by its type, or for a class label by the names of the classes. `audit` is the
    kind of the rows for the audit's rules (`corpora.audit.features.KINDS`); without a kind only
    labels and duplicates are counted.
    """
    return pa.schema(
        [
            pa.field(name, kind, nullable=False)
            if isinstance(kind, pa.DataType)
            else class_label(name, kind)
            for name, kind in columns.items()
        ],
        {AUDIT: audit} if audit else None,
    )


def text_columns(*names: str) -> dict[str, pa.DataType]:
    """Return columns of text with these names, for `schema`."""
    return dict.fromkeys(names, STRING)


PAIRS = schema(
    **text_columns("doc", "group", "source", "licence", "language"),
    sentence=INT32,
    marker=STRING,
    marker_spans=SPANS,
    s1_spans=SPANS,
    s2_spans=SPANS,
    **text_columns("s1", "s2", "position", "order"),
    has_clauses=pa.bool_(),
    pattern=STRING,
    s2_added=STRING,
).append(CONFIDENCE)
"""The fields of `extract.pairs.Pair`."""


def dissent(markers: Sequence[str]) -> pa.Schema:
    """Return the schema of DisSent: two clauses, and as the label one of `markers`."""
    return schema(
        audit="labelled",
        **text_columns("doc", "group"),
        marker_start=INT32,
        **text_columns("s1", "s2"),
        label=markers,
        **text_columns("position", "order", "s2_added"),
    ).append(CONFIDENCE)


DISSENT = dissent(MARKERS_ALL)

SP = schema(audit="sp", doc=STRING, label=["0", "1", "2", "3", "4"], sentences=STRINGS)
"""Sentence position: the first of the five sentences was at position `label`."""

BSO = schema(
    audit="bso", doc=STRING, label=["swapped", "original"], sentence1=STRING, sentence2=STRING
)
"""Binary sentence ordering: label 1 if the two sentences are in the document's order."""

DC = schema(
    audit="dc",
    doc=STRING,
    pair=INT32,
    label=["incoherent", "coherent"],
    position=INT8,
    donor=STRING,
    found_by=STRING,
    sentences=STRINGS,
)
"""Discourse coherence: six sentences, of which the one at `position` is from `donor` (label 0)."""

SSP = schema(
    audit="labelled", doc=STRING, label=["body", "abstract"], section=STRING, sentence=STRING
)
"""Sentence section prediction: label 1 if the sentence is from the abstract."""


def _released(task: pa.Schema, *columns: str) -> pa.Schema:
    """Return the schema of a task's released rows: an id, and the `columns` of the task's own."""
    fields = [pa.field("id", STRING, nullable=False), *map(task.field, columns)]
    return pa.schema(fields, task.metadata)


DISCOEVAL = {
    "SP": _released(SP, "label", "sentences"),
    "BSO": _released(BSO, "label", "sentence1", "sentence2").insert(1, DC.field("pair")),
    "DC": _released(DC, "pair", "label", "sentences"),
    "SSP": _released(SSP, "label", "sentence"),
}
"""The released rows of DiscoEval, by task. BSO: `pair` has a pair as written and swapped."""

INTRUSION_DETECTION = schema(
    doc=STRING, label=["coherent", "intruded"], position=INT8, sentences=STRINGS
)
"""A text, and the position of the sentence from another text (-1: none)."""

INTRUSION_PAIRWISE = schema(
    audit="intrusion",
    doc=STRING,
    donor=STRING,
    position=INT8,
    similarity=pa.float32(),
    replaced_similarity=pa.float32(),
    pos=STRINGS,
    neg=STRINGS,
)
"""A text (`pos`) and the same with one sentence replaced (`neg`)."""

CONPONO = schema(doc=STRING, group=STRING, sentences=STRINGS, bounds=pa.list_(INT32))
"""Sentences of a document; paragraph `k` is `sentences[bounds[k]:bounds[k + 1]]`."""

CRITERIA = schema(
    **text_columns("doc", "group", "title"),
    sentences=STRINGS,
    section=pa.list_(INT32),
    level=pa.list_(INT8),
    headings=STRINGS,
    paragraph=pa.list_(INT32),
    sentence_position=pa.list_(INT32),
    sentence_bin=pa.list_(INT8),
    paragraph_bin=pa.list_(INT8),
)
"""The sentences of a document with their positions; `headings[section[i]]` is over sentence i."""


def pdtb(names: Sequence[str]) -> pa.Schema:
    """Return the schema of PDTB relations: two arguments without the connective, and a label."""
    return schema(
        audit="labelled",
        doc=STRING,
        label=names,
        **text_columns("arg1", "arg2", "connective", "sense"),
    )


def rst(names: Sequence[str]) -> pa.Schema:
    """Return the schema of nodes of RST trees: the EDUs of both subtrees, and a label."""
    return schema(
        audit="labelled", doc=STRING, label=names, relation=STRING, left=STRINGS, right=STRINGS
    )


PDTB_MARKED = schema(
    audit="labelled", doc=STRING, label=["unmarked", "marked"], arg1=STRING, arg2=STRING
)
"""Two arguments: is there a connective between them in the text (label 1)?"""


def marker_pairs(names: Sequence[str], id_columns: Sequence[str] = ("id",)) -> pa.Schema:
    """Return the schema of two texts and as the label their marker; `id_columns` come first."""
    columns = text_columns(*id_columns, "s1", "s2")
    return schema(audit="labelled", **columns, label=names)


INSTED_DETECTION = schema(
    id=STRING, doc=STRING, label=["coherent", "intruded"], position=INT8, sentences=STRINGS
)
INSTED_PAIRWISE = schema(
    audit="intrusion", id=STRING, doc=STRING, position=INT8, pos=STRINGS, neg=STRINGS
)
"""The released data of INSteD in the form of `INTRUSION_DETECTION` and `INTRUSION_PAIRWISE`."""


def disrpt(names: Sequence[str]) -> pa.Schema:
    """Return the schema of DISRPT's relations: two units in the order of the text, and a label."""
    columns = ("id", "doc", "corpus", "arg1", "arg2", "direction", "kind", "original")
    return schema(audit="labelled", **text_columns(*columns), label=names)


TAGGED = schema(id=STRING, doc=STRING, corpus=STRING, tokens=STRINGS, tags=STRINGS)
"""A sentence of DISRPT; each token is `O`, or begins or is inside a connective or unit."""

RATED = schema(
    **text_columns("id", "group", "title", "text"),
    ratings=pa.list_(pa.float32()),
    rating=pa.float32(),
)
"""A text, each annotator's rating of its coherence, and the release's consensus rating."""

COHERENCE_TESTS = schema(
    audit="pairs",
    id=STRING,
    group=STRING,
    prompt=STRINGS,
    pos=STRINGS,
    neg=STRINGS,
    votes=pa.list_(INT8),
)
"""Two texts, of which `pos` is the more coherent; `votes`: 1 for it, 0 against, -1 for neither."""

RTE = schema(
    audit="labelled",
    **text_columns("id", "premise", "hypothesis"),
    label=["entailment", "not_entailment"],
)
NLI = schema(
    audit="labelled",
    **text_columns("id", "premise", "hypothesis"),
    label=["entailment", "neutral", "contradiction"],
)
"""SNLI and MultiNLI."""
COPA = schema(
    **text_columns("id", "premise", "question", "choice1", "choice2"), label=["choice1", "choice2"]
)
RECORD = schema(id=STRING, passage=STRING, query=STRING, entities=STRINGS, answers=STRINGS)
"""RTE, COPA and ReCoRD of SuperGLUE; ReCoRD's answers are the entities that fit."""

PERMUTED_DOCUMENTS = schema(id=STRING, group=STRING, sentences=STRINGS)
"""The sentences, once, in their original order."""

PERMUTED_ORDERS = schema(
    document=STRING, repetition=pa.uint8(), orders=pa.list_(pa.list_(pa.uint8()))
)
"""One positive (`document`) with its negatives: `sentences[i] for i in order` each."""

PERMUTED_PAIRWISE = PERMUTED_ORDERS.with_metadata({AUDIT: "permuted"})
