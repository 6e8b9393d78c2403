"""Candidates for explicit connectives, and features of the trees around them."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from extract.parse import Ints
from extract.patterns.table import fold
from extract.trees import Batch, Lookup

LEXICON = Path(__file__).with_name("lexicon.toml")
GAP = " ... "
Hashes = NDArray[np.uint32]
Floats = NDArray[np.float32]
NOWHERE = -1
"""Stands for a missing token."""
MAX_DEPTH = 20
PARTS = 3
"""Parts of a connective, at most."""
NEAREST = 2
Words = tuple[int, ...]


@dataclass(frozen=True)
class Lexicon:
    """The connectives by their words: `words[i]` belongs to the class `classes[i]`."""

    words: tuple[str, ...]
    classes: tuple[str, ...]

    @classmethod
    @cache
    def english(cls) -> Lexicon:
        """Return the shipped lexicon."""
        table = tomllib.loads(LEXICON.read_text(encoding="utf-8"))
        pairs = [(word, name) for name, words in table.items() for word in words]
        return cls(*zip(*pairs, strict=True))


@dataclass(slots=True)
class Places:
    """Where words of the lexicon stand in a batch, as columns [candidates].

    Each is the entry `entry` of the lexicon. `bounds` [candidates, `PARTS`, 2] has the first and
    last token of each of its parts (-1: no such part). `anchor` is the token of the first part
    whose head is outside of it.
    """

    entry: Ints
    bounds: Ints
    anchor: Ints

    def __len__(self) -> int:
        return len(self.entry)

    @property
    def first(self) -> Ints:
        """The first token of the first part."""
        return self.bounds[:, 0, 0]

    @property
    def last(self) -> Ints:
        """The last token of the first part."""
        return self.bounds[:, 0, 1]

    @property
    def second(self) -> Ints:
        """The first token of the second part, `NOWHERE` without one."""
        return self.bounds[:, 1, 0]

    def tokens(self, row: int) -> tuple[int, ...]:
        """Return the tokens of a candidate."""
        parts = self.bounds[row].tolist()
        return tuple(t for a, b in parts if a != NOWHERE for t in range(a, b + 1))


class Finder:
    """Finds the words of a lexicon in batches."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.numbers: dict[str, int] = {}
        self.by_first: defaultdict[int, list[tuple[Words, ...]]] = defaultdict(list)
        """The parts of each entry, by the number of its first word."""
        self.entries: dict[tuple[Words, ...], int] = {}
        for entry, words in enumerate(lexicon.words):
            parts = tuple(tuple(map(self._number, p.split())) for p in words.split(GAP))
            self.by_first[parts[0][0]].append(parts)
            self.entries[parts] = entry
            # "not only tall but he is also strong" has the form without the second gap.
            if len(parts) == 2 and len(parts[1]) == 2 and words.endswith("but also"):
                apart = (parts[0], parts[1][:1], parts[1][1:])
                self.by_first[parts[0][0]].append(apart)
                self.entries[apart] = entry
        self.gerundial = {i for i, name in enumerate(lexicon.classes) if name == "gerundial"}

    def _number(self, word: str) -> int:
        return self.numbers.setdefault(word, len(self.numbers) + 1)

    def lookup(self, batch: Batch) -> Lookup:
        """Return the look-up of the words' numbers among the strings of a batch."""
        cache = batch.patterns.cache
        if "connective words" not in cache:
            value = lambda form: self.numbers.get(fold(form), 0)  # noqa: E731
            cache["connective words"] = Lookup(batch.patterns.strings, value, np.int16)
        return cache["connective words"]

    def find(self, batch: Batch) -> Places:
        """Return all places of the lexicon's words in a batch, in the order of the text.

        Of a part behind a gap the nearest two places in the sentence count.
        """
        number = self.lookup(batch)[batch.form]
        words = number.tolist()
        verbal = (batch.column("xpos") == batch.patterns.strings.code("VBG")).tolist()
        opens = np.zeros(len(self.numbers) + 1, dtype=bool)
        opens[list(self.by_first)] = True
        begins = np.flatnonzero(opens[number])
        rows: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []
        for token, end in zip(
            begins.tolist(), batch.offsets[batch.row[begins] + 1].tolist(), strict=True
        ):
            for parts in self.by_first[words[token]]:
                stop = token + len(parts[0])
                if len(parts[0]) > 1 and tuple(words[token : min(stop, end)]) != parts[0]:
                    continue
                entry = self.entries[parts]
                if entry in self.gerundial and not any(verbal[stop : min(stop + 2, end)]):
                    continue
                chains: list[tuple[tuple[int, int], ...]] = [((token, stop - 1),)]
                for part in parts[1:]:
                    chains = [
                        (*chain, (place, place + len(part) - 1))
                        for chain in chains
                        for place in self._later(words, part, chain[-1][1] + 2, end)
                    ]
                rows += [(token, entry, chain) for chain in chains]
        rows.sort()
        bounds = np.full((len(rows), PARTS, 2), NOWHERE, dtype=np.int32)
        for row, (_, _, chain) in enumerate(rows):
            bounds[row, : len(chain)] = chain
        anchor = bounds[:, 0, 0].copy()
        for row in np.flatnonzero(bounds[:, 0, 1] > anchor).tolist():
            first, last = bounds[row, 0].tolist()
            heads = batch.head[first : last + 1]
            outside = np.flatnonzero((heads < first) | (heads > last))
            anchor[row] += outside[0] if len(outside) else 0
        return Places(np.array([entry for _, entry, _ in rows], dtype=np.int32), bounds, anchor)

    @staticmethod
    def _later(words: list[int], part: Words, start: int, end: int) -> list[int]:
        """Return the first places of a part's words between two tokens, at most `NEAREST`."""
        size, places = len(part), list[int]()
        for token in range(start, end - size + 1):
            if words[token] == part[0] and tuple(words[token : token + size]) == part:
                places.append(token)
                if len(places) == NEAREST:
                    break
        return places


