"""The figures in the metrics of a training or an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def every_figure(metrics: Any, *path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every `{"value": share, ...}` of the metrics, under the names on the way to it."""
    if not isinstance(metrics, Mapping):
        return
    if isinstance(metrics.get("value"), int | float):
        yield " ".join(path), metrics
        return
    for key, below in metrics.items():
        yield from every_figure(below, *path, str(key))


def matrices(metrics: Any, *path: str) -> dict[str, Mapping[str, Any]]:
    """The confusion matrices of a result, under the names on the way to them."""
    if not isinstance(metrics, Mapping):
        return {}
    if "gold_by_predicted" in metrics:
        return {" ".join(name for name in path if name not in ("confusion", "classes")): metrics}
    below = (matrices(value, *path, str(key)) for key, value in metrics.items())
    return {name: matrix for found in below for name, matrix in found.items()}
