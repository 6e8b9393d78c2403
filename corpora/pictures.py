"""The look of all figures: colours, and settings of matplotlib for those that it draws."""

from __future__ import annotations

from typing import Any

PALETTE = ("#2b6a9b", "#b06a10", "#3d7a46", "#9a4a8f", "#6b6fb3", "#7a6a3a", "#1f7d7d")
"""The colours of series, in their order."""
TEXT, MUTED, GRID = "#23282d", "#56606a", "#d8dde2"
"""The colours of titles, of axes with their numbers, and of grid lines."""


MATPLOTLIB: Any = {
    "axes.prop_cycle": f"cycler('color', {list(PALETTE)})",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": TEXT,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "font.family": "DejaVu Sans",
    "legend.fontsize": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "discorpora",
    "text.color": TEXT,
    "xtick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.color": MUTED,
    "ytick.labelsize": 8,
}
"""Settings for `matplotlib.rc_context`, under which figures are created and saved. Without the salt
the bytes of an SVG file would change from run to run."""
