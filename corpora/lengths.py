"""The filter of pairs by their lengths (Nie, Bennett and Goodman 2019, appendix A.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

MIN_WORDS, MAX_WORDS, MAX_RATIO = 5, 50, 5.0


def unfit_lengths(
    s1: Any,
    s2: Any,
    min_words: int = MIN_WORDS,
    max_words: int = MAX_WORDS,
    max_ratio: float = MAX_RATIO,
) -> dict[str, Any]:
    """Return, by reason, whether pairs of `s1` and `s2` words are left out.

    The numbers of words are integers, or arrays `[pairs]` of them; so are the truth values. By
    default a side has 5 to 50 words, and at most 5 times as many as the other.
    """
    shorter, longer = np.minimum(s1, s2), np.maximum(s1, s2)
    return {
        "too_short": shorter < min_words,
        "too_long": longer > max_words,
        "unlike_lengths": longer > max_ratio * shorter,
    }
