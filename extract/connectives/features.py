"""Features of the trees around candidates for connectives, as hashes of categories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from extract.connectives.candidates import NOWHERE, Lexicon, Places
from extract.parse import BoolArray, Ints
from extract.trees import Batch, Lookup

Keys = NDArray[np.uint64]
MAX_DEPTH = 20
MISSING = 40
"""Stands for the distance to a missing token."""
SHAPE = ("finite", "subject", "clause", "statement", "copula", "aux", "to", "mark", "verb")
"""Properties of a head that are one category together."""
CLAUSE = ("finite", "subject", "statement", "to", "mark", "imperative", "wh")
"""Properties of a clause's head that are one category together."""
PAIRS = (
    ("c_deprel", "h_deprel"),
    ("c_deprel", "h_shape"),
    ("h_deprel", "k_clause"),
    ("prev1_xpos", "next1_xpos"),
    ("f_shape", "h_shape"),
    ("f_xpos", "h_xpos"),
    ("words_before", "next1_xpos"),
    ("c_deprel", "next1_xpos"),
    ("c_deprel", "prev1_xpos"),
    ("h_xpos", "h_deprel"),
    ("prev1_form", "next1_xpos"),
    ("c_deprel", "words_before"),
    ("h_shape", "subject_side"),
    ("next1_xpos", "next2_xpos"),
    ("h_distance", "h_xpos"),
    ("g_form", "h_deprel"),
    ("c_xpos", "c_deprel"),
    ("h_shape", "words_before"),
    ("h_right", "h_shape"),
    ("f_shape", "f_size"),
    ("h_shape", "h_size"),
    ("h_left", "words_before"),
    ("prev1_xpos", "h_shape"),
    ("f_distance", "h_size"),
    ("left_verb_xpos", "right_verb_xpos"),
    ("next1_xpos", "right_verb_xpos"),
    ("prev1_xpos", "right_verb_xpos"),
    ("right_verb", "next1_xpos"),
    ("w_xpos", "next1_xpos"),
    ("next1_form", "next2_xpos"),
)
"""Categories that are features together, beside each alone."""
SINGLE = slice(-3 * len(PAIRS))
"""The features without pairs, from which the senses are judged."""


def mixed(*parts: NDArray[Any] | int) -> Keys:
    """Return one hash of several."""
    value: Keys = np.array(1469598103934665603, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            value = (value ^ np.asarray(part).astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            value = value ^ (value >> np.uint64(29))
    return value


def bucket(number: NDArray[Any]) -> Ints:
    """Return 0, 1, 2, 3, 4, 5-7, 8-15, ... as consecutive numbers; negative ones apart."""
    size = np.abs(number.astype(np.int64))
    value = np.where(size < 5, size, 3 + np.log2(np.maximum(size, 1)).astype(np.int64))
    return np.where(number < 0, 32 + value, value)


class Columns:
    """What is known of every token of a batch; the index `NOWHERE` stands for no token."""

    def __init__(self, batch: Batch) -> None:
        self.batch, n = batch, len(batch)
        full = self._lookup("hash", lambda form: crc32(form.lower().encode()))
        suffix = self._lookup("suffix", lambda form: crc32(form.lower()[-3:].encode()))
        columns = ("form", "upos", "xpos", "deprel")
        self.hashes = {name: np.append(full[batch.column(name)], 0) for name in columns}
        self.hashes["suffix"] = np.append(suffix[batch.form], 0)
        self.flags = {name: np.append(flag, False) for name, flag in self._flags().items()}
        self.head = np.append(batch.head, NOWHERE)
        self.conjunct = np.append(batch.previous_conjunct(), NOWHERE)
        self.begin, self.end = batch.offsets[batch.row], batch.offsets[batch.row + 1]
        # The last auxiliary and the first subject of each clause.
        self.aux = np.full(n + 1, NOWHERE, dtype=np.int32)
        children = np.flatnonzero(batch.labelled("auxiliary") & (batch.head >= 0))
        self.aux[batch.head[children]] = children
        subject = np.append(batch.leftmost_child("subject"), n)
        self.subject = np.where(subject < n, subject, NOWHERE)
        self.left, self.right = self._edges()
        # The labels of the children on each side, as a set.
        bit = np.uint64(1) << (full[batch.column("deprel")].astype(np.uint64) % np.uint64(61))
        bit[batch.labelled("punctuation")] = 0
        right = (batch.head >= 0) & (batch.head < batch.tokens)
        for name, side in (("left_kids", batch.head > batch.tokens), ("right_kids", right)):
            kids = np.zeros(n + 1, dtype=np.uint64)
            np.bitwise_or.at(kids, batch.head[side], bit[side])
            self.hashes[name] = mixed(kids)

    def _lookup(self, name: str, value: Callable[[str], int]) -> Lookup:
        """Return the look-up of a value of strings, kept with the batch's table of strings."""
        kept = self.batch.patterns.cache
        return kept.setdefault(
            f"connectives {name}", Lookup(self.batch.patterns.strings, value, np.int64)
        )

    def _flags(self) -> dict[str, BoolArray]:
        """Return properties of tokens by name; `aux`, `to`, `mark` and `wh` are of children."""
        batch = self.batch
        derived = ("finite", "subject", "clause", "statement", "copula", "imperative", "verb")
        child = {
            "aux": batch.labelled("auxiliary"),
            "to": batch.tagged("infinitival"),
            "mark": batch.labelled("subordinator"),
            "wh": batch.tagged("interrogative"),
        }
        return {
            **{name: batch.tagged(name) for name in derived},
            **{name: batch.with_child(flag) for name, flag in child.items()},
            "punct": batch.labelled("punctuation"),
            "comma": batch.listed("comma"),
        }

    def _edges(self) -> tuple[Ints, Ints]:
        """Return the first and the last token of each token's subtree."""
        size = len(self.batch) + 1
        left, right = np.arange(size, dtype=np.int32), np.arange(size, dtype=np.int32)
        ancestor, token = self.batch.head, self.batch.tokens
        for _ in range(MAX_DEPTH):
            token, ancestor = token[ancestor >= 0], ancestor[ancestor >= 0]
            np.minimum.at(left, ancestor, token)
            np.maximum.at(right, ancestor, token)
            ancestor = self.batch.head[ancestor]
        return left, right

    def bits(self, token: Ints, names: tuple[str, ...]) -> Ints:
        """Return flags of tokens as one number each."""
        value = (token == NOWHERE).astype(np.int64) << len(names)
        for place, name in enumerate(names):
            value += self.flags[name][token].astype(np.int64) << place
        return value

    def clause(self, token: Ints) -> Ints:
        """Return the head of the clause of each token: itself or an ancestor."""
        some = token != NOWHERE
        heads = np.full(len(token), NOWHERE, dtype=np.int32)
        heads[some] = self.batch.ascend(token[some], ~self.flags["clause"][:-1])
        return heads

    def same_word(self, token: Ints) -> tuple[Ints, Ints]:
        """Return how far away the same word is in the sentence, as a bucket (0: nowhere): the one
        before and the next one."""
        form, row = self.hashes["form"][:-1], self.batch.row
        order = np.lexsort((form, row))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))

        def away(step: int) -> Ints:
            other = order[np.clip(place[token] + step, 0, len(order) - 1)]
            alike = (row[other] == row[token]) & (form[other] == form[token]) & (other != token)
            return np.where(alike, bucket(np.abs(other - token)) + 1, 0)

        return away(-1), away(1)


