"""From sentences to token ids: each sentence is tokenised once, whatever the order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from corpora.document import Document
from corpora.errors import InputError
from corpora.progress import Loop, reported
from corpora.prose import Quotes, balanced, units
from corpora.readers.files import Refused
from corpora.readers.source import check_unicode
from corpora.sentences import split_document

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Text = str | Sequence[str]
"""A text as a string, or as its sentences."""

PROBE = ("One", "two")
PART, MANY = 1 << 20, 4096
"""Characters of the texts that are held at a time, and the most of them."""

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
    """Assembles texts of at most `max_tokens` ids, special tokens included.

    The cut falls after a whole sentence, chosen in the document's own order, so that a document
    and its permutations keep the same sentences. `cut` counts the texts that lost some.
    Raises `InputError` if `max_tokens` leaves none for a text.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> None:
        self.tokenizer, self.max_tokens, self.cut = tokenizer, max_tokens, 0
        # What the tokenizer puts before and after a text, read off an example.
        one, two = (self._ids(word) for word in PROBE)
        full = tokenizer(PROBE[0])["input_ids"]
        at = next(i for i in range(len(full)) if full[i : i + len(one)] == one)
        self.start = np.asarray(full[:at], np.int32)
        self.end = np.asarray(full[at + len(one) :], np.int32)
        self.budget = max_tokens - len(self.start) - len(self.end)
        """The tokens left for sentences."""
        if self.budget < 1:
            problem = f"max_tokens = {max_tokens}: no token is left beside the special ones"
            hint = "give a larger number, or a model with a longer input"
            raise InputError(problem, hint=hint, field="max_tokens")
        # A byte-level tokenizer marks a word's start by the space before it; others need nothing
        # before a sentence for the pieces to equal the whole text's tokens.
        self.glue = "" if one + two == self._ids(" ".join(PROBE)) else " "

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def sentences(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """The ids of each sentence, without special tokens."""
        texts = [self.glue + sentence for sentence in sentences]
        found = self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        return [np.asarray(ids, np.int32) for ids in found]

    def kept(self, sentences: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The first sentences, as many as fit; a first one that is too long is cut itself."""
        total = np.cumsum([len(ids) for ids in sentences])
        count = int(np.searchsorted(total, self.budget, side="right"))
        self.cut += count < len(sentences)
        return list(sentences[:count]) if count else [sentences[0][: self.budget]]

    def assemble(self, sentences: Sequence[np.ndarray]) -> np.ndarray:
        """Sentences in this order as one text, `[tokens]`."""
        return np.concatenate([self.start, *sentences, self.end]).astype(np.int32)

    def text(self, text: Text) -> np.ndarray:
        """The ids of a whole text."""
        return self.assemble(self.kept(self.sentences(as_sentences(text) or [""])))


def as_sentences(text: Text, quotes: Quotes = "keep") -> list[str]:
    """A text's sentences: as given, or split by the project's own splitter.

    With `balance` they have the quotation marks of `corpora.prose.balanced`: in each paragraph of a
    string, but each sentence of a list by itself, so that its order changes none.
    """
    if not isinstance(text, str):
        return [balanced([s])[0] for s in text] if quotes == "balance" else list(text)
    document = split_document(Document("text", text))
    sentences = document.sentence_texts()
    if quotes == "keep":
        return sentences
    paragraphs = units(document, sentences, "paragraph")
    return [sentence for paragraph in paragraphs for sentence in balanced(paragraph)]


class Window(NamedTuple):
    """Pieces of a text that a model scores together, and the number of each one's sentence."""

    pieces: Sequence[Any]
    numbers: Sequence[int]


def windows(encoder: TextEncoder, text: Text) -> list[Window]:
    """A text as windows of whole sentences within the model's limit, the sentences as token ids.

    A text that fits is one window; one without sentences is an empty window. In a longer text each
    window has as many sentences as fit, and the next begins halfway through it; the last ends with
    the text. A window that would end where the previous one ends is left out. The text's score is
    the mean of its windows' scores.

    A sentence longer than a window is divided into pieces, each but the last a separate window.
    """
    pieces, numbers = [], []
    for number, ids in enumerate(encoder.sentences(as_sentences(text) or [""])):
        for start in range(0, max(len(ids), 1), encoder.budget):
            pieces.append(ids[start : start + encoder.budget])
            numbers.append(number)
    total = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    found: list[Window] = []
    start = last = 0
    while last < len(pieces):
        end = int(np.searchsorted(total, total[start] + encoder.budget, side="right")) - 1
        if end > last:
            found.append(Window(pieces[start:end], numbers[start:end]))
            last = end
        start += max(1, (end - start) // 2)
    return found


def batches_by_length(
    lengths: Sequence[int], batch_tokens: int, whole: Loop | None = None
) -> Iterator[list[int]]:
    """Row numbers, longest first, in batches of at most `batch_tokens` ids with padding.

    Shows its progress, or adds to that of the `whole` of which these are a part.
    """
    order = np.argsort(-np.asarray(lengths), kind="stable").tolist()
    with nullcontext(whole) if whole else reported("texts", len(order)) as loop:
        first = 0
        while first < len(order):
            size = max(1, batch_tokens // max(1, lengths[order[first]]))
            yield (rows := order[first : first + size])
            first += size
            loop.done += len(rows)


def in_parts(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Items in lists of some thousand, whose sizes in characters add up to `PART` or little more.

    So memory does not depend on how many there are.
    """
    part: list[T] = []
    total = 0
    for item in items:
        part.append(item)
        total += size(item)
        if total > PART or len(part) == MANY:
            yield part
            part, total = [], 0
    if part:
        yield part
