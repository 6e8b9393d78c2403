"""Word embeddings and a bidirectional recurrence: the encoder of DisSent and of the criteria."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutputWithPooling

from zoo.modeling import ZooModel
from zoo.recurrent import run_in_groups, run_packed

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU}


class WordModel(ZooModel):
    """What models with such an encoder share: its name in them, and how weights are drawn."""

    base_model_prefix = "encoder"
    main_input_name = "input_ids"

    def _init_weights(self, module: nn.Module) -> None:
        """torch's own initialisation, as in DisSent's released code; embeddings from a normal."""
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight, 0.0, self.config.embedding_std)
            if not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.LSTM | nn.GRU | nn.Linear):
            fan = module.in_features if isinstance(module, nn.Linear) else module.hidden_size
            for parameter in module.parameters(recurse=False):
                init.uniform_(parameter, -1 / math.sqrt(fan), 1 / math.sqrt(fan))


class WordEncoder(WordModel):
    """One sentence to one vector: word embeddings, recurrence, pooling over the real tokens.

    Its configuration has `vocab_size`, `embedding_size`, `hidden_size` (of one direction),
    `pooling` ("max" or "mean"), `train_embeddings` and `embedding_std`.
    """

    cell: ClassVar[Literal["lstm", "gru"]]
    _input_embed_layer = "embeddings"

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        config = self.config
        self.embeddings = nn.Embedding(
            config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id
        )
        self.embeddings.weight.requires_grad_(config.train_embeddings)
        sizes = config.embedding_size, config.hidden_size
        layer = CELLS[self.cell](*sizes, batch_first=True, bidirectional=True)
        setattr(self, self.cell, layer)
        self.post_init()

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
        states = run(getattr(self, self.cell), self.embeddings(input_ids), lengths)
        return BaseModelOutputWithPooling(states, self._pool(states, attention_mask, lengths))

    def _pool(self, states: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        if self.config.pooling == "mean":
            return states.sum(1) / lengths.unsqueeze(1)
        return states.masked_fill(mask.unsqueeze(2) == 0, float("-inf")).amax(1)
