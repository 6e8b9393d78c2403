"""The figures within the nested metrics of a training or an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def every_figure(metrics: Any, *path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each `{"value": number, ...}` within `metrics`, with its path of keys as its name.

    `{"test": {"accuracy": {"value": 0.9}}}` yields `("test accuracy", {"value": 0.9})`.
    """
    if not isinstance(metrics, Mapping):
        return
    if isinstance(metrics.get("value"), int | float):
        yield " ".join(path), metrics
        return
    for key, below in metrics.items():
        yield from every_figure(below, *path, str(key))
