"""S1 and S2 as spans: the clause of each head minus the other clause, the marker, and commas.

Every token goes with its nearest marked ancestor. S1's head is marked 1, S2's 2, the marker's
tokens and the children that a row drops 0; pointer doubling then carries the marks down to all
tokens of the sentence in log(depth) steps, for all matches of the batch at once. Whatever lies in
both clauses thus goes to the inner one, so that S1 and S2 never overlap. Children that a row mutes
(the "that" or "but" which introduces the clause) are marked 3 and 4: they belong to the span of
S1 and S2 but not to its text. So do the modifiers of the subordinator that opens a clause, be it
the marker ("right after he left") or a muted one ("but only if he left"): UD hangs them on the
clause's head. They are marked 5 and 6 until it is known whether they stand right before it.

What a parse hangs on the marker itself from behind (class `stray`: "but [what remained] went to
her") is the beginning of S2, which the parser could not place; a marker has no such dependents.

A subordinator introduces its clause only from in front of it: "he was to leave", "the plan is that
he leaves" have it behind subject or copula, and would be no sentences without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from extract.batch import Batch, BoolArray, leftmost_child
from extract.candidates import Candidates
from extract.compiled import CompiledPatterns
from extract.matcher import Matches
from extract.parse import Ints

MAX_DOUBLINGS = 32
"""Enough for any depth; a tree with a cycle, which no reader lets through, ends here too."""


WORDS_AT_ONCE = 1 << 20
"""Matches times the tokens of their sentences: a bound on memory, however long a sentence is."""


@dataclass(slots=True)
class Runs:
    """Runs of tokens, one a row: which match, which side (1 or 2), first and last token."""

    match: Ints
    side: NDArray[np.int8]
    first: Ints
    last: Ints


def clause_runs(
    batch: Batch, patterns: CompiledPatterns, found: Candidates, matches: Matches
) -> tuple[Runs, Runs]:
    """The runs of S1 and S2 of every match (S1 only where it lies in the same sentence).

    Twice: all that belongs to them, and what their text is made of.
    """
    rows = batch.row[found.first]
    size = batch.offsets[rows + 1] - batch.offsets[rows]
    block = np.cumsum(size, dtype=np.int64) // WORDS_AT_ONCE
    bounds = [*np.flatnonzero(np.diff(block, prepend=-1)).tolist(), len(rows)]
    parts = []
    for first, last in pairwise(bounds):
        chosen = np.arange(first, last)
        both = _block_runs(batch, patterns, found.take(chosen), matches.take(chosen))
        parts.append([Runs(r.match + first, r.side, r.first, r.last) for r in both])
    if len(parts) == 1:
        return parts[0][0], parts[0][1]
    return _joined([p[0] for p in parts]), _joined([p[1] for p in parts])


def _joined(parts: list[Runs]) -> Runs:
    none = np.empty(0, dtype=np.int32)
    columns = ([getattr(p, name) for p in parts] for name in ("match", "side", "first", "last"))
    return Runs(*(np.concatenate([none, *column]) for column in columns))


def _block_runs(
    batch: Batch, patterns: CompiledPatterns, found: Candidates, matches: Matches
) -> tuple[Runs, Runs]:
    rows = batch.row[found.first]
    begin, size = batch.offsets[rows], batch.offsets[rows + 1] - batch.offsets[rows]
    base = np.cumsum(size, dtype=np.int32) - size
    match = np.repeat(np.arange(len(rows), dtype=np.int32), size)
    token = np.arange(len(match), dtype=np.int32) - np.repeat(base - begin, size)
    side = _sides(batch, patterns, found, matches, match, token, base - begin)
    side = _undivided(batch, match, token, side)
    whole = np.where(side > 2, side - 2, side).astype(np.int8)
    spans = _to_runs(batch, patterns, match, token, whole)
    if not (side > 2).any():
        return spans, spans
    return spans, _to_runs(batch, patterns, match, token, np.where(side > 2, 0, side))


def _sides(
    batch: Batch,
    patterns: CompiledPatterns,
    found: Candidates,
    matches: Matches,
    match: Ints,
    token: Ints,
    shift: Ints,
) -> NDArray[np.int8]:
    """For each (match, token) the side of its nearest marked ancestor."""
    here = np.arange(len(token), dtype=np.int32)
    head = batch.head[token]
    pointer = np.where(head >= 0, head + shift[match], here)
    side = np.zeros(len(token), dtype=np.int8)
    marked = np.zeros(len(token), dtype=bool)
    opener = np.zeros(len(token), dtype=np.int8)
    for children, value, opens in _special(batch, patterns, matches, match, token, head):
        marked[children] = True
        side[children] = value
        opener[children] = opens
    subordinate = patterns.subordinates[matches.row]
    opener[(found.first + shift)[subordinate]] = 2
    same = np.flatnonzero(matches.s1 >= 0)
    s1, s2 = matches.s1[same] + shift[same], matches.s2 + shift
    marked[s1] = marked[s2] = True
    side[s1] = 1
    side[s2] = 2
    for start, length in ((found.first, found.length), (found.second, found.second_length)):
        for k in range(int(length.max(initial=0))):
            of = np.flatnonzero(length > k)
            spot = start[of] + k + shift[of]
            spot = spot[(side[spot] == 0) | (side[spot] > 2)]
            marked[spot], side[spot] = True, 0
    pointer[marked] = here[marked]
    stray = patterns.class_labels["stray"][batch.label[token]] & ~marked
    stray &= (head == found.token[match]) & (token > head)
    pointer[stray] = s2[match[stray]]
    for _ in range(MAX_DOUBLINGS):
        jumped = pointer[pointer]
        if np.array_equal(jumped, pointer):
            break
        pointer = jumped
    side = _without_markers(side[pointer], found, shift)
    words = ~patterns.class_labels["punctuation"][batch.label[token]]
    _give_last_mark(side, batch, patterns, matches, match, token, words)
    return _modifiers_muted(side, opener, words, match)


def _give_last_mark(
    side: NDArray[np.int8],
    batch: Batch,
    patterns: CompiledPatterns,
    matches: Matches,
    match: Ints,
    token: Ints,
    words: BoolArray,
) -> None:
    """Give a "?" or "!" behind S2 to S2 where S2 is a clause beside S1, not one inside it.

    UD hangs it on the root, the first conjunct; but in "I called, but did he answer?" the second
    one asks. It stays where S1 asks itself, and a subordinate clause leaves it to the clause that
    it belongs to.
    """
    marks = np.flatnonzero((side == 1) & ~words)
    marks = marks[patterns.terminal_of(batch.form[token[marks]])]
    marks = marks[~patterns.subordinates[matches.row[match[marks]]]]
    spoken = np.flatnonzero(words)
    at = np.searchsorted(spoken, marks) - 1
    marks, before = marks[at >= 0], spoken[at[at >= 0]]
    behind = (match[before] == match[marks]) & np.isin(side[before], (2, 4, 6))
    marks = marks[behind]
    if len(marks) == 0:
        return
    auxiliary, subject = (
        leftmost_child(batch, patterns.class_labels[name]) for name in ("auxiliary", "subject")
    )
    s1 = matches.s1[match[marks]]
    asks = (auxiliary[s1] < subject[s1]) & (subject[s1] < len(batch))
    own = np.flatnonzero((side == 1) & words)
    opening = token[own[np.searchsorted(match[own], match[marks])]]
    asks |= (batch.traits[opening] & patterns.bits.get("interrogative", 0)) != 0
    side[marks[~asks]] = 2


def _without_markers(side: NDArray[np.int8], found: Candidates, shift: Ints) -> NDArray[np.int8]:
    """The marker's own tokens belong to neither side, even where one of them is a head."""
    for start, length in ((found.first, found.length), (found.second, found.second_length)):
        for k in range(int(length.max(initial=0))):
            of = np.flatnonzero(length > k)
            side[start[of] + k + shift[of]] = 0
    return side


