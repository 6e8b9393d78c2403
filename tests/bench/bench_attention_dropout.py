"""What the dropout of attention weights costs a training step on a CPU.

    OMP_NUM_THREADS=1 python tests/bench/bench_attention_dropout.py [--backbone FOLDER_OR_ID]

A step is forward, backward and AdamW over random texts of one length, in bfloat16; processor time,
the best of three after one to warm up. Baseline: the backbone's own dropout.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch

from corpora.errors import ConfigError
from zoo.evaluate.scorers import default_encoder
from zoo.modeling import load_backbone


def rate(backbone: str, attention_dropout: float, compiled: bool, texts: int, tokens: int) -> float:
    """Tokens a second of processor time."""
    torch.manual_seed(0)
    model = load_backbone(backbone, {}, attention_dropout).train()
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(1000, model.config.vocab_size, (texts, tokens))
    mask = torch.ones_like(ids)
    mask[::2, -10:] = 0
    seconds = []
    for _ in range(4):
        start = time.process_time()
        with torch.autocast("cpu", torch.bfloat16):
            vectors = run(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
        vectors.float().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.process_time() - start)
    return texts * tokens / min(seconds[1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default="", help="an encoder (default: the installed MiniLM)")
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    backbone = options.backbone or default_encoder()
    try:
        own = rate(backbone, -1.0, False, options.texts, options.tokens)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"the backbone's own    {own:8,.0f} tokens/s\n")
    for name, dropout, compiled in (("none", 0.0, False), ("its own, compiled", -1.0, True)):
        found = rate(backbone, dropout, compiled, options.texts, options.tokens)
        sys.stdout.write(f"{name:20}  {found:8,.0f} tokens/s   {found / own:.2f} times\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
