"""The spans of both arguments: the subtree of each head without the other argument, the connective
and the children that do not belong to the argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extract.arguments.candidates import between, shape, where
from extract.arguments.trees import NOWHERE, Marks, Trees
from extract.clauses import MAX_DOUBLINGS, S1, S2, Block, SideCodes
from extract.parse import Ints


class Sentences(Block):
    """The tokens of the sentences of some heads, end to end; a position is an index into them.

    `match` has for each position the number of the connective.
    """

    def __init__(self, trees: Trees, marks: Marks, number: Ints, first: Ints, second: Ints) -> None:
        """`number` [s] are the connectives; their heads, one of which may be `NOWHERE`, are in one
        sentence."""
        batch = self.batch = trees.batch
        rows = batch.row[np.where(first == NOWHERE, second, first)]
        size = batch.offsets[rows + 1] - batch.offsets[rows]
        shift = np.cumsum(size) - size - batch.offsets[rows]
        self.number = 0
        self.match = np.repeat(number, size)
        self.token = np.arange(len(self.match)) - np.repeat(shift, size)
        self.words = ~trees.punct[self.token]
        self.shift = np.full(len(marks), NOWHERE)
        self.shift[number] = shift
        self.low = np.full(len(marks), 0)
        self.high = np.full(len(marks), 0)
        self.low[number], self.high[number] = batch.offsets[rows], batch.offsets[rows + 1]
        head = trees.head[self.token]
        positions = np.arange(len(self.token))
        self.ancestor = np.where(head >= 0, head + np.repeat(shift, size), positions)
        self.trees, self.marks = trees, marks

    def positions(self, number: Ints, token: Ints) -> Ints:
        """Return the positions of those tokens of connectives that are in these sentences."""
        here = (token >= self.low[number]) & (token < self.high[number])
        return token[here] + self.shift[number[here]]

    def codes(self, first: Ints, second: Ints, dropped: tuple[Ints, Ints]) -> SideCodes:
        """Return the argument that each position belongs to: `S1`, `S2` or 0.

        `first` and `second` [m] are the heads, `dropped` the connectives and tokens of children
        that are left out.
        """
        side = np.zeros(len(self.token), dtype=np.int8)
        ancestor = self.ancestor.copy()
        every = np.arange(len(self.marks))
        out = self.positions(*dropped)
        ancestor[out] = out
        own = self.positions(self.marks.owner, self.marks.member)
        ancestor[own] = own
        for code, heads in ((S1, first), (S2, second)):
            place = self.positions(every, heads)
            side[place], ancestor[place] = code, place
        for _ in range(MAX_DOUBLINGS):
            farther = ancestor[ancestor]
            if np.array_equal(farther, ancestor):
                break
            ancestor = farther
        side = side[ancestor]
        side[own] = 0
        return self.with_whole_multiwords(side)


def sentences_of(trees: Trees, marks: Marks, first: Ints, second: Ints) -> list[Sentences]:
    """Return the sentences of all heads of Arg2 (and of Arg1 there), then those of other Arg1s."""
    every = np.arange(len(marks))
    apart = (first != NOWHERE) & (trees.row[first] != trees.row[second])
    groups = []
    here = second != NOWHERE
    if here.any():
        of_first = np.where(apart, NOWHERE, first)
        groups.append(Sentences(trees, marks, every[here], of_first[here], second[here]))
    if apart.any():
        nothing = np.full(int(apart.sum()), NOWHERE)
        groups.append(Sentences(trees, marks, every[apart], first[apart], nothing))
    return groups


def children_of_heads(
    trees: Trees, marks: Marks, first: Ints, second: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return the children of both heads that may be left out: the number of the connective, the
    child, and the argument (`S1`, `S2`)."""
    parts = []
    for code, head, other in ((S1, first, second), (S2, second, first)):
        mark, child = trees.children_of(head)
        possible = ~trees.inside(other[mark], child)
        parts.append((mark[possible], child[possible], np.full(int(possible.sum()), code)))
    mark, child, side = (np.concatenate(column) for column in zip(*parts, strict=True))
    own = np.zeros(len(trees.batch) + 1, dtype=bool)
    own[marks.member] = True
    keep = ~own[child]
    return mark[keep], child[keep], side[keep]


def child_features(
    trees: Trees,
    marks: Marks,
    of_marks: Mapping[str, NDArray[Any]],
    heads: tuple[Ints, Ints],
    children: tuple[Ints, Ints, Ints],
) -> dict[str, NDArray[Any]]:
    """Return the features of children that may be left out [children]."""
    mark, child, side = children
    columns = {name: column[mark] for name, column in of_marks.items()}
    head = np.where(side == S1, heads[0][mark], heads[1][mark])
    other = np.where(side == S1, heads[1][mark], heads[0][mark])
    first, last = marks.first[mark], marks.last[mark]
    columns["side"] = side
    columns |= shape(trees, child, "child")
    columns |= shape(trees, head, "head")
    columns |= shape(trees, other, "other")
    columns |= where(trees, first, last, child, "")
    columns |= where(trees, first, last, head, "head ")
    columns["from head"] = np.sign(child - head) * between(trees.words, child, head)
    columns["from other"] = np.sign(child - other) * between(trees.words, child, other)
    columns["other inside"] = trees.inside(other, head)
    columns["inside other"] = trees.inside(head, other)
    columns["same sentence"] = trees.row[head] == trees.row[other]
    columns["child words"] = trees.words[trees.right[child] + 1] - trees.words[trees.left[child]]
    columns["head words"] = trees.words[trees.right[head] + 1] - trees.words[trees.left[head]]
    columns["to other edge"] = child - trees.left[other]
    return columns
