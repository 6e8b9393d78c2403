"""DiscoEval's learning criteria (Chen, Chu and Gimpel 2019, section 4): NSP, NL, SPP and SDT.

Importing a model from here registers it with the Auto classes of transformers.
"""

from __future__ import annotations

from zoo import lazily

__getattr__ = lazily(__name__, {"modeling": ("CriteriaConfig", "CriteriaEncoder", "CriteriaModel")})
