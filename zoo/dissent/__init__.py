"""DisSent (Nie, Bennett and Goodman 2019): sentence vectors from predicting discourse markers.

Importing this package registers its models with the Auto classes of transformers.
"""

from __future__ import annotations

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

from zoo.dissent.modeling import BiLstmConfig, BiLstmForMarkers, BiLstmModel
from zoo.dissent.ngrams import NgramConfig, NgramForMarkers
from zoo.dissent.prediction import PairClassifier, predict, predictions, read_pairs
from zoo.dissent.sif_modeling import SifConfig, SifForMarkers, SifModel
from zoo.dissent.transformer_modeling import (
    PairTransformer,
    PairTransformerConfig,
    PairTransformerModel,
)

for _config, _encoder, _classifier in (
    (BiLstmConfig, BiLstmModel, BiLstmForMarkers),
    (PairTransformerConfig, PairTransformerModel, PairTransformer),
    (SifConfig, SifModel, SifForMarkers),
    (NgramConfig, None, NgramForMarkers),
):
    AutoConfig.register(_config.model_type, _config, exist_ok=True)
    if _encoder is not None:
        AutoModel.register(_config, _encoder, exist_ok=True)
    AutoModelForSequenceClassification.register(_config, _classifier, exist_ok=True)

__all__ = [
    "BiLstmConfig",
    "BiLstmForMarkers",
    "BiLstmModel",
    "NgramConfig",
    "NgramForMarkers",
    "PairClassifier",
    "PairTransformer",
    "PairTransformerConfig",
    "PairTransformerModel",
    "SifConfig",
    "SifForMarkers",
    "SifModel",
    "predict",
    "predictions",
    "read_pairs",
]
