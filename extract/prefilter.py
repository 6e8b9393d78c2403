"""Select the sentences to parse, with one regex: those with a word that may be a marker."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from corpora.document import Document
from corpora.sentences.rules import INVISIBLE
from extract.parse import IntArray
from extract.patterns.table import PatternTable
from extract.seen import parser_text

INITIAL_WORDS = 3
"""A marker counts as sentence-initial if it is within this many words of the start."""
OPENING = re.compile(rf"(?:[\W_]*[^\W_]\S*){{1,{INITIAL_WORDS}}}")
"""The first words with a letter or digit; punctuation between them is not a word."""
INVISIBLY_PARTED = re.compile(rf"\w[{INVISIBLE}]+\w")


class Prefilter:
    """Selects the sentences of a document that may contain a marker.

    With `previous`, it also selects the sentence before, if a row of the marker takes S1 from there
    (the parse shows whether it is a clause). `markers` and `previous` belong to the parse stage's
    hash.
    """

    def __init__(self, markers: Sequence[str], table: PatternTable, previous: bool = False) -> None:
        self.markers, self.previous = tuple(markers), previous
        like = {m.name: m.like for m in table.multiwords}
        back = [row for row in table.patterns if row.s1 == "previous"]
        places = {m: {r.place for r in back if r.marker == (like.get(m) or m)} for m in markers}
        """For each marker, the values of `place` of its rows with S1 in the previous sentence."""
        self._any = _regex(markers, table)
        self._at_start = _regex([m for m in markers if places[m]], table)
        self._anywhere = _regex([m for m in markers if places[m] - {"initial"}], table)

    def choose(self, document: Document) -> IntArray:
        """Return the numbers of the sentences to parse, in order.

        A text of one or two sentences is parsed whole: there is little to save.
        """
        layer = document.sentences
        if layer is None:
            raise ValueError(f"document {document.id!r} has no sentence layer; split it first")
        if len(layer) <= 2:
            return np.arange(len(layer), dtype=np.int32)
        starts = np.array(layer.start, dtype=np.int64)
        hits = [m.start() for m in self._any.finditer(document.text.replace("ſ", "s"))]
        # "be-cause" with a soft hyphen may be a marker: the parser's tokens decide.
        hits += [m.start() for m in INVISIBLY_PARTED.finditer(document.text)]
        sentences = np.unique(np.searchsorted(starts, hits, side="right") - 1)
        sentences = sentences[sentences >= 0]
        if self.previous and len(sentences):
            text, numbers = document.text, sentences.tolist()
            back = [s - 1 for s in numbers if s > 0 and self._looks_back(text[slice(*layer[s])])]
            sentences = np.union1d(sentences, np.array(back, dtype=np.int64))
        return sentences.astype(np.int32)

    def may_mark(self, sentence: str) -> bool:
        """Return whether a sentence (its `parser_text`) may contain one of the markers."""
        return self._any.search(sentence) is not None

    def _looks_back(self, sentence: str) -> bool:
        """Return whether a marker's S1 may be in the sentence before."""
        sentence = parser_text(sentence)[0]
        opening = OPENING.match(sentence)
        at_start = opening and self._at_start.search(opening[0])
        return bool(at_start or self._anywhere.search(sentence))


def _regex(markers: Sequence[str], table: PatternTable) -> re.Pattern[str]:
    """Return a regex for the words of any marker, or its first part (`if` of `if ... then`).

    A match begins and ends at word borders if the language has them. Accents may be one character
    or two (NFC, NFD): readers keep a text as it is. `_` is not a letter here: it marks emphasis
    (`_But_`), and tokenizers split it off.
    """
    words = [marker.split(" ... ")[0] for marker in markers]
    spellings = {unicodedata.normalize(form, word) for word in words for form in ("NFC", "NFD")}
    escaped = {re.escape(w).replace(r"\ ", r"\s+").replace("'", "['’]") for w in spellings}
    body = "|".join(sorted(escaped, key=lambda word: (-len(word), word))) or "(?!)"
    return re.compile(rf"(?<![^\W_])(?:{body})(?![^\W_])" if table.spaces else body, re.IGNORECASE)
