"""Averages as the papers take them, the table with the published rows, and the layers' heat map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from corpora.store.atomic import write_text
from zoo.evaluate.compare import published_tables
from zoo.evaluate.confusions import save_pictures
from zoo.evaluate.discoeval.tasks import TASKS
from zoo.evaluate.table import csv_text, markdown

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
    for table in published_tables("discoeval"):
        if table.protocol == protocol and table.columns == list(COLUMNS):
            for name, *figures in table.rows:
                yield f"{name} (published: {table.paper}, {table.source})", figures


def table(result: Mapping[str, Any]) -> str:
    """Markdown: ours (mean and deviation over the classifier's seeds), then the published rows.

    Below it what ours are: the split, the rows, and what had to be done for want of a split.
    """
    protocol = result["protocol"]

    def shown(found: Mapping[str, Any]) -> str:
        text = f"{100 * found['value']:.1f}"
        return text if protocol["seeds"] == 1 else f"{text} ± {100 * found['sd']:.1f}"

    tasks, average = result["metrics"]["tasks"], result["metrics"]["average"]
    own = [shown(tasks[task]) if task in tasks else "" for task in TASKS]
    own.append(f"{100 * average['value']:.1f}" if average["complete"] else "")
    name = f"{result['model']['name']} ({result['model']['representation'] or 'own vectors'})"
    rows = [["model", *COLUMNS], [name, *own]]
    for name, figures in published(protocol["protocol"]):
        rows.append([name, *(f"{figure:.1f}" for figure in figures)])
    remarks = []
    for task, found in tasks.items():
        for domain, one in found["domains"].items():
            sizes = ", ".join(f"{count:,} {split}" for split, count in one["rows"].items())
            second = one.get("sklearn")
            beside = f"; scikit-learn {100 * second['value']:.1f}" if second else ""
            notes = "".join(f"; {note}" for note in one["notes"])
            judged = f"{shown(one)} ({one['split']} accuracy; rows: {sizes})"
            remarks.append(f"- {task} {domain}: {judged}{beside}{notes}")
    return "\n".join([*markdown(rows), "", *remarks, ""])


def write_files(result: Mapping[str, Any], stem: Path) -> None:
    """`STEM.table.md`; with layers also `STEM.layers.csv`, a row a layer, and a heat map of them.

    As in figure 8, colours are standardised in each column.
    """
    write_text(stem.with_name(f"{stem.name}.table.md"), table(result))
    layers = result["metrics"].get("layers")
    if layers is None:
        return
    from matplotlib.figure import Figure

    tasks, numbers = list(layers["accuracy"]), layers["layers"]
    accuracy = np.array(list(layers["accuracy"].values())).T
    rows = [
        [layer, *(f"{value:.4f}" for value in row)]
        for layer, row in zip(numbers, accuracy, strict=True)
    ]
    place = stem.with_name(f"{stem.name}.layers")
    write_text(place.with_name(f"{place.name}.csv"), csv_text(["layer", *tasks], rows))
    matrix = 100 * accuracy
    deviation = matrix.std(0)
    shades = (matrix - matrix.mean(0)) / np.where(deviation > 0, deviation, 1)
    size = (1.5 + matrix.shape[1], 1.2 + 0.35 * len(matrix))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot(ylabel="layer (0: embeddings)", title="Accuracy of each layer")
    axes.imshow(shades, cmap="Blues", aspect="auto")
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set_yticks(range(len(matrix)), numbers)
    for (row, column), value in np.ndenumerate(matrix):
        dark = shades[row, column] > 0.5
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", color="w" if dark else "k")
    save_pictures(figure, place, dpi=100)
