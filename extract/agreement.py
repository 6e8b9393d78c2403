"""Two parsers that agree: how far their candidates are the same, and which one is taken.

The second parser has other errors than the first, so a pair that both give is right more often
than one that only one of them gives. What they agree on is an input of the confidence
(`extract.confidence`); where they give two pairs for a marker, the more certain one is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from extract.clauses import Sides
from extract.confidence import Floats, features
from extract.match import Matches
from extract.pairs import SpanColumn
from extract.parse import BoolArray, Ints
from extract.trees import Batch

Confidence = NDArray[np.float32]
NONE = -1


@dataclass(slots=True)
class Candidates:
    """The candidates of one parser's trees: matches with both sides and their texts.

    `rejected` has the other markers, with a reason for each; `unmatched` the first tokens of those
    that fit no row of the pattern table.
    """

    batch: Batch
    matches: Matches
    sides: Sides
    s1: list[str]
    s2: list[str]
    rejected: list[tuple[Matches, list[str]]]
    unmatched: Ints
    second: bool = False
    """Whether the trees are the second parser's."""

    def __len__(self) -> int:
        return len(self.matches)

    def take(self, rows: Ints | BoolArray) -> Candidates:
        """Return the candidates that a mask marks, or those with these numbers."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        s1, s2 = ([texts[i] for i in rows.tolist()] for texts in (self.s1, self.s2))
        matches, sides = self.matches.take(rows), self.sides.take(rows)
        return replace(self, matches=matches, sides=sides, s1=s1, s2=s2)

    def then(self, other: Candidates) -> Candidates:
        """Return these candidates, then the other parser's; the rejected ones stay these."""
        matches, sides = self.matches.then(other.matches), self.sides.then(other.sides)
        s1, s2 = self.s1 + other.s1, self.s2 + other.s2
        return replace(self, matches=matches, sides=sides, s1=s1, s2=s2)

    def numbers(self, other: Candidates | None = None) -> dict[str, Floats]:
        """Return the features of the confidence by name [candidates].

        `other` has the candidates of the other parser, if two parsers are used.
        """
        own = features(self.batch, self.matches, self.sides.spans)
        if other is None:
            return own
        return own | agreement(self, other) | {"second": np.full(len(self), float(self.second))}


def agreement(own: Candidates, other: Candidates) -> dict[str, Floats]:
    """Return how far the other parser agrees with each of `own`, by name [candidates], 0 to 1.

    `agrees`: it gives the same sides; `s1_shared`, `s2_shared`: the Dice coefficient of their
    words, 0 without a pair of this marker; `unmatched`: its tree fits no row of the pattern table;
    `same_...`: the word has the same head, or the same label, in both trees; `same_heads`: the
    share of the sentence's words whose heads are the same.
    """
    batch, matches = own.batch, own.matches
    partner = partners(matches.first, other.matches.first)
    values: dict[str, NDArray[np.bool_] | Floats] = {}
    for number, name in enumerate(("s1_shared", "s2_shared")):
        of_own, of_other = (
            _words(c.batch, c.matches, c.sides.spans[number], which)
            for c, which in ((own, np.arange(len(own))), (other, partner))
        )
        shared = np.intersect1d(of_own, of_other) // len(batch)
        counts = [np.bincount(k // len(batch), minlength=len(own)) for k in (of_own, of_other)]
        dice = 2 * np.bincount(shared, minlength=len(own)) / np.maximum(sum(counts), 1)
        # The sentence before may not be parsed: then both have none of its words.
        values[name] = np.where(sum(counts) > 0, dice, 1.0) * (partner != NONE)
    values["agrees"] = (values["s1_shared"] == 1) & (values["s2_shared"] == 1)
    values["unmatched"] = np.isin(matches.first, other.unmatched)
    same_head = batch.head == other.batch.head
    same_label = same_head & (batch.label == other.batch.label)
    for name, token in (("marker", matches.token), ("s1", matches.s1), ("s2", matches.s2)):
        inside = token >= 0
        values[f"same_{name}_head"] = inside & same_head[token]
        values[f"same_{name}_label"] = inside & same_label[token]
    total = np.concatenate([[0], np.cumsum(same_head)])
    row = batch.row[matches.first]
    begin, end = batch.offsets[row], batch.offsets[row + 1]
    values["same_heads"] = (total[end] - total[begin]) / (end - begin)
    return {name: column.astype(np.float64) for name, column in values.items()}


def partners(first: Ints, others: Ints) -> Ints:
    """Return for each marker its place among the other parser's, `NONE` if it is not there.

    A marker is known by its first token; `others` increases.
    """
    place = np.minimum(np.searchsorted(others, first), max(len(others) - 1, 0))
    if len(others) == 0:
        return np.full(len(first), NONE)
    return np.where(others[place] == first, place, NONE)


def _words(batch: Batch, matches: Matches, column: SpanColumn, rows: Ints) -> Ints:
    """Return the words of the spans in `rows` of a column, as place in `rows` * tokens + token."""
    keys = (batch.row_doc[batch.row].astype(np.int64) << 32) + batch.start
    document = batch.row_doc[batch.row[matches.first]].astype(np.int64) << 32
    chosen = np.flatnonzero(rows != NONE)
    spans = column.take(rows[chosen])
    owner = np.repeat(document[rows[chosen]], spans.counts)
    begin, end = np.searchsorted(keys, owner + np.stack([spans.start, spans.end]))
    size = end - begin
    token = np.arange(int(size.sum())) + np.repeat(begin - (np.cumsum(size) - size), size)
    place = np.repeat(np.repeat(chosen, spans.counts), size)
    return (place.astype(np.int64) * len(batch) + token)[~batch.labelled("punctuation")[token]]


def united(
    first: Candidates, second: Candidates, confidence: Sequence[Confidence], least: float = 0.0
) -> tuple[Candidates, Confidence]:
    """Return for each marker the more certain candidate of two parsers, in the order of the text.

    `confidence` has that of each of `first` and of `second`. Of the second parser's those below
    `least` are left out, and those with a word that belongs to another marker of the first.
    """
    owner = np.full(len(first.batch), NONE)
    which, token = first.matches.marker_tokens()
    owner[token] = which
    partner = partners(second.matches.first, first.matches.first)
    which, token = second.matches.marker_tokens()
    clashes = (owner[token] != NONE) & (owner[token] != partner[which])
    fits = (np.bincount(which[clashes], minlength=len(second)) == 0) & (confidence[1] >= least)
    second, partner = second.take(fits), partner[fits]
    confidence = confidence[0], confidence[1][fits]
    rival = partners(first.matches.first, second.matches.first)
    beaten = rival != NONE
    beaten[beaten] = confidence[0][beaten] < confidence[1][rival[beaten]]
    kept = ~beaten, partner == NONE
    kept[1][~kept[1]] = beaten[partner[~kept[1]]]
    both = first.take(kept[0]).then(second.take(kept[1]))
    chosen = np.concatenate([confidence[0][kept[0]], confidence[1][kept[1]]])
    order = np.argsort(both.matches.first, kind="stable")
    both = both.take(order)
    # A marker that the first parser's tree rejects is no reject any more.
    both.rejected = [_without(item, both.matches.first) for item in first.rejected]
    return both, chosen[order]


def _without(rejected: tuple[Matches, list[str]], first: Ints) -> tuple[Matches, list[str]]:
    """Return the rejected markers that do not begin at one of the tokens `first`."""
    matches, reasons = rejected
    rest = ~np.isin(matches.first, first)
    return matches.take(rest), [reasons[i] for i in np.flatnonzero(rest)]