def categories(columns: Columns, places: Places, words: Keys) -> dict[str, NDArray[Any]]:
    """Return what the trees say about candidates as categories by name [candidates].

    The letters: `c` is the candidate's anchor, `h` its head, `g` and `gg` the next ones above, `f`
    the conjunct before `h` (or `g`), `k` the head of the clause of `h`, `above` that of the clause
    above, `own` that of the candidate, `w` the word before. `words` [candidates] names candidates.
    """
    batch, head, hashes = columns.batch, columns.head, columns.hashes
    flags, first, last, c = columns.flags, places.first, places.last, places.anchor
    begin, end = columns.begin[first], columns.end[first]

    def near(token: Ints, step: int) -> Ints:
        moved = token + step
        return np.where((token >= 0) & (moved >= begin) & (moved < end), moved, NOWHERE)

    def of(edge: Ints, token: Ints) -> Ints:
        return np.where(token == NOWHERE, NOWHERE, edge[token])

    h = head[c]
    g = head[h]
    k = columns.clause(h)
    above = columns.clause(head[k])
    f = np.where(columns.conjunct[h] == NOWHERE, g, columns.conjunct[h])
    word = np.maximum.accumulate(np.where(columns.flags["punct"], NOWHERE, np.arange(len(head))))
    w = word[near(first, -1)]
    verb = flags["verb"][:-1]
    nearest = np.maximum.accumulate(np.append(np.where(verb, batch.tokens, NOWHERE), NOWHERE))
    left_verb = np.where(near(first, -1) == NOWHERE, NOWHERE, nearest[near(first, -1)])
    far = len(batch)
    coming = np.minimum.accumulate(np.append(np.where(verb, batch.tokens, far), far)[::-1])[::-1]
    right_verb = np.where(near(last, 1) == NOWHERE, far, coming[near(last, 1)])
    token = {
        "left_verb": np.where(left_verb >= begin, left_verb, NOWHERE),
        "right_verb": np.where(right_verb < end, right_verb, NOWHERE),
        **{"c": c, "h": h, "g": g, "gg": head[g], "f": f, "k": k, "above": above},
        "own": columns.clause(c),
        "w": np.where((near(first, -1) != NOWHERE) & (w >= begin), w, NOWHERE),
        **{f"prev{step}": near(first, -step) for step in (1, 2)},
        **{f"next{step}": near(last, step) for step in (1, 2, 3)},
        "second": places.second,
        "edge": of(columns.left, h),
        "behind": near(of(columns.right, h), 1),
        "before": near(of(columns.left, h), -1),
        "final": end - 1,
    }
    groups = {
        "form": "h g prev1 next1 prev2 next2 w k above f edge behind before final",
        "upos": "c h g f",
        "xpos": "c h g f k above gg own prev1 next1 prev2 next2 next3 w second edge behind "
        "left_verb right_verb",
        "deprel": "c h g f k above gg own prev1 next1 prev2 next2 next3 w second",
        **dict.fromkeys(("left_kids", "right_kids", "suffix"), "h f g k above"),
    }
    result: dict[str, NDArray[Any]] = {
        f"{name}_{column}": hashes[column][token[name]]
        for column, names in groups.items()
        for name in names.split()
    }
    for name in ("h", "g", "f", "k", "above"):
        result[f"{name}_aux"] = hashes["form"][of(columns.aux, token[name])]
        result[f"{name}_subject"] = hashes["xpos"][of(columns.subject, token[name])]
    result |= {f"{name}_shape": columns.bits(token[name], SHAPE) for name in ("h", "g", "f")}
    result |= {f"{name}_clause": columns.bits(token[name], CLAUSE) for name in ("k", "above")}
    result["path"] = mixed(hashes["deprel"][c], hashes["deprel"][h], hashes["deprel"][g])
    result["again_before"], result["again_after"] = columns.same_word(first)
    # The candidates around, in the same sentence.
    rows, names = np.pad(batch.row[first], 1, constant_values=-1), np.pad(words, 1)
    result["candidate_before"] = np.where(rows[:-2] == rows[1:-1], names[:-2], np.uint64(0))
    result["candidate_after"] = np.where(rows[2:] == rows[1:-1], names[2:], np.uint64(0))

    def apart(target: Ints, distance: Ints) -> Ints:
        return np.where(target == NOWHERE, MISSING, distance)

    counted = {
        "words": ~flags["punct"],
        "commas": flags["comma"],
        "clauses": flags["clause"] & flags["verb"],
        "finite": flags["finite"],
    }
    total = {name: np.concatenate([[0], np.cumsum(flag)]) for name, flag in counted.items()}
    numbers: dict[str, NDArray[Any]] = {
        **{f"{name}_before": sums[first] - sums[begin] for name, sums in total.items()},
        **{f"{name}_after": sums[end] - sums[last + 1] for name, sums in total.items()},
        "finite_sentence": total["finite"][end] - total["finite"][begin],
        "h_distance": apart(h, h - c),
        "g_distance": apart(g, g - h),
        "f_distance": apart(f, c - f),
        "k_distance": apart(k, k - c),
        "above_distance": apart(above, above - k),
        "h_left": apart(h, first - columns.left[h]),
        "h_right": apart(h, columns.right[h] - last),
        "h_size": apart(h, columns.right[h] - columns.left[h]),
        "f_size": apart(f, columns.right[f] - columns.left[f]),
        "k_left": apart(k, first - columns.left[k]),
        "subject_side": apart(columns.subject[k], np.sign(columns.subject[k] - c)),
        "left_verb": apart(token["left_verb"], first - token["left_verb"]),
        "right_verb": apart(token["right_verb"], token["right_verb"] - last),
        "length": last - first + 1,
        "gap": np.where(places.second == NOWHERE, 0, places.second - last),
        "covered": _longest(places, len(batch))[c] - places.size,
    }
    return result | {name: bucket(number) for name, number in numbers.items()}


