"""From sentences to token ids: each sentence is tokenised once, whatever the order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Text = str | Sequence[str]
"""A text as a string, or as its sentences."""

PROBE = ("One", "two")


class TextEncoder:
    """Assembles texts of at most `max_tokens` ids, special tokens included.

    The cut falls after a whole sentence, chosen in the document's own order, so that a document
    and its permutations keep the same sentences. `cut` counts the texts that lost some.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> None:
        self.tokenizer, self.max_tokens, self.cut = tokenizer, max_tokens, 0
        self.start, self.end = _special_tokens(tokenizer)
        self.glue = _glue(tokenizer)

    @property
    def budget(self) -> int:
        """The tokens left for sentences."""
        return self.max_tokens - len(self.start) - len(self.end)

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


def as_sentences(text: Text) -> list[str]:
    """A text's sentences: as given, or split by the project's own splitter."""
    return split_sentences(text) if isinstance(text, str) else list(text)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text (blank lines end paragraphs), white space folded."""
    from corpora.document import paragraph_spans
    from corpora.sentences import split

    spans = split(text, paragraph_spans(text))
    return [" ".join(text[start:end].split()) for start, end in spans]


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Row numbers, longest first, in batches of at most `batch_tokens` ids with padding."""
    order = np.argsort(-np.asarray(lengths), kind="stable").tolist()
    while order:
        size = max(1, batch_tokens // max(1, lengths[order[0]]))
        yield order[:size]
        order = order[size:]


def _special_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[np.ndarray, np.ndarray]:
    """What the tokenizer puts before and after a text, read off an example."""
    bare = tokenizer(PROBE[0], add_special_tokens=False)["input_ids"]
    full = tokenizer(PROBE[0])["input_ids"]
    at = next(i for i in range(len(full)) if full[i : i + len(bare)] == bare)
    return np.asarray(full[:at], np.int32), np.asarray(full[at + len(bare) :], np.int32)


def _glue(tokenizer: PreTrainedTokenizerBase) -> str:
    """What to put before each sentence so that the pieces equal the whole text's tokens.

    A byte-level tokenizer marks a word's start by the space before it; others need nothing.
    """

    def ids(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    whole = ids(" ".join(PROBE))
    return "" if ids(PROBE[0]) + ids(PROBE[1]) == whole else " "
