"""Connectives and the clauses around them, as columns over the tokens of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extract.connectives import Connective
from extract.connectives.candidates import GAP
from extract.parse import BoolArray, Ints
from extract.trees import Batch

Floats = NDArray[np.float32]
NOWHERE = -1
"""Stands for a missing token."""
SENTENCES_BACK = 4
"""How many sentences before that of the connective Arg1 may be."""
MAX_DEPTH = 30
"""Steps up from a token that its subtree's edges take into account."""
KINDS = ("subordinator", "coordinator", "adverbial", "preposition", "gerundial", "correlative")
RELATIONS: dict[str, tuple[str, ...]] = {
    "root": ("root", "ROOT"),
    "conjunct": ("conj",),
    "adverbial_clause": ("advcl", "pcomp"),
    "relative_clause": ("acl:relcl", "relcl"),
    "noun_clause": ("=acl", "acl:cleft"),
    "reported": ("ccomp",),
    "open": ("xcomp", "acomp", "attr"),
    "parataxis": ("parataxis",),
    "subject": ("nsubj", "csubj", "nsubjpass", "csubjpass", "expl"),
    "object": ("obj", "iobj", "dobj", "dative", "pobj"),
    "oblique": ("obl", "nmod", "prep", "agent", "npadvmod"),
    "adverb": ("advmod", "neg"),
    "subordinator": ("mark",),
    "conjunction": ("cc",),
    "case": ("case",),
    "opener": ("discourse", "intj", "vocative"),
    "noun_modifier": ("amod", "nummod", "det", "poss", "compound", "flat", "appos"),
    "verbal": ("aux", "cop", "auxpass"),
    "loose": ("dep", "list", "orphan", "dislocated", "reparandum"),
    "punctuation": ("punct",),
}
"""Labels of both schemes that a feature does not tell apart."""
CLAUSES = (
    *("root", "conjunct", "adverbial_clause", "relative_clause", "noun_clause", "reported", "open"),
    *("parataxis", "subject", "object", "noun_modifier", "loose"),
)
"""Relations of heads that may be those of arguments ("such as [towns]" is one)."""
FLAGS = ("finite", "subject", "clause", "statement", "imperative", "verb", "copula")
OPENERS = ("infinitival", "subordinator", "conjunction", "interrogative", "auxiliary")


class Trees:
    """The tokens of a batch; all columns have one more item, that of `NOWHERE`."""

    def __init__(self, batch: Batch) -> None:
        self.batch, n = batch, len(batch)
        self.relation = np.full(n + 1, len(RELATIONS), dtype=np.int8)
        for number, labels in enumerate(RELATIONS.values()):
            self.relation[:-1][batch.labelled_as(labels)] = number
        head = self._heads_as_in_ud()
        self.head = np.append(head, NOWHERE)
        self.flags = {name: np.append(batch.tagged(name), False) for name in FLAGS}
        openers = {
            "infinitival": batch.tagged("infinitival"),
            "subordinator": batch.labelled("subordinator"),
            "conjunction": batch.labelled_as(RELATIONS["conjunction"]),
            "interrogative": batch.tagged("interrogative"),
            "auxiliary": batch.labelled("auxiliary"),
        }
        self.flags |= {
            f"has_{name}": np.append(batch.with_child(openers[name]), False) for name in OPENERS
        }
        self.punct = np.append(batch.labelled("punctuation"), False)
        self.words = np.append(0, np.cumsum(~self.punct[:-1]))
        self.commas = np.append(0, np.cumsum(batch.listed("comma")))
        self.verbs = np.append(0, np.cumsum(self.flags["finite"] & self.flags["clause"])[:-1])
        tokens = np.arange(n)
        left, right = np.arange(n + 1), np.arange(n + 1)
        ancestor = head
        for _ in range(MAX_DEPTH):
            below = np.flatnonzero(ancestor >= 0)
            if not len(below):
                break
            np.minimum.at(left, ancestor[below], tokens[below])
            np.maximum.at(right, ancestor[below], tokens[below])
            ancestor = np.where(ancestor >= 0, head[ancestor], NOWHERE)
        right[n] = n - 1  # so that the place behind it exists
        self.left, self.right = left, right
        roots = np.flatnonzero(head < 0)[::-1]
        self.root = np.full(len(batch.row_doc) + 1, NOWHERE, dtype=np.int32)
        self.root[batch.row[roots]] = roots
        self.row = np.append(batch.row, NOWHERE)
        gap = SENTENCES_BACK + 1  # so that no sentence of a document precedes the next document's
        size = int(batch.row_sentence.max(initial=0)) + gap
        self.row_place = batch.row_doc.astype(np.int64) * size + batch.row_sentence
        self.sentence = np.append(batch.row_sentence[batch.row], NOWHERE)
        conjunct = batch.previous_conjunct()
        self.conjunct = np.append(conjunct, NOWHERE)
        # Children by head: those of head h are `children[first_child[h] : first_child[h + 1]]`.
        dependents = np.flatnonzero((head >= 0) & ~self.punct[:-1])
        order = np.argsort(head[dependents], kind="stable")
        self.children = dependents[order].astype(np.int32)
        self.first_child = np.searchsorted(head[self.children], np.arange(n + 2))

    def _heads_as_in_ud(self) -> Ints:
        """Return the heads with conjunctions and prepositions attached as in Universal
        Dependencies, and change the relations of prepositions.

        The scheme CLEAR attaches a conjunction to the conjunct before it, and an object or clause
        to its preposition. Here the conjunction depends on the conjunct after it, and the
        preposition on its object, so that all of Arg2 is below one head in both schemes.
        """
        batch, names = self.batch, list(RELATIONS)
        head = batch.head.copy()
        conjunctions = np.flatnonzero(batch.labelled_as(("cc",)) & (head < batch.tokens))
        is_conjunct = batch.labelled("conjunct")
        after = batch.child_beside(conjunctions, head[conjunctions], is_conjunct, after=True)
        head[conjunctions[after >= 0]] = after[after >= 0]
        objects = np.flatnonzero(batch.labelled_as(("pobj", "pcomp")) & (head >= 0))
        objects = objects[~np.isin(objects, head[objects])]  # "from [under the bed]"
        prepositions, first = np.unique(head[objects], return_index=True)
        objects = objects[first]
        self.relation[objects[batch.labelled_as(("pobj",))[objects]]] = names.index("oblique")
        self.relation[prepositions] = names.index("case")
        head[objects], head[prepositions] = head[prepositions], objects
        return head

    def children_of(self, heads: Ints) -> tuple[Ints, Ints]:
        """Return the indices into `heads`, and the children of these, without punctuation."""
        heads = np.where(heads == NOWHERE, len(self.batch), heads)  # no token has this head
        first = self.first_child[heads]
        count = self.first_child[heads + 1] - first
        index = np.repeat(np.arange(len(heads)), count)
        place = np.arange(len(index)) - np.repeat(np.cumsum(count) - count, count)
        return index, self.children[np.repeat(first, count) + place]

    def root_before(self, tokens: Ints, back: int) -> Ints:
        """Return the root of the sentence `back` sentences before that of each token, `NOWHERE` if
        there is none in the document or it was not parsed."""
        place = self.row_place[self.row[tokens]] - back
        row = np.searchsorted(self.row_place, place)
        exists = self.row_place[row] == place  # a later row exists: that of the token
        return np.where(exists, self.root[row], NOWHERE)

    def inside(self, tokens: Ints, heads: Ints) -> BoolArray:
        """Return whether each token is in the subtree of each head."""
        tokens = tokens.copy()
        within = (tokens == heads) & (tokens != NOWHERE)
        for _ in range(MAX_DEPTH):
            tokens = self.head[tokens]
            within |= (tokens == heads) & (tokens != NOWHERE)
            if (tokens == NOWHERE).all():
                break
        return within


