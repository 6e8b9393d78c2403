"""Years as a cue of the order of sentences, and the scorer that weighs them."""

from __future__ import annotations

import pytest

from zoo.coherence import load_scorer
from zoo.windows import years_ascend

LIFE = [
    "Ilse Brandt, a painter, was born in a small town on the coast in 1861.",
    "In 1883 she bought a barn and began to paint the harbour.",
    "She showed the barn to her friends and gave lessons there.",
    "In 1902, after 19 years, the lessons became a school.",
]


def test_years_have_a_direction() -> None:
    assert years_ascend(LIFE) == 1
    assert years_ascend(LIFE[::-1]) == -1
    assert years_ascend([LIFE[1], LIFE[0], LIFE[3]]) == 0
    assert years_ascend(["It is 1900.", "It still is 1900.", "It is 1901."]) == 1


@pytest.mark.parametrize("sentences", [[], LIFE[:1], ["It rained.", "Room 12345 was dry."]])
def test_a_text_without_years_has_no_sign(sentences: list[str]) -> None:
    assert years_ascend(sentences) == 0


def test_the_shipped_scorer_prefers_years_that_ascend() -> None:
    written, turned, plain, back = load_scorer().score(
        [LIFE, LIFE[::-1], ["It rained.", "We left."], ["We left.", "It rained."]]
    )
    assert written > turned
    assert plain != pytest.approx(back)  # the model of order needs no years
