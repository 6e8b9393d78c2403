"""The pictures of results: confusion matrices, what two of them share (A.4), layers (figure 8)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, Field, model_validator

from corpora.errors import InputError
from corpora.outside import record_of
from corpora.store.atomic import replacing, write_json, write_text
from corpora.store.manifest import read_results
from zoo.evaluate.table import csv_text
from zoo.training.data import check_labels

FLOOR = 1e-3
"""The share below which all cells look alike, on the log scale of the pictures."""
PRIOR = 0.5
"""Added to each cell, so that a confusion that never happened has a logarithm."""


def write(stem: Path, found: Mapping[str, Any]) -> None:
    """`STEM.csv`, `STEM.svg` and `STEM.png` of a result's confusion matrix.

    The CSV file has counts, a row for a gold class. The pictures have the share of each gold class
    predicted as each class, on a log scale (figures 5 and 6); as in the paper, classes stand from
    the least frequent to the most frequent.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    counts, names = np.array(found["gold_by_predicted"]), found["classes"]
    place = stem.with_name(f"{stem.name}.csv")
    rows = zip(names, *counts.T.tolist(), strict=True)
    write_text(place, csv_text(["gold \\ predicted", *names], rows))
    order = np.argsort(counts.sum(1), kind="stable")
    counts = counts[np.ix_(order, order)]
    shares = np.maximum(counts / np.maximum(counts.sum(1, keepdims=True), 1), FLOOR)
    ticks, labels = range(len(names)), [names[i] for i in order]
    figure = Figure(figsize=(7, 6), layout="constrained")
    axes = figure.add_subplot(
        xlabel="predicted", ylabel="in the text", title="Share of each class's rows"
    )
    image = axes.imshow(shares, norm=LogNorm(FLOOR, 1), cmap="Blues")
    axes.set_xticks(ticks, labels, rotation=60)
    axes.set_yticks(ticks, labels)
    figure.colorbar(image, label="share (log scale)")
    save_pictures(figure, stem)


def write_layers(result: Mapping[str, Any], stem: Path) -> None:
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


def save_pictures(figure: Any, stem: Path, dpi: int = 150) -> None:
    """Write a matplotlib figure as SVG and PNG; the same figure gives the same bytes."""
    from matplotlib import rc_context

    # A fixed salt and no date, which would change from run to run.
    with rc_context({"svg.hashsalt": "discorpora", "svg.fonttype": "none"}):
        for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            content = io.BytesIO()
            figure.savefig(content, format=kind, dpi=dpi, metadata=metadata)
            with replacing(stem.with_name(f"{stem.name}.{kind}")) as partial:
                partial.write_bytes(content.getvalue())


@dataclass(frozen=True)
class Regression:
    """What is common to two confusion matrices: the regression of A.4.

    Each cell is the log share of its gold marker's rows. Those of the unbalanced model are
    predicted linearly from the log frequency of the marker that it answered; what is left, the
    `residuals`, predicts the `balanced` model's cells. `r2`, `f` with (1, cells - 2) degrees of
    freedom and `p` are of that second line; `frequency_r2` is of the first.
    """

    r2: float
    f: float
    freedom: tuple[int, int]
    p: float
    slope: float
    intercept: float
    frequency_r2: float
    markers: Sequence[Any]
    residuals: Sequence[float]
    balanced: Sequence[float]


def compare(unbalanced: np.ndarray, balanced: np.ndarray, names: Sequence[str] = ()) -> Regression:
    """Of two matrices `[gold, predicted]` of counts. Markers without a gold row are left out."""
    from scipy.stats import f as f_distribution
    from scipy.stats import linregress

    present = (unbalanced.sum(1) > 0) & (balanced.sum(1) > 0)
    if present.sum() < 2:
        raise InputError("fewer than two markers have rows in both matrices")
    frequency = np.log(unbalanced.sum(1)[present])
    if np.ptp(frequency) == 0:
        raise InputError(
            "every marker has as many rows: nothing can be predicted from their frequency",
            hint="evaluate both models on rows with the frequencies of the texts",
        )
    cells = [counts[np.ix_(present, present)] + PRIOR for counts in (unbalanced, balanced)]
    first, second = (np.log(part / part.sum(1, keepdims=True)).ravel() for part in cells)
    answered = np.tile(frequency, len(frequency))
    line = linregress(answered, first)
    residuals = first - (line.intercept + line.slope * answered)
    found = linregress(residuals, second)
    r2, freedom = float(found.rvalue**2), len(residuals) - 2
    f = r2 / max(1 - r2, 1e-12) * freedom
    markers = np.flatnonzero(present).tolist()
    return Regression(
        r2=r2,
        f=float(f),
        freedom=(1, freedom),
        p=float(f_distribution.sf(f, 1, freedom)),
        slope=float(found.slope),
        intercept=float(found.intercept),
        frequency_r2=float(line.rvalue**2),
        markers=[names[i] for i in markers] if names else markers,
        residuals=residuals.tolist(),
        balanced=second.tolist(),
    )


