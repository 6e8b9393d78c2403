"""DiscoEval's learning criteria (Chen, Chu and Gimpel 2019, section 4): NSP, NL, SPP and SDT.

Importing this package registers its model with the Auto classes of transformers.
"""

from __future__ import annotations

from transformers import AutoConfig, AutoModel

from zoo.criteria.modeling import CriteriaConfig, CriteriaEncoder, CriteriaModel

AutoConfig.register(CriteriaConfig.model_type, CriteriaConfig, exist_ok=True)
AutoModel.register(CriteriaConfig, CriteriaEncoder, exist_ok=True)

__all__ = ["CriteriaConfig", "CriteriaEncoder", "CriteriaModel"]
