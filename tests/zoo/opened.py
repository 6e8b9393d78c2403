"""Evaluating by folder or Hub id, as the command line does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zoo.declared import Suite
from zoo.evaluate.opening import open_data, open_model
from zoo.evaluate.pairwise import Pairwise
from zoo.evaluate.pairwise_sets import PairSets, open_sets
from zoo.evaluate.results import Result


def evaluate(
    suite: Suite, model: str | Path, data: str | Path, split: str = "test", **more: Any
) -> Result:
    opened = open_data(suite, str(data), split)
    return suite.evaluate(open_model(suite, str(model)), opened, split=split, **more)


def sets_of(data: str | Path, limit: int = 0) -> PairSets:
    return open_sets(open_data(Pairwise(), str(data)), limit=limit)
