"""The arguments of explicit connectives: Arg1 and Arg2 as the Penn Discourse Treebank names them.

Arg2 is the clause that a connective is attached to, Arg1 the one that it relates Arg2 to. For each
connective, the tree gives candidates for the head of Arg2 (the head of the connective and what is
above it: a subordinator depends on its clause, a conjunction on the right conjunct, an adverb on
its predicate, a preposition on its object), then, with Arg2 known, for that of Arg1: clauses above
Arg2 (subordination), the conjunct before it (coordination), clauses below and beside it, and the
roots of the sentences before. Three models of boosted trees, fitted to GDTB (`fit`), choose the two
heads and the children that each argument leaves out. An argument is the subtree of its head without
the other argument and the connective.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from corpora.document import Document, Span
from extract.arguments.boosting import Boosted
from extract.arguments.candidates import (
    Candidates,
    first_features,
    first_heads,
    mark_features,
    second_features,
    second_heads,
)
from extract.arguments.spans import child_features, children_of_heads, sentences_of
from extract.arguments.trees import NOWHERE, Floats, Marks, Trees
from extract.clauses import S1, S2
from extract.connectives import BATCH_TOKENS, LANGUAGE, Connective
from extract.parse import Ints, ParsedDocument, grouped
from extract.patterns import load_patterns
from extract.trees import Batch, CompiledPatterns

LEAST = -4.0
"""A candidate with lower log-odds is never chosen."""
MODEL = Path(__file__).with_name("model.npz")
STEPS = ("second", "first", "child")
"""The models: they choose the head of Arg2, that of Arg1, and the children that stay with these."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a connective as spans in code points of `Document.text`.

    The spans of an argument are in the order of the text, and shared neither by the other one nor
    by the connective. An argument without a span was not found.
    """

    arg1: tuple[Span, ...]
    arg2: tuple[Span, ...]


@dataclass(frozen=True)
class Model:
    """The models by name (`STEPS`), and the habits of connectives by their text.

    The habits are shares of the relations of a connective [4]: Arg1 is in another sentence; it is
    before Arg2 in the same one; it contains Arg2; it is the conjunct before. "" has those of all.
    """

    boosted: dict[str, Boosted]
    habits: dict[str, Floats]

    @classmethod
    def load(cls, path: Path) -> Model:
        """Read a model that `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            boosted = {
                step: Boosted(
                    tuple(arrays[f"{step} names"].tolist()),
                    *(arrays[f"{step} {key}"] for key in ("bias", "asked", "threshold", "values")),
                )
                for step in STEPS
            }
            words = arrays["words"].tolist()
            return cls(boosted, dict(zip(words, arrays["habits"], strict=True)))

    def save(self, path: Path) -> None:
        """Write the model as a NumPy archive."""
        arrays: dict[str, Any] = {
            f"{step} {key}": np.array(getattr(model, key))
            for step, model in self.boosted.items()
            for key in ("names", "bias", "asked", "threshold", "values")
        }
        words, habits = list(self.habits), np.array(list(self.habits.values()))
        np.savez_compressed(path, words=np.array(words), habits=habits, **arrays)


@cache
def load_model() -> Model:
    """Return the shipped model."""
    return Model.load(MODEL)


def arguments(
    documents: Iterable[Document],
    parses: Iterable[ParsedDocument],
    connectives: Iterable[Sequence[Connective]],
    scheme: str = "ud",
) -> Iterator[list[Arguments]]:
    """Yield for each document the arguments of its `connectives`, in their order.

    The three iterables have the same documents in the same order; the tokens of the connectives
    index the columns of the parses, whose labels are those of `scheme`. Arg1 may be in any of the
    `SENTENCES_BACK` sentences before, if they were parsed. Where a second parser checks the first
    (`ParsedDocument.second`), the arguments of each connective are those of the parser in whose
    trees they are more probable.
    """
    table = load_patterns(LANGUAGE, scheme)
    items = zip(documents, parses, connectives, strict=True)
    for strings, same in itertools.groupby(items, key=lambda item: item[1].strings):
        patterns = CompiledPatterns(table, ["and"], strings)
        for group in grouped(same, lambda item: len(item[1].head), BATCH_TOKENS):
            of_group, trees, lists = zip(*group, strict=True)
            shift = np.cumsum([0, *(len(parse.head) for parse in trees)]).tolist()
            marks = [item for of_document in lists for item in of_document]
            size = [len(of_document) for of_document in lists]
            tokens = [
                tuple(token + start for token in item.tokens)
                for of_document, start in zip(lists, shift, strict=False)
                for item in of_document
            ]
            batches = [Batch(of_group, trees, patterns)]
            if any(parse.second for parse in trees):
                second = [parse.second or parse for parse in trees]
                batches.append(Batch(of_group, second, patterns))
            found = iter(_arguments(batches, marks, tokens))
            for count in size:
                yield list(itertools.islice(found, count))


def arguments_of(
    batch: Batch, connectives: Sequence[Connective], second: Batch | None = None
) -> list[Arguments]:
    """Return the arguments of connectives whose tokens index the batch, in their order.

    `second` has a second parser's trees of the same tokens.
    """
    batches = [batch] if second is None else [batch, second]
    return _arguments(batches, connectives, [item.tokens for item in connectives])


def _arguments(
    batches: Sequence[Batch],
    connectives: Sequence[Connective],
    tokens: Sequence[tuple[int, ...]],
) -> list[Arguments]:
    """Return the arguments of connectives with these tokens of the batches."""
    if not connectives:
        return []
    views = []
    for batch in batches:
        trees = Trees(batch)
        marks = Marks.of(batch, connectives, tokens)
        views.append((trees, marks, heads_of(trees, marks, load_model())))
    surest = np.argmax([heads.probability for *_, heads in views], axis=0)
    sides: dict[tuple[int, int], list[Span]] = {}
    for number, (trees, marks, heads) in enumerate(views):
        first, second = (
            np.where(surest == number, h, NOWHERE) for h in (heads.first, heads.second)
        )
        for sentences in sentences_of(trees, marks, first, second):
            codes = sentences.codes(first, second, heads.dropped)
            match, side, begin, end = sentences.runs(codes)
            columns = (match, side, trees.batch.start[begin], trees.batch.end[end])
            for mark, code, *span in zip(*(c.tolist() for c in columns), strict=True):
                sides.setdefault((mark, code), []).append((span[0], span[1]))
    return [
        Arguments(tuple(sides.get((mark, S1), ())), tuple(sides.get((mark, S2), ())))
        for mark in range(len(connectives))
    ]


@dataclass(slots=True)
class Heads:
    """The heads of Arg1 and of Arg2 [m], `NOWHERE` without one, and how probable both are.

    `dropped` has the children of these that are left out: the numbers of their connectives, and the
    tokens.
    """

    first: Ints
    second: Ints
    dropped: tuple[Ints, Ints]
    probability: Floats


def heads_of(trees: Trees, marks: Marks, model: Model) -> Heads:
    """Return the heads of the arguments of connectives."""
    of_marks = mark_features(trees, marks, model.habits)
    candidates = second_heads(trees, marks)
    columns = second_features(trees, marks, of_marks, candidates)
    second, sure = _best(candidates, model.boosted["second"].scores(columns), len(marks))
    candidates = first_heads(trees, marks, second)
    columns = first_features(trees, marks, of_marks, second, candidates)
    first, surer = _best(candidates, model.boosted["first"].scores(columns), len(marks))
    children = children_of_heads(trees, marks, first, second)
    columns = child_features(trees, marks, of_marks, (first, second), children)
    lost = model.boosted["child"].scores(columns) < 0
    return Heads(first, second, (children[0][lost], children[1][lost]), sure * surer)


def _best(candidates: Candidates, score: Floats, count: int) -> tuple[Ints, Floats]:
    """Return the best candidate's head for each of `count` connectives, and its probability.

    The probability is the softmax of the scores. Without a candidate that reaches `LEAST` it is 0,
    and the head `NOWHERE`.
    """
    likely = score > LEAST
    candidates, score = candidates.take(likely), score[likely]
    head, odds = np.full(count, NOWHERE), np.zeros(count, dtype=np.float32)
    order = np.lexsort((score, candidates.mark))
    head[candidates.mark[order]] = candidates.head[order]
    odds[candidates.mark[order]] = np.exp(score[order])
    total = np.bincount(candidates.mark, np.exp(score), minlength=count)
    return head, (odds / np.maximum(total, 1e-30)).astype(np.float32)
