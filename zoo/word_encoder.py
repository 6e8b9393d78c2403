"""Word embeddings and a bidirectional recurrence: the encoder of DisSent and of the criteria.

The recurrence runs over texts of different lengths, and spends no step on padding, in one of two
ways that give the same states up to rounding. On a GPU cuDNN runs packed sequences at full
speed. On a CPU torch steps through a packed sequence one small product after the other, while
oneDNN takes a whole padded batch at once, 1.5 to 2 times as fast; so the texts go in groups of
like length, and each direction by itself, since the backward one must not begin in the padding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutputWithPooling

from zoo.modeling import ZooModel

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU}
Layer = nn.LSTM | nn.GRU
GROUP = 32
"""Texts that run together on a CPU."""


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
        sentence vector `pooler_output [batch, 2 * hidden]`. A row needs at least one token. With
        `drop_unknown` words whose vector is zero are left out: states are those of the others.
        """
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        words, real = self.embeddings(input_ids), attention_mask > 0
        if getattr(self.config, "drop_unknown", False):
            real &= (words != 0).any(2)
            # What is left of a text moves to its left.
            order = real.int().argsort(dim=1, descending=True, stable=True)
            words = words.gather(1, order.unsqueeze(2).expand_as(words))
            real = real.gather(1, order)
        lengths = real.sum(1)
        run = run_packed if input_ids.is_cuda else run_in_groups
        states = run(getattr(self, self.cell), words, lengths)
        if self.config.pooling == "mean":
            vectors = states.sum(1) / lengths.unsqueeze(1)
        else:
            vectors = states.masked_fill(~real.unsqueeze(2), float("-inf")).amax(1)
        return BaseModelOutputWithPooling(states, vectors)


def run_packed(layer: Layer, vectors: Tensor, lengths: Tensor) -> Tensor:
    """The states `[batch, tokens, 2 * hidden]` of `vectors [batch, tokens, size]`.

    Text `i` is the first `lengths[i]` vectors, one at least. States at padding are zeros.
    In float32: by torch's source (AutocastRNN.cpp) autocast takes float16 for cuDNN's layers,
    whatever it was told, where small gradients vanish without scaling.
    """
    with torch.autocast(vectors.device.type, enabled=False):
        packed = pack_padded_sequence(
            vectors.float(), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, width = layer(packed)[0], vectors.size(1)
    return pad_packed_sequence(states, batch_first=True, total_length=width)[0]


def run_in_groups(layer: Layer, vectors: Tensor, lengths: Tensor) -> Tensor:
    """As `run_packed`, a group of texts of like length at a time."""
    order = lengths.argsort(descending=True, stable=True)
    groups = []
    for rows in order.split(GROUP):
        width = int(lengths[rows[0]])
        states = _run_group(layer, vectors[rows, :width], lengths[rows])
        groups.append(pad(states, (0, 0, 0, vectors.size(1) - width)))
    return torch.cat(groups)[order.argsort()]


def _run_group(layer: Layer, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Both directions over padded texts; the backward one reads each text from its own end."""
    steps = torch.arange(vectors.size(1), device=vectors.device)
    real = steps < lengths.unsqueeze(1)
    mirrored = torch.where(real, lengths.unsqueeze(1) - 1 - steps, steps).unsqueeze(2)
    weights = layer.all_weights
    forward = _one_direction(layer, vectors, weights[0])
    backwards = _one_direction(layer, vectors.gather(1, mirrored.expand_as(vectors)), weights[1])
    backward = backwards.gather(1, mirrored.expand_as(backwards))
    return torch.cat([forward, backward], dim=2) * real.unsqueeze(2)


def _one_direction(layer: Layer, vectors: Tensor, weights: Sequence[Tensor]) -> Tensor:
    start = vectors.new_zeros(1, len(vectors), layer.hidden_size)
    more = (list(weights), True, 1, 0.0, layer.training, False, True)
    # What the layer's own `forward` calls, with the weights of one direction.
    if isinstance(layer, nn.GRU):
        return torch._VF.gru(vectors, start, *more)[0]
    return torch._VF.lstm(vectors, (start, start), *more)[0]
