"""The paper's alignment: distances, thresholds, control, vocabulary."""

from __future__ import annotations

import random

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from extract.validate import distances as module
from extract.validate.distances import (
    NEAREST,
    PAPER,
    STRICT,
    Sequences,
    Vocabulary,
    joined,
    measure,
    nearest_reading,
    summary,
)
from extract.validate.material import GoldText


def sequences(rows: list[tuple[str, str, int, int]]) -> Sequences:
    first, second, doc, marker = (list(column) for column in zip(*rows, strict=True))
    return Sequences(first, second, np.array(doc), np.array(marker))


def random_rows(size: int, seed: int) -> list[tuple[str, str, int, int]]:
    """Rows over few letters, so that ties and all sides of the thresholds occur."""
    source = random.Random(seed)

    def text() -> str:
        return "".join(source.choices("abcdefghij", k=source.randint(1, 9)))

    return [(text(), text(), source.randrange(4), source.randrange(3)) for _ in range(size)]


def by_definition(
    pair: tuple[str, str, int, int], gold: list[tuple[str, str, int, int]], criterion: str
) -> float:
    """The appendix, word for word: the nearest gold pair and the mean distance to it, or nan."""
    nearest = (2.0, 2.0)
    for first, second, _, marker in gold:
        d1 = Levenshtein.distance(pair[0], first) / max(len(pair[0]), len(first))
        d2 = Levenshtein.distance(pair[1], second) / max(len(pair[1]), len(second))
        if criterion == PAPER:
            nearest = min(nearest, (min(d1, d2), (d1 + d2) / 2))
        elif marker == pair[3]:
            nearest = min(nearest, (max(d1, d2), (d1 + d2) / 2))
    aligned = nearest[0] <= 0.3 if criterion == STRICT else nearest[0] < 0.7
    return nearest[1] if aligned else float("nan")


@pytest.mark.parametrize("cells", [1 << 20, 100])
def test_distances_are_those_of_a_double_loop(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CELLS", cells)
    pairs, gold = random_rows(120, seed=1), random_rows(90, seed=2)
    gold += [(first[:-1] + "x", second, doc, marker) for first, second, doc, marker in pairs[:40]]
    found = measure(sequences(pairs), sequences(gold))
    for i, pair in enumerate(pairs):
        elsewhere = [row for row in gold if row[2] != pair[2]]
        same = [row for row in gold if row[2] == pair[2]]
        expected = [
            by_definition(pair, gold, PAPER),
            by_definition(pair, elsewhere, PAPER),
            by_definition(pair, same, STRICT),
            by_definition(pair, elsewhere, STRICT),
        ]
        got = [view[c][i] for c in (PAPER, STRICT) for view in (found.all_gold, found.control)]
        assert got == pytest.approx(expected, abs=1e-6, nan_ok=True)
    quality = nearest_reading(sequences(pairs), sequences(gold))
    expected = [by_definition(pair, gold, NEAREST) for pair in pairs]
    assert quality == pytest.approx(expected, abs=1e-6, nan_ok=True)
    table = summary({NEAREST: quality}, np.array([pair[3] for pair in pairs]), ["a", "b", "c"])
    steps = np.histogram(quality[~np.isnan(quality)] + 1e-6, np.arange(12) / 10)[0]
    assert [*table[NEAREST]["histogram"].values()] == steps.tolist() and steps.sum() > 10
    assert [*table[NEAREST]["histogram"]][::5] == ["0.0", "0.5", "1.0"]


def test_the_thresholds_are_below_and_at_most() -> None:
    # Ten words, of which seven differ: .7 is not below .7. Of which three differ: .3 is allowed.
    gold = sequences([("abcdefghij", "abcdefghij", 0, 0)])
    at_seven = measure(sequences([("abcXXXXXXX", "abcXXXXXXX", 0, 0)]), gold)
    assert np.isnan(at_seven.all_gold[PAPER][0])
    below = measure(sequences([("abcdXXXXXX", "XXXXXXXXXX", 0, 0)]), gold)
    assert below.all_gold[PAPER][0] == pytest.approx(0.8)
    at_three = measure(sequences([("abcdefgXXX", "abcdefghij", 0, 0)]), gold)
    assert at_three.all_gold[STRICT][0] == pytest.approx(0.15)


def test_the_control_takes_no_gold_of_the_pair_s_document() -> None:
    gold = sequences([("abc", "def", 0, 0), ("abc", "xyz", 1, 0)])
    found = measure(sequences([("abc", "def", 0, 0)]), gold)
    assert found.all_gold[PAPER][0] == 0
    assert found.control[PAPER][0] == pytest.approx(0.5)
    assert found.all_gold[STRICT][0] == 0
    assert np.isnan(found.control[STRICT][0])


def test_no_gold_aligns_nothing() -> None:
    pairs = sequences([("abc", "def", 0, 0)])
    nothing = Sequences([], [], np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    rows = summary(measure(pairs, nothing).all_gold, pairs.marker, ["but"])
    expected = {"extracted": 1, "aligned": 0, "error_rate": 1.0, "distance": None}
    assert rows[PAPER] == {
        "overall": expected,
        "per_marker": {"but": expected},
        "histogram": {f"{n / 10}": 0 for n in range(11)},
    }


def test_long_and_short_strings_have_their_own_distances() -> None:
    source = random.Random(3)
    texts = ["".join(source.choices("abcde", k=k)) for k in (0, 1, 5, 40, 64, 65, 90, 200) * 3]
    found = module.distances(texts, texts[::-1])
    expected = [
        [Levenshtein.normalized_distance(one, other) for other in texts[::-1]] for one in texts
    ]
    assert found == pytest.approx(np.array(expected), abs=1e-6)


def test_the_vocabulary_keeps_frequent_words_and_replaces_numbers() -> None:
    text = GoldText(0, "doc", "The cat and the dog saw 3.5 and 1,000 cats; the dog barked.")
    vocabulary = Vocabulary([text], size=3)
    encoded = vocabulary.encode(text.words)
    assert len(encoded) == len(text.words) and len(vocabulary.words) == 3 + 2
    assert vocabulary.decode(encoded) == "the <unk> and the dog <unk> N and N <unk> the dog <unk>"
    assert vocabulary.decode(joined(encoded, (0, 4, 6))) == "the dog N"
