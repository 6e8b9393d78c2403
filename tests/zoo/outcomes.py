"""What every suite's outcomes must be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zoo.evaluate.compare import compare
from zoo.evaluate.results import read_outcomes
from zoo.evaluate.scores import Outcomes, confusion_matrix, macro_f1


def check_outcomes(result: Path) -> None:
    """The outcomes beside `result` give the figures of the model's row in a table."""
    (table,) = compare([result], published=False).tables
    (row,) = [row for row in table.rows if row.kind == "model"]
    found = read_outcomes(result)
    assert found and found.keys() <= row.cells.keys()
    for column, parts in found.items():
        values = [_figure(part) for part in parts.values()]
        assert row.cells[column].value == pytest.approx(100 * float(np.mean(values)), abs=1e-4)


def _figure(one: Outcomes) -> float:
    if one.right is not None:
        return float(one.right.mean())
    assert one.gold is not None and one.predicted is not None
    size = int(max(one.gold.max(), one.predicted.max())) + 1
    return float(macro_f1(confusion_matrix(one.gold, one.predicted, size)))
