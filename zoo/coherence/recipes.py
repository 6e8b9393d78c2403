"""The recipes and objectives of the coherence scorer (Jwalapuram, Joty and Lin 2022).

Nothing here loads torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from corpora.errors import ConfigError
from zoo.declared import (
    ENCODES,
    GOES_ON,
    INTRUDED,
    PERMUTED,
    SCORES,
    Above0,
    AtLeast0,
    BackboneRecipe,
    Count,
    Objective,
    Positive,
    RankingRecipe,
    Share,
    StepRecipe,
    Words,
)

if TYPE_CHECKING:
    from torch import nn

    from zoo.training.job import Job


class PairwiseRanking(Objective):
    """Margin ranking of a text above one negative."""

    paper = "Jwalapuram, Joty and Lin 2022, section 3.2"
    config = "pairwise"
    negatives = 1

    margin: AtLeast0 = 0.1
    """The distance that a document keeps from its negative (equation 1)."""

    def module(self) -> nn.Module:
        from zoo.coherence.objectives import PairwiseMargin

        return PairwiseMargin(self.margin)


class ContrastiveRanking(Objective):
    """Contrast of a text with several negatives at once."""

    paper = "Jwalapuram, Joty and Lin 2022, section 3.3"
    config = "contrastive"

    margin: AtLeast0 = 0.1
    """Subtracted from the negatives' scores (equation 2)."""

    def module(self) -> nn.Module:
        from zoo.coherence.objectives import ContrastiveMargin

        return ContrastiveMargin(self.margin)


class ScorerRecipe(BackboneRecipe):
    """What the recipes of the scorer share; the paper's values (table 5)."""

    reads = (PERMUTED, INTRUDED)
    can = frozenset({SCORES, ENCODES, GOES_ON})
    differs: ClassVar[tuple[str, ...]] = ("Padding is masked, and changes no score.",)

    batch_size: Positive = 1
    eval_batch_size: Positive = 16
    learning_rate: Above0 = 5e-6
    final_learning_rate: AtLeast0 = 1e-6
    """The learning rate after the last of `anneal_calls`: `learning_rate` or less."""
    anneal_calls: Positive = 10
    """Equal stairs in which the learning rate falls to `final_learning_rate`."""
    anneal_every: Positive = 5000
    """Instances between two stairs (table 5, "anneal rate")."""
    adam_epsilon: Above0 = 1e-6
    """Epsilon of AdamW (the authors' code)."""
    max_grad_norm: AtLeast0 = 0.0
    """Maximum gradient norm; 0 disables clipping (the authors' code clips nothing)."""
    margin: AtLeast0 = 0.1
    """The distance that a document keeps from its negatives (equations 1 and 2)."""
    negatives: Positive = 5
    """Negatives of a document in a step."""
    max_tokens: Annotated[int, Field(ge=8)] = 600
    """Tokens of a text; the sentences that do not fit are cut."""
    vector: Literal["cls", "mean"] = "cls"
    """What the linear layer sees of a text: its [cls] token (the paper), or its tokens' mean, the
    vector of a backbone that was made for sentences, such as MiniLM."""

    @model_validator(mode="after")
    def _the_rate_falls(self) -> Self:
        if self.final_learning_rate > self.learning_rate:
            raise ConfigError(
                f"final_learning_rate = {self.final_learning_rate:g} is above learning_rate = "
                f"{self.learning_rate:g}",
                hint="set both: the rate falls from the one to the other",
            )
        return self


class Contrastive(ScorerRecipe, RankingRecipe):
    """The scorer by pairwise or contrastive ranking, or by an objective of a plug-in."""

    paper = "Jwalapuram, Joty and Lin 2022, sections 3.2 and 3.3"
    config = "contrastive"

    patience: Count = 0
    """Validations without a new best accuracy after which training stops (0: never)."""

    def train(self, job: Job) -> None:
        from zoo.coherence.contrastive import train

        train(self, job)


