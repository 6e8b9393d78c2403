"""Cues of the order of sentences that need no encoder: years, and how a text begins.

Cosines of sentence vectors have no direction: a text and its reverse tie. These cues have one. Each
is a number for a text as a list of sentences, from -1 to 1, and 0 where the text has no such sign.
`zoo.coherence.ship` fits their weights; `docs/results/coherence.md` has the cues that were left
out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

YEAR = re.compile(r"\b(1\d\d\d|20[0-3]\d)\b")
DEFINES = re.compile(r"^[^,]{1,80}\b(?:is|was|are|were) (?:an?|the|one)\b")
CUES = {
    "years": "years ascend from one dated sentence to the next: a text follows time",
    "first_defines": "the first sentence says what something is",
    "first_bracket": "the first sentence has a bracket, as articles give dates and other names",
}
"""The cues, in the order of `cues`."""


def cues(sentences: Sequence[str]) -> list[float]:
    """The cues of a text, in the order of `CUES`; all 0 for a single sentence."""
    if len(sentences) < 2:
        return [0.0] * len(CUES)
    years = [int(found[0]) for sentence in sentences if (found := YEAR.search(sentence))]
    signs = [np.sign(after - before) for before, after in pairwise(years) if after != before]
    first = sentences[0]
    return [
        float(np.mean(signs)) if signs else 0.0,
        float(DEFINES.search(first) is not None),
        float("(" in first),
    ]


def weighted(sentences: Sequence[str], weights: Mapping[str, float]) -> float:
    """The sum of a text's cues times their `weights`; a cue without a weight counts nothing."""
    found = zip(CUES, cues(sentences), strict=True)
    return sum(weights.get(name, 0.0) * value for name, value in found)
