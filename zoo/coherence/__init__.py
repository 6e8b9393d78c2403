"""The coherence scorer (Jwalapuram, Joty and Lin 2022): one score a text, the higher the better.

Importing a model from here registers it with the Auto classes of transformers.

    from zoo.coherence import load_scorer
    load_scorer().score(["She opened the door. It was dark inside."])   # the shipped scorer
"""

from __future__ import annotations

from pathlib import Path

from zoo import lazily

SHIPPED = Path(__file__).parent / "shipped"
"""The scorer that comes with the package; its README.md is its card."""

__getattr__ = lazily(
    __name__,
    {
        "links": ("LinkConfig", "LinkScorer"),
        "modeling": ("CoherenceConfig", "CoherenceScorer"),
        "unc_modeling": ("UncConfig", "UncModel"),
        "scoring": ("load_scorer",),
    },
)
