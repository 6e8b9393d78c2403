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
TRIED = tuple(1 - 0.02 * k for k in range(16))
"""Candidate scales, relative to a group's largest weight: the least squared error decides."""


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Each matrix `[rows, columns]` as uint8 `[rows, columns / 2]` with scales `[rows, groups]`."""
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() != 2 or weight.size(1) % GROUP:
            packed[name] = weight.float().contiguous()
            continue
        groups = weight.float().unflatten(1, (-1, GROUP))
        largest = groups.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 7
        best, error = largest, torch.full_like(largest, torch.inf)
        for part in TRIED:
            scale = (largest * part).half().float()
            found = (_levels(groups, scale) * scale - groups).square().sum(-1, keepdim=True)
            best, error = torch.where(found < error, scale, best), torch.minimum(found, error)
        levels = (_levels(groups, best) + 8).to(torch.uint8).flatten(1)
        packed[name] = levels[:, ::2] | levels[:, 1::2] << 4
        packed[name + SCALE] = best.squeeze(-1).half()
    return packed


def _levels(groups: Tensor, scale: Tensor) -> Tensor:
    return (groups / scale).round().clamp(-7, 7)


def unpack(model: str | PathLike[str]) -> dict[str, Tensor]:
    """The weights of a packed model (folder or Hub id) as float32."""
    return unpacked(load_file(str(file_of(str(model), WEIGHTS))))


def unpacked(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What `pack` made, as float32."""
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
    """Store the weights of a model's folder in four bits, in place."""
    weights, config = folder / WEIGHTS, folder / "config.json"
    save_file(pack(load_file(weights)), weights, {"format": "pt"})
    weights.chmod(config.stat().st_mode)
    write_json(config, {**read_json(config), "stored": "int4"})
