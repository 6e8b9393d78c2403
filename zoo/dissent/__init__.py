"""DisSent (Nie, Bennett and Goodman 2019): sentence vectors from predicting discourse markers.

Importing a model from here registers it with the Auto classes of transformers.
"""

from __future__ import annotations

from pathlib import Path

from zoo import lazily

SHIPPED = Path(__file__).parent / "shipped"
"""The folder of the marker predictor in the package; its card is README.md."""

__getattr__ = lazily(
    __name__,
    {
        "modeling": (
            *("BiLstmConfig", "BiLstmForMarkers", "BiLstmModel", "NgramConfig", "NgramForMarkers"),
            *("PairTransformer", "PairTransformerConfig", "PairTransformerModel"),
            *("SifConfig", "SifForMarkers", "SifModel"),
        ),
        "prediction": ("predict", "predictions", "read_pairs"),
        ".evaluate.classification": ("PairClassifier",),
    },
)
