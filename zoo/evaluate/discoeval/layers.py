"""The picture of what each layer knows (figure 8 of DiscoEval)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from corpora.store.atomic import write_text
from zoo.evaluate.confusions import save_pictures
from zoo.evaluate.table import csv_text


def write_files(result: Mapping[str, Any], stem: Path) -> None:
    """With layers `STEM.layers.csv`, a row a layer, and a heat map: `.svg` and `.png`.

    As in figure 8, colours are standardised in each column.
    """
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
