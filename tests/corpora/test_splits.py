"""Splits keep groups together where they can, and depend on nothing but the documents."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.errors import ConfigError
from corpora.splits import SPLITS, Shares, assign

BOOKS = {f"b{b}/{c}": (f"b{b}", 10 + c) for b in range(200) for c in range(3)}


def weights(found, documents):
    """The weight of each split."""
    total = dict.fromkeys(SPLITS, 0)
    for name, split in found.split.items():
        total[split] += documents[name][1]
    return total


def test_many_groups_are_kept_together_near_their_shares():
    found = assign(BOOKS, Shares(), seed=1, stage="s")
    assert found.by == "group"
    of_group = {(BOOKS[document][0], split) for document, split in found.split.items()}
    assert len(of_group) == 200
    total = sum(weights(found, BOOKS).values())
    for split, share in zip(SPLITS, (0.9, 0.05, 0.05), strict=True):
        assert abs(weights(found, BOOKS)[split] / total - share) <= 0.2 * share


def test_few_groups_are_split_by_document_and_the_reason_is_given():
    few = {f"b{b}/{c}": (f"b{b}", 10) for b in range(5) for c in range(40)}
    found = assign(few, Shares(), seed=1, stage="s")
    assert found.by == "document" and "5 groups" in found.reason
    assert weights(found, few)["train"] == 1800


def test_a_split_that_is_left_out_needs_no_groups():
    eight = {f"b{b}/{c}": (f"b{b}", 10) for b in range(8) for c in range(20)}
    found = assign(eight, Shares(0.5, 0, 0.5), seed=1, stage="s")
    assert found.by == "group" and weights(found, eight) == {
        "train": 800,
        "validation": 0,
        "test": 800,
    }
    assert len({(eight[document][0], split) for document, split in found.split.items()}) == 8


def test_the_order_of_the_documents_changes_nothing():
    backwards = dict(reversed(BOOKS.items()))
    one, two = (assign(b, Shares(), seed=3, stage="s") for b in (BOOKS, backwards))
    assert one.split == two.split


def test_seed_and_stage_reshuffle():
    found = [
        assign(BOOKS, Shares(), seed=s, stage=n).split for s, n in ((1, "a"), (2, "a"), (1, "b"))
    ]
    assert found[0] != found[1] and found[0] != found[2]


def test_sizes_serve_as_shares():
    documents = {f"d{i}": (f"d{i}", 1) for i in range(1800)}
    found = assign(documents, Shares(10_000, 4_000, 4_000), seed=1, stage="s")
    assert weights(found, documents) == {"train": 1000, "validation": 400, "test": 400}


def test_a_share_of_nothing_gets_nothing():
    found = assign(BOOKS, Shares(1, 0, 0), seed=1, stage="s")
    assert set(found.split.values()) == {"train"}


def test_any_split_can_be_left_out():
    found = assign(BOOKS, Shares(0, 1, 2), seed=1, stage="s")
    assert set(found.split.values()) == {"validation", "test"}


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.9, -0.1, 0.2), "0.9, -0.1, 0.2"),
        ((float("nan"), 0.1, 0.2), "nan, 0.1, 0.2"),
        ((0.9, 0.1, float("inf")), "0.9, 0.1, inf"),
        ((0, 0, 0), "0, 0, 0"),
    ],
)
def test_shares_that_are_none_are_refused(shares, said):
    with pytest.raises(ConfigError) as caught:
        Shares(*shares)
    assert caught.value.message == f"train, validation and test = {said}"


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=8), st.tuples(st.text(max_size=2), st.integers(1, 99))))
def test_every_document_gets_one_split_and_three_fill_all(documents):
    found = assign(documents, Shares(), seed=1, stage="s")
    assert found.split.keys() == documents.keys()
    if len(documents) >= 3:
        assert set(found.split.values()) == set(SPLITS)
