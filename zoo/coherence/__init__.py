"""The coherence scorer (Jwalapuram, Joty and Lin 2022): one score a text, the higher the better.

Importing this package registers its model with the Auto classes of transformers.
"""

from __future__ import annotations

from transformers import AutoConfig, AutoModel

from zoo.coherence.modeling import CoherenceConfig, CoherenceScorer
from zoo.coherence.unc_modeling import UncConfig, UncModel

AutoConfig.register(CoherenceConfig.model_type, CoherenceConfig, exist_ok=True)
AutoModel.register(CoherenceConfig, CoherenceScorer, exist_ok=True)
AutoConfig.register(UncConfig.model_type, UncConfig, exist_ok=True)
AutoModel.register(UncConfig, UncModel, exist_ok=True)

__all__ = ["CoherenceConfig", "CoherenceScorer", "UncConfig", "UncModel"]
