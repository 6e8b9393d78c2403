"""CONPONO's recipe (Iter, Guu, Lansing and Jurafsky 2020): what it needs, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo

from zoo.declared import (
    ENCODES,
    GOES_ON,
    Above0,
    BackboneRecipe,
    Count,
    Form,
    Positive,
)

if TYPE_CHECKING:
    from zoo.training.job import Job


def _two_or_more(value: int, info: ValidationInfo) -> int:
    if value < 2 and info.data.get("objective") == "conpono":
        raise ValueError("a target needs one other candidate at least: 2 or more")
    return value


class Conpono(BackboneRecipe):
    """CONPONO, its encoders and ablations, and the ordering baseline; the paper's values.

    An example is an anchor with its candidates (section 2.3 and A.2).
    """

    paper = "Iter, Guu, Lansing and Jurafsky 2020"
    reads = (Form(("doc", "sentences", "bounds")),)
    can = frozenset({ENCODES, GOES_ON})
    differs = (
        "A target has all its sentences; in the released code one at a paragraph's end may have "
        "fewer.",
        "Random segments come from all other documents; the released code takes four neighbouring "
        "records.",
        "Where anchor and target do not both fit, the longer loses its end; the released code cuts "
        "sentences to 70 tokens.",
    )

    batch_size: Positive = 32
    """Anchors a step (the default of the released code; the paper gives no number)."""
    eval_batch_size: Positive = 32
    learning_rate: Above0 = 5e-5
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """The share of the steps in which the learning rate rises; then it falls to 0."""
    objective: Literal["conpono", "bso"] = "conpono"
    """What is learned: the target among its candidates, or whether a pair is swapped."""
    encoder: Literal["full", "isolated", "uni"] = "full"
    """What encodes an anchor and a target (CONPONO, section 4): together, or alone."""
    k: Positive = 2
    """The largest distance of a target, in both directions."""
    targets: Count = 4
    """Targets an anchor; fewer where fewer exist. 0: as many as k, as in the released code."""
    candidates: Annotated[int, Field(ge=1), AfterValidator(_two_or_more)] = 32
    """Targets and random segments together; for `bso` the pairs of an example."""
    anchor_sentences: Positive = 4
    """Sentences of an anchor."""
    target_sentences: Positive = 3
    """Sentences of a target."""
    max_tokens: Annotated[int, Field(ge=8)] = 512
    """Of a text or a pair with its special tokens; what the backbone takes, if that is less."""
    vector: Literal["cls", "mean"] = "cls"
    """The vector of a text: BERT's pooled [CLS] (the paper), or its tokens' mean, that of a
    backbone that was made for sentences, such as MiniLM, whose pooler nothing has trained."""
    mlm: bool = True
    """Learn masked words too."""
    mask_rate: Annotated[float, Field(ge=0, lt=1)] = 0.15
    """The share of the words that are hidden (the released code: 0.10)."""
    shortest_row: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The least length of a bucket's row, as a share of its longest: less means fewer blocks and
    more padding, which is faster where a step is small, as on a CPU."""
    block_tokens: Positive = 16384
    """The most tokens that go through the encoder at a time."""
    recompute: bool = False
    """Keep one block's activations at a time (exact gradients, a third more time)."""
    workers: Annotated[int, Field(ge=-1)] = -1
    """Processes that draw examples beside the training process; -1: 4 on a GPU, none on a CPU."""

    def train(self, job: Job) -> None:
        from zoo.conpono.conpono import train

        train(self, job)
