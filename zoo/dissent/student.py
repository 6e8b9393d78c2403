"""A small predictor of markers: a small network on the lowest layers of a frozen encoder.

Its features are what a sentence is about (the mean of its word pieces), and how it begins and ends:
there pronouns, tenses and adverbs tell most about the relation. `zoo.dissent.ship` trains it.
"""

from __future__ import annotations

from typing import Any

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn

from zoo.backbones import BackboneConfig, OverBackbone
from zoo.dissent.data import encode_texts
from zoo.dissent.modeling import PairModel
from zoo.modeling import known_to_auto


@strict
class StudentConfig(BackboneConfig):
    """The encoder's configuration, the word pieces read at each end, and the hidden units."""

    model_type = "discorpora-dissent-student"

    first_words: int = 4
    last_words: int = 3
    projection_size: int = 96


class StudentForMarkers(OverBackbone, PairModel):
    """Predicts the marker between two sentences, by the vectors of their word pieces.

        logits = W2 gelu(W1 (x - a) / s + b1) + b2, with x = [m1, m2, m1 - m2, m1 * m2, e1, e2]

    `m` is the mean of a sentence's word pieces, `e` its first and last ones (0 where it is short),
    `a` and `s` are means and standard deviations over the training pairs.
    """

    config_class = StudentConfig
    mean: Tensor
    spread: Tensor
    encode_pairs = staticmethod(encode_texts)

    def __init__(self, config: StudentConfig) -> None:
        super().__init__(config)
        ends = config.first_words + config.last_words
        width = (4 + 2 * ends) * self.backbone.config.hidden_size
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.projection = nn.Linear(width, config.projection_size)
        self.classifier = nn.Linear(config.projection_size, self.num_labels)
        self.post_init()

    def features(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the features x, `[batch, width]`, of `input_ids [batch, 2, tokens]`."""
        ids, mask = input_ids.flatten(0, 1), attention_mask.flatten(0, 1)
        states = self.backbone(input_ids=ids, attention_mask=mask).last_hidden_state
        words = states[:, 1:]  # without [CLS]; [SEP] and padding are left out below
        count = (mask.sum(1) - 2).clamp(min=1)[:, None]
        place = torch.arange(words.size(1), device=ids.device)
        mean = (words * (place < count)[..., None]).sum(1) / count
        # The places of the first and the last word pieces; those that a sentence lacks are 0.
        first = torch.arange(self.config.first_words, device=ids.device).expand(len(ids), -1)
        last = count - 1 - torch.arange(self.config.last_words, device=ids.device)
        places = torch.cat([first, last], dim=1)
        inside = (places >= 0) & (places < count)
        places = places.clamp(0, words.size(1) - 1)[..., None].expand(-1, -1, words.size(2))
        ends = (words.gather(1, places) * inside[..., None]).flatten(1)
        (m1, m2), (e1, e2) = (part.unflatten(0, (-1, 2)).unbind(1) for part in (mean, ends))
        return torch.cat([m1, m2, m1 - m2, m1 * m2, e1, e2], dim=1)

    def logits(self, input_ids: Tensor, attention_mask: Tensor, **kwargs: Any) -> Tensor:
        features = (self.features(input_ids, attention_mask) - self.mean) / self.spread
        return self.classifier(nn.functional.gelu(self.projection(features)))


known_to_auto(StudentConfig, classifier=StudentForMarkers)
