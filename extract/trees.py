"""Parsed documents of one string table as one set of flat arrays: the matcher's input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document
from extract.parse import BoolArray, Ints, ParsedDocument
from extract.patterns.compiled import CompiledPatterns


@dataclass(slots=True)
class Batch:
    """Token columns [n] and sentence rows [m] of several parsed documents, end to end.

    `head` indexes the token columns (-1: root), `row` gives each token's sentence row,
    `label` and `word` are the compiled numbers of deprel and form, `traits` the bits of the
    token's properties. `offsets` [m + 1], `row_doc` and `row_sentence` [m] describe the rows,
    `row_linked` [m] marks those that continue the previous sentence.
    """

    documents: Sequence[Document]
    parses: Sequence[ParsedDocument]
    patterns: CompiledPatterns
    start: Ints
    end: Ints
    head: Ints
    form: Ints
    label: NDArray[np.int16]
    word: NDArray[np.int16]
    traits: NDArray[np.int32]
    offsets: Ints
    row: Ints
    row_doc: Ints
    row_sentence: Ints
    row_linked: BoolArray

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        parses: Sequence[ParsedDocument],
        patterns: CompiledPatterns,
    ) -> Batch:
        """Join the parses of `documents`, which must share `patterns.strings`."""

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(parse, name) for parse in parses])

        sizes = np.array([len(parse.head) for parse in parses], dtype=np.int32)
        shift = np.cumsum(sizes, dtype=np.int32) - sizes
        begins = [p.offsets[:-1] + s for p, s in zip(parses, shift, strict=True)]
        offsets = np.concatenate([*begins, [sizes.sum()]]).astype(np.int32)
        head, form = joined("head"), joined("form")
        head = np.where(head >= 0, head + np.repeat(shift, sizes), -1).astype(np.int32)
        tags = [patterns.traits[column][joined(column)] for column in patterns.traits]
        row_sentence = joined("sentence").astype(np.int32)
        rows = [len(parse.sentence) for parse in parses]
        batch = cls(
            documents=documents,
            parses=parses,
            patterns=patterns,
            start=joined("start"),
            end=joined("end"),
            head=head,
            form=form,
            label=patterns.label_of(joined("deprel")),
            word=patterns.word[form],
            traits=np.bitwise_or.reduce(tags),
            offsets=offsets,
            row=np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets)),
            row_doc=np.repeat(np.arange(len(parses), dtype=np.int32), rows),
            row_sentence=row_sentence,
            row_linked=row_sentence > 0,
        )
        batch._part_conversations()
        batch._derive_traits()
        return batch

    def __len__(self) -> int:
        return len(self.head)

    def labelled(self, name: str) -> BoolArray:
        """The tokens whose label is of the class `name`."""
        return self.patterns.classes[name][self.label]

    def tagged(self, name: str) -> BoolArray:
        """The tokens with a property that some tables lack."""
        return (self.traits & self.patterns.bits.get(name, 0)) != 0

    def has(self, tokens: Ints, needs: int, lacks: int = 0) -> BoolArray:
        """Whether the tokens have all properties of `needs` and none of `lacks`."""
        traits = self.traits[tokens]
        return ((traits & needs) == needs) & ((traits & lacks) == 0)

    def previous_conjunct(self) -> Ints:
        """For every conjunct, the previous conjunct; for all other tokens -1.

        UD attaches all conjuncts to the first one; the nearest one to the left is the previous
        sibling under the label `conj`, or that first one.
        """
        previous = np.full(len(self), -1, dtype=np.int32)
        tokens = np.flatnonzero(self.labelled("conjunct") & (self.head >= 0))
        tokens = tokens[np.argsort(self.head[tokens], kind="stable")]
        heads = self.head[tokens]
        before = heads.copy()
        same = heads[1:] == heads[:-1]
        before[1:][same] = np.maximum(tokens[:-1], heads[1:])[same]
        previous[tokens] = before
        return previous

    def leftmost_child(self, name: str) -> Ints:
        """For every token its leftmost child of the class `name`; `len(batch)` if there is none."""
        return self.leftmost(self.labelled(name))

    def leftmost(self, wanted: BoolArray) -> Ints:
        """For every token its leftmost `wanted` child; `len(batch)` if there is none."""
        leftmost = np.full(len(self), len(self), dtype=np.int32)
        children = np.flatnonzero(wanted & (self.head >= 0))[::-1]
        leftmost[self.head[children]] = children
        return leftmost

    def child_beside(self, token: Ints, head: Ints, wanted: BoolArray, *, after: bool) -> Ints:
        """The nearest wanted child of each `head` before or after each token; -1 if none.

        Before: the last one to the left of the token; after: the first one to its right.
        """
        children = np.flatnonzero(wanted & (self.head >= 0))
        if len(children) == 0:
            return np.full(len(token), -1, dtype=np.int32)
        width = len(self) + 1
        keys = self.head[children].astype(np.int64) * width + children
        order = np.argsort(keys)
        keys, children = keys[order], children[order]
        at = np.searchsorted(keys, head.astype(np.int64) * width + token) - (not after)
        found = children[np.clip(at, 0, len(children) - 1)]
        fits = (at >= 0) & (at < len(children)) & (head >= 0) & (self.head[found] == head)
        return np.where(fits, found, -1).astype(np.int32)

    def sibling_before(self, token: Ints, labels: BoolArray) -> Ints:
        """For each token its nearest sibling to the left under `labels`; -1 if there is none."""
        children = np.flatnonzero(labels[self.label] & (self.head >= 0))
        before = np.full(len(self), -1, dtype=np.int32)
        children = children[np.argsort(self.head[children], kind="stable")]
        same = self.head[children[1:]] == self.head[children[:-1]]
        before[children[1:][same]] = children[:-1][same]
        return before[token]

    def _part_conversations(self) -> None:
        """Whether a sentence continues the one before: not if that is of another conversation.

        In a chat log the turns of several conversations are interleaved (`Turns`).
        """
        for number, document in enumerate(self.documents):
            turns, sentences = document.turns, document.sentences
            if not turns or sentences is None:
                continue
            rows = np.flatnonzero((self.row_doc == number) & self.row_linked)
            starts = np.array(sentences.start)[self.row_sentence[rows] - np.array([[0], [1]])]
            turn = np.maximum(np.searchsorted(turns.start, starts, side="right") - 1, 0)
            here, before = np.array(turns.conversation)[turn]
            self.row_linked[rows[(here != before) & (here >= 0) & (before >= 0)]] = False

    def _derive_traits(self) -> None:
        """Set the properties that follow from a token's children and the conjunct before it.

        `subject`, `copula`, `finite` and `clause` come from its own children (the remains of a
        clause with an elided verb make one too), `statement` also from what conjuncts share.

        A non-finite form coordinated with a verb without auxiliary is an infinitive, a participle
        or the remains of a clause; but a language's bare form may be finite beside another one
        ("they come and go"). A conjunct with its own subordinator ("and to stay") shares nothing.
        """
        bits = self.patterns.bits
        subject, copula, remnant, complement, objects, introduced = (
            self.with_child(self.labelled(name))
            for name in ("subject", "copula", "remnant", "complement", "object", "subordinator")
        )
        auxiliary = self.labelled("auxiliary")
        finite = self.tagged("finite_tag")
        finite |= self.with_child(auxiliary & finite)
        bare = self.tagged("bare")
        statement = self._shared(finite, self.with_child(auxiliary), bare, finite | introduced)
        if not self.patterns.table.pro_drop:
            statement &= self._shared(subject, np.ones_like(bare), bare, subject)
        verb = self.tagged("verb")
        for name, flag in (
            ("subject", subject),
            ("copula", copula),
            ("finite", finite),
            ("complement", complement),
            ("object", objects),
            ("clause", verb | copula | subject | remnant),
            ("statement", statement),
            ("imperative", self._imperative(auxiliary, subject, introduced)),
        ):
            self.traits |= flag * np.int32(bits[name])

    def _imperative(
        self, auxiliary: BoolArray, subject: BoolArray, introduced: BoolArray
    ) -> BoolArray:
        """Bare forms that command: no subject, no "to", and no auxiliary but a bare one ("do not").

        They head a main clause or a quotation, or are coordinated with another imperative. After
        "you can run", a bare form without a conjunction shares the auxiliary ("then rest").
        """
        bare = self.tagged("imperative_tag")
        commands = (bare & ~auxiliary) | self.with_child(self.labelled("copula") & bare)
        commands &= ~self.with_child(auxiliary & ~bare) & ~subject & ~introduced
        commands &= ~self.with_child(self.tagged("interrogative"))
        independent = commands & (self.labelled("main_clause") | self.labelled("reported_clause"))
        lending = self.with_child(auxiliary & ~self.labelled("copula"))
        independent &= ~((self.head >= 0) & lending[self.head])
        conjuncts = np.flatnonzero(commands & self.labelled("conjunct") & (self.head >= 0))
        while True:
            taking = conjuncts[independent[self.head[conjuncts]]]
            if len(taking) == 0:
                return independent
            independent[taking] = True
            conjuncts = conjuncts[~independent[conjuncts]]

    def with_child(self, child: BoolArray) -> BoolArray:
        """The tokens that have one of the marked tokens as a child."""
        parents = self.head[child]
        flag = np.zeros(len(self), dtype=bool)
        flag[parents[parents >= 0]] = True
        return flag

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
