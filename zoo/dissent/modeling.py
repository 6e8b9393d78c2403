"""The DisSent sentence encoder and its marker classifier (section 3.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.utils import ModelOutput

from zoo.modeling import ZooModel
from zoo.recurrent import run_in_groups, run_packed


@strict
class BiLstmConfig(PretrainedConfig):
    """Sizes of the encoder and classifier. `hidden_size` is one direction's (2,048: 4,096)."""

    model_type = "discoforge-dissent-bilstm"

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


class _BiLstmPreTrained(ZooModel):
    config_class = BiLstmConfig
    base_model_prefix = "encoder"
    main_input_name = "input_ids"

    def _init_weights(self, module: nn.Module) -> None:
        """torch's own initialisation, as in the released code; embeddings from a normal."""
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight, 0.0, self.config.embedding_std)
            if not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.LSTM | nn.Linear):
            fan = module.hidden_size if isinstance(module, nn.LSTM) else module.in_features
            for parameter in module.parameters(recurse=False):
                init.uniform_(parameter, -1 / math.sqrt(fan), 1 / math.sqrt(fan))


class BiLstmModel(_BiLstmPreTrained):
    """One sentence to one vector: word embeddings, BiLSTM, pooling over the real tokens."""

    def __init__(self, config: BiLstmConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(
            config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id
        )
        self.embeddings.weight.requires_grad_(config.train_embeddings)
        self.lstm = nn.LSTM(
            config.embedding_size, config.hidden_size, batch_first=True, bidirectional=True
        )
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.embeddings = value

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: object
    ) -> BaseModelOutputWithPooling:
        """Encode `input_ids [batch, tokens]`, padded on the right.

        Returns `last_hidden_state [batch, tokens, 2 * hidden]` (zeros at padding) and the
        sentence vector `pooler_output [batch, 2 * hidden]`. A row needs at least one token.
        """
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        lengths = attention_mask.sum(1)
        run = run_packed if input_ids.is_cuda else run_in_groups
        states = run(self.lstm, self.embeddings(input_ids), lengths)
        return BaseModelOutputWithPooling(states, self._pool(states, attention_mask, lengths))

    def _pool(self, states: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        if self.config.pooling == "mean":
            return states.sum(1) / lengths.unsqueeze(1)
        return states.masked_fill(mask.unsqueeze(2) == 0, float("-inf")).amax(1)


class BiLstmForMarkers(_BiLstmPreTrained):
    """Two sentences to the marker that joined them (equations 1 and 2).

    S = [s1, s2, (s1 + s2) / 2, s1 - s2, s1 * s2]; logits = W2 (W1 S + b1) + b2
    """

    once_a_row = ("projection", "classifier")

    def __init__(self, config: BiLstmConfig) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.encoder = BiLstmModel(config)
        self.projection = nn.Linear(5 * 2 * config.hidden_size, config.projection_size)
        self.classifier = nn.Linear(config.projection_size, config.num_labels)
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
