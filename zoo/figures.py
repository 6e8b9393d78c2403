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


def matrices(metrics: Any, *path: str) -> dict[str, Mapping[str, Any]]:
    """Return the confusion matrices in nested metrics, named by the keys that lead to them. A
    confusion matrix is a mapping with the key `gold_by_predicted`."""
    if not isinstance(metrics, Mapping):
        return {}
    if "gold_by_predicted" in metrics:
        return {" ".join(name for name in path if name not in ("confusion", "classes")): metrics}
    inner = (matrices(value, *path, str(key)) for key, value in metrics.items())
    return {name: matrix for named in inner for name, matrix in named.items()}
