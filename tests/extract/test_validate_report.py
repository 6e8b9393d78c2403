from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corpora.readers.pdtb import read_gold
from extract.validate import plot, to_markdown, validate
from tests.extract.test_validate import FIXTURES, MARKERS, some_pairs


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    gold = list(read_gold(FIXTURES / "pdtb3"))
    said = {"trees": "embedded on raw text"}
    return validate(some_pairs(gold), gold, gold, MARKERS, seen={"ferry"}, settings=said)


def test_the_table_says_where_the_trees_come_from(result: dict[str, Any]) -> None:
    text = to_markdown(result)
    assert "## 1 documents that the parser was not trained on: embedded on raw text" in text
    assert "## All 2 documents, 1 of them seen in training: embedded on raw text" in text


def test_the_table_shows_scores_controls_and_policies(result: dict[str, Any]) -> None:
    text = to_markdown(result)
    assert "| all | 7 | 6 | .714 | .833 | .769 | " in text  # of two documents no interval
    assert "| though | 0 | 0 | – | – | – | – | – |" in text
    assert "head: " in text and "ignore: " in text
    assert "its control" in text and "Counted in words" in text
    assert "no span: 1" in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert widths == {9}


def test_the_figures_are_written_twice_the_same(result: dict[str, Any], tmp_path: Path) -> None:
    first, second = plot(result, tmp_path / "a"), plot(result, tmp_path / "b")
    assert [path.name for path in first] == [
        *("figure2_error_rate.svg", "figure2_error_rate.png"),
        *("figure3_distance.svg", "figure3_distance.png"),
    ]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes() and one.stat().st_size > 5_000
    assert b"<svg" in first[0].read_bytes()
