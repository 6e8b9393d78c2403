"""The pictures of results: confusion matrices, the accuracy of layers, and a comparison.

The comparison tells how far two models confuse the same markers (Nie, Bennett and Goodman 2019,
appendix A.4).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, Field, model_validator

from corpora.errors import InputError
from corpora.outside import record_of
from corpora.pictures import MATPLOTLIB
from corpora.store.atomic import replacing, write_json, write_text
from corpora.store.manifest import read_results
from zoo.evaluate.results import Result
from zoo.evaluate.table import csv_text
from zoo.training.data import check_labels

FLOOR = 1e-3
"""The smallest share that the log scale of the pictures shows; smaller ones look like it."""
PRIOR = 0.5
"""The count that is added to each cell, so that a zero has a logarithm."""


def write_confusion(stem: Path, confusion: Mapping[str, Any]) -> None:
    """Write a result's confusion matrix as `STEM.csv`, `STEM.svg` and `STEM.png`.

    The CSV file has counts, a row for a gold class. The pictures show which share of each gold
    class is predicted as each class, on a log scale (figures 5 and 6). As in the paper, the classes
    are in the order of their frequency, the least frequent first.
    """
    from matplotlib.colors import LogNorm

    counts, names = np.array(confusion["gold_by_predicted"]), confusion["classes"]
    rows = ([name, *row] for name, row in zip(names, counts.tolist(), strict=True))
    write_csv(stem, ["gold \\ predicted", *names], rows)
    order = np.argsort(counts.sum(1), kind="stable")
    counts = counts[np.ix_(order, order)]
    shares = np.maximum(counts / np.maximum(counts.sum(1, keepdims=True), 1), FLOOR)
    ticks, labels = range(len(names)), [names[i] for i in order]
    figure, axes = new_figure(
        (7, 6), xlabel="predicted", ylabel="in the text", title="Share of each class's rows"
    )
    image = axes.imshow(shares, norm=LogNorm(FLOOR, 1), cmap="Blues")
    axes.set_xticks(ticks, labels, rotation=60)
    axes.set_yticks(ticks, labels)
    figure.colorbar(image, label="share (log scale)", format="%g")
    save_pictures(figure, stem)


def write_layers(layers: Mapping[str, Any], stem: Path) -> None:
    """Write the accuracy of each layer as `STEM.csv` and as a heat map, `STEM.svg` and `STEM.png`.

    A row is a layer, a column a task. As in figure 8 of DiscoEval's paper, a colour tells how far
    an accuracy is from its column's mean, in standard deviations.
    """
    tasks, numbers = list(layers["accuracy"]), layers["layers"]
    accuracy = np.array(list(layers["accuracy"].values())).T
    cells = zip(numbers, accuracy.tolist(), strict=True)
    rows = ([layer, *(f"{value:.4f}" for value in row)] for layer, row in cells)
    write_csv(stem, ["layer", *tasks], rows)
    matrix = 100 * accuracy
    deviation = matrix.std(0)
    shades = (matrix - matrix.mean(0)) / np.where(deviation > 0, deviation, 1)
    size = (1.5 + matrix.shape[1], 1.2 + 0.35 * len(matrix))
    label = "layer" + " (0: embeddings)" * (0 in numbers)
    figure, axes = new_figure(size, ylabel=label, title="Accuracy of each layer")
    axes.imshow(shades, cmap="Blues", aspect="auto")
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set_yticks(range(len(matrix)), numbers)
    for (row, column), value in np.ndenumerate(matrix):
        dark = shades[row, column] > 0.5
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", color="w" if dark else "k")
    save_pictures(figure, stem, dpi=100)


def write_csv(stem: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file `STEM.csv`."""
    write_text(stem.with_name(f"{stem.name}.csv"), csv_text(header, rows))


def new_figure(size: tuple[float, float], **axes: Any) -> tuple[Any, Any]:
    """Return a matplotlib figure of a size in inches, and its axes with these properties, in the
    style of all figures."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(MATPLOTLIB):
        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.add_subplot(**axes)


def save_pictures(
    figure: Any, stem: Path, dpi: int = 150, kinds: Sequence[str] = ("png", "svg")
) -> None:
    """Write a matplotlib figure as SVG and PNG; the same figure gives the same bytes."""
    from matplotlib import rc_context

    with rc_context(MATPLOTLIB):
        for kind in kinds:
            content = io.BytesIO()
            undated = {"Date" if kind == "svg" else "Software": None}
            figure.savefig(content, format=kind, dpi=dpi, metadata=undated)
            with replacing(stem.with_name(f"{stem.name}.{kind}")) as partial:
                partial.write_bytes(content.getvalue())
            figure.set_layout_engine("none")  # all kinds have the first's layout, which takes long


# The comparison of two confusion matrices (appendix A.4).

HINT = "make it with: discorpora evaluate dissent --model MODEL --data DATA --json FILE"


class Confusion(BaseModel):
    """A result's confusion matrix: counts by gold class (rows) and predicted class (columns)."""

    classes: Annotated[tuple[str, ...], Field(min_length=1)]
    gold_by_predicted: tuple[tuple[Annotated[int, Field(ge=0)], ...], ...]

    @model_validator(mode="after")
    def _is_square(self) -> Self:
        sizes = [len(self.gold_by_predicted), *map(len, self.gold_by_predicted)]
        if {*sizes} != {len(self.classes)}:
            raise ValueError(f"expected {len(self.classes)} rows of as many counts")
        return self


