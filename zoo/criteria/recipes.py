"""The recipe of DiscoEval's learning criteria (Chen, Chu and Gimpel 2019), without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator

from zoo.declared import ENCODES, Above0, AtLeast0, Form, Positive, StepRecipe, WordRecipe, Work

if TYPE_CHECKING:
    from zoo.training.job import Job

Criterion = Literal["nl", "spp", "sdt"]


def _each_once(criteria: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(criteria)) < len(criteria):
        raise ValueError("name each criterion once, otherwise its loss would count twice")
    return criteria


class Bigru(StepRecipe, WordRecipe):
    """DiscoEval's learning criteria on a BiGRU.

    Sizes are ours or the released code's: the paper's supplement was not available.
    """

    paper = "Chen, Chu and Gimpel 2019, section 4"
    reads = (
        Form(
            (
                *("doc", "title", "sentences", "section", "headings", "level"),
                *("sentence_bin", "paragraph_bin"),
            )
        ),
    )
    can = frozenset({ENCODES})
    differs = (
        "The loss of a bag of words is -log p per word: one distribution over the vocabulary for "
        "each sentence, the mean over the predicted words.",
        "Missing texts are not predicted: no sentence before a document's first, no heading "
        "over a lead, no title if the source has none.",
        "Sizes are ours or the released code's: the paper's supplement was not available.",
    )

    criteria: Annotated[tuple[Criterion, ...], AfterValidator(_each_once)] = ("nl", "spp")
    """Beside NSP, which every model has (section 4.1): nesting level, positions, titles."""
    batch_size: Positive = 128
    eval_batch_size: Positive = 256
    learning_rate: Above0 = 5e-4
    max_grad_norm: AtLeast0 = 5.0
    schedule: Literal["linear", "constant"] = "linear"
    """The learning rate falls to 0 (`linear`), or stays (`constant`)."""
    train_embeddings: bool = True
    """Whether to train the word vectors."""
    embedding_size: Positive = 300
    """Width of the word vectors, if none are given."""
    hidden_size: Positive = 1024
    """Width of the recurrent layers in each direction."""
    decoder_size: Positive = 512
    """Width of the hidden layers between a sentence's vector and the predictions."""
    decoder_layers: Positive = 1
    """The number of these layers."""
    bins: Positive = 20
    """Bins of relative positions: the number in the dataset."""

    def work(self) -> Work:
        """The cost of an example: a GRU (three gates, two directions), and a decoder for each
        bag."""
        weights = 6 * self.hidden_size * (self.embedding_size + self.hidden_size)
        bags = 2 + 2 * ("sdt" in self.criteria)  # the neighbours; title and heading
        hidden = (self.decoder_layers - 1) * self.decoder_size
        heads = bags * self.decoder_size * (2 * self.hidden_size + hidden + self.vocab_size)
        return Work(weights, self.max_tokens, heads)

    def train(self, job: Job) -> None:
        from zoo.criteria.bigru import train

        train(self, job)
