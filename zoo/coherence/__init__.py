"""The coherence scorer (Jwalapuram, Joty and Lin 2022): one score a text, the higher the better.

Importing a model from here registers it with the Auto classes of transformers.
"""

from __future__ import annotations

from zoo import lazily

__getattr__ = lazily(
    __name__,
    {
        "modeling": ("CoherenceConfig", "CoherenceScorer"),
        "unc_modeling": ("UncConfig", "UncModel"),
    },
)
