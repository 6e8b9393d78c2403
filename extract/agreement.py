"""Compare the candidates of two parsers, and choose between them.

The two parsers make different errors, so a pair that both give is right more often than a pair of
only one. Their agreement is an input of the confidence (`extract.confidence`); if they give two
pairs for a marker, the more confident one is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from extract.clauses import Sides
from extract.confidence import Floats, features
from extract.match import Matches
from extract.parse import BoolArray, Ints
from extract.trees import Batch

Confidence = NDArray[np.float32]
NONE = -1
"""Stands for the index of a missing candidate."""


@dataclass(slots=True)
class Candidates:
    """The candidates of a batch by one parser's trees: matches with both sides and their texts.

    `rejected` has the markers that are no candidates, with a reason for each; `unmatched` has the
    first tokens of those that match no row of the pattern table.
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
        """Return some candidates: flags [candidates] mark them, or `rows` are their numbers."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        s1, s2 = ([texts[i] for i in rows.tolist()] for texts in (self.s1, self.s2))
        matches, sides = self.matches.take(rows), self.sides.take(rows)
        return replace(self, matches=matches, sides=sides, s1=s1, s2=s2)

    def then(self, other: Candidates) -> Candidates:
        """Return these candidates, then those of the other parser, without the latter's rejects."""
        matches, sides = self.matches.then(other.matches), self.sides.then(other.sides)
        s1, s2 = self.s1 + other.s1, self.s2 + other.s2
        return replace(self, matches=matches, sides=sides, s1=s1, s2=s2)

    def features(self, other: Candidates | None = None) -> dict[str, Floats]:
        """Return the inputs of `confidence.Model` by name, each a column [candidates].

        With the candidates of an `other` parser, they include the agreement of the two.
        """
        columns = features(self.batch, self.matches, self.sides.spans)
        if other is None:
            return columns
        second = np.full(len(self), float(self.second))
        return columns | agreement(self, other) | {"second": second}


def agreement(candidates: Candidates, other: Candidates) -> dict[str, Floats]:
    """Return how far another parser agrees with each candidate: columns [candidates], 0 to 1.

    `agrees`: it gives the same sides; `s1_shared`, `s2_shared`: the Dice coefficient of their
    words, 0 without a pair of this marker; `unmatched`: its tree fits no row of the pattern table;
    `same_...`: the word has the same head, or the same label, in both trees; `same_heads`: the
    share of the sentence's words whose heads are the same.
    """
    batch, matches, count = candidates.batch, candidates.matches, len(candidates)
    partner = partners(matches.first, other.matches.first)
    values: dict[str, NDArray[np.bool_] | Floats] = {}
    for number, name in enumerate(("s1_shared", "s2_shared")):
        words = _words(candidates, number, np.arange(count))
        other_words = _words(other, number, partner)
        shared = np.intersect1d(words, other_words) // len(batch)
        sizes = sum(np.bincount(w // len(batch), minlength=count) for w in (words, other_words))
        dice = 2 * np.bincount(shared, minlength=count) / np.maximum(sizes, 1)
        # A previous sentence that is not parsed has no words: its spans are then the same.
        values[name] = np.where(sizes > 0, dice, 1.0) * (partner != NONE)
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
    """Return the index in `others` of each marker in `first`; `NONE` if it is not in `others`.

    Both have the first tokens of markers; `others` is in increasing order.
    """
    # The place where each marker would be; one behind all others is compared with the last.
    index = np.minimum(np.searchsorted(others, first), max(len(others) - 1, 0))
    if len(others) == 0:
        return np.full(len(first), NONE)
    return np.where(others[index] == first, index, NONE)


def _words(candidates: Candidates, side: int, rows: Ints) -> Ints:
    """Return the words of one side (0: S1, 1: S2) of the candidates `rows`, each as one number.

    The number is (index in `rows`) * (tokens of the batch) + (token). A row `NONE` has no words.
    """
    batch, matches = candidates.batch, candidates.matches
    # Tokens are looked up by document (the high bits) and place in its text.
    keys = (batch.row_doc[batch.row].astype(np.int64) << 32) + batch.start
    document = batch.row_doc[batch.row[matches.first]].astype(np.int64) << 32
    chosen = np.flatnonzero(rows != NONE)
    spans = candidates.sides.spans[side].take(rows[chosen])
    owner = np.repeat(document[rows[chosen]], spans.counts)
    begin, end = np.searchsorted(keys, owner + np.stack([spans.start, spans.end]))
    size = end - begin
    # The tokens `begin[i]:end[i]` of all spans, one after another
    token = np.arange(int(size.sum())) + np.repeat(begin - (np.cumsum(size) - size), size)
    index = np.repeat(np.repeat(chosen, spans.counts), size)
    return (index.astype(np.int64) * len(batch) + token)[~batch.labelled("punctuation")[token]]


def united(
    first: Candidates, second: Candidates, confidence: Sequence[Confidence]
) -> tuple[Candidates, Confidence]:
    """Return for each marker the more confident candidate of two parsers, in the order of the text.

    `confidence` has the confidences of `first` and those of `second`. A candidate of `second` is
    left out if one of its marker's words belongs to another marker of `first`.
    """
    marker_of = np.full(len(first.batch), NONE)  # by token, the candidate of `first`
    index, token = first.matches.marker_tokens()
    marker_of[token] = index
    partner = partners(second.matches.first, first.matches.first)
    index, token = second.matches.marker_tokens()
    clashes = (marker_of[token] != NONE) & (marker_of[token] != partner[index])
    fits = np.bincount(index[clashes], minlength=len(second)) == 0
    second, partner = second.take(fits), partner[fits]
    of_first, of_second = confidence[0], confidence[1][fits]
    rival = partners(first.matches.first, second.matches.first)
    less_sure = rival != NONE  # candidates of `first` that `second` replaces
    less_sure[less_sure] = of_first[less_sure] < of_second[rival[less_sure]]
    surer = partner == NONE  # candidates of `second` to take
    surer[~surer] = less_sure[partner[~surer]]
    both = first.take(~less_sure).then(second.take(surer))
    confidences = np.concatenate([of_first[~less_sure], of_second[surer]])
    order = np.argsort(both.matches.first, kind="stable")
    both = both.take(order)
    # A marker that the first parser's tree rejects may be a pair of the second's.
    both.rejected = [_without(item, both.matches.first) for item in first.rejected]
    return both, confidences[order]


def _without(rejected: tuple[Matches, list[str]], first: Ints) -> tuple[Matches, list[str]]:
    """Return the rejected markers that do not begin at one of the tokens `first`."""
    matches, reasons = rejected
    rest = ~np.isin(matches.first, first)
    return matches.take(rest), [reasons[i] for i in np.flatnonzero(rest)]
