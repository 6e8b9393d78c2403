"""Weights of four bits, an eighth of float32's size, for a model inside a package.

In each row of a matrix 32 neighbours share a scale, as in GGML's Q4_0; vectors stay float32. The
configuration has `stored = "int4"`. `zoo.modeling_discorpora`, which is in the folder too, has the
inverse, `unpack`, and `from_pretrained` converts the weights to float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from corpora.store.atomic import read_json, write_json
from zoo.modeling_discorpora import SCALE, SHARED, WEIGHTS
from zoo.modeling_discorpora import unpack as unpack

SCALE_FACTORS = tuple(1 - 0.02 * k for k in range(16))
"""Candidate scales of a group, relative to the scale at which its largest weight becomes 7."""


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a model's weights with each matrix in four bits, two numbers in a byte.

    A matrix `[rows, columns]` becomes uint8 `[rows, columns / 2]` and, under its name with
    `.scale`, the float16 `scales_of` it. Other tensors stay as float32.
    """
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if not is_packed(weight):
            packed[name] = weight.float().contiguous()
            continue
        scales = scales_of(weight)
        levels = (_levels(_groups(weight), scales) + 8).to(torch.uint8).flatten(1)
        packed[name] = levels[:, ::2] | levels[:, 1::2] << 4
        packed[name + SCALE] = scales.squeeze(-1).half()
    return packed


def is_packed(weight: Tensor) -> bool:
    """Return True for a weight that `pack` stores in four bits: a matrix of whole groups."""
    return weight.dim() == 2 and weight.size(1) % SHARED == 0


def scales_of(weight: Tensor) -> Tensor:
    """Return the scales of a matrix's groups of 32 neighbours, `[rows, columns / 32, 1]`: each the
    one with the least squared error among the candidates, exact in float16."""
    groups = _groups(weight)
    full_scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 7
    best_scale, least_error = full_scale, torch.full_like(full_scale, torch.inf)
    for factor in SCALE_FACTORS:
        scale = (full_scale * factor).half().float()
        error = (_levels(groups, scale) * scale - groups).square().sum(-1, keepdim=True)
        best_scale = torch.where(error < least_error, scale, best_scale)
        least_error = torch.minimum(error, least_error)
    return best_scale


def rounded(weight: Tensor, scales: Tensor) -> Tensor:
    """Return a matrix as it is after `pack` and `unpack` with these `scales` (`scales_of`)."""
    return (_levels(_groups(weight), scales) * scales).flatten(1)


def _groups(weight: Tensor) -> Tensor:
    """Return a matrix as `[rows, columns / 32, 32]`, in float32."""
    return weight.float().unflatten(1, (-1, SHARED))


def _levels(groups: Tensor, scale: Tensor) -> Tensor:
    """Return for each weight the whole number, -7 to 7, whose product with the scale is nearest."""
    return (groups / scale).round().clamp(-7, 7)


def pack_folder(folder: Path) -> None:
    """Replace the weights in a model's folder by weights of four bits."""
    weights, config = folder / WEIGHTS, folder / "config.json"
    save_file(pack(load_file(weights)), weights, {"format": "pt"})
    weights.chmod(config.stat().st_mode)
    write_json(config, {**read_json(config), "stored": "int4"})
