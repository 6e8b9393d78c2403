"""A BiGRU sentence encoder, and the decoders of the learning criteria (section 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from zoo import modeling_discorpora
from zoo.modeling import ZooModel, known_to_auto

BAGS = {"nsp": ("previous", "next"), "sdt": ("section", "title")}
"""For each criterion the texts whose words are predicted: neighbours or headings."""
CLASSES = {"nl": ("level",), "spp": ("sentence_bin", "paragraph_bin")}
"""For each criterion the classifications that are predicted."""


@strict
class CriteriaConfig(PretrainedConfig):
    """The sizes of the model, and its learning criteria in addition to NSP.

    `hidden_size` is that of one direction of the encoder, `decoder_size` that of each of the
    `decoder_layers`; `levels` and `bins` are the numbers of nesting levels (NL) and of position
    bins (SPP). Random word vectors have the standard deviation `embedding_std`.
    """

    model_type = "discorpora-criteria"

    vocab_size: int = 50000
    embedding_size: int = 300
    hidden_size: int = 1024
    decoder_size: int = 512
    decoder_layers: int = 1
    criteria: list[str] = field(default_factory=lambda: ["nl", "spp"])
    levels: int = 7
    bins: int = 20
    pooling: Literal["max", "mean"] = "mean"
    train_embeddings: bool = True
    embedding_std: float = 0.1
    pad_token_id: int | None = 0
    unk_token_id: int | None = 1

    @property
    def bags(self) -> tuple[str, ...]:
        """The names of the texts to predict, in the order of the losses."""
        return tuple(bag for name in ("nsp", *self.criteria) for bag in BAGS.get(name, ()))

    @property
    def classes(self) -> dict[str, int]:
        """The number of classes of each classification, by its name."""
        sizes = {"level": self.levels, "sentence_bin": self.bins, "paragraph_bin": self.bins}
        names = [name for criterion in self.criteria for name in CLASSES.get(criterion, ())]
        return {name: sizes[name] for name in names}


@dataclass
class CriteriaOutput(ModelOutput):
    """`parts [batch, parts]` are the losses by text and classification; `loss` sums their means.

    The loss of a missing text is NaN. `predicted [batch, classifications]` are the best classes.
    """

    loss: Tensor | None = None
    parts: Tensor | None = None
    predicted: Tensor | None = None


class CriteriaEncoder(ZooModel, modeling_discorpora.CriteriaEncoder):
    """Encodes a sentence as one vector: the mean of a BiGRU's states over the real tokens."""

    config_class = CriteriaConfig


def _decoder(config: CriteriaConfig, size: int) -> nn.Sequential:
    """The layers from a sentence's vector to `size` scores."""
    widths = [2 * config.hidden_size, *[config.decoder_size] * config.decoder_layers]
    hidden = [part for pair in pairwise(widths) for part in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(widths[-1], size))


class CriteriaModel(ZooModel, modeling_discorpora.WordModel):
    """Predicts a sentence's neighbours, headings and positions from its vector.

    Each bag of words and each class has a separate feed-forward network.
    """

    config_class = CriteriaConfig
    once_a_row = ("decoders",)

    def __init__(self, config: CriteriaConfig) -> None:
        super().__init__(config)
        self.encoder = CriteriaEncoder(config)
        sizes = dict.fromkeys(config.bags, config.vocab_size) | config.classes
        self.decoders = nn.ModuleDict(
            {name: _decoder(config, size) for name, size in sizes.items()}
        )
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        bags: Mapping[str, Tensor],
        labels: Tensor,
        **kwargs: object,
    ) -> CriteriaOutput:
        """Compute the losses of the criteria for sentences `input_ids [batch, tokens]`.

        `bags[name] [batch, words]` are the word ids of each text to predict, padded; only padding
        if there is no such text. `labels [batch, classifications]`.
        """
        encoded = self.encoder(input_ids, attention_mask, packed=kwargs.get("packed"))
        vectors = encoded.pooler_output
        ignored_ids = (self.config.pad_token_id, self.config.unk_token_id)
        parts, exists, predicted = [], [], []
        for name in self.config.bags:
            scores = self.decoders[name](vectors).float()
            loss, has_words = bag_loss(scores, bags[name], ignored_ids)
            parts.append(loss)
            exists.append(has_words)
        for column, name in enumerate(self.config.classes):
            scores = self.decoders[name](vectors).float()
            parts.append(cross_entropy(scores, labels[:, column], reduction="none"))
            exists.append(torch.ones_like(parts[-1], dtype=torch.bool))
            predicted.append(scores.argmax(1))
        losses, counted = torch.stack(parts, 1), torch.stack(exists, 1)
        # Missing texts are masked by the data: NaN of a diverged run must reach the loss.
        means = losses.where(counted, 0.0).sum(0) / counted.sum(0).clamp(min=1)
        classes = torch.stack(predicted, 1) if predicted else labels.new_zeros(len(labels), 0)
        return CriteriaOutput(means.sum(), losses.detach(), classes)


def bag_loss(
    scores: Tensor, words: Tensor, ignored_ids: tuple[int | None, ...]
) -> tuple[Tensor, Tensor]:
    """Return -log p of each text's bag of words, in nats per word, and which texts have words.

    Both are `[batch]`; the loss of a text without words is NaN. `scores [batch, vocabulary]` are
    logits, `words [batch, words]` the words' ids, of which `ignored_ids` (padding) do not count.
    """
    real = torch.ones_like(words, dtype=torch.bool)
    for ignored in ignored_ids:
        real &= words != ignored
    nats = -scores.log_softmax(1).gather(1, words)
    counts = real.sum(1)
    means = nats.where(real, 0.0).sum(1) / counts.clamp(min=1)
    return torch.where(counts > 0, means, means.new_tensor(math.nan)), counts > 0


known_to_auto(CriteriaConfig, model=CriteriaEncoder)
