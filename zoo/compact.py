"""Weights of four bits, an eighth of float32's size, for a model inside a package.

In each row of a matrix 32 neighbours share a scale, as in GGML's Q4_0; vectors stay float32. The
configuration has `stored = "int4"`, and `ZooModel.from_pretrained` converts the weights to float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from corpora.store.atomic import read_json, write_json
from zoo import file_of

WEIGHTS, SCALE = "model.safetensors", ".scale"
GROUP = 32
"""Neighbours in a row that share a scale."""
SCALE_FACTORS = tuple(1 - 0.02 * k for k in range(16))
"""Candidate scales of a group, relative to the scale at which its largest weight becomes 7."""


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a model's weights with each matrix in four bits, two numbers in a byte.

    A matrix `[rows, columns]` becomes uint8 `[rows, columns / 2]` and, under its name with
    `.scale`, float16 `[rows, columns / 32]`: the scales of groups of 32 neighbours, each with the
    least squared error among the candidates. Other tensors stay as float32.
    """
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() != 2 or weight.size(1) % GROUP:
            packed[name] = weight.float().contiguous()
            continue
        groups = weight.float().unflatten(1, (-1, GROUP))
        full_scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 7
        best_scale, least_error = full_scale, torch.full_like(full_scale, torch.inf)
        for factor in SCALE_FACTORS:
            scale = (full_scale * factor).half().float()
            error = (_levels(groups, scale) * scale - groups).square().sum(-1, keepdim=True)
            best_scale = torch.where(error < least_error, scale, best_scale)
            least_error = torch.minimum(error, least_error)
        levels = (_levels(groups, best_scale) + 8).to(torch.uint8).flatten(1)
        packed[name] = levels[:, ::2] | levels[:, 1::2] << 4
        packed[name + SCALE] = best_scale.squeeze(-1).half()
    return packed


def _levels(groups: Tensor, scale: Tensor) -> Tensor:
    """Return for each weight the whole number, -7 to 7, whose product with the scale is nearest."""
    return (groups / scale).round().clamp(-7, 7)


def load_packed(model: str | PathLike[str]) -> dict[str, Tensor]:
    """Return the weights of a packed model, which is a folder or a Hub id, as float32."""
    return unpack(load_file(str(file_of(str(model), WEIGHTS))))


def unpack(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights that `pack` stored in four bits, by name: the inverse of `pack`. All
    weights are float32, rounded to the nearest multiple of their group's scale."""
    weights: dict[str, Tensor] = {}
    for name, stored in packed.items():
        if name + SCALE in packed:
            levels = torch.stack([stored & 15, stored >> 4], dim=-1).flatten(1).float() - 8
            scale = packed[name + SCALE].float().unsqueeze(-1)
            weights[name] = (levels.unflatten(1, (-1, GROUP)) * scale).flatten(1)
        elif not name.endswith(SCALE):
            weights[name] = stored
    return weights


def pack_folder(folder: Path) -> None:
    """Replace the weights in a model's folder by weights of four bits."""
    weights, config = folder / WEIGHTS, folder / "config.json"
    save_file(pack(load_file(weights)), weights, {"format": "pt"})
    weights.chmod(config.stat().st_mode)
    write_json(config, {**read_json(config), "stored": "int4"})