def _modifiers_muted(
    side: NDArray[np.int8], opener: NDArray[np.int8], words: BoolArray, match: Ints
) -> NDArray[np.int8]:
    """The modifiers (5, 6) that a side begins with are muted if its `opener` is the next token."""
    modifier = side > 4
    before = np.zeros(len(side), dtype=bool)
    before[:-1] = modifier[:-1] & (opener[1:] == side[:-1] - 4) & (match[1:] == match[:-1])
    plain = np.where(modifier, side - 4, side).astype(np.int8)
    if not before.any():
        return plain
    change = np.ones(len(side), dtype=bool)
    change[1:] = (side[1:] != side[:-1]) | (match[1:] != match[:-1])
    run = np.cumsum(change) - 1
    fits, begins = np.zeros((2, int(run[-1]) + 1), dtype=bool)
    fits[run[before]] = True
    for number in (1, 2):
        spoken = np.flatnonzero((plain == number) & words)
        begins[run[spoken[np.diff(match[spoken], prepend=-1) > 0]]] = True
    return np.where(modifier & (fits & begins)[run], side - 2, plain).astype(np.int8)


def _special(
    batch: Batch,
    patterns: CompiledPatterns,
    matches: Matches,
    match: Ints,
    token: Ints,
    head: Ints,
) -> Iterator[tuple[Ints, Ints | int, Ints | int]]:
    """Children of the two heads that the row mutes or drops, and modifiers of a subordinator.

    With the mark that they get, and the side (1 or 2) that they open as a muted subordinator.
    """
    s1, s2 = matches.s1[match], matches.s2[match]
    children = np.flatnonzero(((head == s1) | (head == s2)) & (head >= 0))
    match, token, head = match[children], token[children], head[children]
    owner = (head == s2[children]).astype(np.int8)
    other = np.where(owner == 1, s1[children], s2[children])
    place = (token > head).astype(np.int8)
    place[(token > head) & (other > head) & (token > other)] = 2
    traits = batch.traits[token]
    kind = ((traits & patterns.bits["clause"]) != 0).astype(np.int8)
    kind[(traits & patterns.bits["subject"]) != 0] = 2
    rows = matches.row[match]
    where = (rows, owner, place, kind, batch.label[token])
    modifier = patterns.class_labels["modifier"][batch.label[token]]
    yield children[modifier], 5 + owner[modifier], 0
    subordinator = patterns.class_labels["subordinator"][batch.label[token]]
    introduces = _in_front(batch, patterns, match * 2 + owner, token, head)
    muted = patterns.mute[where] & (introduces | ~subordinator)
    subordinator &= patterns.named_of(batch.form[token])
    yield children[muted], 3 + owner[muted], (subordinator * (1 + owner))[muted]
    yield children[patterns.drop[where]], 0, 0


