"""Heads that Arg2 and Arg1 of a connective may have, with what the trees say about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extract.arguments.trees import (
    CLAUSES,
    FLAGS,
    KINDS,
    NOWHERE,
    OPENERS,
    RELATIONS,
    SENTENCES_BACK,
    Marks,
    Trees,
    one_hot,
)
from extract.parse import BoolArray, Ints

STEPS = 6
"""Heads above a token that are candidates."""
SHARED = 3
"""Heads above Arg2 whose conjunct before is a candidate: Arg2 may be inside the second conjunct."""
PLACES2 = ("path", "second path", "child", "second child")
PLACES1 = ("above", "conjunct", "below", "beside", "sentence")
"""How candidates for Arg2 and for Arg1 are found."""
CLAUSE_CODES = np.array([name in CLAUSES for name in RELATIONS] + [False])


@dataclass(slots=True)
class Candidates:
    """Candidates as columns [c]: the number of the connective, the head, how it was found (`place`
    indexes `PLACES1` or `PLACES2`) and after how many steps."""

    mark: Ints
    head: Ints
    place: Ints
    step: Ints

    def __len__(self) -> int:
        return len(self.mark)

    def take(self, keep: BoolArray) -> Candidates:
        return Candidates(*(getattr(self, field.name)[keep] for field in fields(self)))


def _joined(parts: list[tuple[Ints, Ints, int, int | Ints]]) -> Candidates:
    """Return candidates ordered by connective, each head once (by the first part that has it)."""
    mark, head, place, step = (
        np.concatenate(
            [np.broadcast_to(np.asarray(part[k], np.int32), len(part[0])) for part in parts]
        )
        for k in range(4)
    )
    exists = head != NOWHERE
    mark, head, place, step = mark[exists], head[exists], place[exists], step[exists]
    key = mark.astype(np.int64) * (int(head.max(initial=0)) + 1) + head
    _, chosen = np.unique(key, return_index=True)
    return Candidates(mark[chosen], head[chosen], place[chosen], step[chosen])


def second_heads(trees: Trees, marks: Marks) -> Candidates:
    """Return the candidates for the head of Arg2.

    A connective depends on the clause that it introduces, or on a phrase in it ("[also] cats
    sleep"): so they are what either part of the connective is attached to, and what is above. Where
    a parser makes an object or a clause depend on the connective, it is a candidate too. Arg2 of a
    connective in two sentences ("on the one hand ... on the other") is in the second one.
    """
    every = np.arange(len(marks))
    anchors = np.where(marks.apart(trees), NOWHERE, marks.anchor), marks.second_anchor
    parts: list[tuple[Ints, Ints, int, int | Ints]] = []
    for place, anchor in enumerate(anchors):
        token = anchor
        for step in range(STEPS + 1):
            parts.append((every, token, place, step))
            token = trees.head[token]
    for place, anchor in enumerate(anchors, 2):
        index, child = trees.children_of(anchor)
        keep = CLAUSE_CODES[trees.relation[child]] & (child > anchor[index])
        parts.append((index[keep], child[keep], place, 0))
    return _joined(parts)


def first_heads(trees: Trees, marks: Marks, second: Ints) -> Candidates:
    """Return the candidates for the head of Arg1, where `second` [m] are the heads of Arg2.

    A subordinate clause depends on Arg1, or on a phrase of it: the heads above. A coordinate one
    has its conjunct before it, and so has the clause that it is in. Below and beside are clauses
    without such a link ("If he sings, [then] we go"; parataxis). A connective that begins or
    modifies a whole sentence has the main clause of a sentence before; one in two sentences has
    what its first part is attached to.
    """
    every = np.arange(len(marks))
    parts: list[tuple[Ints, Ints, int, int | Ints]] = [
        (every, np.where(second == NOWHERE, NOWHERE, trees.conjunct[second]), 1, 0)
    ]
    token = second
    for step in range(STEPS):
        above = trees.head[token]
        parts.append((every, above, 0, step))
        if step < SHARED:
            parts.append((every, trees.conjunct[above], 1, step + 1))
        token = above
    for place, head in enumerate((second, trees.head[second]), 2):
        index, child = trees.children_of(head)
        keep = CLAUSE_CODES[trees.relation[child]] & ~trees.inside(second[index], child)
        parts.append((index[keep], child[keep], place, 0))
    for back in range(1, SENTENCES_BACK + 1):
        parts.append((every, trees.root_before(marks.first, back), 4, back))
    apart = marks.apart(trees)
    token = np.where(apart, marks.anchor, NOWHERE)
    for step in range(STEPS + 1):
        parts.append((every, token, 4, step))
        token = trees.head[token]
    candidates = _joined(parts)
    other = apart[candidates.mark] & (
        trees.row[candidates.head] != trees.row[marks.first][candidates.mark]
    )
    return candidates.take((candidates.head != second[candidates.mark]) & ~other)


def shape(trees: Trees, token: Ints, name: str) -> dict[str, NDArray[Any]]:
    """Return the relation, the properties and the size of tokens as features."""
    columns = one_hot(trees.relation[token], tuple(RELATIONS), name)
    for flag in (*FLAGS, *(f"has_{opener}" for opener in OPENERS)):
        columns[f"{name} {flag}"] = trees.flags[flag][token]
    columns[f"{name} size"] = np.where(token == NOWHERE, 0, trees.right[token] - trees.left[token])
    return columns


def between(total: Ints, one: Ints, other: Ints) -> Ints:
    """Return how much `total` grows between two tokens, in either order."""
    return total[np.maximum(one, other)] - total[np.minimum(one, other)]


def mark_features(
    trees: Trees, marks: Marks, habits: Mapping[str, NDArray[np.float32]]
) -> dict[str, NDArray[Any]]:
    """Return features of the connectives [m]; `habits` are those of each connective's words."""
    columns: dict[str, NDArray[Any]] = one_hot(marks.kind, KINDS, "kind")
    default = habits[""]
    rows = np.array([habits.get(text, default) for text in marks.text]).reshape(-1, len(default))
    columns |= {f"habit {k}": rows[:, k] for k in range(rows.shape[1])}
    begin = trees.batch.offsets[trees.batch.row[marks.first]]
    end = trees.batch.offsets[trees.batch.row[marks.first] + 1]
    columns["words before"] = trees.words[marks.first] - trees.words[begin]
    columns["words after"] = trees.words[end] - trees.words[marks.last + 1]
    columns["verbs before"] = trees.verbs[marks.first] - trees.verbs[begin]
    columns["verbs after"] = trees.verbs[end] - trees.verbs[marks.last + 1]
    columns["after comma"] = (
        trees.commas[marks.first] - trees.commas[np.maximum(marks.first - 1, 0)]
    )
    before = np.maximum(marks.first - 1, begin)
    columns["after conjunction"] = trees.relation[before] == list(RELATIONS).index("conjunction")
    after = np.minimum(marks.last + 1, end - 1)
    columns |= one_hot(trees.relation[after], tuple(RELATIONS), "next")
    columns["parts"] = 1 + (marks.second != NOWHERE)
    columns["length"] = marks.last - marks.first + 1
    columns |= one_hot(trees.relation[marks.anchor], tuple(RELATIONS), "anchor")
    return columns


def second_features(
    trees: Trees, marks: Marks, of_marks: Mapping[str, NDArray[Any]], candidates: Candidates
) -> dict[str, NDArray[Any]]:
    """Return the features of candidates for the head of Arg2 [c]."""
    mark, head = candidates.mark, candidates.head
    columns = {name: column[mark] for name, column in of_marks.items()}
    columns |= shape(trees, head, "head")
    columns |= one_hot(candidates.place, PLACES2, "place")
    columns["step"] = candidates.step
    first, last = marks.first[mark], marks.last[mark]
    columns |= where(trees, first, last, head, "")
    above = trees.head[head]
    columns |= shape(trees, above, "above")
    # The node of the path below: what would be the argument one step lower.
    anchor = np.where(candidates.place % 2 == 0, marks.anchor[mark], marks.second_anchor[mark])
    below = np.where((candidates.place < 2) & (candidates.step == 1), anchor, NOWHERE)
    deeper = (candidates.place < 2) & (candidates.step > 1)
    lower = anchor.copy()
    for step in range(1, STEPS):
        lower = trees.head[lower]
        below = np.where(deeper & (candidates.step == step + 1), lower, below)
    columns |= shape(trees, below, "below")
    columns["second inside"] = trees.inside(marks.second[mark], head)
    columns["left of second"] = np.sign(head - marks.second[mark])
    return columns


def where(trees: Trees, first: Ints, last: Ints, head: Ints, name: str) -> dict[str, NDArray[Any]]:
    """Return where a head and its subtree are relative to the connective `first` to `last`."""
    words, left, right = trees.words, trees.left[head], trees.right[head]
    return {
        f"{name}distance": np.sign(head - first) * between(words, head, first),
        f"{name}left": np.sign(first - left) * between(words, left, first),
        f"{name}right": np.sign(right - last) * between(words, right + 1, last + 1),
        f"{name}commas": between(trees.commas, head, first),
        f"{name}verbs": between(trees.verbs, head, first),
    }


def first_features(
    trees: Trees,
    marks: Marks,
    of_marks: Mapping[str, NDArray[Any]],
    second: Ints,
    candidates: Candidates,
) -> dict[str, NDArray[Any]]:
    """Return the features of candidates for the head of Arg1 [c]; `second` [m] are Arg2's."""
    mark, head = candidates.mark, candidates.head
    columns = {name: column[mark] for name, column in of_marks.items()}
    columns |= shape(trees, head, "head")
    columns |= one_hot(candidates.place, PLACES1, "place")
    columns["step"] = candidates.step
    first, last = marks.first[mark], marks.last[mark]
    other = second[mark]
    columns |= shape(trees, other, "second")
    columns |= where(trees, first, last, other, "second ")
    columns |= where(trees, first, last, head, "")
    columns["from second"] = np.sign(head - other) * between(trees.words, head, other)
    columns["verbs from second"] = between(trees.verbs, head, other)
    columns["second inside"] = trees.inside(other, head)
    columns["inside second"] = trees.inside(head, other)
    columns["sentences"] = trees.sentence[first] - trees.sentence[head]
    batch = trees.batch
    columns["answers"] = batch.row_answers[batch.row[first]]
    columns["linked"] = batch.row_linked[batch.row[first]]
    columns |= shape(trees, trees.head[head], "above")
    same = trees.relation[head] == trees.relation[other]
    columns["same relation"] = same
    return columns
