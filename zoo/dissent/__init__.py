"""DisSent (Nie, Bennett and Goodman 2019): sentence vectors from predicting discourse markers.

Importing a model from here registers it with the Auto classes of transformers.
"""

from __future__ import annotations

from zoo import lazily

__getattr__ = lazily(
    __name__,
    {
        "modeling": (
            *("BiLstmConfig", "BiLstmForMarkers", "BiLstmModel", "NgramConfig", "NgramForMarkers"),
            *("PairTransformer", "PairTransformerConfig", "PairTransformerModel"),
            *("SifConfig", "SifForMarkers", "SifModel"),
        ),
        "prediction": ("PairClassifier", "predict", "predictions", "read_pairs"),
    },
)
