"""Confusion matrices as CSV, SVG and PNG, and what two of them have in common (A.4)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corpora.store.atomic import replacing, write_text

FLOOR = 1e-3
"""The share below which all cells look alike, on the log scale of the pictures."""


def write(stem: Path, found: Mapping[str, Any]) -> list[Path]:
    """`STEM.csv`, `STEM.svg` and `STEM.png` of a result's confusion matrix."""
    counts, names = np.array(found["gold_by_predicted"]), found["classes"]
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in ("csv", "svg", "png")]
    write_csv(files[0], counts, names)
    write_picture(files[1:], counts, names)
    return files


def write_csv(path: Path, confusion: np.ndarray, names: Sequence[str]) -> None:
    """Counts; a row is a gold class, a column a predicted one."""
    header = ["gold \\ predicted", *names]
    write_table(path, header, zip(names, *confusion.T.tolist(), strict=True))


def write_table(path: Path, header: Sequence[str], rows: Any) -> None:
    """A CSV file: `header`, then `rows`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_picture(paths: Sequence[Path], confusion: np.ndarray, names: Sequence[str]) -> None:
    """The share of each gold class predicted as each class, on a log scale (figures 5 and 6).

    As in the paper, classes stand from the least frequent to the most frequent. The format is
    the paths' suffix.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    order = np.argsort(confusion.sum(1), kind="stable")
    counts = confusion[np.ix_(order, order)]
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
    save(figure, paths)


def save(figure: Any, paths: Sequence[Path]) -> None:
    """Write a matplotlib figure; the same figure gives the same bytes."""
    from matplotlib import rc_context

    # A fixed salt and no date, which would change from run to run.
    with rc_context({"svg.hashsalt": "discorpora", "svg.fonttype": "none"}):
        for path in paths:
            kind = path.suffix.removeprefix(".")
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            content = io.BytesIO()
            figure.savefig(content, format=kind, dpi=150, metadata=metadata)
            with replacing(path) as partial:
                partial.write_bytes(content.getvalue())
