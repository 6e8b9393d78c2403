"""DisSent's recipes (Nie, Bennett and Goodman 2019): their declarations, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from corpora.errors import ConfigError
from zoo.declared import (
    CLASSIFIES,
    ENCODES,
    GOES_ON,
    LABELLED,
    Above0,
    AtLeast0,
    BackboneRecipe,
    ClassifierRecipe,
    Count,
    Dropout,
    LabelledRecipe,
    Place,
    Positive,
    StepRecipe,
    WordRecipe,
    Work,
)

if TYPE_CHECKING:
    from zoo.training.job import Job

Grid = Annotated[tuple[Above0, ...], Field(min_length=1)]


class Bilstm(StepRecipe, WordRecipe, ClassifierRecipe):
    """DisSent's BiLSTM; details not in the paper are from the released code."""

    paper = "Nie, Bennett and Goodman 2019, sections 3.1 and 6"
    reads = (LABELLED[0],)
    can = frozenset({CLASSIFIES, ENCODES})
    differs = (
        "Words are split by BERT's rules, not by the tokenizers of Stanford and NLTK.",
        "A sentence is cut at 64 words.",
        "`<s>` and `</s>` have random vectors if the file has none.",
    )

    batch_size: Positive = 64
    eval_batch_size: Positive = 256
    epochs: Above0 = 20
    learning_rate: Above0 = 0.1
    max_grad_norm: AtLeast0 = 5.0
    decay: Above0 = 0.99
    """Factor of the learning rate after each epoch (released code)."""
    shrink: Annotated[float, Field(ge=1)] = 5.0
    """Divisor of the learning rate when validation accuracy falls."""
    patience: Count = 5
    """Validations without a new best accuracy after which training stops (0: never)."""
    train_embeddings: bool = True
    """Whether to train the word vectors."""
    embedding_size: Positive = 300
    """Width of the word vectors, if none are given."""
    hidden_size: Positive = 2048
    """Width of the recurrent layers in each direction."""
    projection_size: Positive = 512
    """Width of the layer between the pair's features and the labels."""
    linear_layers: Literal[2, 3] = 2
    """Linear layers between the pair's features and the labels: 2 (paper), 3 (released code)."""
    pooling: Literal["max", "mean"] = "max"
    """Pooling of a sentence's states to its vector."""
    sentence_ends: bool = False
    """Put `<s>` before and `</s>` after each sentence (released code)."""
    drop_unknown: bool = False
    """Leave out words without a vector in `vectors` (released code); else they get random ones."""

    @model_validator(mode="after")
    def _check_embeddings(self) -> Self:
        """Check that settings which need word vectors have them, and that no sentence is empty."""
        if not self.vectors and (self.drop_unknown or not self.train_embeddings):
            setting = "drop_unknown = true" if self.train_embeddings else "train_embeddings = false"
            raise ConfigError(
                f"{setting} needs word vectors",
                hint="give --vectors glove.840B.300d.txt, or --train_embeddings true "
                "--drop_unknown false",
            )
        if self.drop_unknown and not self.sentence_ends:
            raise ConfigError(
                "drop_unknown = true may leave a sentence empty",
                hint="give --sentence_ends true too, as in the released code",
            )
        return self

    def work(self) -> Work:
        """The words of both sentences, each in an LSTM of four gates in two directions."""
        weights = 8 * self.hidden_size * (self.embedding_size + self.hidden_size)
        return Work(weights, 2 * self.max_tokens)

    def train(self, job: Job) -> None:
        from zoo.dissent.bilstm import train

        train(self, job)


class LogisticRecipe(LabelledRecipe):
    """A recipe with logistic regression on fixed features."""

    paper = "Nie, Bennett and Goodman 2019, appendix A.5"
    differs: ClassVar[tuple[str, ...]] = (
        "The penalty is ours, chosen on validation accuracy: the paper names none.",
    )

    grid: Grid = (0.1, 1.0, 10.0)
    """Candidate inverse penalties; validation accuracy decides."""
    iterations: Positive = 200
    """Maximum solver iterations."""


