"""Our models as models of the library mteb (extra `mteb`); `mteb_tasks` has our tasks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.errors import require
from zoo.evaluate.encoders import AUTO, Encoder, as_encoder, load_encoder, model_key
from zoo.evaluate.scorers import load_scorer

try:
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder
except ModuleNotFoundError:
    require("mteb", "mteb", "to show a model to it")
    raise

if TYPE_CHECKING:
    from zoo.evaluate.scorers import Scorer

TEXTS = "text"
"""The column that mteb reads."""


def encoder(model: Any, representation: str = AUTO, name: str = "") -> AbsEncoder:
    """A model folder, an `Encoder`, or a function of texts, as mteb takes it; cosine similarity."""
    if isinstance(model, str | Path):
        return _Encoder(load_encoder(str(model), representation), _meta(str(model)))
    return _Encoder(as_encoder(model, name), ModelMeta.create_empty())


def scorer(model: str) -> _Scorer:
    """A coherence scorer (as in `load_scorer`) as mteb's cross-encoder: it scores the document."""
    return _Scorer(load_scorer(model), _meta(model))


def _meta(model: str) -> ModelMeta:
    """Of a model of that folder or Hub id; mteb keeps results by the name and the revision."""
    name = re.sub(r"[^\w.-]", "-", Path(model).name)
    revision = model_key(model, None)[:16] or None
    return ModelMeta.create_empty({"name": f"discorpora/{name}", "revision": revision})


def _texts(batches: Any) -> list[str]:
    return [text for batch in batches for text in batch[TEXTS]]


class _Encoder(AbsEncoder):
    """Each batch of a loader goes to the encoder."""

    def __init__(self, model: Encoder, meta: ModelMeta) -> None:
        self.model, self.mteb_model_meta = model, meta

    def encode(self, inputs: Any, **kwargs: Any) -> np.ndarray:
        """The vectors of all texts of the loader, `[texts, dim]`."""
        return np.asarray(self.model.encode(_texts(inputs)))


class _Scorer:
    """A scorer of single texts: the query does not count."""

    def __init__(self, model: Scorer, meta: ModelMeta) -> None:
        self.model, self.mteb_model_meta = model, meta

    def predict(self, inputs1: Any, inputs2: Any, **kwargs: Any) -> np.ndarray:
        """The scores of the second inputs, `[texts]`."""
        return np.array(self.model.score(_texts(inputs2)))
