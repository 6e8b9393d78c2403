"""CONPONO and its relatives (Iter, Guu, Lansing and Jurafsky 2020).

Importing a model from here registers it with the Auto classes of transformers.
"""

from __future__ import annotations

from zoo import lazily

__getattr__ = lazily(__name__, {"modeling": ("ConponoConfig", "ConponoModel")})
