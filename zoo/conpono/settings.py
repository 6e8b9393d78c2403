"""The settings of CONPONO's recipes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from zoo.settings import BackboneSettings


@dataclass(frozen=True, kw_only=True)
class Settings(BackboneSettings):
    """The paper's values (section 2.3 and A.2). An example is an anchor with its candidates."""

    batch_size: int = 32
    """Anchors a step (the default of the released code; the paper gives no number)."""
    eval_batch_size: int = 32
    learning_rate: float = 5e-5
    warmup: float = 0.25
    """The share of the steps in which the learning rate rises; then it falls to 0."""
    objective: Literal["conpono", "bso"] = "conpono"
    encoder: Literal["full", "isolated", "uni"] = "full"
    k: int = 2
    """The largest distance of a target, in both directions."""
    targets: int = 4
    """Targets an anchor; fewer where fewer exist. 0: as many as k, as in the released code."""
    candidates: int = 32
    """Targets and random segments together; for `bso` the pairs of an example."""
    anchor_sentences: int = 4
    target_sentences: int = 3
    max_tokens: int = 512
    vector: Literal["cls", "mean"] = "cls"
    """The vector of a text: BERT's pooled [CLS] (the paper), or its tokens' mean, that of a

    backbone that was made for sentences, such as MiniLM, whose pooler nothing has trained.
    """
    mlm: bool = True
    mask_rate: float = 0.15
    """The share of the words that are hidden (the released code: 0.10)."""
    layout: Literal["buckets", "packed"] = "buckets"
    """How sequences are laid into blocks: rows of like length, or several sequences a row."""
    shortest_row: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The least length of a bucket's row, as a share of its longest: less means fewer blocks and

    more padding, which is faster where a step is small, as on a CPU.
    """
    block_tokens: int = 16384
    recompute: bool = False
    """Keep one block's activations at a time (exact gradients, a third more time)."""
    workers: int = 0
    """Processes that draw examples beside the training process."""
