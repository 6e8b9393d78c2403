"""The heads that are stored with a backbone and go on being trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from transformers import AutoConfig, AutoModelForMaskedLM
from transformers.utils import logging

from zoo.conpono.heads import MaskedWords
from zoo.conpono.modeling import ConponoConfig, ConponoModel

ROBERTA = ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
HEADS = {
    "bert": (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
    ),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), ROBERTA),
}
"""Where a model for masked words keeps its head's transformation, its norm and its bias."""
NEW = "a new one starts from its embeddings"
SAME = {
    "conpono": ("relations", "W_k", ("objective", "encoder", "k", "vector")),
    "bso": ("ordering", "ordering head", ("objective", "vector")),
}
"""The head of each objective, and what two models must have alike to share it."""


def load_heads(model: ConponoModel, backbone: str) -> Iterator[str]:
    """Give `model` the heads stored with `backbone`; yields what is to be said of them."""
    kind = AutoConfig.from_pretrained(backbone).model_type
    if kind == ConponoConfig.model_type:
        yield from _load_own(model, ConponoModel.from_pretrained(backbone))
    elif model.config.mlm and kind not in HEADS and not kind.startswith("discorpora-"):
        yield f"{kind}'s masked-word head is of a kind that is not read: {NEW}"
    elif model.config.mlm and not load_masked_words(model.masked_words, backbone):
        yield f"the backbone has no masked-word head: {NEW}"


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
    dense, norm, bias = HEADS[kind]
    if any(key.startswith((dense, norm)) for key in report["missing_keys"]):
        return False
    head.dense.load_state_dict(found.get_submodule(dense).state_dict())
    head.norm.load_state_dict(found.get_submodule(norm).state_dict())
    head.bias.data.copy_(found.get_parameter(bias).data)
    return True


def _load_own(model: ConponoModel, stored: ConponoModel) -> Iterator[str]:
    """The heads of a model of this family: one's own, or the released one, converted."""
    if model.config.mlm and stored.config.mlm:
        model.masked_words.load_state_dict(stored.masked_words.state_dict())
    elif model.config.mlm:
        yield f"the backbone was trained without masked words, it has no head for them: {NEW}"
    name, said, same = SAME[model.config.objective]
    differ = [key for key in same if getattr(model.config, key) != getattr(stored.config, key)]
    if differ:
        yield f"the backbone's {differ[0]} is another: {said} drawn anew"
        return
    model.get_submodule(name).load_state_dict(stored.get_submodule(name).state_dict())
    yield f"{said} taken over from the backbone"


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' report of missing weights: that they miss is what is asked here."""
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
