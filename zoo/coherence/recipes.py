"""The recipes and objectives of the coherence scorer (Jwalapuram, Joty and Lin 2022).

Nothing here loads torch.
"""

from __future__ import annotations

from dataclasses import replace
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
    Place,
    Positive,
    RankingRecipe,
    Share,
    StepRecipe,
    Words,
    Work,
)

if TYPE_CHECKING:
    from torch import nn

    from zoo.training.job import Job


class PairwiseRanking(Objective):
    """Margin ranking of a text above one negative."""

    paper = "Jwalapuram, Joty and Lin 2022, section 3.2"
    config = "pairwise"
    negatives = 1
    says = "score a text above a negative of it (equation 1)"

    margin: AtLeast0 = 0.1
    """The margin between a document and its negative (equation 1)."""

    def module(self) -> nn.Module:
        from zoo.coherence.objectives import PairwiseMargin

        return PairwiseMargin(self.margin)


class ContrastiveRanking(Objective):
    """Contrast of a text with several negatives at once."""

    paper = "Jwalapuram, Joty and Lin 2022, section 3.3"
    config = "contrastive"
    says = "score a text above {negatives} of it at once (equation 2)"

    margin: AtLeast0 = 0.1
    """Subtracted from the negatives' scores (equation 2)."""

    def module(self) -> nn.Module:
        from zoo.coherence.objectives import ContrastiveMargin

        return ContrastiveMargin(self.margin)


class ScorerRecipe(BackboneRecipe):
    """The settings that the recipes of the scorer share, with the paper's values (table 5)."""

    version = 2
    reads = (PERMUTED, INTRUDED)
    can = frozenset({SCORES, ENCODES, GOES_ON})
    differs: ClassVar[tuple[str, ...]] = ("Padding is masked, and changes no score.",)

    batch_size: Positive = 1
    eval_batch_size: Positive = 16
    learning_rate: Above0 = 5e-6
    final_learning_rate: AtLeast0 = 1e-6
    """The learning rate after the last of `anneal_calls`: `learning_rate` or less."""
    anneal_calls: Positive = 10
    """Number of equal steps in which the learning rate falls to `final_learning_rate`."""
    anneal_every: Positive = 5000
    """Instances between two of these steps (table 5, "anneal rate")."""
    adam_epsilon: Above0 = 1e-6
    """Epsilon of AdamW (the authors' code)."""
    max_grad_norm: AtLeast0 = 0.0
    """Maximum gradient norm; 0 disables clipping (as in the authors' code)."""
    margin: AtLeast0 = 0.1
    """The margin between a document and its negatives (equations 1 and 2)."""
    negatives: Positive = 5
    """Number of negatives of a document."""
    max_tokens: Annotated[int, Field(ge=8)] = 600
    """Maximum tokens of a text; sentences that do not fit are cut."""
    development: Literal["each", "all"] = "each"
    """What counts in a validation: `each` pair of a document and a negative, a tie as a half; or a
    document that is above `all` of its negatives, as in the authors' code.
    """
    vector: Literal["cls", "mean"] = "cls"
    """The linear layer's input: the [cls] token (the paper), or the mean of all tokens, for
    backbones trained on sentences, such as MiniLM.
    """

    @model_validator(mode="after")
    def _check_final_rate(self) -> Self:
        """Check that the learning rate does not rise."""
        if self.final_learning_rate > self.learning_rate:
            raise ConfigError(
                f"final_learning_rate = {self.final_learning_rate:g} is above learning_rate = "
                f"{self.learning_rate:g}",
                hint="set both: the rate falls from the first to the second",
            )
        return self

    def work(self) -> Work:
        """Return the cost of an example: a document and its negatives, all of maximum length."""
        from zoo.training.cost import encoder_weights

        fixed_number = self.loss.negatives if isinstance(self, RankingRecipe) else 0
        texts = 1 + (fixed_number or self.negatives)
        return Work(encoder_weights(self), texts * self.max_tokens)


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

    `save_steps` and `eval_steps` count steps, but take effect between rounds (0: after each round).
    The best model in validation is also kept. Several processes divide the mining, the batches and
    the validation.
    """

    paper = "Jwalapuram, Joty and Lin 2022, section 3.4"
    differs = (
        *ScorerRecipe.differs,
        "The momentum encoder is stored as its difference from the start, in float32: with m = "
        "0.9999999 a step is smaller than float32 can represent beside a weight.",
        "The momentum encoder reads a random contiguous slice of four sentences or more, as the "
        "paper says; the authors' code reads the first ones (`--slices prefix`).",
        "The queue is one tensor, and the negatives of the step are in it when its loss is taken.",
    )
    config = "ranked"

    anneal_calls: Positive = 50
    anneal_every: Positive = 1000
    save_steps: Count = 5000
    """Steps between checkpoints, which are four times the size of the model."""
    candidates: Positive = 50
    """Scored negatives of an instance; the hardest `negatives` are used in training (algorithm 1).
    """
    mine_every: Positive = 200
    """Instances in a round, whose negatives are mined with the model of the previous round."""
    mining_tokens: Positive = 16384
    """Tokens in a batch while mining."""
    momentum: Share = 0.9999999
    """EMA coefficient m of the momentum encoder (equation 4)."""
    momentum_weight: Share = 0.15
    """Weight of the momentum loss (1 - lambda of equation 5); 0: no momentum encoder."""
    queue_size: Positive = 1000
    """Size of the queue of negatives' vectors."""
    slices: Literal["contiguous", "prefix"] = "contiguous"
    """Parts of a document that the momentum encoder reads: as in the paper, or in the authors'
    code.
    """
    shortest_slice: Positive = 4
    """Minimum sentences of a slice for the momentum encoder."""

    @model_validator(mode="after")
    def _check_accumulation(self) -> Self:
        """Check that a batch is not divided into parts."""
        if self.gradient_accumulation != 1:
            raise ConfigError(
                "the full model does not support gradient_accumulation",
                hint="increase batch_size instead",
            )
        return self

    def work(self) -> Work:
        """Return the cost with the momentum encoder and all candidates, which need no gradients."""
        work = super().work()
        momentum = work.tokens if self.momentum_weight else 0
        mining = self.candidates * self.max_tokens
        return replace(work, tokens=work.tokens + (momentum + mining) / 3)

    def train(self, job: Job) -> None:
        from zoo.coherence.full import train

        train(self, job)


