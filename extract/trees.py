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
PUNCTUATION = {
    "separator": {*",;:.-–—…•*/", "--", "---", "...", "....", "。", "，", "、", "；", "："},
    "open_end": {*":;,-–—", "--", "---", ":—"},
    "clause_break": {*";:–—；：", "--", "---"},
    "quote": {*"“”«»", '"', "``", "''"},
    "opening_bracket": {"(", "["},
    "closing_bracket": {")", "]"},
    "comma": {",", "，"},
    "colon": {":", "："},
}
"""Lists of punctuation for `Batch.listed`; a separator is cut off at either end of a clause."""


def once(method: Method) -> Method:
    """Return the method with a cache: each result is kept in `self.cache`, as a read-only array."""

    @wraps(method)
    def cached(self: Any, *arguments: Any) -> NDArray[Any]:
        key = (method.__name__, *arguments)
        if key not in self.cache:
            self.cache[key] = method(self, *arguments)
            self.cache[key].flags.writeable = False
        column: NDArray[Any] = self.cache[key]
        return column

    return cast("Method", cached)


class Lookup:
    """An array with `value(string)` for every string of a `StringTable`, which may grow.

    `lookup[codes]` gives the values of strings by their codes. Each value is computed once.
    """

    def __init__(
        self, strings: StringTable, value: Callable[[str], int | bool], dtype: DTypeLike = bool
    ) -> None:
        self._strings, self._value = strings, value
        self._values: NDArray[Any] = np.empty(0, dtype=dtype)

    def __getitem__(self, codes: Ints) -> NDArray[Any]:
        """Return the value of each code; values of new strings are computed first."""
        size = len(self._values)
        if size < len(self._strings):
            new = [self._value(string) for string in self._strings.strings[size:]]
            self._values = np.concatenate([self._values, np.array(new, dtype=self._values.dtype)])
        return self._values.take(codes)


class CompiledPatterns:
    """A pattern table for some markers as look-up arrays over the codes of one `StringTable`.

    `word` maps a form to its number among the words of markers and rows (0 for all others);
    `forms[NAME]` flags the forms in a list of words, and `tags[PROPERTY][COLUMN]` the tags in a
    column that give a token a property. The arrays grow when the `StringTable` (`strings`) does.
    With `modified`, modified forms of markers ("even though") get the label of the marker.
    """

    def __init__(
        self,
        table: PatternTable,
        markers: Sequence[str],
        strings: StringTable,
        *,
        modified: bool = False,
    ) -> None:
        # Markers as sequences of words, and the rows that they use
        self.table, self.strings = table, strings
        self.sequences = _sequences(table, markers)
        self.names = [
            s.like if modified and s.modified and s.name not in markers else s.name
            for s in self.sequences
        ]
        """The marker that matches of each sequence are labelled with [sequences]."""
        self.wanted = np.array([name in markers for name in self.names], dtype=bool)
        self.users = {
            marker: np.array([s.like == marker for s in self.sequences], dtype=bool)
            for marker in dict.fromkeys(row.marker for row in table.patterns)
        }
        """For each marker, flags [sequences]: the sequence uses the marker's rows."""
        subordinators = set(table.classes.subordinator)
        self.subordinates = np.array(
            [r.s2 == "head" and not subordinators.isdisjoint(r.deprels) for r in table.patterns],
            dtype=bool,
        )
        """Flags [rows]: the marker is the subordinator of S2."""
        # Look-up arrays for words, lists of forms and tags
        words = [word for s in self.sequences for word in (*s.words.split(), *s.second.split())]
        for row in table.patterns:
            words += [*row.not_before, *row.after_words, *row.compared, *row.s2_words]
        self._number = {word: n for n, word in enumerate(dict.fromkeys(map(fold, words)), 1)}
        self.word = Lookup(strings, lambda form: self._number.get(fold(form), 0), np.int16)
        lists = {"named": table.markers, "frequent": table.frequent, **dict(table.standalone)}
        self.forms = {name: Lookup(strings, _one_of(words)) for name, words in lists.items()}
        for name, marks in PUNCTUATION.items():
            self.forms[name] = Lookup(strings, marks.__contains__)
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
        """Return the numbers of labels from the codes of deprels; new labels get a number."""
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
        """Flag some labels: `acl` means it and its subtypes, `=acl` it alone, `@x` a class."""
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
        """Return the number of each word of the pattern table, as in `Batch.word`."""
        return [self._number[fold(word)] for word in words]

    @once
    def words(self, words: tuple[str, ...]) -> BoolArray:
        """Return flags by word number: the word is one of `words`."""
        flags = np.zeros(len(self._number) + 1, dtype=bool)
        flags[self.numbers(words)] = True
        return flags

    @once
    def lost(self, how: str) -> BoolArray:
        """Return flags [row, side, place, kind, label]: which children of its head a side loses.

        `how`: `drop` (from the span) or `mute` (from the text). Row: of the pattern table. Side: 0
        is S1, 1 is S2. Place of the child: 0 left of the head, 1 right of it, 2 right of it and of
        the other clause's head. Kind of the child: 0 no predicate, 1 a predicate, 2 a predicate
        with a subject. Label: that of the child.
        An entry of `s1_drop`, `s1_mute`, ... is a label, after `<` (place 0), `>` (1 and 2), `>>`
        (2) or nothing (any place), before `+clause` (kinds 1 and 2), `+subject` (2) or nothing.
        """
        patterns, label_count = self.table.patterns, max(len(self._labels), 1)
        lost = np.zeros((len(patterns), 2, 3, 3, label_count), dtype=bool)
        places_of = {"": (0, 1, 2), "<": (0,), ">": (1, 2), ">>": (2,)}
        first_kind = {"": 0, "clause": 1, "subject": 2}
        for index, pattern in enumerate(patterns):
            for side, key in enumerate((f"s1_{how}", f"s2_{how}")):
                specs = getattr(pattern, key)
                for spec in getattr(self.table.spans, key) if specs is None else specs:
                    label_and_kind = spec.lstrip("<>")
                    label, _, kind = label_and_kind.partition("+")
                    for place in places_of[spec.removesuffix(label_and_kind)]:
                        lost[index, side, place, first_kind[kind] :] |= self.labels((label,))
        return lost


