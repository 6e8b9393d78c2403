"""Parsed documents of one string table as one set of flat arrays: what the matcher walks over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extract.compiled import CompiledPatterns
from extract.parse import Ints, ParsedDocument
from extract.rows import TAG_COLUMNS

BoolArray = NDArray[np.bool_]


@dataclass(slots=True)
class Batch:
    """Token columns [n] and sentence rows [m] of several parsed documents, end to end.

    `head` indexes the token columns (-1: root), `row` gives each token's sentence row,
    `label` and `word` are the compiled numbers of deprel and form, `traits` the bits of the
    token's properties. `offsets` [m + 1], `row_doc` and `row_sentence` [m] describe the rows,
    `row_linked` [m] tells which of them go on from the sentence before.
    """

    documents: Sequence[ParsedDocument]
    start: Ints
    end: Ints
    head: Ints
    form: Ints
    label: NDArray[np.int16]
    word: NDArray[np.int16]
    traits: NDArray[np.int32]
    offsets: Ints
    row: Ints
    row_doc: Ints
    row_sentence: Ints
    row_linked: BoolArray

    def __len__(self) -> int:
        return len(self.head)


def make_batch(documents: Sequence[ParsedDocument], patterns: CompiledPatterns) -> Batch:
    """Join `documents`, which must share `patterns.strings`, into one batch."""
    sizes = np.array([len(d.head) for d in documents], dtype=np.int32)
    shift = np.cumsum(sizes, dtype=np.int32) - sizes
    offsets = np.concatenate(
        [d.offsets[:-1] + s for d, s in zip(documents, shift, strict=True)]
        + [np.array([sizes.sum()], dtype=np.int32)]
    ).astype(np.int32)
    head = np.concatenate([d.head for d in documents])
    head = np.where(head >= 0, head + np.repeat(shift, sizes), -1).astype(np.int32)
    rows = np.array([len(d.sentence) for d in documents], dtype=np.int32)
    form = np.concatenate([d.form for d in documents])
    label = patterns.label_of(np.concatenate([d.deprel for d in documents]))
    tags = {n: np.concatenate([getattr(d, n) for d in documents]) for n in TAG_COLUMNS}
    row_sentence = np.concatenate([d.sentence for d in documents]).astype(np.int32)
    batch = Batch(
        documents=documents,
        start=np.concatenate([d.start for d in documents]),
        end=np.concatenate([d.end for d in documents]),
        head=head,
        form=form,
        label=label,
        word=patterns.word_of(form),
        traits=patterns.tag_traits(**tags),
        offsets=offsets,
        row=np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets)),
        row_doc=np.repeat(np.arange(len(documents), dtype=np.int32), rows),
        row_sentence=row_sentence,
        row_linked=row_sentence > 0,
    )
    _derive_traits(batch, patterns)
    return batch


def _derive_traits(batch: Batch, patterns: CompiledPatterns) -> None:
    """Set the properties that follow from a token's children and from the conjunct before it.

    `subject`, `copula`, `finite` and `clause` come from its own children (what is left of a clause
    whose verb is left out makes one too), `statement` also from what conjuncts share.
    """
    traits, bits, labels = batch.traits, patterns.bits, patterns.class_labels
    finite = (traits & bits.get("finite_tag", 0)) != 0
    subject = _with_child(batch, labels["subject"][batch.label])
    copula = _with_child(batch, labels["copula"][batch.label])
    auxiliary = labels["auxiliary"][batch.label]
    finite |= _with_child(batch, auxiliary & finite)
    verb = (traits & bits.get("verb", 0)) != 0
    clause = verb | copula | subject | _with_child(batch, labels["remnant"][batch.label])
    complement = _with_child(batch, labels["complement"][batch.label])
    introduced = _with_child(batch, labels["subordinator"][batch.label])
    statement = _finite_with(batch, patterns, finite, _with_child(batch, auxiliary), introduced)
    if not patterns.table.pro_drop:
        statement &= _shared(batch, patterns, subject)
    for name, flag in (
        ("subject", subject),
        ("copula", copula),
        ("finite", finite),
        ("complement", complement),
        ("clause", clause),
        ("statement", statement),
    ):
        traits |= flag * np.int32(bits[name])


def _with_child(batch: Batch, child: BoolArray) -> BoolArray:
    """The tokens that have one of the marked tokens as a child."""
    parents = batch.head[child]
    flag = np.zeros(len(batch), dtype=bool)
    flag[parents[parents >= 0]] = True
    return flag


def _shared(batch: Batch, patterns: CompiledPatterns, own: BoolArray) -> BoolArray:
    """`own`, and the conjuncts of what has it.

    Under UD the subject of coordinated predicates hangs on the first one.
    """
    found = own.copy()
    conjuncts = _conjuncts(batch, patterns, own)
    while len(taking := conjuncts[found[batch.head[conjuncts]]]):
        found[taking] = True
        conjuncts = conjuncts[~found[conjuncts]]
    return found


def _finite_with(
    batch: Batch,
    patterns: CompiledPatterns,
    finite: BoolArray,
    auxiliary: BoolArray,
    introduced: BoolArray,
) -> BoolArray:
    """`finite`, and the conjuncts that share an auxiliary, which hangs on the first one.

    "may come and go", "is tired and hungry". Beside a verb that needs none a form that is not
    finite is an infinitive, a participle or what is left of a clause; but a language's bare form
    may be finite beside another one ("they come and go"). What has a subordinator of its own ("and
    to stay") shares nothing.
    """
    found, sharing = finite.copy(), auxiliary.copy()
    bare = (batch.traits & patterns.bits.get("bare", 0)) != 0
    conjuncts = _conjuncts(batch, patterns, finite | introduced)
    while True:
        head = batch.head[conjuncts]
        alike = sharing[head] | (bare[head] & bare[conjuncts])
        taking = conjuncts[found[head] & alike]
        if len(taking) == 0:
            return found
        found[taking] = True
        sharing[taking] = sharing[batch.head[taking]]
        conjuncts = conjuncts[~found[conjuncts]]


def _conjuncts(batch: Batch, patterns: CompiledPatterns, but: BoolArray) -> Ints:
    """The conjuncts of all, `but` some."""
    label = patterns.class_labels["conjunct"][batch.label]
    return np.flatnonzero(label & (batch.head >= 0) & ~but)


def previous_conjunct(batch: Batch, patterns: CompiledPatterns) -> Ints:
    """For every token that is a conjunct, the conjunct before it; for the others -1.

    UD attaches all conjuncts to the first one; the nearest one to the left is the previous
    sibling under the label `conj`, or that first one.
    """
    found = np.full(len(batch), -1, dtype=np.int32)
    tokens = np.flatnonzero(patterns.class_labels["conjunct"][batch.label] & (batch.head >= 0))
    if len(tokens) == 0:
        return found
    heads = batch.head[tokens]
    order = np.argsort(heads, kind="stable")
    tokens, heads = tokens[order], heads[order]
    before = heads.copy()
    same = heads[1:] == heads[:-1]
    siblings = tokens[:-1][same]
    before[1:][same] = np.where(siblings > heads[1:][same], siblings, heads[1:][same])
    found[tokens] = before
    return found


def leftmost_child(batch: Batch, labels: BoolArray) -> Ints:
    """For every token its leftmost child under one of `labels`; `len(batch)` where none is."""
    found = np.full(len(batch), len(batch), dtype=np.int32)
    children = np.flatnonzero(labels[batch.label] & (batch.head >= 0))[::-1]
    found[batch.head[children]] = children
    return found


def child_after(batch: Batch, token: Ints, head: Ints, labels: BoolArray) -> Ints:
    """The first child of each `head` under `labels` to the right of each token; -1 if none."""
    children = np.flatnonzero(labels[batch.label] & (batch.head >= 0))
    if len(children) == 0:
        return np.full(len(token), -1, dtype=np.int32)
    width = len(batch) + 1
    keys = batch.head[children].astype(np.int64) * width + children
    order = np.argsort(keys)
    keys, children = keys[order], children[order]
    at = np.searchsorted(keys, head.astype(np.int64) * width + token)
    after = children[np.minimum(at, len(children) - 1)]
    fits = (at < len(children)) & (head >= 0) & (batch.head[after] == head)
    return np.where(fits, after, -1).astype(np.int32)