@dataclass(slots=True)
class Marks:
    """Connectives as columns [m]: the first and last token of their first part, the first token of
    their last part (`NOWHERE` if there is one part only), and the token of either part that is
    attached to the clause. `kind` indexes `KINDS`. `member` and `owner` have all their tokens, and
    whose they are."""

    text: list[str]
    member: Ints
    owner: Ints
    first: Ints
    last: Ints
    second: Ints
    anchor: Ints
    second_anchor: Ints
    kind: Ints

    def __len__(self) -> int:
        return len(self.first)

    def apart(self, trees: Trees) -> BoolArray:
        """Return whether the two parts of each connective are in two sentences."""
        return (self.second != NOWHERE) & (trees.row[self.second] != trees.row[self.first])

    @classmethod
    def of(
        cls,
        batch: Batch,
        connectives: Sequence[Connective],
        places: Sequence[tuple[int, ...]] | None = None,
    ) -> Marks:
        """Return the columns of connectives with these tokens of the batch (else their own)."""
        places = [item.tokens for item in connectives] if places is None else places
        rows = []
        for item, tokens in zip(connectives, places, strict=True):
            cuts = [k for k in range(1, len(tokens)) if tokens[k] > tokens[k - 1] + 1]
            last = tokens[cuts[0] - 1] if cuts else tokens[-1]
            second = tokens[cuts[-1]] if cuts else NOWHERE
            anchor = _attached(batch, tokens[0], last)
            other = _attached(batch, second, tokens[-1]) if cuts else NOWHERE
            rows.append((tokens[0], last, second, anchor, other, KINDS.index(item.kind)))
        columns = np.array(rows, dtype=np.int32).reshape(-1, 6).T
        size = [len(tokens) for tokens in places]
        member = np.array([token for tokens in places for token in tokens], dtype=np.int32)
        owner = np.repeat(np.arange(len(size)), size)
        text = [item.text.replace(GAP, " ") for item in connectives]
        return cls(text, member, owner, *columns)


def _attached(batch: Batch, first: int, last: int) -> int:
    """Return the first token of a part whose head is outside of it."""
    for token in range(first, last + 1):
        if not first <= batch.head[token] <= last:
            return token
    return first


def one_hot(codes: Ints, names: Sequence[str], prefix: str) -> dict[str, NDArray[Any]]:
    """Return a flag for each name, by its number."""
    return {f"{prefix} {name}": codes == number for number, name in enumerate(names)}
