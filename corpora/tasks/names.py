"""Names of people and places in sentences, found by their capitals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

WORD = re.compile(r"[^\W\d_]{2,}")
BEGINNING = re.compile(r"[\W\d_]*[^\W\d_]+")
"""The first word of a sentence, with what precedes it."""
QUOTED = re.compile(r"[“”«»\"‘`:.!?…—–(*_-]\s*$")
"""Before a word that begins a sentence inside the sentence: speech, or what follows a dash."""
NAMED = 0.9
"""Minimum share of a name's occurrences that have a capital."""


def name_counts(sentences: Sequence[str]) -> Any:
    """Return a sparse matrix [sentences, names] with the number of times each name occurs.

    A name is a word of two letters or more that has a capital inside a sentence, where no other
    sentence begins, and hardly ever a small letter (`NAMED`): so `The` is no name, and the name at
    the beginning of `Elizabeth smiled` is one if other sentences have it inside. In German every
    noun is a name by this rule, in Chinese nothing.
    """
    from scipy import sparse

    capital, small, inside = Counter[str](), Counter[str](), set[str]()
    capitals_by_sentence: list[list[str]] = []
    for sentence in sentences:
        capitals: list[str] = []
        opening = BEGINNING.match(sentence)
        start = opening.end() if opening else 0
        for match in WORD.finditer(sentence):
            word = match[0]
            if not word[0].isupper():
                small[word.lower()] += 1
                continue
            capitals.append(word.lower())
            if match.start() >= start and not QUOTED.search(sentence, 0, match.start()):
                inside.add(word.lower())
        capital.update(capitals)
        capitals_by_sentence.append(capitals)
    names = [w for w in sorted(inside) if capital[w] >= NAMED * (capital[w] + small[w])]
    number = {name: n for n, name in enumerate(names)}
    found = [[number[w] for w in words if w in number] for words in capitals_by_sentence]
    ends = np.cumsum([0, *map(len, found)])
    columns = np.array([n for numbers in found for n in numbers], np.int64)
    ones = np.ones(len(columns), np.float32)
    return sparse.csr_matrix((ones, columns, ends), shape=(len(sentences), len(names)))