class Unc(StepRecipe):
    """The unified coherence model, UNC: the scorer's baseline."""

    version = 2
    paper = "Moon, Mohiuddin, Joty and Xu 2019"
    reads = (PERMUTED,)
    can = frozenset({SCORES})
    differs = (
        "The paper's words have ELMo's vectors, which depend on the sentence; `--vectors FILE` "
        "reads one vector for each word; without it they are trained from scratch.",
        "Sizes and the margin (5) are those of the released code; by default epochs, batches, "
        "steps of the learning rate, weight decay and heads of the convolution are ours.",
        "Bilinear features without a nonlinearity are ours.",
        "Positions that are equal in both texts count too.",
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
    """Margin at each position; large, since scores are sums of unbounded layers."""
    language_weight: AtLeast0 = 1.0
    """Weight of the language-model loss, added to the ranking loss."""
    patience: Count = 3
    """Validations without a new best accuracy after which training stops (0: never)."""
    vectors: Place = ""
    """A text file of word vectors in GloVe's format; default: trained from scratch."""
    embedding_size: Positive = 300
    """Width of the word vectors."""
    hidden_size: Positive = 256
    """Width of the recurrent layers in each direction."""
    bilinear_size: Positive = 32
    """Output of each bilinear layer between adjacent sentences."""
    kernel_size: Positive = 5
    """Kernel size of the lightweight convolution, in sentences."""
    kernel_heads: Positive = 8
    """Heads of the lightweight convolution, which share its weights."""
    vocab_size: Words = 30000
    """Size of the vocabulary (the most frequent words)."""
    max_words: Positive = 64
    """Maximum words of a sentence; the rest is cut."""

    def train(self, job: Job) -> None:
        from zoo.coherence.unc import train

        train(self, job)
