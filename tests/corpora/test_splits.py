"""Splits keep groups together where they can, and depend on nothing but the documents."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.errors import ConfigError
from corpora.splits import SPLITS, Shares
from corpora.splits.division import dataset_division

BOOKS = {f"b{b}/{c}": (f"b{b}", 10 + c) for b in range(200) for c in range(3)}


def split_of(documents, shares=None, seed=1):
    """What was kept together, and the split of each document."""
    division = dataset_division(documents, shares or Shares(), seed)
    return division, dict(zip(documents, division.splits_of(list(documents)), strict=True))


def weights(split, documents):
    """The weight of each split."""
    total = dict.fromkeys(SPLITS, 0)
    for name, own in split.items():
        total[own] += documents[name][1]
    return total


def test_many_groups_are_kept_together_near_their_shares():
    division, found = split_of(BOOKS)
    assert division.by == "group"
    assert len({(BOOKS[document][0], split) for document, split in found.items()}) == 200
    total = sum(weights(found, BOOKS).values())
    for split, share in zip(SPLITS, (0.9, 0.05, 0.05), strict=True):
        assert abs(weights(found, BOOKS)[split] / total - share) <= 0.2 * share


def test_few_groups_are_split_by_document_and_the_reason_is_given():
    few = {f"b{b}/{c}": (f"b{b}", 10) for b in range(5) for c in range(40)}
    division, found = split_of(few)
    assert division.by == "document" and "5 groups" in division.reason
    assert weights(found, few)["train"] == 1800


def test_a_split_that_is_left_out_needs_no_groups():
    eight = {f"b{b}/{c}": (f"b{b}", 10) for b in range(8) for c in range(20)}
    division, found = split_of(eight, Shares(0.5, 0, 0.5))
    assert division.by == "group" and weights(found, eight) == {
        "train": 800,
        "validation": 0,
        "test": 800,
    }
    assert len({(eight[document][0], split) for document, split in found.items()}) == 8


def test_the_order_of_the_documents_changes_nothing():
    backwards = dict(reversed(BOOKS.items()))
    assert split_of(BOOKS)[1] == split_of(backwards)[1]


def test_the_seed_reshuffles():
    assert split_of(BOOKS, seed=1)[1] != split_of(BOOKS, seed=2)[1]


def test_sizes_serve_as_shares():
    documents = {f"d{i}": (f"d{i}", 1) for i in range(1800)}
    _, found = split_of(documents, Shares(10_000, 4_000, 4_000))
    assert weights(found, documents) == {"train": 1000, "validation": 400, "test": 400}


def test_a_share_of_nothing_gets_nothing():
    _, found = split_of(BOOKS, Shares(1, 0, 0))
    assert set(found.values()) == {"train"}


def test_any_split_can_be_left_out():
    _, found = split_of(BOOKS, Shares(0, 1, 2))
    assert set(found.values()) == {"validation", "test"}


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
    _, found = split_of(documents)
    assert found.keys() == documents.keys()
    if len(documents) >= 3:
        assert set(found.values()) == set(SPLITS)
