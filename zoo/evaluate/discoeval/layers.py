"""Every layer by itself (DiscoEval, section 6), and the heat map (figure 8)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.errors import ConfigError
from corpora.store.atomic import replacing, write_text
from zoo.evaluate.discoeval.data import TaskData
from zoo.evaluate.discoeval.features import features_of
from zoo.evaluate.discoeval.protocol import inputs_under, score, vectors_of
from zoo.evaluate.encoders import BackboneEncoder, Encoder

if TYPE_CHECKING:
    from zoo.evaluate.suites import DiscoEval


def per_layer(
    tasks: Sequence[TaskData], encoder: Encoder, options: DiscoEval, split: str, seed: int
) -> dict[str, Any]:
    """The accuracy of each task on each layer's vectors, 0 being the embeddings.

    `accuracy[task]` has a figure a layer, the mean over the task's domains; `best` the layer that
    is best for a task, and `mean_best` their average (table 3).
    """
    if not isinstance(encoder, BackboneEncoder) or not encoder.layers:
        raise ConfigError("this encoder has no layers to look at", where="layers")
    names = [f"{options.layer_vectors}:{layer}" for layer in range(encoder.layers + 1)]
    quick = options.model_copy(update={"second_opinion": False})
    found: dict[str, list[list[float]]] = {}
    for data in tasks:
        how = data.task.features[options.protocol]
        inputs = inputs_under(data, options)
        vectors = vectors_of(encoder, inputs, names)
        column = []
        for name in names:
            features = features_of(inputs, vectors.pop(name), how)
            column.append(score(data, features, quick, split, seed)["value"])
        found.setdefault(data.task.name, []).append(column)
    accuracy = {task: np.mean(columns, axis=0).tolist() for task, columns in found.items()}
    best = {task: int(np.argmax(column)) for task, column in accuracy.items()}
    return {
        "vectors": options.layer_vectors,
        "layers": list(range(encoder.layers + 1)),
        "accuracy": accuracy,
        "best": best,
        "mean_best": float(np.mean(list(best.values()))),
    }


def write_csv(path: Path, found: Mapping[str, Any]) -> None:
    """Accuracy; a row is a layer, a column a task."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["layer", *found["accuracy"]])
    for layer, row in zip(found["layers"], _matrix(found), strict=True):
        writer.writerow([layer, *(f"{value:.4f}" for value in row)])
    write_text(path, text.getvalue())


def write_heat_map(stem: Path, found: Mapping[str, Any]) -> list[Path]:
    """`STEM.svg` and `STEM.png`: as in figure 8, colours are standardised in each column."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    matrix = 100 * _matrix(found)
    deviation = matrix.std(0)
    shades = (matrix - matrix.mean(0)) / np.where(deviation > 0, deviation, 1)
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    # A fixed salt and no date: the same figures give the same bytes.
    with rc_context({"svg.hashsalt": "discorpora", "svg.fonttype": "none"}):
        size = (1.5 + matrix.shape[1], 1.2 + 0.35 * len(matrix))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot(ylabel="layer (0: embeddings)", title="Accuracy of each layer")
        axes.imshow(shades, cmap="Blues", aspect="auto")
        axes.set_xticks(range(matrix.shape[1]), list(found["accuracy"]))
        axes.set_yticks(range(len(matrix)), found["layers"])
        for (row, column), value in np.ndenumerate(matrix):
            dark = shades[row, column] > 0.5
            axes.text(
                column, row, f"{value:.1f}", ha="center", va="center", color="w" if dark else "k"
            )
        for file in files:
            with replacing(file) as partial:
                form = file.suffix[1:]
                figure.savefig(partial, format=form, metadata=_undated(form))
    return files


def _undated(form: str) -> dict[str, None]:
    return {"Date": None} if form == "svg" else {"Software": None}


def _matrix(found: Mapping[str, Any]) -> np.ndarray:
    return np.array(list(found["accuracy"].values())).T
