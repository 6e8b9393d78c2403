"""What a backbone takes: types, vectors, positions, and the masks of rows with several texts."""

from __future__ import annotations

from inspect import signature

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from corpora.errors import ConfigError
from zoo.attention import FAMILIES
from zoo.backbones import differ, sample, trial

WIDE_MASKS = FAMILIES | {"albert"}
"""Backbones (`model_type`) that hand a mask `[rows, 1, 1, tokens]` on to attention as it is."""
SIZES = (5, 7)
"""Tokens of the two texts that the trial of packing puts into one row."""


def takes_types(backbone: PreTrainedModel) -> bool:
    """Whether the backbone tells a first text from a second by `token_type_ids`."""
    given = "token_type_ids" in signature(backbone.forward).parameters
    return given and getattr(backbone.config, "type_vocab_size", 0) > 1


def takes_vectors(backbone: PreTrainedModel) -> bool:
    """Whether words can be given as vectors.

    I-BERT's come with a scale, and cannot; ESM takes vectors for what words and positions make.
    """
    words = backbone.get_input_embeddings()
    plain = isinstance(words, nn.Embedding) and backbone.config.model_type != "esm"
    return plain and "inputs_embeds" in signature(backbone.forward).parameters


def first_position(backbone: PreTrainedModel) -> int:
    """The number of a text's first position: RoBERTa and its kin begin behind their padding's."""
    for name, module in backbone.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "padding_idx"):
            return 0 if module.padding_idx is None else module.padding_idx + 1
    return 0


def mask_of(backbone: PreTrainedModel, segments: Tensor, packed: bool) -> Tensor:
    """Who may attend to whom, in the form that the backbone's attention takes.

    `segments [rows, tokens]` are the numbers of the sequences in a row, 0 at padding. The mask is
    `[rows, tokens]` with one sequence a row; `[rows, 1, tokens, tokens]` for packed rows, whose
    padding attends to padding, so that no row of the softmax is empty.
    """
    way = backbone.config._attn_implementation
    if not packed:
        if way == "sdpa" and backbone.config.model_type in WIDE_MASKS:
            # Of `[rows, tokens]` transformers asks whether all is real: that waits for the GPU.
            return (segments > 0)[:, None, None, :]
        return (segments > 0).long()
    mask = segments[:, None, :, None] == segments[:, None, None, :]
    if way not in ("eager", "bf16"):
        return mask
    least = torch.finfo(backbone.dtype).min  # these add the mask to the scores
    return torch.zeros_like(mask, dtype=backbone.dtype).masked_fill(~mask, least)


def check_packing(backbone: PreTrainedModel) -> None:
    """Raise `ConfigError` for a backbone whose vectors would not be those of the texts alone."""
    kind, problem = backbone.config.model_type, ""
    near = getattr(backbone.config, "sliding_window", None)
    if "position_ids" not in signature(backbone.forward).parameters:
        problem = f"{kind} takes no positions, which packed rows need"
    elif near or any(getattr(part, "is_causal", False) for part in backbone.modules()):
        # It hides more than padding: what comes later, what is far away.
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
    ids, device = torch.cat(texts, 1), backbone.device
    positions = torch.cat([torch.arange(size) for size in SIZES])[None] + first_position(backbone)
    segments = torch.repeat_interleave(torch.arange(1, 3), torch.tensor(SIZES))[None].to(device)
    row = {
        "position_ids": positions.to(device),
        "attention_mask": mask_of(backbone, segments, packed=True),
    }
    with trial(backbone) as run:
        alone = torch.cat([run(input_ids=text) for text in texts], 1)
        if takes_vectors(backbone):
            together = run(inputs_embeds=backbone.get_input_embeddings()(ids), **row)
        else:
            together = run(input_ids=ids, **row)
    return differ(backbone, alone, together)
