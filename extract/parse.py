"""Parsed documents as flat arrays, the protocol of parsers, and documents in groups for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document

STRINGS_LIMIT = 200_000
"""A parser starts a new table after this many strings, so memory does not grow with the corpus."""

CHUNK_WORDS = 20_000
"""A worker process takes documents with about so many words at a time."""

LETTERS_A_WORD = 10
"""Characters that count as a word in a text with fewer spaces; English has 5 to 8 a word."""

NAMES = ("form", "upos", "xpos", "feats", "deprel")
"""The columns of `ParsedDocument` that are codes of `strings`."""

Item = TypeVar("Item")
IntArray = NDArray[np.int32]
Ints = NDArray[np.signedinteger[Any]]
"""Integers of any width: results of array functions."""
BoolArray = NDArray[np.bool_]


class StringTable:
    """Strings interned as consecutive integers; shared by all documents of one parser."""

    __slots__ = ("_codes", "strings")

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._codes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.strings)

    def code(self, string: str) -> int:
        """Return the integer of `string`, a new one for a new string."""
        number = self._codes.setdefault(string, len(self.strings))
        if number == len(self.strings):
            self.strings.append(string)
        return number

    def codes(self, strings: Iterable[str]) -> IntArray:
        """Return the integer of each of the `strings` (see `code`)."""
        names = list(strings)
        for string in dict.fromkeys(names):
            self.code(string)
        return np.fromiter(map(self._codes.__getitem__, names), np.int32, len(names))


@dataclass(slots=True)
class ParsedDocument:
    """The parses of some sentences of a document, as parallel arrays.

    `sentence` [n_sentences]: indices into the document's sentence layer, increasing (sentences
    without a candidate marker need not be parsed). Sentence row `i` has the tokens
    `offsets[i]:offsets[i + 1]`. Token columns [n_tokens]: `start`, `end` in code points of
    `Document.text`; `head`, the head's index in these columns, -1 for a root;
    `form`, `upos`, `xpos`, `feats`, `deprel`: codes of `strings` (form as written; "" where a
    parser has no such column).
    """

    doc: str
    strings: StringTable = field(repr=False)
    sentence: IntArray
    offsets: IntArray
    start: IntArray
    end: IntArray
    head: IntArray
    form: IntArray
    upos: IntArray
    xpos: IntArray
    feats: IntArray
    deprel: IntArray
    second: ParsedDocument | None = field(default=None, init=False)
    """The same tokens with the trees of a second parser, where one checks the first."""


class Parser(Protocol):
    """Anything that turns documents with a sentence layer into parsed documents.

    `scheme` names the labels: `ud` (Universal Dependencies 2) or `clear` (spaCy's English
    pipelines). `name` goes into manifests and the parse stage's hash.
    """

    @property
    def name(self) -> str: ...

    @property
    def scheme(self) -> str: ...

    def parse(self, documents: Iterable[Document]) -> Iterator[ParsedDocument]: ...


def by_words(documents: Iterable[Document], words: int) -> Iterator[list[Document]]:
    """Yield documents in groups of about `words` words; the groups depend only on the documents.

    Words are counted by spaces, or by length for scripts without spaces and for one word a line.
    """

    def size(document: Document) -> int:
        return max(document.text.count(" ") + 1, len(document.text) // LETTERS_A_WORD)

    return grouped(documents, size, words)


def grouped(items: Iterable[Item], size: Callable[[Item], int], least: int) -> Iterator[list[Item]]:
    """Yield consecutive items in groups; a group ends when its sizes sum up to `least` or more."""
    group: list[Item] = []
    total = 0
    for item in items:
        group.append(item)
        total += size(item)
        if total >= least:
            yield group
            group, total = [], 0
    if group:
        yield group