class Confusion(BaseModel):
    """Counts by gold class (rows) and predicted class."""

    classes: tuple[str, ...]
    gold_by_predicted: tuple[tuple[Annotated[int, Field(ge=0)], ...], ...]

    @model_validator(mode="after")
    def _is_square(self) -> Self:
        sizes = {len(self.gold_by_predicted), *map(len, self.gold_by_predicted)}
        if sizes != {len(self.classes)}:
            raise ValueError("expected a row and a column for each class")
        return self


def compare_results(unbalanced: Mapping[str, Any], balanced: Mapping[str, Any]) -> Regression:
    """`compare` on two results of the suite `dissent`.

    Raises `InputError` if their markers differ or they are of other rows.
    """
    results = (unbalanced, balanced)
    one, two = (
        record_of(Confusion, result["metrics"]["confusion"], f"the {which} result: confusion")
        for which, result in zip(("first", "second"), results, strict=True)
    )
    names = [*one.classes]
    check_labels(names, [*two.classes], "confusion", "first result", "second result")
    first, second = (np.array(found.gold_by_predicted) for found in (one, two))
    judged = []
    for result in results:
        found = result.get("dataset")
        about = found if isinstance(found, Mapping) else {}
        data = ", ".join(f"{key} {about.get(key, '?')}" for key in ("name", "config", "revision"))
        judged.append(f"{data}, split {result.get('split', '?')}")
    if judged[0] != judged[1] or first.sum(1).tolist() != second.sum(1).tolist():
        raise InputError(
            "the two results are of different rows",
            where=" | ".join(dict.fromkeys(judged)),
            hint="evaluate both models with the same --data, --split and --limit",
        )
    return compare(first, second, names)


def write_regression(found: Regression, stem: Path) -> None:
    """`STEM.csv`, `STEM.svg`, `STEM.png`: the cells, and the line through them."""
    from matplotlib.figure import Figure

    place, names = stem.with_name(f"{stem.name}.csv"), found.markers
    cells = [(gold, answer) for gold in names for answer in names]
    rows = zip(cells, found.residuals, found.balanced, strict=True)
    header = ["gold", "predicted", "residual_unbalanced", "log_share_balanced"]
    write_text(place, csv_text(header, ((*cell, f"{x:.6f}", f"{y:.6f}") for cell, x, y in rows)))
    p = "< 0.001" if found.p < 1e-3 else f"= {found.p:.3f}"
    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.add_subplot(
        xlabel="unbalanced: residual of the log share",
        ylabel="balanced: log share",
        title=f"R² = {found.r2:.3f}, F(1,{found.freedom[1]}) = {found.f:.1f}, p {p}",
    )
    own = np.eye(len(names), dtype=bool).ravel()
    x, y = np.array(found.residuals), np.array(found.balanced)
    axes.scatter(x[~own], y[~own], s=12, label="confused")
    axes.scatter(x[own], y[own], s=18, marker="s", label="right")
    ends = np.array([x.min(), x.max()])
    axes.plot(ends, found.intercept + found.slope * ends, color="black", linewidth=1)
    axes.legend()
    save_pictures(figure, stem)


def compare_files(unbalanced: Path, balanced: Path, stem: Path) -> None:
    """Whether a model of unbalanced and one of balanced data confuse the same markers.

    The two files are results of the suite `dissent` on the same rows. Writes `STEM.json`,
    `STEM.csv` (a line for each pair of markers), `STEM.svg` and `STEM.png`.
    """
    one, two = (_read(path) for path in (unbalanced, balanced))
    found = compare_results(one, two)
    write_regression(found, stem)
    models = [result["model"]["name"] for result in (one, two)]
    about = {"models": models, "dataset": one.get("dataset", {})}
    write_json(stem.with_name(f"{stem.name}.json"), {**asdict(found), **about})


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError("no such file", where=str(path), hint="give results of the suite dissent")
    result = read_results(path)
    if "confusion" not in result.get("metrics", {}):
        raise InputError(
            "holds no confusion matrix",
            where=str(path),
            hint="make it with: discorpora evaluate dissent --model MODEL --data DATA --json FILE",
        )
    return result
