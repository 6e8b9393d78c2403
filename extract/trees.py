"""Parsed documents as one set of flat arrays: what all later steps of extraction read.

A `CompiledPatterns` is a pattern table as look-up arrays over one table of strings; a `Batch` is
several documents whose parses share that table of strings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from corpora.document import Document, Turns
from extract.parse import BoolArray, Ints, ParsedDocument, StringTable
from extract.patterns.table import DERIVED, Multiword, PatternTable, fold

Method = TypeVar("Method", bound=Callable[..., NDArray[Any]])
MAX_DEPTH = 1000
MARKS = {
    "separator": {*",;:.-–—…•*/", "--", "---", "...", "....", "。", "，", "、", "；", "："},
    "open_end": {*":;,-–—", "--", "---", ":—"},
    "clause_break": {*";:–—；：", "--", "---"},
    "quote": {*"“”«»", '"', "``", "''"},
    "opening_bracket": {"(", "["},
    "closing_bracket": {")", "]"},
    "comma": {",", "，"},
    "colon": {":", "："},
}
"""Punctuation: a separator is not kept at either end of a clause, a terminal mark is."""


def once(method: Method) -> Method:
    """A method that keeps its results, by arguments, in `self.cache`; the arrays are read-only."""

    @wraps(method)
    def kept(self: Any, *arguments: Any) -> NDArray[Any]:
        key = (method.__name__, *arguments)
        if key not in self.cache:
            self.cache[key] = method(self, *arguments)
            self.cache[key].flags.writeable = False
        column: NDArray[Any] = self.cache[key]
        return column

    return cast("Method", kept)


class Lookup:
    """`value(string)` for every string of a growing table, computed once for each."""

    def __init__(
        self, strings: StringTable, value: Callable[[str], int | bool], dtype: DTypeLike = bool
    ) -> None:
        self._strings, self._value = strings, value
        self._values: NDArray[Any] = np.empty(0, dtype=dtype)

    def __getitem__(self, codes: Ints) -> NDArray[Any]:
        """The values of the strings with these codes."""
        size = len(self._values)
        if size < len(self._strings):
            new = [self._value(string) for string in self._strings.strings[size:]]
            self._values = np.concatenate([self._values, np.array(new, dtype=self._values.dtype)])
        return self._values.take(codes)


class CompiledPatterns:
    """The rows of a table for the wanted markers, against the codes of one `StringTable`.

    `word` gives a form's number among the words of markers and rows (0 for all others), `forms`
    looks up a form in a list of words, and `tags` a property in a column of tags. Strings and
    labels may come later: the look-up arrays grow with the table.
    With `modified`, modified forms of markers ("even though") are named as the marker.
    """

    def __init__(
        self,
        table: PatternTable,
        markers: Sequence[str],
        strings: StringTable,
        *,
        modified: bool = False,
    ) -> None:
        self.table, self.strings = table, strings
        self.sequences = _sequences(table, markers)
        self.names = [
            s.like if modified and s.modified and s.name not in markers else s.name
            for s in self.sequences
        ]
        """By sequence, the marker that its matches are labelled with."""
        self.wanted = np.array([name in markers for name in self.names], dtype=bool)
        self.users = {
            marker: np.array([s.like == marker for s in self.sequences], dtype=bool)
            for marker in dict.fromkeys(row.marker for row in table.patterns)
        }
        """By marker, which sequences use its rows."""
        subordinators = set(table.classes.subordinator)
        self.subordinates = np.array(
            [r.s2 == "head" and not subordinators.isdisjoint(r.deprels) for r in table.patterns],
            dtype=bool,
        )
        """By row, whether its marker is the subordinator of S2."""
        words = [word for s in self.sequences for word in (*s.words.split(), *s.second.split())]
        for row in table.patterns:
            words += [*row.not_before, *row.after_words, *row.compared, *row.s2_words]
        self._number = {word: n for n, word in enumerate(dict.fromkeys(map(fold, words)), 1)}
        self.word = Lookup(strings, lambda form: self._number.get(fold(form), 0), np.int16)
        lists = {"named": table.markers, "frequent": table.frequent, **dict(table.standalone)}
        self.forms = {name: Lookup(strings, _one_of(words)) for name, words in lists.items()}
        self.forms |= {name: Lookup(strings, marks.__contains__) for name, marks in MARKS.items()}
        self.forms["spelled"] = Lookup(strings, lambda form: any(map(str.isalpha, form)))
        self.forms["terminal"] = Lookup(strings, lambda form: set("?!？！") >= set(form) > set())
        self.forms["asking"] = Lookup(strings, lambda form: "?" in form or "？" in form)
        self.tags = {
            name: {c: Lookup(strings, _tagged(c, values)) for c, values in tags if values}
            for name, tags in table.properties.items()
        }
        self._labels: dict[str, int] = {}
        self.cache: dict[Any, Any] = {}

    def label_of(self, deprels: Ints) -> NDArray[np.int16]:
        """The label numbers of deprel codes."""
        codes = np.flatnonzero(np.bincount(deprels))
        names = [self.strings.strings[code] for code in codes]
        for name in names:
            if name not in self._labels:
                self._labels[name] = len(self._labels)
                self.cache.clear()  # arrays for fewer labels
        number = np.zeros(len(self.strings), dtype=np.int16)
        number[codes] = [self._labels[name] for name in names]
        return number[deprels]

    @once
    def labels(self, specs: tuple[str, ...]) -> BoolArray:
        """Flags of labels: `acl` means it and its subtypes, `=acl` it alone, `@x` a class."""
        flags = np.zeros(max(len(self._labels), 1), dtype=bool)
        for spec in specs:
            if spec.startswith("@"):
                flags |= self.labels(getattr(self.table.classes, spec[1:]))
                continue
            for name, number in self._labels.items():
                if name == spec.removeprefix("=") or name.startswith(f"{spec}:"):
                    flags[number] = True
        return flags

    def numbers(self, words: Iterable[str]) -> list[int]:
        """The numbers of words of markers and rows."""
        return [self._number[fold(word)] for word in words]

    @once
    def words(self, words: tuple[str, ...]) -> BoolArray:
        """Flags of words, by number: whether each is one of `words`."""
        flags = np.zeros(len(self._number) + 1, dtype=bool)
        flags[self.numbers(words)] = True
        return flags

    @once
    def lost(self, how: str) -> BoolArray:
        """The children that a side loses (`how`: `drop` or `mute`) [row, side, place, kind, label].

        Side: 0 is S1, 1 is S2. Place: 0 left of the head, 1 right of it, 2 right of it and beyond
        the other clause's head. Kind: 0 no predicate, 1 a predicate, 2 one with its own subject.
        An entry of `s1_drop`, `s1_mute`, ... is a label, after `<` (place 0), `>` (1 and 2), `>>`
        (2) or nothing (any place), before `+clause` (kinds 1 and 2), `+subject` (2) or nothing.
        """
        patterns, width = self.table.patterns, max(len(self._labels), 1)
        lost = np.zeros((len(patterns), 2, 3, 3, width), dtype=bool)
        places = {"": (0, 1, 2), "<": (0,), ">": (1, 2), ">>": (2,)}
        for index, pattern in enumerate(patterns):
            for side, key in enumerate((f"s1_{how}", f"s2_{how}")):
                specs = getattr(pattern, key)
                for spec in getattr(self.table.spans, key) if specs is None else specs:
                    label_spec = spec.lstrip("<>")
                    label, _, kind = label_spec.partition("+")
                    kinds = slice({"": 0, "clause": 1, "subject": 2}[kind], None)
                    for place in places[spec.removesuffix(label_spec)]:
                        lost[index, side, place, kinds] |= self.labels((label,))
        return lost


class Batch:
    """Token columns [n] and sentence rows [m] of several parsed documents, end to end.

    `head` indexes the token columns (-1: root), `row` gives each token's sentence row, `label` and
    `word` are the compiled numbers of deprel and form. `offsets` [m + 1], `row_doc` and
    `row_sentence` [m] describe the rows.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        parses: Sequence[ParsedDocument],
        patterns: CompiledPatterns,
    ) -> None:
        """Join the parses of `documents`, which must share `patterns.strings`."""
        self.documents, self.parses, self.patterns = documents, parses, patterns
        self.cache: dict[Any, Any] = {}
        sizes = np.array([len(parse.head) for parse in parses], dtype=np.int32)
        shift = np.cumsum(sizes, dtype=np.int32) - sizes
        begins = [p.offsets[:-1] + s for p, s in zip(parses, shift, strict=True)]
        self.offsets = np.concatenate([*begins, [sizes.sum()]]).astype(np.int32)
        head = self.column("head")
        self.head = np.where(head >= 0, head + np.repeat(shift, sizes), -1).astype(np.int32)
        self.start, self.end = self.column("start"), self.column("end")
        self.form = self.column("form")
        self.word = patterns.word[self.form]
        self.label = patterns.label_of(self.column("deprel"))
        rows = [len(parse.sentence) for parse in parses]
        self.row = np.repeat(np.arange(sum(rows), dtype=np.int32), np.diff(self.offsets))
        self.row_doc = np.repeat(np.arange(len(parses), dtype=np.int32), rows)
        self.row_sentence = self.column("sentence").astype(np.int32)
        self.tokens = np.arange(len(self.head), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.head)

    @once
    def column(self, name: str) -> Ints:
        """A column of all parses."""
        return np.concatenate([getattr(parse, name) for parse in self.parses])

    @once
    def under(self, labels: tuple[str, ...]) -> BoolArray:
        """The tokens whose label is one of `labels` (as `CompiledPatterns.labels` reads them)."""
        return self.patterns.labels(labels)[self.label]

    @once
    def labelled(self, name: str) -> BoolArray:
        """The tokens whose label is of the class `name`."""
        return self.patterns.labels((f"@{name}",))[self.label]

    @once
    def listed(self, name: str) -> BoolArray:
        """The tokens whose form is in a list of `Standalone` or of `MARKS`, `named`, ..."""
        return self.patterns.forms[name][self.form]

    @once
    def tagged(self, name: str) -> BoolArray:
        """The tokens with a property: by their tags (some tables lack it), or a derived one."""
        derived = name in DERIVED
        flag = self.derived[name].copy() if derived else np.zeros(len(self), dtype=bool)
        for column, lookup in self.patterns.tags.get(name, {}).items():
            flag |= lookup[self.column(column)]
        return flag

    def rows_with(self, tokens: BoolArray) -> BoolArray:
        """The sentences that have one of the marked tokens."""
        rows = np.zeros(len(self.row_doc), dtype=bool)
        rows[self.row[tokens]] = True
        return rows

    def document(self, token: int) -> Document:
        """The document of a token."""
        return self.documents[self.row_doc[self.row[token]]]

    def has(self, tokens: Ints, needs: Iterable[str], lacks: Iterable[str] = ()) -> BoolArray:
        """Whether the tokens have all properties of `needs` and none of `lacks`."""
        fits = np.ones(len(tokens), dtype=bool)
        for name in needs:
            fits &= self.tagged(name)[tokens]
        for name in lacks:
            fits &= ~self.tagged(name)[tokens]
        return fits

    @once
    def having(self, name: str) -> BoolArray:
        """The tokens that have a child of the class `name`."""
        return self.with_child(self.labelled(name))

    def with_child(self, child: BoolArray) -> BoolArray:
        """The tokens that have one of the marked tokens as a child."""
        parents = self.head[child]
        flag = np.zeros(len(self), dtype=bool)
        flag[parents[parents >= 0]] = True
        return flag

    @once
    def leftmost_child(self, name: str) -> Ints:
        """For every token its leftmost child of the class `name`; `len(batch)` if there is none."""
        return self.leftmost(self.labelled(name))

    def leftmost(self, marked: BoolArray) -> Ints:
        """For every token its leftmost `marked` child; `len(batch)` if there is none."""
        leftmost = np.full(len(self), len(self), dtype=np.int32)
        children = np.flatnonzero(marked & (self.head >= 0))[::-1]
        leftmost[self.head[children]] = children
        return leftmost

    def ascend(self, tokens: Ints, through: BoolArray, steps: int = MAX_DEPTH) -> Ints:
        """Each token's nearest ancestor, or itself, that `through` does not mark."""
        tokens = tokens.copy()
        passing = np.flatnonzero(tokens >= 0)
        for _ in range(steps):
            passing = passing[through[tokens[passing]] & (self.head[tokens[passing]] >= 0)]
            if len(passing) == 0:
                break
            tokens[passing] = self.head[tokens[passing]]
        return tokens

    def child_beside(self, token: Ints, head: Ints, marked: BoolArray, *, after: bool) -> Ints:
        """The nearest marked child of each `head` before or after each token; -1 if none.

        Before: the last one to the left of the token; after: the first one to its right.
        """
        children = np.flatnonzero(marked & (self.head >= 0))
        if len(children) == 0:
            return np.full(len(token), -1, dtype=np.int32)
        width = len(self) + 1
        keys = self.head[children].astype(np.int64) * width + children
        order = np.argsort(keys)
        keys, children = keys[order], children[order]
        at = np.searchsorted(keys, head.astype(np.int64) * width + token) - (not after)
        child = children[np.clip(at, 0, len(children) - 1)]
        fits = (at >= 0) & (at < len(children)) & (head >= 0) & (self.head[child] == head)
        return np.where(fits, child, -1).astype(np.int32)

    @once
    def previous_conjunct(self) -> Ints:
        """For every conjunct, the previous conjunct; for all other tokens -1.

        UD attaches all conjuncts to the first one; the nearest one to the left is the previous
        sibling under the label `conj`, or that first one.
        """
        conjunct = self.labelled("conjunct") & (self.head >= 0)
        tokens = np.flatnonzero(conjunct).astype(np.int32)
        heads = self.head[tokens]
        previous = np.full(len(self), -1, dtype=np.int32)
        previous[tokens] = np.maximum(
            self.child_beside(tokens, heads, conjunct, after=False), heads
        )
        return previous

    @cached_property
    def row_follows(self) -> BoolArray:
        """Whether the row above each row is the sentence before it: that one may have no parse."""
        follows = np.zeros(len(self.row_doc), dtype=bool)
        follows[1:] = (np.diff(self.row_doc) == 0) & (np.diff(self.row_sentence) == 1)
        return follows

    @cached_property
    def row_linked(self) -> BoolArray:
        """Whether each sentence may continue the one before, as part of the same conversation.

        In a chat log the turns of several conversations are interleaved (`Turns`).
        """
        linked: BoolArray = self.row_sentence > 0
        for rows, turns, here, before in self._turns():
            conversation = np.array(turns.conversation)
            here, before = conversation[here], conversation[before]
            linked[rows[(here != before) & (here >= 0) & (before >= 0)]] = False
        return linked

    @cached_property
    def row_answers(self) -> BoolArray:
        """Whether each sentence is of another speaker than the one before (`Turns`)."""
        answers = np.zeros(len(self.row_doc), dtype=bool)
        for rows, turns, here, before in self._turns():
            speaker = np.array([name.strip().casefold() for name in turns.speaker])
            answers[rows[speaker[here] != speaker[before]]] = True
        return answers

    def _turns(self) -> Iterator[tuple[Ints, Turns, Ints, Ints]]:
        """For each document with turns: its rows, its turns, and the number of the turn of each row
        and of the sentence before. The first sentence's row is left out."""
        for number, document in enumerate(self.documents):
            turns, sentences = document.turns, document.sentences
            if not turns or sentences is None:
                continue
            rows = np.flatnonzero((self.row_doc == number) & (self.row_sentence > 0))
            turn = np.searchsorted(turns.start, sentences.start, side="right") - 1
            turn, sentence = np.maximum(turn, 0), self.row_sentence[rows]
            yield rows, turns, turn[sentence], turn[sentence - 1]

    @cached_property
    def derived(self) -> dict[str, BoolArray]:
        """The properties `DERIVED`: from a token's children and the conjunct before it.

        `subject`, `copula`, `finite` and `clause` come from its own children (the remains of a
        clause with an elided verb make one too), `statement` also from what conjuncts share.

        A non-finite form coordinated with a verb without auxiliary is an infinitive, a participle
        or the remains of a clause; but a language's bare form may be finite beside another one
        ("they come and go"). A conjunct with its own subordinator ("and to stay") shares nothing.

        An `imperative` is a bare form that commands: no subject, no "to", and no auxiliary but a
        bare one ("do not"). It heads a main clause or a quotation, or is coordinated with another
        one. After "you can run", a bare form without a conjunction shares the auxiliary ("then
        rest"). A token without children is `alone`.
        """
        subject, copula, auxiliary = (self.having(n) for n in ("subject", "copula", "auxiliary"))
        introduced, helping = self.having("subordinator"), self.labelled("auxiliary")
        finite, bare = self.tagged("finite_tag"), self.tagged("bare")
        finite = finite | self.with_child(helping & finite)
        every = np.ones(len(self), dtype=bool)
        statement = self._shared(finite, auxiliary, bare, finite | introduced)
        if not self.patterns.table.pro_drop:
            statement &= self._shared(subject, every, bare, subject)
        command = self.tagged("imperative_tag")
        commands = command & ~helping | self.with_child(self.labelled("copula") & command)
        commands &= ~self.with_child(helping & ~command) & ~subject & ~introduced
        commands &= ~self.with_child(self.tagged("interrogative"))
        lending = self.with_child(helping & ~self.labelled("copula"))
        independent = commands & (self.labelled("main_clause") | self.labelled("reported_clause"))
        independent &= ~((self.head >= 0) & lending[self.head])
        return {
            "subject": subject,
            "copula": copula,
            "finite": finite,
            "complement": self.having("complement"),
            "object": self.having("object"),
            "clause": self.tagged("verb") | copula | subject | self.having("remnant"),
            "statement": statement,
            "imperative": self._shared(independent, every, bare, ~commands),
            "alone": ~self.with_child(every),
        }

    def _shared(
        self, owning: BoolArray, giving: BoolArray, bare: BoolArray, but: BoolArray
    ) -> BoolArray:
        """`owning`, and the conjuncts (except `but`) that share it.

        UD attaches the subject and auxiliary of coordinated predicates to the first one:
        "may come and go", "is tired and hungry". A bare form shares with a bare one anyway.
        """
        owning, giving = owning.copy(), giving.copy()
        conjuncts = np.flatnonzero(self.labelled("conjunct") & (self.head >= 0) & ~but)
        while True:
            head = self.head[conjuncts]
            taking = conjuncts[owning[head] & (giving[head] | (bare[head] & bare[conjuncts]))]
            if len(taking) == 0:
                return owning
            owning[taking] = True
            giving[taking] = giving[self.head[taking]]
            conjuncts = conjuncts[~owning[conjuncts]]


def _sequences(table: PatternTable, markers: Sequence[str]) -> list[Multiword]:
    """The word sequences to look for, correlatives first, then the longest.

    They are the selected markers, and the connectives that contain a selected marker's word, which
    must not be taken for that marker.
    """
    single = {word for marker in markers for word in marker.split()}
    sequences = {
        m.name: m
        for m in table.multiwords
        if m.name in markers or not single.isdisjoint((*m.words.split(), *m.second.split()))
    }
    for marker in markers:
        sequences.setdefault(marker, Multiword(words=marker, like=marker))
    return sorted(sequences.values(), key=lambda s: (-len(s.second.split()), -len(s.words.split())))


def _tagged(column: str, values: Collection[str]) -> Callable[[str], bool]:
    """Whether a tag of a column is one of the values, or has one of them as a feature."""
    if column == "feats":
        return lambda tag: not set(values).isdisjoint(tag.split("|"))
    return frozenset(values).__contains__


def _one_of(words: Iterable[str]) -> Callable[[str], bool]:
    names = frozenset(map(fold, words))
    return lambda form: fold(form) in names
