"""Running a bidirectional LSTM or GRU over texts of different lengths, no step spent on padding.

The two ways give the same states up to rounding. On a GPU cuDNN runs packed sequences at full
speed. On a CPU torch steps through a packed sequence one small product after the other, while
oneDNN takes a whole padded batch at once, 1.5 to 2 times as fast; so the texts go in groups of
like length, and each direction by itself, since the backward one must not begin in the padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Layer = nn.LSTM | nn.GRU

GROUP = 32
"""Texts that run together on a CPU."""


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
    found = []
    for rows in order.split(GROUP):
        width = int(lengths[rows[0]])
        states = _run_group(layer, vectors[rows, :width], lengths[rows])
        found.append(pad(states, (0, 0, 0, vectors.size(1) - width)))
    return torch.cat(found)[order.argsort()]


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
