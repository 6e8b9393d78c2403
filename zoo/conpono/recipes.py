"""CONPONO's recipe (Iter, Guu, Lansing and Jurafsky 2020): its declaration, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo

from zoo.declared import ENCODES, GOES_ON, Above0, BackboneRecipe, Count, Form, Positive, Work

if TYPE_CHECKING:
    from zoo.training.job import Job


def _more_than_targets(candidates: int, info: ValidationInfo) -> int:
    targets = info.data.get("targets") or info.data.get("k", 1)
    if candidates <= targets and info.data.get("objective") == "conpono":
        raise ValueError(f"they are {targets} targets and some random segments: give more")
    return candidates


class Conpono(BackboneRecipe):
    """CONPONO, its encoders and ablations, and the ordering baseline, with the paper's values.

    An example is an anchor with its candidates (section 2.3 and A.2).
    """

    paper = "Iter, Guu, Lansing and Jurafsky 2020"
    reads = (Form(("doc", "sentences", "bounds")),)
    can = frozenset({ENCODES, GOES_ON})
    differs = (
        "A target is complete; in the released code a target at a paragraph's end may have "
        "fewer sentences.",
        "Random segments come from all other documents; the released code takes four neighbouring "
        "records.",
        "If anchor and target do not fit together, the longer loses its end; the released code "
        "cuts sentences to 70 tokens.",
    )

    batch_size: Positive = 32
    """Anchors of a step (the released code's default; the paper gives no number)."""
    eval_batch_size: Positive = 32
    learning_rate: Above0 = 5e-5
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.25
    """Share of the steps for warm-up of the learning rate; then it falls to 0."""
    objective: Literal["conpono", "bso"] = "conpono"
    """The task: find the target among its candidates, or tell whether a pair is swapped."""
    encoder: Literal["full", "isolated", "uni"] = "full"
    """Whether anchor and target are encoded together or separately (section 2.1)."""
    k: Positive = 2
    """Maximum distance K of a target, in both directions."""
    targets: Count = 4
    """Maximum targets of an anchor; 0: one for each k, as in the released code."""
    candidates: Annotated[int, Field(ge=1), AfterValidator(_more_than_targets)] = 32
    """Number of targets and random segments together; for `bso`, pairs of an example."""
    anchor_sentences: Positive = 4
    """Sentences of an anchor."""
    target_sentences: Positive = 3
    """Sentences of a target."""
    max_tokens: Annotated[int, Field(ge=8)] = 512
    """Maximum tokens of a text or a pair, special tokens included; at most the backbone's limit."""
    vector: Literal["cls", "mean"] = "cls"
    """The vector of a text: BERT's pooled [CLS] (the paper), or the mean of its tokens, for
    backbones trained on sentences, such as MiniLM, whose pooler is untrained.
    """
    mlm: bool = True
    """Also train masked language modelling."""
    mask_rate: Annotated[float, Field(ge=0, lt=1)] = 0.15
    """Share of masked words (the released code: 0.10)."""
    shortest_row: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Minimum length of a row, as a share of its block's longest: less gives fewer blocks and more
    padding, which is faster for small steps, as on a CPU.
    """
    block_tokens: Positive = 16384
    """Maximum tokens in the encoder at a time."""

    def work(self) -> Work:
        """The anchor, and each candidate with the anchor."""
        from zoo.training.cost import encoder_weights

        anchor = self.objective == "conpono" and self.encoder != "uni"
        return Work(encoder_weights(self), (self.candidates + anchor) * self.max_tokens)

    def train(self, job: Job) -> None:
        from zoo.conpono.pretraining import train

        train(self, job)
