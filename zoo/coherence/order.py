"""A cue of the order of sentences that needs no encoder: a text follows time.

Cosines of sentence vectors have no direction: a text and its reverse tie. Years have one.
`zoo.coherence.ship` fits the cue's weight; `docs/results/coherence.md` has the cues that were left
out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

YEAR = re.compile(r"\b(1\d\d\d|20[0-3]\d)\b")


def years_ascend(sentences: Sequence[str]) -> float:
    """Whether years ascend from one dated sentence to the next, from -1 to 1.

    The mean sign of the differences; 0 for a text with fewer than two different years. Of a
    sentence with several years the first counts.
    """
    years = [int(found[0]) for sentence in sentences if (found := YEAR.search(sentence))]
    signs = [np.sign(after - before) for before, after in pairwise(years) if after != before]
    return float(np.mean(signs)) if signs else 0.0
