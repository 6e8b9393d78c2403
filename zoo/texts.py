"""Texts as token ids, made of whole sentences, and in batches that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeVar

import numpy as np

from corpora.document import Document
from corpora.errors import InputError
from corpora.progress import Loop, show_progress
from corpora.prose import Quotes, passages_of
from corpora.quotes import balance_quotes
from corpora.readers.files import Refused
from corpora.readers.source import check_unicode
from corpora.sentences import split_document
from zoo.windows import window_bounds

Text = str | Sequence[str]
"""A text as a string, or as its sentences."""

PROBE = ("One", "two")
"""Words of an example that shows how a tokenizer joins words and marks a text's ends."""
PART_CHARACTERS, PART_ITEMS = 1 << 20, 4096
"""The limits of a list of `in_parts`: it ends when it exceeds the first or reaches the second."""

T = TypeVar("T")


def check_texts(texts: Sequence[Text]) -> None:
    """Raise `InputError` for a text without words, or with half a surrogate pair."""
    for number, text in enumerate(texts, 1):
        whole = text if isinstance(text, str) else "\n".join(text)
        try:
            check_unicode(whole)
            problem = "" if whole.strip() else "holds no text"
        except Refused as refusal:
            problem = str(refusal)
        if problem:
            raise InputError(problem, where=f"text {number}", hint="leave it out, or mend it")


class TextEncoder:
    """Encodes texts as at most `max_tokens` ids, special tokens included.

    A longer text is cut after a whole sentence. `cut` counts the texts that lost sentences. To give
    a document and its permutations the same sentences, call `truncate` once, in the document's
    order. Raises `InputError` if `max_tokens` leaves no token for sentences.
    """

    def __init__(self, tokenizer: Callable[..., Any], max_tokens: int) -> None:
        """Find the special tokens around a text, and the tokens that are left for sentences."""
        self.tokenizer, self.max_tokens, self.cut = tokenizer, max_tokens, 0
        # An example shows which special tokens stand before and after a text.
        first, second = (self._ids(word) for word in PROBE)
        full = tokenizer(PROBE[0])["input_ids"]
        position = next(i for i in range(len(full)) if full[i : i + len(first)] == first)
        self.start = np.asarray(full[:position], np.int32)
        self.end = np.asarray(full[position + len(first) :], np.int32)
        self.budget = max_tokens - len(self.start) - len(self.end)
        """The tokens left for sentences."""
        if self.budget < 1:
            problem = f"max_tokens = {max_tokens}: no token is left beside the special ones"
            hint = "give a larger number, or a model with a longer input"
            raise InputError(problem, hint=hint, field="max_tokens")
        # A byte-level tokenizer marks a word's start by the space before it. With other tokenizers
        # the ids of the sentences, one after another, equal those of the whole text.
        self.glue = "" if first + second == self._ids(" ".join(PROBE)) else " "
        """What stands before each sentence."""

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def sentences(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """Return the token ids of each sentence, `[tokens]`, without special tokens."""
        texts = [self.glue + sentence for sentence in sentences]
        encoded = self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        return [np.asarray(ids, np.int32) for ids in encoded]

    def truncate(self, sentences: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the first of `sentences` (token ids) that fit together into `budget` tokens. The
        first sentence itself is cut if it is longer. `cut` counts a text that loses sentences."""
        ends = np.cumsum([len(ids) for ids in sentences])
        count = int(np.searchsorted(ends, self.budget, side="right"))
        self.cut += count < len(sentences)
        return list(sentences[:count]) if count else [sentences[0][: self.budget]]

    def assemble(self, sentences: Sequence[np.ndarray]) -> np.ndarray:
        """Join sentences of token ids into one text with special tokens, `[tokens]`."""
        return np.concatenate([self.start, *sentences, self.end]).astype(np.int32)

    def text(self, text: Text) -> np.ndarray:
        """Return the token ids of a text, cut to `max_tokens`, `[tokens]`."""
        return self.assemble(self.truncate(self.sentences(as_sentences(text) or [""])))


def as_sentences(text: Text, quotes: Quotes = "keep") -> list[str]:
    """Return the sentences of a text: those of a list, or a string split by `corpora.sentences`.

    With `quotes="balance"`, `corpora.quotes.balance_quotes` mends quotation marks: within the
    paragraphs of a string, but within each sentence of a list, so that the sentences' order has no
    effect.
    """
    if not isinstance(text, str):
        if quotes == "keep":
            return list(text)
        return [balance_quotes([sentence])[0] for sentence in text]
    document = split_document(Document("text", text))
    sentences = document.sentence_texts()
    if quotes == "keep":
        return sentences
    paragraphs = passages_of(document, sentences, "paragraph")
    return [sentence for paragraph in paragraphs for sentence in balance_quotes(paragraph)]


class Window(NamedTuple):
    """Pieces of a text that a model scores together. A piece is a sentence or a part of a long one;
    `numbers` are the numbers of their sentences."""

    pieces: Sequence[Any]
    numbers: Sequence[int]


def windows(encoder: TextEncoder, text: Text) -> list[Window]:
    """Divide a text into overlapping windows of whole sentences, each within the model's limit.

    The sentences are token ids. A text that fits is one window; a text without sentences is one
    empty window. In a longer text each window has as many sentences as fit, and the next begins
    halfway through it; the last ends with the text. A window that would end where the previous one
    ends is left out. Callers score a text by the mean of its windows' scores.

    A sentence longer than a window is divided into pieces, each but the last a separate window.
    """
    pieces, numbers = [], []
    for number, ids in enumerate(encoder.sentences(as_sentences(text) or [""])):
        for start in range(0, max(len(ids), 1), encoder.budget):
            pieces.append(ids[start : start + encoder.budget])
            numbers.append(number)
    bounds = window_bounds([len(piece) for piece in pieces], encoder.budget)
    return [Window(pieces[start:end], numbers[start:end]) for start, end in bounds]


def batches_by_length(
    lengths: Sequence[int], batch_tokens: int, whole: Loop | None = None
) -> Iterator[list[int]]:
    """Yield the row numbers of texts in batches of similar length, the longest texts first.

    `lengths` are the texts' lengths in tokens. With padding a batch has at most `batch_tokens`, or
    one text. Progress is shown; with `whole`, the display of a larger loop, it is added there.
    """
    order = np.argsort(-np.asarray(lengths), kind="stable").tolist()
    with nullcontext(whole) if whole else show_progress("texts", len(order)) as loop:
        first = 0
        while first < len(order):
            size = max(1, batch_tokens // max(1, lengths[order[first]]))
            rows = order[first : first + size]
            yield rows
            first += size
            loop.done += len(rows)


def in_parts(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in lists of a limited size, so that they need not all be in memory at once. A
    list ends when it has `PART_ITEMS` items or more than `PART_CHARACTERS` characters, where `size`
    gives the characters of an item."""
    part: list[T] = []
    total = 0
    for item in items:
        part.append(item)
        total += size(item)
        if total > PART_CHARACTERS or len(part) == PART_ITEMS:
            yield part
            part, total = [], 0
    if part:
        yield part
