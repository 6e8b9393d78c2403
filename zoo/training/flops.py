"""How much arithmetic a training step is, and how much a GPU can do."""

from __future__ import annotations

import re

import torch
from torch import nn

PEAK_TFLOPS = {
    # Dense bfloat16 (float16 before Ampere), and what float32 gets: the makers' data sheets.
    "B200": (2250.0, 75.0),
    "H200 NVL": (836.0, 60.0),
    "H200": (989.0, 67.0),
    "H100 PCIE": (756.0, 51.0),
    "H100 NVL": (835.0, 60.0),
    "H100": (989.0, 67.0),
    "A100": (312.0, 19.5),
    "L40S": (362.0, 91.6),
    "L4": (121.0, 30.3),
    "A10": (125.0, 31.2),
    "4090": (165.2, 82.6),
    "3090": (71.0, 35.6),
    "V100": (125.0, 15.7),
    "T4": (65.0, 8.1),
}
"""By words of the GPU's name: TFLOP/s in half precision, and in float32 without TF32."""


def peak(gpu: str, half: bool) -> float | None:
    """Operations a second of one GPU at most, or None for one that is not listed."""
    words = set(re.split(r"[\s-]+", gpu.upper()))
    known = [name for name in PEAK_TFLOPS if set(name.split()) <= words]
    if not known:
        return None
    return PEAK_TFLOPS[max(known, key=len)][0 if half else 1] * 1e12


def operations(model: nn.Module, examples: int, tokens: int) -> int:
    """Operations of forward and backward passes: 6 for each weight that a token meets.

    Kaplan et al. 2020, section 2.1. Tables of embeddings are looked up, not multiplied; modules
    that the model names in `once_a_row` (its last layers) are counted once an example.
    Attention's own products are left out: for short texts they are a few per cent.
    """
    tables = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    heads = [model.get_submodule(name) for name in getattr(model, "once_a_row", ())]
    last = {id(p): p.numel() for head in heads for p in head.parameters()}
    skipped = tables | set(last)
    met = sum(p.numel() for p in model.parameters() if id(p) not in skipped)
    return 6 * (met * tokens + sum(last.values()) * examples)


def share_of_peak(done: float, seconds: float, half: bool) -> float | None:
    """The share of what all GPUs of this process could have done; None on a CPU."""
    if not torch.cuda.is_available() or seconds <= 0:
        return None
    most = peak(torch.cuda.get_device_name(), half)
    return done / seconds / most if most else None