class Batch:
    """The tokens [n] and sentences [m] of several parsed documents, end to end, as columns.

    A row is a sentence with the tokens `offsets[row]:offsets[row + 1]`. Columns [n]: `head` is the
    head's token number (-1: root), `row` the token's row, `label` and `word` the numbers of deprel
    and form in `patterns`. Columns [m]: `row_doc` is the number of the row's document,
    `row_sentence` that of the sentence in the document.
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
        """Return the column `name` of `ParsedDocument`, of all parses end to end."""
        return np.concatenate([getattr(parse, name) for parse in self.parses])

    @once
    def labelled_as(self, labels: tuple[str, ...]) -> BoolArray:
        """Mark the tokens whose label is one of `labels` (see `CompiledPatterns.labels`)."""
        return self.patterns.labels(labels)[self.label]

    @once
    def labelled(self, name: str) -> BoolArray:
        """Mark the tokens whose label is of the class `name` (a field of `Classes`)."""
        return self.patterns.labels((f"@{name}",))[self.label]

    @once
    def listed(self, name: str) -> BoolArray:
        """Mark the tokens whose form is in the list `name`: a key of `CompiledPatterns.forms`."""
        return self.patterns.forms[name][self.form]

    @once
    def tagged(self, name: str) -> BoolArray:
        """Mark the tokens with the property `name`, by tags or `derived`; none if it is unknown."""
        derived = name in DERIVED
        flag = self.derived[name].copy() if derived else np.zeros(len(self), dtype=bool)
        for column, lookup in self.patterns.tags.get(name, {}).items():
            flag |= lookup[self.column(column)]
        return flag

    def rows_with(self, tokens: BoolArray) -> BoolArray:
        """Mark the rows that have one of the marked tokens."""
        rows = np.zeros(len(self.row_doc), dtype=bool)
        rows[self.row[tokens]] = True
        return rows

    def document(self, token: int) -> Document:
        return self.documents[self.row_doc[self.row[token]]]

    def has(self, tokens: Ints, needs: Iterable[str], lacks: Iterable[str] = ()) -> BoolArray:
        """Return whether each of `tokens` has all properties of `needs` and none of `lacks`."""
        fits = np.ones(len(tokens), dtype=bool)
        for name in needs:
            fits &= self.tagged(name)[tokens]
        for name in lacks:
            fits &= ~self.tagged(name)[tokens]
        return fits

    @once
    def having(self, name: str) -> BoolArray:
        """Mark the tokens that have a child whose label is of the class `name`."""
        return self.with_child(self.labelled(name))

    def with_child(self, child: BoolArray) -> BoolArray:
        """Mark the tokens that have one of the marked tokens `child` as a child."""
        parents = self.head[child]
        flag = np.zeros(len(self), dtype=bool)
        flag[parents[parents >= 0]] = True
        return flag

    @once
    def leftmost_child(self, name: str) -> Ints:
        """Return for each token its leftmost child of the class `name`; `len(batch)` if none."""
        return self.leftmost(self.labelled(name))

    def leftmost(self, marked: BoolArray) -> Ints:
        """Return for each token its leftmost `marked` child; `len(batch)` if there is none."""
        leftmost = np.full(len(self), len(self), dtype=np.int32)
        children = np.flatnonzero(marked & (self.head >= 0))[::-1]
        leftmost[self.head[children]] = children
        return leftmost

    def ascend(self, tokens: Ints, through: BoolArray, steps: int = MAX_DEPTH) -> Ints:
        """Return each token, or its nearest ancestor, that is not marked in `through`.

        The search ends at a root, or after `steps` heads; a token of -1 stays -1.
        """
        tokens = tokens.copy()
        climbing = np.flatnonzero(tokens >= 0)
        for _ in range(steps):
            climbing = climbing[through[tokens[climbing]] & (self.head[tokens[climbing]] >= 0)]
            if len(climbing) == 0:
                break
            tokens[climbing] = self.head[tokens[climbing]]
        return tokens

    def child_beside(self, token: Ints, head: Ints, marked: BoolArray, *, after: bool) -> Ints:
        """Return the marked child of each `head` that is nearest to each `token`; -1 if none.

        With `after`, the child is to the right of the token, else to its left.
        """
        children = np.flatnonzero(marked & (self.head >= 0))
        if len(children) == 0:
            return np.full(len(token), -1, dtype=np.int32)
        width = len(self) + 1
        keys = self.head[children].astype(np.int64) * width + children  # by head, then by child
        order = np.argsort(keys)
        keys, children = keys[order], children[order]
        # The child is the first key of `head` behind `token`, or the last one before it.
        place = np.searchsorted(keys, head.astype(np.int64) * width + token) - (not after)
        child = children[np.clip(place, 0, len(children) - 1)]
        exists = (place >= 0) & (place < len(children)) & (head >= 0) & (self.head[child] == head)
        return np.where(exists, child, -1).astype(np.int32)

    @once
    def previous_conjunct(self) -> Ints:
        """Return for each conjunct the conjunct before it; for all other tokens -1.

        UD attaches all conjuncts to the first one, so the one before is the nearest conjunct to the
        left with the same head, or that head.
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
        """Flags [rows]: the row above is the sentence before (which may have no parse)."""
        follows = np.zeros(len(self.row_doc), dtype=bool)
        follows[1:] = (np.diff(self.row_doc) == 0) & (np.diff(self.row_sentence) == 1)
        return follows

    @cached_property
    def row_linked(self) -> BoolArray:
        """Flags [rows]: the sentence may continue the one before, in the same conversation.

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
        """Flags [rows]: the sentence has another speaker than the one before (`Turns`)."""
        answers = np.zeros(len(self.row_doc), dtype=bool)
        for rows, turns, here, before in self._turns():
            speaker = np.array([name.strip().casefold() for name in turns.speaker])
            answers[rows[speaker[here] != speaker[before]]] = True
        return answers

    def _turns(self) -> Iterator[tuple[Ints, Turns, Ints, Ints]]:
        """Yield for each document with turns: its rows but the first sentence's, its turns, and for
        each row the numbers of its turn and of the turn of the sentence before."""
        for number, document in enumerate(self.documents):
            turns, sentences = document.turns, document.sentences
            if not turns or sentences is None:
                continue
            rows = np.flatnonzero((self.row_doc == number) & (self.row_sentence > 0))
            # The last turn that begins before the sentence does
            turn = np.searchsorted(turns.start, sentences.start, side="right") - 1
            turn, sentence = np.maximum(turn, 0), self.row_sentence[rows]
            yield rows, turns, turn[sentence], turn[sentence - 1]

    @cached_property
    def derived(self) -> dict[str, BoolArray]:
        """The properties `DERIVED` by name, as flags [n], from a token's children and conjuncts.

        `subject`, `copula`, `complement` and `object` mark the tokens with a child of this kind,
        `finite` finite forms and forms with a finite auxiliary, `clause` the heads of predicates
        and of their remains. A `statement` is finite and has a subject, or shares one.

        A non-finite form coordinated with a verb without auxiliary is an infinitive, a participle
        or the remains of a clause; but a language's bare form may be finite beside another one
        ("they come and go"). A conjunct with its own subordinator ("and to stay") shares nothing.

        An `imperative` is a bare form that commands: no subject, no "to", and no auxiliary but a
        bare one ("do not"). It heads a main clause or a quotation, or is coordinated with another
        one. After "you can run", a bare form without a conjunction shares the auxiliary ("then
        rest"). `alone` marks tokens without children, `framed` tokens with a child `adposition`.
        """
        subject, copula, auxiliary = (self.having(n) for n in ("subject", "copula", "auxiliary"))
        subordinate, is_auxiliary = self.having("subordinator"), self.labelled("auxiliary")
        finite, bare = self.tagged("finite_tag"), self.tagged("bare")
        finite = finite | self.with_child(is_auxiliary & finite)
        # Statements: a conjunct shares the auxiliary and the subject of the first one.
        every = np.ones(len(self), dtype=bool)
        statement = self._shared(finite, auxiliary, bare, finite | subordinate)
        if not self.patterns.table.pro_drop:
            statement &= self._shared(subject, every, bare, subject)
        # Commands
        command_form = self.tagged("imperative_tag")
        commands = command_form & ~is_auxiliary
        commands |= self.with_child(self.labelled("copula") & command_form)
        commands &= ~self.with_child(is_auxiliary & ~command_form) & ~subject & ~subordinate
        commands &= ~self.with_child(self.tagged("interrogative"))
        lends_auxiliary = self.with_child(is_auxiliary & ~self.labelled("copula"))
        independent = commands & (self.labelled("main_clause") | self.labelled("reported_clause"))
        independent &= ~((self.head >= 0) & lends_auxiliary[self.head])
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
            "framed": self.with_child(self.tagged("adposition")),
        }

    def _shared(
        self, having: BoolArray, lending: BoolArray, bare: BoolArray, excepted: BoolArray
    ) -> BoolArray:
        """Mark the tokens `having` a property, and the conjuncts that share it with their head.

        UD attaches the subject and auxiliary of coordinated predicates to the first one:
        "may come and go", "is tired and hungry". A conjunct that is not `excepted` shares if its
        head is `lending`, or if both are `bare` forms.
        """
        having, lending = having.copy(), lending.copy()
        conjuncts = np.flatnonzero(self.labelled("conjunct") & (self.head >= 0) & ~excepted)
        while True:
            head = self.head[conjuncts]
            shares = having[head] & (lending[head] | (bare[head] & bare[conjuncts]))
            sharing = conjuncts[shares]
            if len(sharing) == 0:
                return having
            having[sharing] = True
            lending[sharing] = lending[self.head[sharing]]
            conjuncts = conjuncts[~having[conjuncts]]


def _sequences(table: PatternTable, markers: Sequence[str]) -> list[Multiword]:
    """Return the word sequences to look for, correlatives first, then the longest.

    They are the selected markers, and the connectives that contain a selected marker's word, so
    that "so that" does not count as the marker "so".
    """
    marker_words = {word for marker in markers for word in marker.split()}
    sequences = {
        m.name: m
        for m in table.multiwords
        if m.name in markers or not marker_words.isdisjoint((*m.words.split(), *m.second.split()))
    }
    for marker in markers:
        sequences.setdefault(marker, Multiword(words=marker, like=marker))
    return sorted(sequences.values(), key=lambda s: (-len(s.second.split()), -len(s.words.split())))


def _tagged(column: str, values: Collection[str]) -> Callable[[str], bool]:
    """Return a test whether a tag in `column` is one of `values`, or has one as a feature."""
    if column == "feats":
        return lambda tag: not set(values).isdisjoint(tag.split("|"))
    return frozenset(values).__contains__


def _one_of(words: Iterable[str]) -> Callable[[str], bool]:
    names = frozenset(map(fold, words))
    return lambda form: fold(form) in names
