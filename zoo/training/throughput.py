"""The speed of a training: examples and tokens a second, and the share of a GPU's peak.

We count tokens ourselves, since the Trainer's count waits for the GPU at every step.
"""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback

from corpora.progress import time_left
from corpora.store.atomic import write_json

PEAK_TFLOPS = {
    # From the makers' data sheets, without sparsity. GPUs before Ampere lack bfloat16 and TF32:
    # their figures are for float16 and float32.
    "B200": (2250.0, 1100.0),
    "H200 NVL": (836.0, 418.0),
    "H200": (989.0, 494.0),
    "H100 PCIE": (756.0, 378.0),
    "H100 NVL": (835.0, 418.0),
    "H100": (989.0, 494.0),
    "A100": (312.0, 156.0),
    "L40S": (362.0, 183.0),
    "L4": (121.0, 60.0),
    "A10": (125.0, 62.5),
    "4090": (165.2, 82.6),
    "3090": (71.0, 35.6),
    "V100": (125.0, 15.7),
    "T4": (65.0, 8.1),
}
"""The peaks of GPUs by words of their names: TFLOP/s in half precision, and in TF32."""


def peak(gpu: str, half: bool) -> float | None:
    """Return the peak of a GPU in operations a second, or None if its name is not listed. It is
    that of half precision, or without `half` that of TF32, in which float32 is computed."""
    words = set(re.split(r"[\s-]+", gpu.upper()))
    matches = [name for name in PEAK_TFLOPS if set(name.split()) <= words]
    if not matches:
        return None
    return PEAK_TFLOPS[max(matches, key=len)][0 if half else 1] * 1e12


def operations(model: nn.Module, examples: int, tokens: int) -> int:
    """Return the operations of a model's forward and backward passes: 6 for each weight and token.

    The estimate is that of Kaplan et al. 2020, section 2.1, without tables of embeddings, and
    without the products of attention, a few per cent for short texts. The modules that a model
    names in `once_a_row`, its last layers, count once for each of `examples`.
    """
    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    table_ids = {id(p) for table in tables for p in table.parameters()}
    heads = [model.get_submodule(name) for name in getattr(model, "once_a_row", ())]
    head_sizes = {id(p): p.numel() for head in heads for p in head.parameters()}
    skipped = table_ids | set(head_sizes)
    size = sum(p.numel() for p in model.parameters() if id(p) not in skipped)
    return 6 * (size * tokens + sum(head_sizes.values()) * examples)


@dataclass
class Pace:
    """The progress of a run: `steps` steps of `batch` examples, begun at step `first`."""

    steps: int
    batch: int
    first: int = 0
    start: float = field(default_factory=time.monotonic)

    def line(self, step: int) -> str:
        """Return a line such as `step 50 of 150, 1.2 examples/s, 3 min left`."""
        steps_taken = step - self.first
        line = f"step {step:,} of {self.steps:,}"
        if steps_taken <= 0:
            return line
        step_seconds = (time.monotonic() - self.start) / steps_taken
        left = time_left((self.steps - step) * step_seconds)
        return f"{line}, {self.batch / max(step_seconds, 1e-9):,.3g} examples/s, {left}"


class Throughput(TrainerCallback):
    """Measures the speed of training in this process, and writes it to `path` at the end.

    The file has examples/s, real tokens/s, the seconds that training waited for data and, on a GPU,
    the share of its peak operations. The time of validations is left out. A token is real if its
    attention mask is 1. Figures that change from run to run (seconds, memory, host) are only in
    this file, not in the model folder.
    """

    def __init__(self, path: Path, recipe: str) -> None:
        self.path, self.recipe = path, recipe
        self.seconds, self.examples, self.steps = 0.0, 0, 0
        self.waited = 0.0
        self.tokens: int | torch.Tensor = 0
        self._since = time.perf_counter()

    def count(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """Count the rows of one training batch, and its real tokens by its attention masks.

        The sum of tokens stays on the GPU: to read it at every step, the CPU would have to wait.
        """
        self.examples += len(next(iter(inputs.values())))
        masks = (mask for name, mask in inputs.items() if name.endswith("attention_mask"))
        self.tokens += sum(mask.sum() for mask in masks)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._since = time.perf_counter()

    # The clock starts again after a validation and a checkpoint, which are no part of training.
    on_evaluate = on_save = on_epoch_begin

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._add_time(control.should_evaluate or control.should_save)
        self.steps += 1

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._add_time(wait=True)

    def _add_time(self, wait: bool) -> None:
        """Add the time since the last step; with `wait`, wait until the GPU has finished it."""
        if wait and torch.accelerator.is_available():
            torch.accelerator.synchronize()
        clock = time.perf_counter()
        self.seconds, self._since = self.seconds + clock - self._since, clock

    def more(self, state: Any) -> dict[str, Any]:
        """Return further figures for the file, by name: none here; a subclass may add some."""
        return {}

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the figures of this process, if it is the main one."""
        if not state.is_world_process_zero:
            return
        seconds = max(self.seconds, 1e-9)
        tokens = int(self.tokens)
        flops = operations(kwargs["model"], self.examples, tokens) / seconds
        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
        peak_flops = peak(gpu, bool(args.bf16 or args.fp16))
        write_json(
            self.path,
            {
                "recipe": self.recipe,
                "steps": self.steps,
                "seconds": round(self.seconds, 3),
                "examples_per_second": round(self.examples / seconds, 1),
                "real_tokens_per_second": round(tokens / seconds, 1),
                "tflops": round(flops / 1e12, 4),
                "share_of_peak_flops": round(flops / peak_flops, 4) if peak_flops else None,
                "seconds_waiting_for_data": round(self.waited, 3),
                "processes": args.world_size,
                "device": str(args.device),
                "gpu": gpu,
                "threads": torch.get_num_threads(),
                "host": platform.node(),
                **self.more(state),
            },
        )