def _longest(places: Places, tokens: int) -> Ints:
    """Return for each token the number of tokens of the longest candidate that has it."""
    longest = np.zeros(tokens + 1, dtype=np.int64)
    for begin, end in places.bounds.transpose(1, 2, 0):
        for step in range(int((end - begin).max(initial=-1)) + 1):
            inside = (begin >= 0) & (begin + step <= end)
            np.maximum.at(longest, (begin + step)[inside], places.size[inside])
    return longest


def keys(batch: Batch, places: Places, lexicon: Lexicon) -> Keys:
    """Return the features of candidates as hashes [candidates, features].

    Each category has three columns: alone, with the class of the connective, with the connective.
    The pairs of categories are the last ones (`SINGLE`: all columns but theirs).
    """
    words, kinds = (
        np.array([crc32(name.encode()) for name in names], dtype=np.uint64)[places.entry]
        for names in (lexicon.words, lexicon.classes)
    )
    columns = categories(Columns(batch), places, words)
    columns["word"] = np.zeros(len(places), dtype=np.uint64)
    columns |= {f"{a}+{b}": mixed(columns[a], columns[b]) for a, b in PAIRS}
    rows = []
    for name, column in columns.items():
        seed = crc32(name.encode())
        rows += [
            mixed(seed, column),
            mixed(seed + 1, column, kinds),
            mixed(seed + 2, column, words),
        ]
    return np.array(rows).T
