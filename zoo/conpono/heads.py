"""What stands on the encoder: the matrices W_k, the ordering head, and the masked-word head."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import PretrainedConfig
from transformers.activations import ACT2FN

from zoo.conpono.masking import KEPT


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
    summed = cross_entropy(
        scores.flatten(0, 1), labels.flatten(), ignore_index=KEPT, reduction="sum"
    )
    return summed / len(labels)


class Ordering(nn.Module):
    """The ordering baseline's head: one logit a pair, above 0 where the spans are swapped."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        """`logits [batch, pairs]` from `vectors [batch, pairs, width]`, in float32."""
        return nn.functional.linear(
            vectors.float(), self.linear.weight.float(), self.linear.bias.float()
        ).squeeze(-1)


def order_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The binary loss of `logits [batch, pairs]`, averaged over all pairs."""
    return binary_cross_entropy_with_logits(logits, labels.float())


class MaskedWords(nn.Module):
    """BERT's masked-word head. Its output matrix is the encoder's own word embeddings.

    A backbone that was stored without a head gets a new one: it starts from its embeddings, and
    the transformation between is drawn at random. `width` is that of the word embeddings, where
    it is not the states' (ELECTRA, ALBERT).
    """

    def __init__(self, config: PretrainedConfig, width: int | None = None) -> None:
        super().__init__()
        width = width or config.hidden_size
        self.dense = nn.Linear(config.hidden_size, width)
        self.activation = ACT2FN[getattr(config, "hidden_act", "gelu")]
        self.norm = nn.LayerNorm(width, eps=getattr(config, "layer_norm_eps", 1e-12))
        self.bias = nn.Parameter(torch.empty(config.vocab_size))

    def forward(self, states: Tensor, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The summed loss of `states [masked, width]` against `labels [masked]`."""
        hidden = self.norm(self.activation(self.dense(states)))
        logits = nn.functional.linear(hidden, embeddings, self.bias)
        return cross_entropy(logits.float(), labels, reduction="sum")
