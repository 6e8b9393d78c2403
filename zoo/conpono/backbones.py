"""The backbone with the masked-word head that was trained with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from transformers import AutoConfig, AutoModelForMaskedLM
from transformers.utils import logging

from zoo.conpono.heads import MaskedWords

HEADS = {
    "bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
    "roberta": ("lm_head.dense", "lm_head.layer_norm"),
}
"""Where a model for masked words keeps the transformation of its head, and its norm."""
BIASES = {"bert": "cls.predictions.bias", "roberta": "lm_head.bias"}


def load_masked_words(head: MaskedWords, backbone: str) -> bool:
    """Give `head` the weights stored with `backbone`; False where it stores none.

    Sentence encoders such as MiniLM are stored without: their head stays as it was drawn, over
    the backbone's word embeddings.
    """
    kind = AutoConfig.from_pretrained(backbone).model_type
    if kind not in HEADS:
        return False
    with _quiet():
        found, report = AutoModelForMaskedLM.from_pretrained(
            backbone, use_safetensors=True, output_loading_info=True
        )
    dense, norm = HEADS[kind]
    if any(key.startswith((dense, norm)) for key in report["missing_keys"]):
        return False
    head.dense.load_state_dict(found.get_submodule(dense).state_dict())
    head.norm.load_state_dict(found.get_submodule(norm).state_dict())
    head.bias.data.copy_(found.get_parameter(BIASES[kind]).data)
    return True


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' report of missing weights: that they miss is what is asked here."""
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
