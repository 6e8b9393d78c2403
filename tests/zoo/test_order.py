"""Cues of the order of sentences, and the scorer that weighs them."""

from __future__ import annotations

from zoo.coherence import load_scorer
from zoo.coherence.order import CUES, cues, weighted

LIFE = [
    "Ilse Brandt was a painter from a small town on the coast (1861).",
    "In 1883 she bought a barn and began to paint the harbour.",
    "Brandt showed the barn to her friends and gave lessons there.",
    "In 1902 the lessons became a school.",
]


def found(sentences: list[str]) -> dict[str, float]:
    return dict(zip(CUES, cues(sentences), strict=True))


def test_years_and_the_first_sentence_have_a_direction() -> None:
    assert found(LIFE) == {"years": 1, "first_defines": 1, "first_bracket": 1}
    assert found(LIFE[::-1]) == {"years": -1, "first_defines": 0, "first_bracket": 0}


def test_a_text_without_signs_has_no_cue() -> None:
    assert cues(["One sentence of 1900 and 1901 (two years)."]) == [0.0] * len(CUES)
    assert cues(["Go on!", "Wait...", "It is 1900.", "It still is 1900."]) == [0.0] * len(CUES)
    assert weighted(LIFE, {}) == 0
    assert weighted(LIFE, {"years": 2.0, "first_bracket": -0.5}) == 1.5


def test_the_shipped_scorer_has_a_direction() -> None:
    written, turned = load_scorer().score([LIFE, LIFE[::-1]])
    assert written > turned