def _in_front(
    batch: Batch, patterns: CompiledPatterns, clause: Ints, token: Ints, head: Ints
) -> BoolArray:
    """Which children stand before the subject, copula, auxiliary and object of their clause."""
    if len(token) == 0:
        return np.zeros(0, dtype=bool)
    first = np.full(int(clause.max()) + 1, len(batch), dtype=np.int32)
    core = np.flatnonzero(patterns.class_labels["core"][batch.label[token]])[::-1]
    first[clause[core]] = token[core]
    return (token < head) & (token < first[clause])


def _undivided(batch: Batch, match: Ints, token: Ints, side: NDArray[np.int8]) -> NDArray[np.int8]:
    """Words that share one span (of a multiword token such as "wanna") stay on one side.

    They go with the first of them, and to neither side if one of them is the marker.
    """
    shared = np.zeros(len(token), dtype=bool)
    shared[1:] = (batch.start[token[1:]] < batch.end[token[:-1]]) & (match[1:] == match[:-1])
    if not shared.any():
        return side
    leaders = np.flatnonzero(~shared)
    lowest = np.minimum.reduceat(side, leaders)
    lowest = np.where(lowest > 0, side[leaders], 0)
    return np.repeat(lowest, np.diff(np.append(leaders, len(token)))).astype(np.int8)


def _to_runs(
    batch: Batch,
    patterns: CompiledPatterns,
    match: Ints,
    token: Ints,
    side: NDArray[np.int8],
) -> Runs:
    """Maximal runs of one side, without the separators at either end of each.

    A run of nothing but punctuation is none, unless it is the mark that ends the sentence.
    """
    inside = np.flatnonzero(side)
    if len(inside) == 0:
        return Runs(match[inside], side[inside], token[inside], token[inside])
    match, token, side = match[inside], token[inside], side[inside]
    change = np.ones(len(token), dtype=bool)
    change[1:] = (np.diff(inside) > 1) | (side[1:] != side[:-1]) | (match[1:] != match[:-1])
    run = np.cumsum(change) - 1
    separator = patterns.separator_of(batch.form[token])  # whatever label a parser gave it
    mark = np.flatnonzero(patterns.class_labels["punctuation"][batch.label[token]] | separator)
    word = np.ones(len(token), dtype=bool)
    word[mark] = patterns.terminal_of(batch.form[token[mark]])
    alive = np.zeros(int(run[-1]) + 1, dtype=bool)
    alive[run[word]] = True
    kept = alive[run]
    kept[separator] = False
    content = np.flatnonzero(kept)
    edge = np.flatnonzero(np.diff(run[content]))
    first = content[np.append(0, edge + 1)] if len(content) else content
    last = content[np.append(edge, len(content) - 1)] if len(content) else content
    return Runs(match[first], side[first], token[first], token[last])
