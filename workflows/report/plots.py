"""Plots of the report, as SVG that is the same on every run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path


def bars(values: Counter[str], path: Path, *, title: str, log: bool = False) -> None:
    """Horizontal bars, the largest first, each with its number."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = [name for name, _ in values.most_common()]
    numbers = [values[name] for name in names]
    with mpl.rc_context({"svg.hashsalt": "discorpora", "svg.fonttype": "none"}):
        figure, axes = plt.subplots(figsize=(7, 0.6 + 0.3 * max(len(names), 1)), layout="tight")
        drawn = axes.barh(names, numbers, color="#33658a")
        axes.bar_label(
            drawn, fmt="{:,.2f}" if max(numbers, default=2) <= 1 else "{:,.0f}", padding=3
        )
        axes.invert_yaxis()
        axes.set_title(title, loc="left", fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        if log and numbers:
            axes.set_xscale("log")
        axes.margins(x=0.12)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
