"""DisSent (Nie, Bennett and Goodman 2019): sentence vectors from predicting discourse markers.

Importing a model from here registers it with the Auto classes of transformers.
"""

from __future__ import annotations

from zoo import lazily

__getattr__ = lazily(
    __name__,
    {
        "modeling": ("BiLstmConfig", "BiLstmForMarkers", "BiLstmModel"),
        "ngrams": ("NgramConfig", "NgramForMarkers"),
        "prediction": ("PairClassifier", "predict", "predictions", "read_pairs"),
        "sif_modeling": ("SifConfig", "SifForMarkers", "SifModel"),
        "transformer_modeling": (
            *("PairTransformer", "PairTransformerConfig", "PairTransformerModel"),
        ),
    },
)
