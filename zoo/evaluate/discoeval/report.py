"""Averages as the papers take them, and the table with the published rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from zoo.evaluate.compare import published_tables
from zoo.evaluate.discoeval.tasks import TASKS

COLUMNS = (*TASKS, "avg")


def summary(domains: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """`tasks`: the mean over a task's domains; `average`: the mean over the tasks.

    `domains[task][domain]` is what `run_task` found. `average.complete` says whether all seven
    tasks are in it; only then it can stand beside a published one.
    """
    tasks = {
        task: {
            "value": float(np.mean([one["value"] for one in found.values()])),
            # The seeds of a task's domains are independent of each other.
            "sd": float(np.sqrt(np.sum([one["sd"] ** 2 for one in found.values()])) / len(found)),
            "domains": dict(found),
        }
        for task, found in domains.items()
    }
    value = float(np.mean([one["value"] for one in tasks.values()]))
    average = {"value": value, "tasks": list(tasks), "complete": len(tasks) == len(TASKS)}
    return {"tasks": tasks, "average": average}


def published(protocol: str) -> Iterator[tuple[str, list[float]]]:
    """The published rows of a protocol: model with its source, figures by `COLUMNS` in per cent.

    The first version of the DiscoEval paper is not among them: SP and SSP were made anew later.
    """
    for found in published_tables("discoeval"):
        if found["protocol"] == protocol and found["columns"] == list(COLUMNS):
            for name, *figures in found["rows"]:
                yield f"{name} (published: {found['paper']}, {found['source']})", figures


def table(result: Mapping[str, Any]) -> str:
    """Markdown: ours (mean and deviation over the classifier's seeds), then the published rows."""
    lines = [
        "| model | " + " | ".join(COLUMNS) + " |",
        "|---|" + "---:|" * len(COLUMNS),
        _row(_our_name(result), [_ours(result, column) for column in COLUMNS]),
    ]
    for name, figures in published(result["protocol"]["protocol"]):
        lines.append(_row(name, [f"{figure:.1f}" for figure in figures]))
    return "\n".join([*lines, "", *_remarks(result), ""])


def _our_name(result: Mapping[str, Any]) -> str:
    return f"{result['model']['name']} ({result['model']['representation'] or 'own vectors'})"


def _ours(result: Mapping[str, Any], column: str) -> str:
    metrics = result["metrics"]
    if column == "avg":
        average = metrics["average"]
        return f"{100 * average['value']:.1f}" if average["complete"] else ""
    found = metrics["tasks"].get(column)
    return _figure(result, found) if found else ""


def _figure(result: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """With its deviation, where there are several seeds."""
    shown = f"{100 * found['value']:.1f}"
    return shown if result["protocol"]["seeds"] == 1 else f"{shown} ± {100 * found['sd']:.1f}"


def _row(name: str, cells: Sequence[str]) -> str:
    return "| " + " | ".join([name, *cells]) + " |"


def _remarks(result: Mapping[str, Any]) -> list[str]:
    """What ours are: the split, the rows, and what had to be done for want of a split."""
    lines = []
    for task, found in result["metrics"]["tasks"].items():
        for domain, one in found["domains"].items():
            rows = ", ".join(f"{count:,} {split}" for split, count in one["rows"].items())
            second = one.get("sklearn")
            beside = f"; scikit-learn {100 * second['value']:.1f}" if second else ""
            notes = "".join(f"; {note}" for note in one["notes"])
            lines.append(
                f"- {task} {domain}: {_figure(result, one)} "
                f"({one['split']} accuracy; rows: {rows}){beside}{notes}"
            )
    return lines