def string_hashes(batch: Batch) -> Lookup:
    """Return the look-up of stable hashes of strings (folded to lower case if they are words)."""
    cache = batch.patterns.cache
    if "string hashes" not in cache:
        value = lambda form: crc32(form.lower().encode())  # noqa: E731
        cache["string hashes"] = Lookup(batch.patterns.strings, value, np.uint32)
    return cache["string hashes"]


class Columns:
    """Hashes and numbers of every token of a batch; index `NOWHERE` is that of no token."""

    def __init__(self, batch: Batch) -> None:
        self.batch, n = batch, len(batch)
        lookup = string_hashes(batch)
        self.hashes = {
            name: np.append(lookup[batch.column(name)], np.uint32(0))
            for name in ("form", "upos", "xpos", "deprel")
        }
        names = ("finite", "subject", "clause", "statement", "object", "copula", "imperative")
        self.flags = {name: np.append(batch.tagged(name), False) for name in names}
        strings = batch.patterns.strings
        xpos, upos, form = batch.column("xpos"), batch.column("upos"), batch.form
        of = lambda column, *values: np.isin(column, strings.codes(values))  # noqa: E731
        auxiliary = batch.labelled("auxiliary")
        negation = batch.patterns.forms["denying"][form]
        kinds = {
            "aux": auxiliary,
            "modal": of(xpos, "MD"),
            "to": of(xpos, "TO"),
            "neg": negation,
            "mark": batch.labelled("subordinator"),
            "cc": of(upos, "CCONJ"),
            "wh": of(xpos, "WDT", "WP", "WP$", "WRB"),
            "that": of(form, "that", "That"),
            "case": batch.labelled("case"),
            "conj": batch.labelled("conjunct"),
        }
        self.flags |= {
            name: np.append(batch.with_child(flag), False) for name, flag in kinds.items()
        }
        self.flags["verb"] = np.append(batch.tagged("verb"), False)
        self.flags["past"] = np.append(of(xpos, "VBD"), False)
        self.flags["gerund"] = np.append(of(xpos, "VBG"), False)
        self.head = np.append(batch.head, NOWHERE)
        self.punct = np.append(batch.labelled("punctuation"), False)
        self.comma = np.append(batch.listed("comma"), False)
        self.break_ = np.append(batch.listed("clause_break"), False)
        self.begin = batch.offsets[batch.row]
        self.end = batch.offsets[batch.row + 1]
        # The nearest auxiliary child to the left, and the subject.
        aux = np.full(n + 1, NOWHERE, dtype=np.int32)
        children = np.flatnonzero(auxiliary & (batch.head >= 0))
        aux[batch.head[children]] = children
        self.aux = aux
        subject = batch.leftmost_child("subject")
        self.subject = np.append(np.where(subject < n, subject, NOWHERE), NOWHERE)
        # Edges of subtrees.
        left, right = np.arange(n + 1, dtype=np.int32), np.arange(n + 1, dtype=np.int32)
        ancestor, token = batch.head.copy(), np.arange(n)
        depth = np.zeros(n + 1, dtype=np.int32)
        for _ in range(MAX_DEPTH):
            going = ancestor >= 0
            ancestor, token = ancestor[going], token[going]
            if not len(token):
                break
            depth[token] += 1
            np.minimum.at(left, ancestor, token)
            np.maximum.at(right, ancestor, token)
            ancestor = batch.head[ancestor]
        self.left, self.right, self.depth = left, right, depth
        self.not_clause = ~self.flags["clause"][:-1]

    def bits(self, token: Ints, names: tuple[str, ...]) -> NDArray[np.uint32]:
        """Return flags of tokens as one number each."""
        value = np.zeros(len(token), dtype=np.uint32)
        for place, name in enumerate(names):
            value += self.flags[name][token].astype(np.uint32) << np.uint32(place)
        return value + (token == NOWHERE).astype(np.uint32) * np.uint32(1 << len(names))

    def clause(self, token: Ints) -> Ints:
        """Return the head of the clause of each token: itself or an ancestor."""
        there = np.flatnonzero(token != NOWHERE)
        result = np.full(len(token), NOWHERE, dtype=np.int32)
        result[there] = self.batch.ascend(token[there], self.not_clause)
        return result


