"""Candidates for explicit connectives: where the words of the lexicon stand."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from extract.parse import Ints
from extract.patterns.table import fold
from extract.trees import Batch, Lookup

LEXICON = Path(__file__).with_name("lexicon.toml")
GAP = " ... "
NOWHERE = -1
"""Stands for a missing token."""
PARTS = 3
"""Parts of a connective, at most."""
NEAREST = 2
SENTENCES_AHEAD = 4
"""How many sentences after its first part the second part of two adverbials may be."""
ANNOUNCING = ("not only", "not just", "either", "neither")
"""First parts that call for a conjunction; "both" is mostly a determiner, and "not" an adverb."""
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

    @property
    def size(self) -> Ints:
        """The number of tokens."""
        length = np.diff(self.bounds)[:, :, 0] + 1
        return np.where(self.bounds[:, :, 0] >= 0, length, 0).sum(axis=1)

    def tokens(self, row: int) -> tuple[int, ...]:
        """Return the tokens of a candidate."""
        parts = self.bounds[row].tolist()
        return tuple(t for a, b in parts if a != NOWHERE for t in range(a, b + 1))


class Finder:
    """Finds the words of a lexicon in batches."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.numbers: dict[str, int] = {}
        self.by_words: defaultdict[Words, list[tuple[Words, ...]]] = defaultdict(list)
        """The parts of each entry, by the first two words (or the one word) of its first part."""
        self.entries: dict[tuple[Words, ...], int] = {}
        for entry, words in enumerate(lexicon.words):
            parts = tuple(tuple(map(self._number, p.split())) for p in words.split(GAP))
            self.by_words[parts[0][:2]].append(parts)
            self.entries[parts] = entry
            # "not only tall but he is also strong" has the form without the second gap.
            if len(parts) == 2 and len(parts[1]) == 2 and words.endswith("but also"):
                apart = (parts[0], parts[1][:1], parts[1][1:])
                self.by_words[parts[0][:2]].append(apart)
                self.entries[apart] = entry
        kinds = dict(zip(lexicon.words, lexicon.classes, strict=True))
        self.adverbials = {
            entry
            for entry, words in enumerate(lexicon.words)
            if GAP in words and all(kinds.get(part) == "adverbial" for part in words.split(GAP))
        }
        """Pairs of adverbials, which may open two sentences: "on the one hand ... on the other"."""
        self.announced = {
            entry
            for entry, words in enumerate(lexicon.words)
            if words.startswith(tuple(f"{part}{GAP}" for part in ANNOUNCING))
        }
        """Conjunctions in two parts whose first part calls for the second."""
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

        Of a part behind a gap the nearest two places in the sentence count. The second of two
        adverbials may be in a later sentence, if none is in the same one.
        """
        number = self.lookup(batch)[batch.form]
        words = [*number.tolist(), 0]  # no word: each word has one behind it
        verbal = (batch.column("xpos") == batch.patterns.strings.code("VBG")).tolist()
        opens = np.zeros(len(self.numbers) + 1, dtype=bool)
        opens[[word for word, *_ in self.by_words]] = True
        begins = np.flatnonzero(opens[number])
        rows: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []
        for token, end in zip(
            begins.tolist(), batch.offsets[batch.row[begins] + 1].tolist(), strict=True
        ):
            one, two = words[token : token + 1], words[token : token + 2]
            for parts in (*self.by_words.get(tuple(one), ()), *self.by_words.get(tuple(two), ())):
                stop = token + len(parts[0])
                if stop > end or tuple(words[token:stop]) != parts[0]:
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
                        or self._ahead(batch, words, part, entry, end)
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

    def _ahead(
        self, batch: Batch, words: list[int], part: Words, entry: int, end: int
    ) -> list[int]:
        """Return the first place of the second of two adverbials in the sentences from `end` on.

        It is a phrase of its own there: in "on the other side" all words depend on another one.
        """
        if entry not in self.adverbials or end == len(batch):
            return []
        row = batch.row[end - 1]
        near = (batch.row_doc == batch.row_doc[row]) & (
            batch.row_sentence <= batch.row_sentence[row] + SENTENCES_AHEAD
        )
        stop = int(batch.offsets[np.flatnonzero(near)[-1] + 1])
        for token in self._later(words, part, end, stop):
            heads = batch.head[token : token + len(part)]
            if ((heads < token) | (heads >= token + len(part))).sum() == 1:
                return [token]
        return []

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