class Ngram(LogisticRecipe):
    """Logistic regression on the distinct n-grams of s1 and of s2."""

    can = frozenset({CLASSIFIES})
    differs = (
        *LogisticRecipe.differs,
        "N-grams are lower-cased, are in two texts at least, 200,000 at most; whether one is there "
        "counts, in the first text and the second apart: the paper says none of this.",
    )

    longest: Positive = 3
    """Maximum words of an n-gram."""
    min_texts: Positive = 2
    """Minimum number of sentences with an n-gram."""
    features: Positive = 200_000
    """Maximum number of n-grams (the most frequent)."""

    def train(self, job: Job) -> None:
        from zoo.dissent.ngram import train

        train(self, job)


class Sif(LogisticRecipe, WordRecipe):
    """SIF sentence vectors (Arora, Liang and Ma 2017) and logistic regression."""

    can = frozenset({CLASSIFIES, ENCODES})
    differs = (
        *LogisticRecipe.differs,
        "Without `--vectors` words have PMI and SVD vectors of the training pairs, not GloVe's.",
        "Word frequencies and the common component are those of the training pairs; the features "
        "of two vectors are those of equation 2, standardised. The paper says none of this.",
    )

    vectors: Place = ""
    """A GloVe text file; default: PMI and SVD vectors from the training pairs."""
    size: Positive = 300
    """Size of the PMI and SVD vectors."""
    smoothing: Above0 = 1e-3
    """`a` in a / (a + p(w))."""
    grid: Grid = (1e-4, 1e-3, 1e-2, 1e-1)

    def train(self, job: Job) -> None:
        from zoo.dissent.sif import train

        train(self, job)


def _check_classes(classes: int) -> int:
    if classes != 0 and classes < 2:
        raise ValueError("give 0 for all, or at least 2 classes")
    return classes


class Transformer(BackboneRecipe, LabelledRecipe):
    """A pretrained encoder fine-tuned on pairs of texts: DisSent's markers, NLI, or PDTB.

    The paper's learning rate and epoch; other settings are those of BERT's fine-tuning. The
    backbone may be a model of an earlier run (base, DisSent, PDTB).
    """

    paper = "Nie, Bennett and Goodman 2019, section 3.2"
    can = frozenset({CLASSIFIES, ENCODES, GOES_ON})
    differs = (
        "Batches of 32, AdamW with weight decay .01, a tenth of the steps to warm up, then a "
        "linear fall to 0, and dropout .1 are BERT's own fine-tuning: the paper gives a learning "
        "rate of 2e-5 and one epoch.",
        "The weights are those of the best validation, not of the last step.",
    )

    learning_rate: Above0 = 2e-5
    epochs: Above0 = 1
    batch_size: Positive = 32
    weight_decay: AtLeast0 = 0.01
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the steps for warm-up of the learning rate; then it falls to 0."""
    dropout: Dropout = 0.1
    """Dropout of the classifier's input."""
    max_tokens: Annotated[int, Field(ge=8)] = 128
    """Maximum tokens of a pair; the longer text of a longer pair is cut."""
    max_validation_rows: Count = 0
    """Maximum rows in validation, spread evenly over the split (0: `max_eval_rows`)."""
    patience: Count = 0
    """Validations without a new best accuracy after which training stops (0: never)."""
    pooling: Literal["auto", "first", "last", "mean"] = "auto"
    """Position of the pair's vector (auto: at [CLS], without one at the last token)."""
    validation_split: str = "validation"
    """The split for validation while training."""
    test_split: str = "test"
    """The split for the final test."""
    classes: Annotated[int, AfterValidator(_check_classes)] = 0
    """Number of labels to keep, those with most training rows (0: all)."""

    def work(self) -> Work:
        """Both sentences in one text."""
        from zoo.training.cost import encoder_weights

        return Work(encoder_weights(self), self.max_tokens)

    def train(self, job: Job) -> None:
        from zoo.dissent.transformer import train

        train(self, job)