SHAPE = ("finite", "subject", "clause", "statement", "copula", "aux", "to", "mark", "verb")
CLAUSE = ("finite", "subject", "statement", "to", "mark", "imperative", "wh")


def bucket(number: Ints) -> NDArray[np.uint32]:
    """Return 0, 1, 2, 3, 4, 5-7, 8-15, ... as consecutive numbers; negative ones are mirrored."""
    size = np.abs(number)
    value = np.where(size < 5, size, 3 + np.log2(np.maximum(size, 1)).astype(np.int32))
    return np.where(number < 0, 32 + value, value).astype(np.uint32)


@dataclass(slots=True)
class Features:
    """Categories (hashes) and numbers of candidates by name [candidates]."""

    categories: dict[str, NDArray[np.uint32]]
    numbers: dict[str, NDArray[np.float32]]


def features(columns: Columns, places: Places, lexicon: Lexicon) -> Features:
    """Return what the trees say about each candidate."""
    batch, head, hashes = columns.batch, columns.head, columns.hashes
    first, last, c = places.first, places.last, places.anchor
    begin, end = columns.begin[first], columns.end[first]
    h = head[c]
    g = head[h]
    gg = head[g]
    k = columns.clause(h)
    above = columns.clause(head[k])
    own = columns.clause(c)
    conjunct = np.append(batch.previous_conjunct(), NOWHERE)
    f = conjunct[h]
    f = np.where(f == NOWHERE, g, f)

    def near(token: Ints, step: int) -> Ints:
        moved = token + step
        return np.where((moved >= begin) & (moved < end), moved, NOWHERE)

    prev1, prev2, next1, next2, next3 = (
        near(first, -1),
        near(first, -2),
        near(last, 1),
        near(last, 2),
        near(last, 3),
    )
    tokens = np.arange(len(batch) + 1)
    word_before = np.maximum.accumulate(np.where(columns.punct, -1, tokens))  # at or before
    w = word_before[prev1]
    w = np.where((prev1 != NOWHERE) & (w >= begin), w, NOWHERE)
    second = places.second
    cats: dict[str, NDArray[Any]] = {}
    for name, token in {"c": c, "h": h, "g": g, "f": f}.items():
        for column in ("upos", "xpos", "deprel"):
            cats[f"{name}_{column}"] = hashes[column][token]
    for name, token in {"k": k, "above": above, "gg": gg, "own": own}.items():
        for column in ("xpos", "deprel"):
            cats[f"{name}_{column}"] = hashes[column][token]
    for name, token in {
        "h": h,
        "g": g,
        "prev1": prev1,
        "next1": next1,
        "prev2": prev2,
        "next2": next2,
        "w": w,
        "k": k,
        "above": above,
        "f": f,
    }.items():
        cats[f"{name}_form"] = hashes["form"][token]
    for name, token in {
        "prev1": prev1,
        "next1": next1,
        "prev2": prev2,
        "next2": next2,
        "next3": next3,
        "w": w,
    }.items():
        cats[f"{name}_xpos"] = hashes["xpos"][token]
        cats[f"{name}_deprel"] = hashes["deprel"][token]
    for name, token in {"h": h, "g": g, "f": f}.items():
        cats[f"{name}_shape"] = columns.bits(token, SHAPE)
    for name, token in {"k": k, "above": above}.items():
        cats[f"{name}_clause"] = columns.bits(token, CLAUSE)
    cats["second_deprel"] = hashes["deprel"][second]
    cats["second_xpos"] = hashes["xpos"][second]
    words = np.concatenate([[0], np.cumsum(~columns.punct[:-1])])
    commas = np.concatenate([[0], np.cumsum(columns.comma[:-1])])
    clauses = np.concatenate(
        [[0], np.cumsum(columns.flags["clause"][:-1] & columns.flags["verb"][:-1])]
    )
    finite = np.concatenate([[0], np.cumsum(columns.flags["finite"][:-1])])

    def between(total: Ints, a: Ints, b: Ints) -> Ints:
        return total[b] - total[a]

    there = lambda token, value: np.where(token == NOWHERE, 40, value)  # noqa: E731
    after = last + 1
    number: dict[str, NDArray[Any]] = {
        "words_before": between(words, begin, first),
        "words_after": between(words, after, end),
        "clauses_before": between(clauses, begin, first),
        "clauses_after": between(clauses, after, end),
        "finite_before": between(finite, begin, first),
        "finite_after": between(finite, after, end),
        "commas_before": between(commas, begin, first),
        "commas_after": between(commas, after, end),
        "h_distance": there(h, h - c),
        "g_distance": there(g, g - h),
        "f_distance": there(f, c - f),
        "h_left": there(h, first - columns.left[h]),
        "h_right": there(h, columns.right[h] - last),
        "h_size": there(h, columns.right[h] - columns.left[h]),
        "f_size": there(f, columns.right[f] - columns.left[f]),
        "k_left": there(k, first - columns.left[k]),
        "k_right": there(k, columns.right[k] - last),
        "k_distance": there(k, k - c),
        "above_distance": there(above, above - k),
        "c_depth": columns.depth[c],
        "c_size": columns.right[c] - columns.left[c],
        "length": last - first + 1,
        "gap": np.where(second == NOWHERE, 0, second - last),
        "same_fh": hashes["xpos"][f] == hashes["xpos"][h],
        "subject_side": there(columns.subject[k], np.sign(columns.subject[k] - c)),
    }
    row = batch.row[first]
    number["first_sentence"] = batch.row_sentence[row] == 0
    number["linked"] = batch.row_linked[row]
    number["ends_document_part"] = columns.break_[np.maximum(end - 1, 0)]
    # How much longer the longest candidate with this word is.
    size = np.where(places.bounds[:, :, 0] >= 0, np.diff(places.bounds)[:, :, 0] + 1, 0).sum(axis=1)
    longest = np.zeros(len(batch) + 1, dtype=np.int32)
    for begins, ends in places.bounds.transpose(1, 2, 0):
        for step in range(int((ends - begins).max(initial=-1)) + 1):
            inside = (begins >= 0) & (begins + step <= ends)
            np.maximum.at(longest, (begins + step)[inside], size[inside])
    number["covered"] = longest[c] - size
    for name, token in {"h": h, "f": f, "k": k, "above": above}.items():
        for flag in columns.flags:
            number[f"{name}_{flag}"] = columns.flags[flag][token]
    for name in (
        "words_before",
        "words_after",
        "clauses_before",
        "clauses_after",
        "h_distance",
        "f_distance",
        "h_left",
        "k_left",
        "h_right",
        "commas_before",
        "covered",
        "length",
        "subject_side",
        "finite_before",
        "finite_after",
        "g_distance",
        "k_distance",
        "above_distance",
        "h_size",
        "f_size",
        "gap",
    ):
        cats[f"{name}"] = bucket(np.asarray(number[name], dtype=np.int32))
    categories = {name: np.asarray(value).astype(np.uint32) for name, value in cats.items()}
    numbers = {name: np.asarray(value).astype(np.float32) for name, value in number.items()}
    return Features(categories, numbers)