@dataclass(frozen=True)
class Regression:
    """How well the confusions of one model predict those of another: the regression of A.4.

    A cell is the log of the share of a gold marker's rows that got some predicted marker. A first
    line predicts the cells of the model of unbalanced data from the log frequency of the predicted
    marker. A second line predicts the `balanced` model's cells from the `residuals` of the first.
    `r2`, `f` with (1, cells - 2) degrees of freedom, `p`, `slope` and `intercept` are of the second
    line, `frequency_r2` is of the first.
    """

    r2: float
    f: float
    freedom: tuple[int, int]
    p: float
    slope: float
    intercept: float
    frequency_r2: float
    markers: Sequence[str]
    residuals: Sequence[float]
    balanced: Sequence[float]


def compare_files(unbalanced: Path, balanced: Path, stem: Path) -> None:
    """Compare the confusions of a model of unbalanced data and of one of balanced data.

    The two files are results of the suite `dissent` on the same rows. Writes the regression as
    `STEM.json`, `STEM.csv` (a line for each pair of markers), `STEM.svg` and `STEM.png`. Raises
    `InputError` if a file is no such result, or if the markers or the rows differ.
    """
    results, matrices, judged = [], [], []
    for path in (unbalanced, balanced):
        result = Result.of({"metrics": {}, **read_results(path)})
        about = result.dataset if isinstance(result.dataset, Mapping) else {}
        data = ", ".join(f"{key} {about.get(key, '?')}" for key in ("name", "config", "revision"))
        judged.append(f"{data}, split {result.split}")
        matrix = result.metrics.get("confusion")
        matrices.append(record_of(Confusion, matrix, f"{path}: metrics.confusion", HINT))
        results.append(result)
    classes = [[*matrix.classes] for matrix in matrices]
    check_labels(classes[0], classes[1], "confusion", "first result", "second result")
    counts = [np.array(each.gold_by_predicted) for each in matrices]
    if judged[0] != judged[1] or counts[0].sum(1).tolist() != counts[1].sum(1).tolist():
        raise InputError(
            "the two results are of different rows",
            where=" | ".join(dict.fromkeys(judged)),
            hint="evaluate both models with the same --data, --split and --limit",
        )
    regression = compare(counts[0], counts[1], classes[0])
    write_regression(regression, stem)
    models = [result.model.get("name", "") for result in results]
    about = {**asdict(regression), "models": models, "dataset": results[0].dataset}
    write_json(stem.with_name(f"{stem.name}.json"), about)


def compare(unbalanced: np.ndarray, balanced: np.ndarray, names: Sequence[str]) -> Regression:
    """The regression of two matrices of counts `[gold, predicted]`, with the markers' `names`.

    Markers without a gold row are left out. Raises `InputError` if all frequencies are equal.
    """
    from scipy.stats import linregress

    # Logarithms of the markers' frequencies
    present = np.flatnonzero((unbalanced.sum(1) > 0) & (balanced.sum(1) > 0))
    frequency = np.log(unbalanced.sum(1)[present])
    if len(np.unique(frequency)) < 2:
        raise InputError(
            f"every marker has as many rows ({len(present)} markers have any): nothing can be "
            "predicted from their frequency",
            hint="evaluate both models on rows with the frequencies of the texts",
        )
    # Logarithms of the shares of each gold marker's predictions
    cells = [counts[np.ix_(present, present)] + PRIOR for counts in (unbalanced, balanced)]
    first, second = (np.log(part / part.sum(1, keepdims=True)).ravel() for part in cells)
    # Regress the first on frequency, then the second on the residuals.
    of_predicted = np.tile(frequency, len(frequency))
    frequency_line = linregress(of_predicted, first)
    residuals = first - (frequency_line.intercept + frequency_line.slope * of_predicted)
    line = linregress(residuals, second)
    r2, freedom = float(line.rvalue**2), len(residuals) - 2
    f = r2 / max(1 - r2, 1e-12) * freedom
    return Regression(
        r2=r2,
        f=float(f),
        freedom=(1, freedom),
        p=float(line.pvalue),
        slope=float(line.slope),
        intercept=float(line.intercept),
        frequency_r2=float(frequency_line.rvalue**2),
        markers=[names[marker] for marker in present.tolist()],
        residuals=residuals.tolist(),
        balanced=second.tolist(),
    )


def write_regression(line: Regression, stem: Path) -> None:
    """Write the cells and the line through them as `STEM.csv`, `STEM.svg` and `STEM.png`."""
    cells = zip(product(line.markers, repeat=2), line.residuals, line.balanced, strict=True)
    rows = [(*markers, f"{x:.6f}", f"{y:.6f}") for markers, x, y in cells]
    write_csv(stem, ["gold", "predicted", "residual_unbalanced", "log_share_balanced"], rows)
    p = "< 0.001" if line.p < 1e-3 else f"= {line.p:.3f}"
    figure, axes = new_figure(
        (6, 5),
        xlabel="unbalanced: residual of the log share",
        ylabel="balanced: log share",
        title=f"R² = {line.r2:.3f}, F(1,{line.freedom[1]}) = {line.f:.1f}, p {p}",
    )
    diagonal = np.eye(len(line.markers), dtype=bool).ravel()
    x, y = np.array(line.residuals), np.array(line.balanced)
    axes.scatter(x[~diagonal], y[~diagonal], s=12, label="confused")
    axes.scatter(x[diagonal], y[diagonal], s=18, marker="s", label="right")
    ends = np.array([x.min(), x.max()])
    axes.plot(ends, line.intercept + line.slope * ends, color="black", linewidth=1)
    axes.legend(frameon=False)
    save_pictures(figure, stem)
