"""A pattern table as integers: look-up arrays from the codes of one string table."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from extract.parse import BoolArray, Ints, StringTable
from extract.patterns.table import (
    DERIVED,
    LABEL_KEYS,
    PROPERTY_KEYS,
    WORD_KEYS,
    Pattern,
    PatternTable,
    Tags,
)

SEPARATORS = frozenset([*",;:.-–—…•*/", "--", "---", "...", "....", "。", "，", "、", "；", "："])
OPEN_ENDS = frozenset([*":;,-–—", "--", "---", ":—"])
CLAUSE_BREAKS = frozenset([*";:–—；：", "--", "---"])
QUOTES = frozenset([*"“”«»", '"', "``", "''"])
TERMINALS = frozenset(["?", "!", "?!", "!?", "??", "!!", "？", "！"])


class Lookup:
    """`value(string)` for every string of a growing table, computed once for each."""

    def __init__(
        self, strings: StringTable, value: Callable[[str], int | bool], dtype: DTypeLike
    ) -> None:
        self._strings, self._value = strings, value
        self._values: NDArray[Any] = np.empty(0, dtype=dtype)

    def __getitem__(self, codes: Ints) -> NDArray[Any]:
        """The values of the strings with these codes."""
        known = len(self._values)
        if known < len(self._strings):
            new = [self._value(string) for string in self._strings.strings[known:]]
            self._values = np.concatenate([self._values, np.array(new, dtype=self._values.dtype)])
        return self._values.take(codes)


@dataclass(slots=True)
class Row:
    """One pattern as arrays over label and word numbers, and property bits."""

    pattern: Pattern
    index: int
    labels: dict[str, BoolArray]
    words: dict[str, BoolArray]
    bits: dict[str, int]


@dataclass(frozen=True, slots=True)
class WordSequence:
    """A sequence of word numbers, its name, and the marker whose rows it uses.

    `like_second`: the marker with these rows is the second part, not the first.
    """

    words: tuple[int, ...]
    name: str
    like: str
    second: tuple[int, ...] = ()
    last_deprels: tuple[str, ...] = ()
    like_second: bool = False


class CompiledPatterns:
    """The rows of a table for the wanted markers, against the codes of one `StringTable`.

    Strings and labels may come later: the look-up arrays grow with the table. Look-ups by form:
    `word` (its number among the words of markers, 0 for all others), `separator` (punctuation not
    kept at either end of a clause), `terminal` (the mark of a question or an exclamation),
    `asking` (is or holds a question mark), `named` (a marker of the table, selected or not).
    With `modified`, modified forms of markers ("even though") are labelled as the marker.
    """

    def __init__(
        self,
        table: PatternTable,
        markers: Sequence[str],
        strings: StringTable,
        *,
        modified: bool = False,
    ) -> None:
        self.table, self.markers, self.strings = table, tuple(markers), strings
        self.modified = modified
        self._words: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._label_of = np.empty(0, dtype=np.int16)
        self.sequences = self._sequences()
        for row in table.patterns:
            for word in (word for key in WORD_KEYS for word in getattr(row, key)):
                self._word(word)
        self.bits = {
            name: 1 << i for i, name in enumerate(dict.fromkeys((*table.properties, *DERIVED)))
        }
        named = frozenset(map(_fold, table.markers))
        self.word = Lookup(strings, lambda s: self._words.get(_fold(s), 0), np.int16)
        self.separator = Lookup(strings, SEPARATORS.__contains__, bool)
        self.terminal = Lookup(strings, TERMINALS.__contains__, bool)
        self.comma = Lookup(strings, frozenset(",，").__contains__, bool)
        self.clause_break = Lookup(strings, CLAUSE_BREAKS.__contains__, bool)
        self.quote = Lookup(strings, QUOTES.__contains__, bool)
        self.opening_bracket = Lookup(strings, frozenset("([").__contains__, bool)
        self.closing_bracket = Lookup(strings, frozenset(")]").__contains__, bool)
        self.open_end = Lookup(strings, OPEN_ENDS.__contains__, bool)
        self.colon = Lookup(strings, lambda s: s in (":", "："), bool)
        self.asking = Lookup(strings, lambda s: "?" in s or "？" in s, bool)
        self.named = Lookup(strings, lambda s: _fold(s) in named, bool)
        self.listed = {
            name: Lookup(strings, _folded(words), bool) for name, words in table.standalone
        }
        """For each list of `Standalone`, whether a form is in it."""
        self.frequent = Lookup(strings, _folded(table.frequent), bool)
        self.traits = {c: Lookup(strings, self._traits(c), np.int32) for c in Tags.model_fields}
        """By tag column, the property bits of a tag."""
        self.wanted = np.array([s.name in self.markers for s in self.sequences], dtype=bool)
        self.uses = {
            marker: np.array([s.like == marker for s in self.sequences], dtype=bool)
            for marker in dict.fromkeys(row.marker for row in table.patterns)
        }
        """By marker, which sequences use its rows."""
        subordinators = set(table.classes.subordinator)
        self.subordinates = np.array(
            [
                row.s2 == "head" and not subordinators.isdisjoint(row.deprels)
                for row in table.patterns
            ],
            dtype=bool,
        )
        """By row, whether its marker is the subordinator of S2."""
        self._compile_rows()

    def label_of(self, deprels: Ints) -> NDArray[np.int16]:
        """The label numbers of deprel codes; new labels widen every row."""
        missing = len(self.strings) - len(self._label_of)
        if missing > 0:
            unknown = np.full(missing, -1, dtype=np.int16)
            self._label_of = np.concatenate([self._label_of, unknown])
        labels = self._label_of[deprels]
        if len(labels) and labels.min() < 0:
            for code in np.unique(deprels[labels < 0]):
                name = self.strings.strings[code]
                self._label_of[code] = self._labels.setdefault(name, len(self._labels))
            self._compile_rows()
            labels = self._label_of[deprels]
        return labels

    def mask(self, names: Iterable[str]) -> int:
        """The bits of several properties."""
        return sum(self.bits[name] for name in set(names))

    def labels(self, specs: Iterable[str]) -> BoolArray:
        """The labels named: `acl` with its subtypes, `=acl` alone, `@x` the class x."""
        chosen = np.zeros(max(len(self._labels), 1), dtype=bool)
        for spec in specs:
            if spec.startswith("@"):
                chosen |= self.labels(getattr(self.table.classes, spec[1:]))
                continue
            for name, number in self._labels.items():
                if name == spec.removeprefix("=") or name.startswith(f"{spec}:"):
                    chosen[number] = True
        return chosen

    def _traits(self, column: str) -> Callable[[str], int]:
        """A function from a tag of a column to its property bits."""
        wanted = [
            (self.bits[name], frozenset(getattr(tags, column)))
            for name, tags in self.table.properties.items()
        ]

        def read(tag: str) -> int:
            parts = tag.split("|") if column == "feats" else (tag,)
            return sum(bit for bit, values in wanted if not values.isdisjoint(parts))

        return read

    def _word(self, word: str) -> int:
        return self._words.setdefault(_fold(word), len(self._words) + 1)

    def _sequences(self) -> list[WordSequence]:
        """The word sequences to look for, correlatives first, then the longest.

        The selected ones, and those that contain a selected marker's word, which must not be taken
        for that marker.
        """
        single = {word for marker in self.markers for word in marker.split()}
        sequences = {}
        for m in self.table.multiwords:
            words, second = m.words.split(), m.second.split()
            if m.name in self.markers or not single.isdisjoint((*words, *second)):
                as_marker = self.modified and m.modified and m.name not in self.markers
                sequences[m.name] = WordSequence(
                    tuple(map(self._word, words)),
                    m.like if as_marker else m.name,
                    m.like,
                    tuple(map(self._word, second)),
                    m.last_deprels,
                    like_second=m.second == m.like,
                )
        for marker in self.markers:
            if marker not in sequences:
                words = marker.split()
                sequences[marker] = WordSequence(tuple(map(self._word, words)), marker, marker)
        return sorted(sequences.values(), key=lambda s: (-len(s.second), -len(s.words)))

    def _compile_rows(self) -> None:
        """Translate rows and classes for the labels known by now.

        `drop` and `mute` say which children a side loses: [row, side, place, kind, label].
        """
        self.classes = {name: self.labels(labels) for name, labels in self.table.classes}
        self.last_labels = [self.labels(s.last_deprels) for s in self.sequences]
        self.rows = [self._row(i, pattern) for i, pattern in enumerate(self.table.patterns)]
        self.rows_of: dict[str, list[Row]] = {}
        for row in self.rows:
            if self.uses[row.pattern.marker].any():
                self.rows_of.setdefault(row.pattern.marker, []).append(row)
        shape = (len(self.rows), 2, 3, 3, max(len(self._labels), 1))
        self.drop, self.mute = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        for row in self.rows:
            for side, name in enumerate(("s1", "s2")):
                for array, kind in ((self.drop, "drop"), (self.mute, "mute")):
                    own = getattr(row.pattern, f"{name}_{kind}")
                    default = getattr(self.table.spans, f"{name}_{kind}")
                    for spec in default if own is None else own:
                        self._add_children(array[row.index, side], spec)

    def _add_children(self, chosen: BoolArray, spec: str) -> None:
        """Enter one entry of `s1_drop`, `s1_mute`, ... into `chosen[place, kind, label]`.

        `<advcl` is one to the left of the head, `>advcl` to the right, `>>advcl` to the right
        and beyond the other clause's head. Kinds: 0 no predicate, 1 a predicate, 2 one with its
        own subject; `conj+clause` is a conjunct of kind 1 or 2, `conj+subject` of kind 2.
        """
        label, _, kind = spec.lstrip("<>").partition("+")
        arrows = spec[: len(spec) - len(spec.lstrip("<>"))]
        places = {"": (0, 1, 2), "<": (0,), ">": (1, 2), ">>": (2,)}[arrows]
        for place in places:
            chosen[place, {"": 0, "clause": 1, "subject": 2}[kind] :] |= self.labels([label])

    def _row(self, index: int, pattern: Pattern) -> Row:
        labels = {key: self.labels(getattr(pattern, key)) for key in LABEL_KEYS}
        for key in ("s1_deprels", "s2_deprels"):
            if not getattr(pattern, key):
                labels[key] = np.ones_like(labels[key])
        words = {key: self._word_set(getattr(pattern, key)) for key in WORD_KEYS}
        bits = {key: self.mask(getattr(pattern, key)) for key in PROPERTY_KEYS}
        return Row(pattern, index, labels, words, bits)

    def _word_set(self, words: Iterable[str]) -> BoolArray:
        """Which words, by their numbers, `words` are."""
        chosen = np.zeros(len(self._words) + 1, dtype=bool)
        chosen[[self._words[_fold(word)] for word in words]] = True
        return chosen


def _folded(words: Iterable[str]) -> Callable[[str], bool]:
    """A function that says whether a string is one of the words."""
    names = frozenset(map(_fold, words))
    return lambda string: _fold(string) in names


def _fold(word: str) -> str:
    """A word with case, apostrophes and accents normalised."""
    folded = word.lower().replace("’", "'")
    return folded if folded.isascii() else unicodedata.normalize("NFC", folded)
