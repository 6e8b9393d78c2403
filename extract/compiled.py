"""A pattern table as integers: look-up arrays from the codes of one string table."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extract.lookup import Lookup
from extract.parse import Ints, StringTable
from extract.patterns import DERIVED, Pattern, PatternTable
from extract.rows import CLASSES, TAG_COLUMNS

SEPARATORS = frozenset([*",;:.-–—…•*/", "--", "---", "...", "....", "。", "，", "、", "；", "："])
TERMINALS = frozenset(["?", "!", "?!", "!?", "??", "!!", "？", "！"])


@dataclass(slots=True)
class Row:
    """One pattern with its labels and properties as numbers.

    `deprels`, `s2_deprels`, `s1_deprels`, `s1_not` and `climb` are boolean arrays over label
    numbers, `not_before` over word numbers; the rest are bits of properties.
    """

    pattern: Pattern
    index: int
    deprels: NDArray[np.bool_]
    s2_deprels: NDArray[np.bool_] | None
    s1_deprels: NDArray[np.bool_] | None
    s1_not: NDArray[np.bool_] | None
    climb: NDArray[np.bool_] | None
    not_before: NDArray[np.bool_] | None
    tags: int
    s2_needs: int
    s2_lacks: int
    s1_needs: int
    s1_lacks: int


class CompiledPatterns:
    """The rows of a table for the wanted markers, against the codes of one `StringTable`.

    Strings and labels may come later: the look-up arrays grow with the table.
    """

    def __init__(self, table: PatternTable, markers: Sequence[str], strings: StringTable) -> None:
        self.table, self.markers, self.strings = table, tuple(markers), strings
        self.words: dict[str, int] = {}
        self.bits = {
            name: 1 << i for i, name in enumerate(dict.fromkeys((*table.properties, *DERIVED)))
        }
        self._labels: dict[str, int] = {}
        self._label_of = np.empty(0, dtype=np.int16)
        self._word_numbers = Lookup(strings, lambda s: self.words.get(_fold(s), 0), np.int16)
        self._separators = Lookup(strings, SEPARATORS.__contains__, bool)
        self._terminals = Lookup(strings, TERMINALS.__contains__, bool)
        self._asking = Lookup(strings, lambda s: "?" in s or "？" in s, bool)
        named = frozenset(map(_fold, table.markers))
        self._named = Lookup(strings, lambda s: _fold(s) in named, bool)
        self._traits = {c: Lookup(strings, self._trait_reader(c), np.int32) for c in TAG_COLUMNS}
        self.sequences = self._sequences()
        self.wanted = np.array([s.name in self.markers for s in self.sequences], dtype=bool)
        for row in table.patterns:
            for word in row.not_before:
                self._word(word)
        self.uses = {
            row.marker: np.array([s.like == row.marker for s in self.sequences], dtype=bool)
            for row in table.patterns
        }
        subordinators = table.classes.get("subordinator", ())
        self.subordinates = np.array(
            [
                p.s2 == "head" and not set(subordinators).isdisjoint(p.deprels)
                for p in table.patterns
            ],
            dtype=bool,
        )
        self._compile_rows()

    def label_of(self, deprels: Ints) -> NDArray[np.int16]:
        """The label numbers of deprel codes; new labels widen every row."""
        self._label_of = _grown(self._label_of, len(self.strings), -1)
        found = self._label_of[deprels]
        if len(found) and found.min() < 0:
            for code in np.unique(deprels[found < 0]):
                name = self.strings.strings[code]
                self._label_of[code] = self._labels.setdefault(name, len(self._labels))
            self._compile_rows()
            found = self._label_of[deprels]
        return found

    def word_of(self, forms: Ints) -> NDArray[np.int16]:
        """The numbers of the words of markers among `forms`, whatever their case; 0 = other."""
        return self._word_numbers[forms]

    def separator_of(self, forms: Ints) -> NDArray[np.bool_]:
        """Which forms are punctuation that a clause neither begins nor ends with."""
        return self._separators[forms]

    def terminal_of(self, forms: Ints) -> NDArray[np.bool_]:
        """Which forms are the mark of a question or an exclamation."""
        return self._terminals[forms]

    def asking_of(self, forms: Ints) -> NDArray[np.bool_]:
        """Which forms are or hold a question mark."""
        return self._asking[forms]

    def named_of(self, forms: Ints) -> NDArray[np.bool_]:
        """Which forms are a marker of the table, asked for or not."""
        return self._named[forms]

    def tag_traits(self, **columns: Ints) -> NDArray[np.int32]:
        """The bits of the properties that the tags of each token give it, by tag column."""
        found = [self._traits[name][codes] for name, codes in columns.items()]
        return np.bitwise_or.reduce(found)

    def mask(self, names: Iterable[str]) -> int:
        """The bits of several properties."""
        return sum(self.bits[name] for name in set(names))

    def _trait_reader(self, column: str) -> Callable[[str], int]:
        """What gives the bits of the properties that one tag of a column stands for."""
        wanted = [
            (self.bits[name], frozenset(columns[column]))
            for name, columns in self.table.properties.items()
            if column in columns
        ]

        def read(tag: str) -> int:
            parts = tag.split("|") if column == "feats" else (tag,)
            return sum(bit for bit, values in wanted if not values.isdisjoint(parts))

        return read

    def _word(self, word: str) -> int:
        return self.words.setdefault(_fold(word), len(self.words) + 1)

    def _sequences(self) -> list[WordSequence]:
        """The word sequences to look for, correlatives first, then the longest.

        Those that were asked for, and those that hold the word of one: it must not be taken
        for that word.
        """
        single = {word for marker in self.markers for word in marker.split()}
        found = [
            WordSequence(
                words=tuple(map(self._word, m.words)),
                name=m.name,
                like=m.like,
                second=tuple(map(self._word, m.second)),
                last_deprels=m.last_deprels,
                like_second=" ".join(m.second) == m.like,
            )
            for m in self.table.multiwords
            if m.name in self.markers or not single.isdisjoint((*m.words, *m.second))
        ]
        known = {sequence.name for sequence in found}
        found += [
            WordSequence(tuple(map(self._word, marker.split())), marker, marker, ())
            for marker in self.markers
            if marker not in known
        ]
        return sorted(found, key=lambda s: (-len(s.second), -len(s.words)))

    def _compile_rows(self) -> None:
        """Translate rows and classes for the labels known by now."""
        self.class_labels = {
            name: self._mask_of_labels(self.table.classes.get(name, ())) for name in CLASSES
        }
        self.last_labels = [self._mask_of_labels(s.last_deprels) for s in self.sequences]
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
                    default = self.table.spans.get(f"{name}_{kind}", ())
                    for spec in default if own is None else own:
                        self._add_children(array[row.index, side], spec)

    def _add_children(self, chosen: NDArray[np.bool_], spec: str) -> None:
        """Enter one entry of `s1_drop`, `s1_mute`, ... into `chosen[place, kind, label]`.

        `<advcl` is one to the left of the head, `>advcl` to the right, `>>advcl` to the right
        and beyond the other clause's head. Kinds: 0 no predicate, 1 a predicate, 2 one with its
        own subject; `conj+clause` is a conjunct of kind 1 or 2, `conj+subject` of kind 2.
        """
        label, _, kind = spec.lstrip("<>").partition("+")
        places = {"": (0, 1, 2), "<": (0,), ">": (1, 2), ">>": (2,)}[
            spec[: len(spec) - len(spec.lstrip("<>"))]
        ]
        mask = self._mask_of_labels([label])
        for place in places:
            chosen[place, {"": 0, "clause": 1, "subject": 2}[kind] :] |= mask

    def _row(self, index: int, pattern: Pattern) -> Row:
        return Row(
            pattern=pattern,
            index=index,
            deprels=self._mask_of_labels(pattern.deprels),
            s2_deprels=self._mask_of_labels(pattern.s2_deprels) if pattern.s2_deprels else None,
            s1_deprels=self._mask_of_labels(pattern.s1_deprels) if pattern.s1_deprels else None,
            s1_not=self._mask_of_labels(pattern.s1_not) if pattern.s1_not else None,
            climb=self._mask_of_labels(pattern.climb) if pattern.climb else None,
            not_before=self._mask_of_words(pattern.not_before) if pattern.not_before else None,
            tags=self.mask(pattern.tags),
            s2_needs=self.mask(pattern.s2_needs),
            s2_lacks=self.mask(pattern.s2_lacks),
            s1_needs=self.mask(pattern.s1_needs),
            s1_lacks=self.mask(pattern.s1_lacks),
        )

    def _mask_of_words(self, words: Iterable[str]) -> NDArray[np.bool_]:
        mask = np.zeros(len(self.words) + 1, dtype=bool)
        mask[[self.words[_fold(word)] for word in words]] = True
        return mask

    def _mask_of_labels(self, specs: Iterable[str]) -> NDArray[np.bool_]:
        """Which labels the specs name: `acl` with its subtypes, `=acl` alone, `@x` the class x."""
        mask = np.zeros(max(len(self._labels), 1), dtype=bool)
        for spec in specs:
            if spec.startswith("@"):
                mask |= self._mask_of_labels(self.table.classes.get(spec[1:], ()))
                continue
            for name, number in self._labels.items():
                mask[number] |= (
                    name == spec[1:]
                    if spec.startswith("=")
                    else (name == spec or name.startswith(f"{spec}:"))
                )
        return mask


@dataclass(frozen=True, slots=True)
class WordSequence:
    """A sequence of word numbers, the name it is labelled with, and whose rows it uses.

    `like_second`: the marker with these rows is the second part, not the first.
    """

    words: tuple[int, ...]
    name: str
    like: str
    second: tuple[int, ...]
    last_deprels: tuple[str, ...] = ()
    like_second: bool = False


def _fold(word: str) -> str:
    """A word whatever its case, its apostrophe, and the way that its accents are written."""
    folded = word.lower().replace("’", "'")
    return folded if folded.isascii() else unicodedata.normalize("NFC", folded)


def _grown(array: NDArray[np.int16], size: int, value: int) -> NDArray[np.int16]:
    extra = np.full(max(size - len(array), 0), value, dtype=np.int16)
    return np.concatenate([array, extra]) if len(extra) else array
