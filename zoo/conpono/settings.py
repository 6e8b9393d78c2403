"""The settings of CONPONO's recipes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from zoo.training.settings import BackboneSettings


def _some_to_tell_apart(value: int, info: ValidationInfo) -> int:
    if value < 2 and info.data.get("objective") == "conpono":
        raise PydanticCustomError("few", "a target needs one other candidate at least: 2 or more")
    return value


def _takes_the_mask(value: str, info: ValidationInfo) -> str:
    way = info.data.get("attention")
    if value == "packed" and way == "flash_attention_2":
        raise PydanticCustomError(
            "mask", 'its mask of whole rows does not go with attention = "flash_attention_2"'
        )
    return value


@dataclass(frozen=True, kw_only=True)
class Settings(BackboneSettings):
    """The paper's values (section 2.3 and A.2). An example is an anchor with its candidates."""

    batch_size: int = 32
    """Anchors a step (the default of the released code; the paper gives no number)."""
    eval_batch_size: int = 32
    learning_rate: float = 5e-5
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """The share of the steps in which the learning rate rises; then it falls to 0."""
    objective: Literal["conpono", "bso"] = "conpono"
    encoder: Literal["full", "isolated", "uni"] = "full"
    k: Annotated[int, Field(ge=1)] = 2
    """The largest distance of a target, in both directions."""
    targets: Annotated[int, Field(ge=0)] = 4
    """Targets an anchor; fewer where fewer exist. 0: as many as k, as in the released code."""
    candidates: Annotated[int, Field(ge=1), AfterValidator(_some_to_tell_apart)] = 32
    """Targets and random segments together; for `bso` the pairs of an example."""
    anchor_sentences: Annotated[int, Field(ge=1)] = 4
    target_sentences: Annotated[int, Field(ge=1)] = 3
    max_tokens: Annotated[int, Field(ge=8)] = 512
    """Of a text or a pair with its special tokens; what the backbone takes, if that is less."""
    vector: Literal["cls", "mean"] = "cls"
    """The vector of a text: BERT's pooled [CLS] (the paper), or its tokens' mean, that of a

    backbone that was made for sentences, such as MiniLM, whose pooler nothing has trained.
    """
    mlm: bool = True
    mask_rate: Annotated[float, Field(ge=0, lt=1)] = 0.15
    """The share of the words that are hidden (the released code: 0.10)."""
    layout: Annotated[Literal["buckets", "packed"], AfterValidator(_takes_the_mask)] = "buckets"
    """How sequences are laid into blocks: rows of like length, or several sequences a row."""
    shortest_row: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The least length of a bucket's row, as a share of its longest: less means fewer blocks and

    more padding, which is faster where a step is small, as on a CPU.
    """
    block_tokens: Annotated[int, Field(ge=1)] = 16384
    recompute: bool = False
    """Keep one block's activations at a time (exact gradients, a third more time)."""
    workers: Annotated[int, Field(ge=-1)] = -1
    """Processes that draw examples beside the training process; -1: 4 on a GPU, none on a CPU."""
