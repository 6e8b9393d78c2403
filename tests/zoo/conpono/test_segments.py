"""Anchors and targets: the classic error is off by one."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.conpono.segments import Geometry, cut_pair


def test_example_of_the_paper() -> None:
    # "s7..s10 as the anchor and s1..s3 as the target for k = -4"; numbers here begin at 0.
    assert Geometry(k=4).target_start(7 - 1, -4) == 1 - 1


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("sentences", [7, 8, 9, 12, 30])
def test_targets_never_overlap_the_anchor_or_leave_the_paragraph(k: int, sentences: int) -> None:
    geometry = Geometry(k=k)
    starts = geometry.anchors(sentences).tolist()
    assert starts
    for start in starts:
        found = geometry.targets(start, sentences)
        assert {1, -1} & set(found)
        for distance in found:
            target = geometry.target_start(start, distance)
            own = set(range(target, target + 3))
            assert not own & set(range(start, start + 4))
            assert own <= set(range(sentences))
    others = set(range(sentences - 3)) - set(starts)
    assert not any(geometry.targets(start, sentences) for start in others)


def test_as_many_targets_as_asked_for_where_they_exist() -> None:
    geometry, random = Geometry(k=4), np.random.default_rng(0)
    counts = set()
    for _ in range(200):
        start, chosen = geometry.draw(40, 4, random)
        assert len(chosen) == min(4, len(geometry.targets(start, 40)))
        assert chosen == sorted(set(chosen))
        counts.add(tuple(chosen))
    assert len(counts) > 20  # not always the same four of eight
    assert len(geometry.draw(8, 4, random)[1]) <= 2


def test_paragraph_too_short_has_no_anchor() -> None:
    assert len(Geometry().anchors(6)) == 0


@pytest.mark.parametrize("budget", [5, 10, 11, 30])
def test_the_longer_text_is_cut(budget: int) -> None:
    for anchor in range(1, 20):
        for target in range(1, 20):
            one, two = anchor, target
            while one + two > budget:
                one, two = (one - 1, two) if one > two else (one, two - 1)
            found = cut_pair(anchor, target, budget)
            assert sum(found) == one + two
            assert abs(found[0] - one) <= 1