class Full(ScorerRecipe):
    """The scorer with hard negatives and a momentum encoder.

    `save_steps` and `eval_steps` count steps, but act between rounds: 0 after each round.
    """

    paper = "Jwalapuram, Joty and Lin 2022, section 3.4"
    differs = (
        *ScorerRecipe.differs,
        "Of the momentum encoder the difference from the start is kept, in float32: with m = "
        "0.9999999 a step is less than float32 can hold beside a weight.",
        "The momentum encoder reads a random contiguous slice of four sentences or more, as the "
        "paper says; the authors' code takes the first ones (`--slices prefix`).",
        "The queue is one tensor, and the negatives of the step are in it when its loss is taken.",
    )
    config = "ranked"

    anneal_calls: Positive = 50
    anneal_every: Positive = 1000
    candidates: Positive = 50
    """Negatives of an instance that are scored; `negatives` of them train (algorithm 1)."""
    mine_every: Positive = 200
    """Instances in a round: their negatives are mined with the model that the last round left."""
    mining_tokens: Positive = 16384
    """Tokens in a batch while mining."""
    momentum: Share = 0.9999999
    """The share of itself that the momentum encoder keeps at an update."""
    momentum_weight: Share = 0.15
    """The share of the momentum loss (1 - lambda of equation 5); 0: no momentum encoder."""
    queue_size: Positive = 1000
    """Vectors of negatives that the queue holds."""
    slices: Literal["contiguous", "prefix"] = "contiguous"
    """Which parts of a document the momentum encoder reads: the paper's, or the authors' code's."""
    shortest_slice: Positive = 4
    """Sentences that a slice for the momentum encoder has at least."""

    @model_validator(mode="after")
    def _by_its_own_loop(self) -> Self:
        if self.gradient_accumulation != 1 or self.compile:
            raise ConfigError(
                "the full model has neither gradient_accumulation nor compile",
                hint="raise batch_size instead",
            )
        return self

    def train(self, job: Job) -> None:
        from zoo.coherence.full import train

        train(self, job)


class Unc(StepRecipe):
    """The unified coherence model, UNC: the scorer's baseline."""

    paper = "Moon, Mohiuddin, Joty and Xu 2019"
    reads = (PERMUTED,)
    can = frozenset({SCORES})
    differs = (
        "The paper's words have ELMo's vectors, which depend on the sentence; `--vectors FILE` "
        "takes one vector a word, and without it they are trained from scratch.",
        "Sizes, the margin (5), the steps of the learning rate and bilinear features without a "
        "nonlinearity are ours.",
        "Positions that are alike in both texts count too.",
    )
    config = "pairwise"

    batch_size: Positive = 8
    eval_batch_size: Positive = 32
    learning_rate: Above0 = 1e-4
    decay: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The learning rate's factor after each `decay_epochs` epochs (ours)."""
    decay_epochs: Positive = 3
    """Epochs between two steps of the learning rate (ours)."""
    margin: AtLeast0 = 5.0
    """The distance at each position; wide, as the scores are sums of unbounded layers."""
    language_weight: AtLeast0 = 1.0
    """The weight of the language-model loss beside the ranking loss."""
    patience: Count = 3
    """Validations without a new best accuracy after which training stops (0: never)."""
    vectors: str = ""
    """A text file of word vectors in GloVe's form; without one they are trained from scratch."""
    embedding_size: Positive = 300
    """Width of the word vectors."""
    hidden_size: Positive = 256
    """Width of the recurrent layers, of each direction."""
    bilinear_size: Positive = 32
    """Output of each bilinear layer between adjacent sentences."""
    kernel_size: Positive = 5
    """Sentences that the lightweight convolution sees."""
    kernel_heads: Positive = 8
    """Heads of the lightweight convolution, which share its weights."""
    vocab_size: Words = 30000
    """Words of the vocabulary, the most frequent ones."""
    max_words: Positive = 64
    """Words of a sentence; the rest is cut."""

    def train(self, job: Job) -> None:
        from zoo.coherence.unc import train

        train(self, job)
