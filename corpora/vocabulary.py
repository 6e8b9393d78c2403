"""A limited vocabulary: the frequent words of a corpus, and one word for all others.

This is the form of the Penn Treebank for language models (Mikolov et al. 2010), on which the
extraction of DisSent was validated (Nie, Bennett and Goodman 2019, appendix A.2).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from corpora.languages import UNSPACED

# A character of a script without spaces; a number with its separators; letters and digits with
# apostrophes inside (an author's "don't", a treebank's "n't").
WORD = re.compile(
    rf"[{UNSPACED}]"
    r"|\d+(?:[.,:/]\d+)+"
    rf"|[^\W_{UNSPACED}]+(?:['’][^\W_{UNSPACED}]+)*"
)
UNKNOWN, NUMBER = "unk", "N"


def normal(word: str) -> str:
    """Return a word unchanged, or `N` for a number, which is a word without any letter."""
    return word if any(map(str.isalpha, word)) else NUMBER


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return [word.lower() for word in WORD.findall(text)]


def most_frequent(words: Iterable[str], size: int) -> list[str]:
    """Return the `size` most frequent words, the most frequent first; numbers do not count.

    Words of one frequency are in alphabetical order, so the order of the texts does not matter.
    """
    frequency = Counter(map(normal, words))
    frequency.pop(NUMBER, None)
    return sorted(frequency, key=lambda word: (-frequency[word], word))[:size]


def limit_vocabulary(text: str, vocabulary: Collection[str]) -> str:
    """Return a text in lower case, with `N` for numbers and `unk` for words not in `vocabulary`."""

    def replacement(match: re.Match[str]) -> str:
        word = normal(match.group().lower())
        return word if word == NUMBER or word in vocabulary else UNKNOWN

    return WORD.sub(replacement, text)
