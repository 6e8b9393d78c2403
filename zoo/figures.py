"""The figures within the nested metrics of a training or an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def every_figure(metrics: Any, *path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each `{"value": number, ...}` in nested metrics, named by the keys that lead to it."""
    if not isinstance(metrics, Mapping):
        return
    if isinstance(metrics.get("value"), int | float):
        yield " ".join(path), metrics
        return
    for key, inner in metrics.items():
        yield from every_figure(inner, *path, str(key))
