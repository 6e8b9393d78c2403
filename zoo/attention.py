"""Attention masks made without waiting for the GPU, and attention in bfloat16 on a CPU.

**Masks.** transformers leaves a mask out if nothing is padded. To know that, it reads the mask, so
that each forward pass waits for the GPU. The code that makes a batch knows it already and says so
(`padding_known`).

**Attention.** The backward pass of torch's fused kernel does not use the CPU's matrix units;
"eager" attention under autocast converts the weights of all heads to float32 and back, nine passes
over the largest matrices of the model. Here they stay in bfloat16: products by the matrix units,
one softmax in each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

NAME = "bf16"
FAMILIES = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert"})
"""Backbones (`model_type`) whose attention is a plain softmax over scaled products."""

_PADDED: ContextVar[bool | None] = ContextVar("padded", default=None)


@contextmanager
def padding_known(padded: bool | None) -> Iterator[None]:
    """Tell transformers whether the batch is `padded`, so that it need not read the mask for it.
    Reading a mask on the GPU makes the CPU wait. The masks that transformers makes are the same.
    With None (unknown) it reads the mask as usual; compiled code never reads it."""
    if padded is None or torch.compiler.is_compiling():
        yield
        return
    token = _PADDED.set(bool(padded))
    try:
        yield
    finally:
        _PADDED.reset(token)


def _uses_known_padding(make: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `make`, a function of transformers that makes masks, so that it uses `padding_known`.
    Without padding the result leaves out the mask; with padding it does not test whether it
    could."""

    @wraps(make)
    def mask(*args: Any, **kwargs: Any) -> Any:
        padded = None if torch.compiler.is_compiling() else _PADDED.get()
        if padded is False:
            kwargs["attention_mask"] = None
        elif padded:
            kwargs |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
        return make(*args, **kwargs)

    return mask


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Return the output of attention, `[batch, tokens, heads, width]`, computed in bfloat16.

    `query`, `key` and `value` are `[batch, heads, tokens, width]`. `attention_mask`, which is added
    to the scores, is `[batch, 1, tokens, tokens]`. The None is in place of the attention weights,
    which transformers allows a function of this kind to leave out.
    """
    scale = query.size(-1) ** -0.5 if scaling is None else scaling
    rate = dropout if module.training else 0.0
    states = Bf16Attention.apply(query, key, value, attention_mask, scale, rate)
    return states.transpose(1, 2).contiguous(), None


class Bf16Attention(torch.autograd.Function):
    """Computes softmax(scale q k^T + mask) v, with dropout on the softmax's output, as in BERT."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scale: float,
        dropout: float,
    ) -> Tensor:
        """Return the attention `[batch, heads, tokens, width]`, and store what `backward` needs."""
        q, k, v = (matrix.to(torch.bfloat16) for matrix in (query, key, value))
        q = q * scale  # the smallest matrix to scale
        scores = q @ k.transpose(2, 3)
        if mask is not None:
            # The minimum of float32 is below the minimum of bfloat16.
            scores += mask.clamp(min=torch.finfo(scores.dtype).min).to(scores.dtype)
        weights = torch.softmax(scores, -1)
        dropout_mask = None
        if dropout:
            dropout_mask = torch.empty_like(weights).bernoulli_(1 - dropout).div_(1 - dropout)
        ctx.save_for_backward(q, k, v, weights, dropout_mask)
        ctx.scale, ctx.dtype = scale, query.dtype
        return ((weights if dropout_mask is None else weights * dropout_mask) @ v).to(query.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        """Return the gradients of query, key and value from `grad`, the output's gradient. The
        other three arguments of `forward` have no gradient."""
        q, k, v, weights, dropout_mask = ctx.saved_tensors
        grad = grad.to(weights.dtype)
        dropped = weights if dropout_mask is None else weights * dropout_mask
        value_grad = dropped.transpose(2, 3) @ grad
        weights_grad = grad @ v.transpose(2, 3)
        if dropout_mask is not None:
            weights_grad *= dropout_mask
        scores_grad = torch._softmax_backward_data(weights_grad, weights, -1, weights.dtype)
        query_grad = (scores_grad @ k) * ctx.scale
        key_grad = scores_grad.transpose(2, 3) @ q
        gradients = (gradient.to(ctx.dtype) for gradient in (query_grad, key_grad, value_grad))
        return (*gradients, None, None, None)


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, eager_mask)
for name, make_mask in [*AttentionMaskInterface().items()]:
    if name != "flex_attention":  # it has masks of another kind
        AttentionMaskInterface.register(name, _uses_known_padding(make_mask))
