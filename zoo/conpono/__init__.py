"""CONPONO and its relatives (Iter, Guu, Lansing and Jurafsky 2020).

Importing this package registers its model with the Auto classes of transformers.
"""

from __future__ import annotations

from transformers import AutoConfig, AutoModel

from zoo.conpono.modeling import ConponoConfig, ConponoModel

AutoConfig.register(ConponoConfig.model_type, ConponoConfig, exist_ok=True)
AutoModel.register(ConponoConfig, ConponoModel, exist_ok=True)

__all__ = ["ConponoConfig", "ConponoModel"]
