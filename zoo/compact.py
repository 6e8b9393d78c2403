"""Weights of four bits, an eighth of float32's size, for a model inside a package.

In each row of a matrix 32 neighbours share a scale, as in GGML's Q4_0; vectors stay float32. The
configuration has `stored = "int4"`. `zoo.modeling_discorpora`, which is in the folder too, has the
inverse, `unpack`, and `from_pretrained` converts the weights to float32. Beside the weights is the
graph of the encoder, `encoder.onnx`: with it `zoo.packed` runs the model without torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from corpora.errors import require
from corpora.store.atomic import read_json, write_json
from zoo.modeling_discorpora import SCALE, SHARED, WEIGHTS, Pooling, pooled
from zoo.modeling_discorpora import unpack as unpack
from zoo.packed import GRAPH, INPUTS

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


class _Vectors(nn.Module):
    """An encoder as `zoo.packed` runs it; its weights have the names of the folder's."""

    def __init__(self, backbone: Any, pooling: Pooling) -> None:
        super().__init__()
        self.backbone, self.pooling = deepcopy(backbone).cpu().eval(), pooling
        self.backbone.set_attn_implementation("eager")  # as products of matrices
        random = torch.Generator().manual_seed(0)
        for weight in self.backbone.parameters():  # equal ones would become one in the graph
            nn.init.normal_(weight, generator=random)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return the vectors `[texts, size]` of `ids [texts, tokens]`."""
        encoded = self.backbone(input_ids=ids, attention_mask=mask, token_type_ids=types)
        return pooled(encoded.last_hidden_state, mask, self.pooling)


def write_graph(model: Any, folder: Path) -> None:
    """Write the graph of a model's encoder, a BERT, without its weights, which it only names."""
    onnx = require("onnx", "dev", "to write the graph of an encoder")
    encoder = _Vectors(model.backbone, getattr(model.config, "pooling", "mean"))
    path, example = folder / GRAPH, torch.ones(2, 3, dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of shapes that become constants, such as the head's
        torch.onnx.export(
            encoder,
            (example, example, torch.zeros_like(example)),
            path,
            input_names=list(INPUTS),
            dynamic_axes={name: {0: "texts", 1: "tokens"} for name in INPUTS},
            opset_version=20,
            do_constant_folding=False,  # it would turn matrices, under new names
            dynamo=False,
        )
    exported = onnx.load(path)
    for weight in exported.graph.initializer:
        onnx.external_data_helper.set_external_data(weight, location=weight.name)
        weight.ClearField("raw_data")
    path.write_bytes(exported.SerializeToString())
