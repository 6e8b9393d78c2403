"""What the attention's way and the dropouts cost a training step on a CPU.

    OMP_NUM_THREADS=1 python tests/bench/bench_training_step.py [--texts N] [--tokens N] [--only RE]

A step is forward, backward and AdamW over random texts of one length, in bfloat16; processor time,
the best of five after one to warm up, the ways in turn. Baseline: the first way, which is torch's
fused attention and the backbone's own dropouts, unless `--only` leaves it out.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable

import torch

from corpora.errors import ConfigError
from zoo.backbones import load_backbone, set_attention

OWN, NONE = -1.0, 0.0
WAYS: dict[str, tuple[str, float, float, bool, bool]] = {
    # attention, dropout of its weights, dropout of the states, compiled, new tensors filled
    "fused, own dropouts": ("sdpa", OWN, OWN, False, False),
    "fused, none of attention": ("sdpa", NONE, OWN, False, False),
    "fused, none of attention, filled": ("sdpa", NONE, OWN, False, True),
    "fused, own dropouts, compiled": ("sdpa", OWN, OWN, True, False),
    "eager, own dropouts": ("eager", OWN, OWN, False, False),
    "eager, none of attention": ("eager", NONE, OWN, False, False),
    "eager, no dropout": ("eager", NONE, NONE, False, False),
    "bf16, own dropouts": ("bf16", OWN, OWN, False, False),
    "bf16, none of attention": ("bf16", NONE, OWN, False, False),
    "bf16, no dropout": ("bf16", NONE, NONE, False, False),
}

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


def make_step(
    backbone: str, way: tuple[str, float, float, bool, bool], texts: int, tokens: int
) -> Callable[[], float]:
    """A function that makes one step and returns its seconds of processor time."""
    attention, of_attention, of_states, compiled, filled = way
    torch.manual_seed(0)
    model = load_backbone(backbone, {}, of_attention, of_states).train()
    set_attention(model, attention)
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(1000, model.config.vocab_size, (texts, tokens))
    mask = torch.ones_like(ids)
    mask[::2, -10:] = 0

    def step() -> float:
        # As in training: `zoo.train` asks for deterministic kernels.
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = filled
        start = time.process_time()
        with torch.autocast("cpu", torch.bfloat16):
            vectors = run(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
        vectors.float().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        return time.process_time() - start

    step()
    return step


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default=MINILM, help="an encoder")
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--only", default="", help="the ways whose name this matches")
    options = parser.parse_args()
    torch.set_num_threads(1)
    try:
        made = {
            name: make_step(options.backbone, way, options.texts, options.tokens)
            for name, way in WAYS.items()
            if re.search(options.only, name)
        }
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    seconds: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(5):
        for name, step in made.items():
            seconds[name].append(step())
    size = options.texts * options.tokens
    rates = {name: size / min(found) for name, found in seconds.items()}
    own = next(iter(rates.values()))
    for name, rate in rates.items():
        sys.stdout.write(f"{name:34} {rate:8,.0f} tokens/s   {rate / own:.2f} times\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
