"""What a backbone does with padding, told by a trial pass over a short text."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch
from torch import Tensor
from transformers import PreTrainedModel

from zoo.attention import FAMILIES
from zoo.backbones import max_positions

log = logging.getLogger("zoo")

HIDE_PADDING = FAMILIES | {"albert", "big_bird", "deberta", "deberta-v2"}
HIDE_PADDING |= {"modernbert", "mpnet", "xlnet"}
"""Backbones (`model_type`) that are known to: they need no trial."""
TOLERANCE = 1e-4
"""Of the largest state; rounding in float32 makes a hundredth of it."""
TEXT, PADDED = 6, 16


def warn_of_padding(backbone: PreTrainedModel) -> None:
    """Warn of a backbone whose states of a text depend on the padding behind it (FNet, YOSO)."""
    kind = backbone.config.model_type
    if kind in HIDE_PADDING or kind.startswith("discorpora-"):
        return
    with suppress(RuntimeError, AttributeError, LookupError, AssertionError, TypeError, ValueError):
        # What it raises instead, training or the evaluation says too.
        if padding_shows(backbone):
            log.warning(
                "%s: padding changes the vectors of a text, so they depend on the texts that are "
                "in one batch with it",
                kind,
            )


def padding_shows(backbone: PreTrainedModel) -> bool:
    """Whether a text has other states alone than in a row with padding behind it."""
    width = min(PADDED, max_positions(backbone.config) or PADDED)
    ids = sample(backbone, width)
    mask = torch.ones_like(ids)
    ids[:, TEXT:] = backbone.config.pad_token_id or 0
    mask[:, TEXT:] = 0
    with trial(backbone) as run:
        alone = run(input_ids=ids[:, :TEXT], attention_mask=mask[:, :TEXT])
        padded = run(input_ids=ids, attention_mask=mask)[:, :TEXT]
    return differ(backbone, alone, padded)


@contextmanager
def trial(backbone: PreTrainedModel) -> Iterator[Callable[..., Tensor]]:
    """A function from inputs to the last states `[rows, tokens, width]`, without dropout.

    It leaves no trace: not in the order of random numbers, nor in what was compiled.
    """
    was_training = backbone.training
    backbone.eval()
    try:
        with torch.inference_mode(), torch.random.fork_rng(devices=[]):
            yield lambda **inputs: backbone.forward(**inputs).last_hidden_state
    finally:
        backbone.train(was_training)


def sample(backbone: PreTrainedModel, tokens: int) -> Tensor:
    """Ids `[1, tokens]` of words: of the vocabulary's middle, as special tokens stand at its ends.

    MPNet and ESM treat some of those in their own way.
    """
    size, padding = backbone.config.vocab_size, backbone.config.pad_token_id or 0
    ids = torch.linspace(size // 3, 2 * size // 3, tokens).long()[None]
    return (ids + (ids == padding)).to(backbone.device)


def differ(backbone: PreTrainedModel, one: Tensor, two: Tensor) -> bool:
    """Whether two tensors of states differ by more than a sum in another order explains."""
    in_bf16 = backbone.config._attn_implementation == "bf16"
    dtype = torch.bfloat16 if in_bf16 else one.dtype
    difference = (one - two).abs().max() / one.abs().max().clamp(min=1e-30)
    return difference.item() > max(TOLERANCE, 8 * torch.finfo(dtype).eps)
