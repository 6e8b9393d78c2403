"""The DisSent sentence encoder and its marker classifier (section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from zoo.dissent.data import encode_texts
from zoo.modeling import known_to_auto, label_count
from zoo.word_encoder import WordEncoder, WordModel


@strict
class BiLstmConfig(PretrainedConfig):
    """Sizes of the encoder and classifier. `hidden_size` is one direction's (2,048: 4,096)."""

    model_type = "discorpora-dissent-bilstm"

    vocab_size: int = 30000
    embedding_size: int = 300
    hidden_size: int = 2048
    projection_size: int = 512
    pooling: Literal["max", "mean"] = "max"
    train_embeddings: bool = True
    embedding_std: float = 1.0
    pad_token_id: int | None = 0


@dataclass
class MarkerOutput(ModelOutput):
    """`loss` (where labels were given) and `logits [batch, markers]`."""

    loss: Tensor | None = None
    logits: Tensor | None = None


class BiLstmModel(WordEncoder):
    """One sentence to one vector: word embeddings, BiLSTM, pooling over the real tokens."""

    config_class = BiLstmConfig
    cell = "lstm"
    _keys_to_ignore_on_load_unexpected = [r"^(projection|classifier)\."]


class BiLstmForMarkers(WordModel):
    """Two sentences to the marker that joined them (equations 1 and 2).

    S = [s1, s2, (s1 + s2) / 2, s1 - s2, s1 * s2]; logits = W2 (W1 S + b1) + b2
    """

    config_class = BiLstmConfig
    once_a_row = ("projection", "classifier")
    encode_pairs = staticmethod(encode_texts)

    def __init__(self, config: BiLstmConfig) -> None:
        super().__init__(config)
        self.num_labels = label_count(config)
        self.encoder = BiLstmModel(config)
        self.projection = nn.Linear(5 * 2 * config.hidden_size, config.projection_size)
        self.classifier = nn.Linear(config.projection_size, self.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor | None = None,
        **kwargs: object,
    ) -> MarkerOutput:
        """Score the markers of `input_ids [batch, 2, tokens]`: s1 and s2, padded on the right.

        Returns `logits [batch, markers]` and, with `labels [batch]`, the mean cross-entropy.
        """
        batch, two, tokens = input_ids.shape
        encoded = self.encoder(
            input_ids.reshape(batch * two, tokens), attention_mask.reshape(batch * two, tokens)
        )
        s1, s2 = encoded.pooler_output.reshape(batch, two, -1).unbind(1)
        logits = self.classifier(self.projection(pair_features(s1, s2)))
        loss = None if labels is None else cross_entropy(logits, labels)
        return MarkerOutput(loss=loss, logits=logits)


def pair_features(s1: Tensor, s2: Tensor) -> Tensor:
    """S of equation 2: `[batch, 5 * width]` from two `[batch, width]`."""
    return torch.cat([s1, s2, (s1 + s2) / 2, s1 - s2, s1 * s2], dim=1)


known_to_auto(BiLstmConfig, model=BiLstmModel, classifier=BiLstmForMarkers)
