"""A BiGRU sentence encoder, and the decoders of the learning criteria (section 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
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
"""Texts that each criterion's word decoders predict: neighbours, headings."""
CLASSES = {"nl": ("level",), "spp": ("sentence_bin", "paragraph_bin")}
"""What each criterion's classifiers predict."""


@strict
class CriteriaConfig(PretrainedConfig):
    """Sizes, and the criteria beside NSP. `hidden_size` is one direction's.

    `levels` and `bins` are the classes of NL and SPP.
    """

    model_type = "discorpora-criteria"

    vocab_size: int = 50000
    embedding_size: int = 300
    hidden_size: int = 1024
    decoder_size: int = 512
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
        """The texts to predict, in the order of the losses."""
        return tuple(bag for name in ("nsp", *self.criteria) for bag in BAGS.get(name, ()))

    @property
    def classes(self) -> dict[str, int]:
        """The classifications, and their numbers of classes."""
        sizes = {"level": self.levels, "sentence_bin": self.bins, "paragraph_bin": self.bins}
        found = [name for each in self.criteria for name in CLASSES.get(each, ())]
        return {name: sizes[name] for name in found}


@dataclass
class CriteriaOutput(ModelOutput):
    """The sum of the parts' means as `loss`; `parts [batch, parts]`, NaN for a missing text.

    `predicted [batch, classified]`: the most probable class of each.
    """

    loss: Tensor | None = None
    parts: Tensor | None = None
    predicted: Tensor | None = None


class CriteriaEncoder(ZooModel, modeling_discorpora.CriteriaEncoder):
    """One sentence to one vector: the mean of a BiGRU's states over the real tokens."""

    config_class = CriteriaConfig


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
            {
                name: nn.Sequential(
                    nn.Linear(2 * config.hidden_size, config.decoder_size),
                    nn.ReLU(),
                    nn.Linear(config.decoder_size, size),
                )
                for name, size in sizes.items()
            }
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
        """The criteria of sentences `input_ids [batch, tokens]`.

        `bags[name] [batch, words]`: the word ids of each text to predict, padded; only padding if
        there is no such text. `labels [batch, classified]`.
        """
        encoded = self.encoder(input_ids, attention_mask, packed=kwargs.get("packed"))
        vectors = encoded.pooler_output
        no_words = (self.config.pad_token_id, self.config.unk_token_id)
        parts, there, predicted = [], [], []
        for name in self.config.bags:
            scores = self.decoders[name](vectors).float()
            loss, known = bag_loss(scores, bags[name], no_words)
            parts.append(loss)
            there.append(known)
        for column, name in enumerate(self.config.classes):
            scores = self.decoders[name](vectors).float()
            parts.append(cross_entropy(scores, labels[:, column], reduction="none"))
            there.append(torch.ones_like(parts[-1], dtype=torch.bool))
            predicted.append(scores.argmax(1))
        losses, counted = torch.stack(parts, 1), torch.stack(there, 1)
        # Missing texts are masked by the data: NaN of a diverged run must reach the loss.
        means = losses.where(counted, 0.0).sum(0) / counted.sum(0).clamp(min=1)
        classes = torch.stack(predicted, 1) if predicted else labels.new_zeros(len(labels), 0)
        return CriteriaOutput(means.sum(), losses.detach(), classes)


def bag_loss(
    scores: Tensor, words: Tensor, no_words: tuple[int | None, ...]
) -> tuple[Tensor, Tensor]:
    """-log p of each text's bag of words, in nats per word, `[batch]`; and which texts have words.

    `scores [batch, vocabulary]`: one distribution over words for each sentence; `words [batch,
    words]`; `no_words` are ids to ignore. The loss of a text without words is NaN.
    """
    real = torch.ones_like(words, dtype=torch.bool)
    for word in no_words:
        real &= words != word
    nats = -scores.log_softmax(1).gather(1, words)
    counts = real.sum(1)
    means = nats.where(real, 0.0).sum(1) / counts.clamp(min=1)
    return torch.where(counts > 0, means, means.new_tensor(math.nan)), counts > 0


known_to_auto(CriteriaConfig, model=CriteriaEncoder)
