from __future__ import annotations

import numpy as np
import pytest

from corpora.rng import stream
from extract.validation.strict import draws, summary
from extract.validation.words import GoldText, WordMap, subsequence


def words(text: str) -> list[str]:
    return GoldText.read(0, "doc", text).words


def test_words_leave_punctuation_out() -> None:
    assert words("“He did n't go!” – she said, don’t (3.5 km) …") == [
        *("he", "did", "n't", "go", "she", "said", "don’t", "3.5", "km"),
    ]


def test_scripts_without_spaces_count_by_character() -> None:
    assert words("因为下雨,so 他走了。") == ["因", "为", "下", "雨", "so", "他", "走", "了"]


def test_hard_characters_are_no_trouble() -> None:
    assert words("😀 שלום\u200b 👩‍👩‍👧 a\u0301b") == ["שלום", "a", "b"]
    assert words("") == []


def test_spans_are_read_as_words_of_the_gold_text() -> None:
    gold = GoldText.read(0, "doc", "We did n't stop , but he did .")
    to_words = WordMap(gold, "We didn't stop, but he did.")
    assert to_words([(3, 9)]) == (1, 2)
    assert to_words([(3, 15), (20, 27)]) == (1, 2, 3, 5, 6)
    assert to_words([(14, 16)]) == ()
    with pytest.raises(IndexError):
        to_words([(3, 99)])


@pytest.mark.parametrize(
    ("wanted", "inside", "expected"),
    [
        (["because"], ["partly", "because"], [1]),
        (["if", "then"], ["if", "then"], [0, 1]),
        (["as"], ["just", "as"], [1]),
        (["but"], ["even", "so"], None),
    ],
)
def test_a_connective_is_found_in_its_span(
    wanted: list[str], inside: list[str], expected: list[int] | None
) -> None:
    assert subsequence(wanted, inside) == expected


def test_intervals_are_those_of_resampled_documents() -> None:
    counts = np.random.default_rng(3).integers(0, 9, size=(12, 2, 5))
    counts[..., 2:] = np.minimum(counts[..., 2:], counts[..., :2].min(axis=-1, keepdims=True))
    weights = draws(12, 200, stream(5, "test"))
    row = summary(counts, ["but", "so"], weights)["per_marker"]["so"]
    f1 = []
    for sample in weights.astype(int):
        drawn = np.repeat(counts[:, 1], sample, axis=0).sum(axis=0)
        f1.append(2 * drawn[2] / (drawn[0] + drawn[1]))
    assert row["occurrence"]["ci"] == pytest.approx(np.quantile(f1, [0.025, 0.975]))


def test_of_a_few_documents_there_is_no_interval() -> None:
    counts = np.zeros((12, 2, 5), np.int64)
    counts[:9, 0], counts[:, 1] = 1, 2
    found = summary(counts, ["but", "so"], draws(12, 200, stream(5, "test")))
    few, enough = (found["per_marker"][marker] for marker in ("but", "so"))
    assert (few["documents"], enough["documents"], found["overall"]["documents"]) == (9, 12, 12)
    assert few["dice"] == {"p": 1, "r": 1, "f1": 1, "ci": None}
    assert enough["dice"]["ci"] == found["overall"]["dice"]["ci"] == [1, 1]
