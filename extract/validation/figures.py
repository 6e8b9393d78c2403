"""Figures 2 and 3 of the DisSent paper, each with its control beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Result = Mapping[str, Any]

_CRITERIA = {
    "criterion_paper": "paper's criterion: min < .7",
    "criterion_strict": "strict criterion: max ≤ .3",
}
_FIGURES = {
    "figure2_error_rate": ("error_rate", "Extraction error rate", "share not aligned"),
    "figure3_distance": (
        "distance",
        "Distance of aligned pairs",
        "mean distance in characters",
    ),
}
_COLOURS = {"paper": "#33658a", "control": "#d9a441"}
_LABELS = {"paper": "gold of all documents", "control": "gold of other documents only (control)"}


def plot(result: Result, folder: Path) -> list[Path]:
    """Write both figures as SVG and PNG into `folder`; returns their paths.

    Over the unseen documents where there are any, else over all. The same result gives the
    same bytes with one version of matplotlib. Raises `OSError` where it cannot write.
    """
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with rc_context({"svg.hashsalt": "discorpora", "font.family": "DejaVu Sans"}):
        for name, words in _FIGURES.items():
            figure = _figure(result, *words)
            for suffix, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
                paths.append(folder / f"{name}.{suffix}")
                figure.savefig(paths[-1], format=suffix, metadata=metadata, dpi=120)
    return paths


def _figure(result: Result, key: str, title: str, unit: str) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    blocks = result["unseen"] if result["documents"]["unseen"] else result
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    # A canvas of its own: no pyplot, so no window system and no state shared between plots.
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(_CRITERIA), sharey=True)
    for axis, (criterion, label) in zip(axes, _CRITERIA.items(), strict=True):
        _bars(axis, {view: blocks[view][criterion]["per_marker"] for view in _COLOURS}, key)
        axis.set_title(label, fontsize=10)
    axes[0].set_ylabel(unit)
    trees = result["settings"].get("trees")
    figure.suptitle(f"{title}, {_documents(result)}" + (f", {trees}" if trees else ""), fontsize=11)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _documents(result: Result) -> str:
    seen, unseen = (result["documents"][key] for key in ("seen", "unseen"))
    return f"{unseen or seen} {'unseen ' if seen and unseen else ''}documents"


def _bars(axis: Any, views: Mapping[str, Result], key: str) -> None:
    markers: Sequence[str] = list(views["paper"])
    width = 0.4
    for i, (view, rows) in enumerate(views.items()):
        at = [position + (i - 0.5) * width for position in range(len(markers))]
        # A marker without pairs (or without aligned ones) has no bar rather than one of height 0.
        heights = [rows[m][key] if rows[m][key] is not None else float("nan") for m in markers]
        axis.bar(at, heights, width, color=_COLOURS[view], label=_LABELS[view])
    axis.set_xticks(range(len(markers)), markers, rotation=60, ha="right", fontsize=8)
    axis.set_ylim(0, 1.02)
    axis.spines[["top", "right"]].set_visible(False)
