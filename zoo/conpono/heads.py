"""What stands on the encoder: the matrices W_k, the ordering head, and the masked-word head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, PretrainedConfig
from transformers.activations import ACT2FN
from transformers.utils import logging

from zoo.conpono.segments import KEPT

if TYPE_CHECKING:
    from zoo.conpono.modeling import ConponoModel

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


class Relations(nn.Module):
    """The log-bilinear scores of candidates (equation 2), one W_k per distance:

        log f_k(s_j, s_i) = t_j^T W_k c_i        full and isolated encoders
        log f_k(s_j, s_i) = t_j^T w_k            uni-encoder

    `weight [2K, width, width]` or `[2K, width]`, drawn with standard deviation 0.02.
    """

    def __init__(self, distances: int, width: int, uni: bool = False) -> None:
        super().__init__()
        shape = (distances, width) if uni else (distances, width, width)
        self.weight = nn.Parameter(torch.empty(shape))

    def forward(self, vectors: Tensor) -> Tensor:
        """`scores [batch, 2K, candidates]` from `vectors [batch, sequences, width]`.

        The first sequence is the anchor alone (c), the others the candidates (t); the
        uni-encoder has candidates only. In float32, whatever the encoder computed in.
        """
        weight, vectors = self.weight.float(), vectors.float()
        if weight.dim() == 2:
            return torch.einsum("kd,bjd->bkj", weight, vectors)
        anchor = torch.einsum("kde,be->bkd", weight, vectors[:, 0])
        return anchor @ vectors[:, 1:].transpose(1, 2)


def contrast(scores: Tensor, labels: Tensor) -> Tensor:
    """The softmax loss over candidates (equation 3), one row a target:

        L_k = -log( f_k(s_{i+k}, s_i) / sum_j f_k(s_j, s_i) )

    `scores [batch, 2K, candidates]`; `labels [batch, 2K]`, -100 where there is no target. The
    mean over anchors of the sum over their targets.
    """
    rows, targets = scores.flatten(0, 1), labels.flatten()
    return cross_entropy(rows, targets, ignore_index=KEPT, reduction="sum") / len(labels)


class Ordering(nn.Module):
    """The ordering baseline's head: one logit a pair, above 0 where the spans are swapped."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        """`logits [batch, pairs]` from `vectors [batch, pairs, width]`, in float32."""
        weight, bias = self.linear.weight.float(), self.linear.bias.float()
        return nn.functional.linear(vectors.float(), weight, bias).squeeze(-1)


class MaskedWords(nn.Module):
    """BERT's masked-word head. Its output matrix is the encoder's own word embeddings.

    A backbone that was stored without a head gets a new one: it starts from its embeddings, and
    the transformation between is drawn at random. `width` is that of the word embeddings, where
    it is not the states' (ELECTRA, ALBERT).
    """

    def __init__(self, config: PretrainedConfig, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, width)
        self.activation = ACT2FN[getattr(config, "hidden_act", "gelu")]
        self.norm = nn.LayerNorm(width, eps=getattr(config, "layer_norm_eps", 1e-12))
        self.bias = nn.Parameter(torch.empty(config.vocab_size))

    def forward(self, states: Tensor, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The summed loss of `states [masked, width]` against `labels [masked]`."""
        hidden = self.norm(self.activation(self.dense(states)))
        logits = nn.functional.linear(hidden, embeddings, self.bias)
        return cross_entropy(logits.float(), labels, reduction="sum")


def load_heads(model: ConponoModel, backbone: str) -> Iterator[str]:
    """Give `model` the heads stored with `backbone`; yields what is to be said of them."""
    kind = AutoConfig.from_pretrained(backbone).model_type
    if kind == model.config.model_type:
        yield from _load_own(model, AutoModel.from_pretrained(backbone))
    elif model.config.mlm and kind in HEADS:
        yield from _load_masked_words(model.masked_words, backbone, *HEADS[kind])
    elif model.config.mlm and kind.startswith("discorpora-"):
        yield f"the backbone has no masked-word head: {NEW}"
    elif model.config.mlm:
        yield f"{kind}'s masked-word head is of a kind that is not read: {NEW}"


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


def _load_masked_words(
    head: MaskedWords, backbone: str, dense: str, norm: str, bias: str
) -> Iterator[str]:
    """The masked-word head of another family; sentence encoders such as MiniLM store none."""
    level = logging.get_verbosity()
    logging.set_verbosity_error()  # transformers reports missing weights: that is asked here
    try:
        stored, report = AutoModelForMaskedLM.from_pretrained(
            backbone, use_safetensors=True, output_loading_info=True
        )
    finally:
        logging.set_verbosity(level)
    if any(key.startswith((dense, norm)) for key in report["missing_keys"]):
        yield f"the backbone has no masked-word head: {NEW}"
        return
    head.dense.load_state_dict(stored.get_submodule(dense).state_dict())
    head.norm.load_state_dict(stored.get_submodule(norm).state_dict())
    head.bias.data.copy_(stored.get_parameter(bias).data)
