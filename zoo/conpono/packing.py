"""Whether a backbone can read several texts in one row."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedModel

from corpora.errors import ConfigError
from zoo.backbones import differ, sample, trial
from zoo.conpono.modeling import (
    first_position,
    masks_itself,
    packed_mask,
    takes_positions,
    takes_vectors,
)

SIZES = (5, 7)
"""Tokens of the two texts that the trial puts into one row."""


def check_packing(backbone: PreTrainedModel) -> None:
    """Raise `ConfigError` for a backbone whose vectors would not be those of the texts alone."""
    kind, problem = backbone.config.model_type, ""
    if not takes_positions(backbone):
        problem = f"{kind} takes no positions, which packed rows need"
    elif masks_itself(backbone):
        problem = f"{kind} has masks of its own, which those of packed rows would replace"
    else:
        try:
            problem = f"in {kind} texts of one row change each other" if _mixes(backbone) else ""
        except (RuntimeError, IndexError, AssertionError, TypeError, ValueError):
            # What a backbone raises that takes masks of texts alone.
            problem = f"{kind} does not take the mask of packed rows"
    if problem:
        raise ConfigError(problem, where="layout", hint='set layout = "buckets"')


def _mixes(backbone: PreTrainedModel) -> bool:
    """Whether two texts in a row, as `ConponoModel.encode` gives them, differ from each alone."""
    texts = sample(backbone, sum(SIZES)).split(SIZES, dim=1)
    first = first_position(backbone)
    places = torch.cat([torch.arange(size) for size in SIZES])[None] + first
    segments = torch.repeat_interleave(torch.arange(1, 3), torch.tensor(SIZES))[None]
    with trial(backbone) as run:
        alone = torch.cat([run(input_ids=text) for text in texts], 1)
        more = {"position_ids": places, "attention_mask": packed_mask(backbone, segments)}
        together = run(**_words(backbone, torch.cat(texts, 1)), **_on(backbone, more))
    return differ(backbone, alone, together)


def _words(backbone: PreTrainedModel, ids: Tensor) -> dict[str, Tensor]:
    if takes_vectors(backbone):
        return {"inputs_embeds": backbone.get_input_embeddings()(ids)}
    return {"input_ids": ids}


def _on(backbone: PreTrainedModel, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.to(backbone.device) for name, tensor in tensors.items()}
