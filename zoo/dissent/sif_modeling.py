"""SIF sentence vectors (Arora, Liang and Ma 2017) and a linear classifier of pairs (A.5)."""

from __future__ import annotations

from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutputWithPooling

from zoo.dissent.data import encode_texts
from zoo.dissent.modeling import MarkerOutput, pair_features
from zoo.modeling import ZooModel, known_to_auto, label_count


@strict
class SifConfig(PretrainedConfig):
    """Sizes of the table of word vectors."""

    model_type = "discorpora-dissent-sif"

    vocab_size: int = 30000
    hidden_size: int = 300
    pad_token_id: int | None = 0


class _SifPreTrained(ZooModel):
    config_class = SifConfig
    base_model_prefix = "encoder"
    main_input_name = "input_ids"

    def _init_weights(self, module: nn.Module) -> None:
        for parameter in module.parameters(recurse=False):
            init.zeros_(parameter)


class SifModel(_SifPreTrained):
    """v(s) = sum_w a / (a + p(w)) v(w) / |s|, less its part along the first component u.

    `word_weight [vocabulary]` holds a / (a + p(w)), and 0 for padding and for words without a
    vector, which do not count in |s| either.
    """

    _input_embed_layer = "embeddings"
    _keys_to_ignore_on_load_unexpected = [r"^classifier\."]

    def __init__(self, config: SifConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.word_weight = nn.Parameter(self.embeddings.weight.new_zeros(config.vocab_size))
        self.component = nn.Parameter(self.embeddings.weight.new_zeros(config.hidden_size))
        self.requires_grad_(False)
        self.post_init()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: object
    ) -> BaseModelOutputWithPooling:
        """Encode `input_ids [batch, tokens]`.

        Returns the word vectors `last_hidden_state [batch, tokens, size]` and the sentences'
        `pooler_output [batch, size]`.
        """
        vectors = self.embeddings(input_ids)
        weights = self.word_weight[input_ids]
        if attention_mask is not None:
            weights = weights * attention_mask
        counts = (weights > 0).sum(1, keepdim=True).clamp(min=1)
        summed = (vectors * weights.unsqueeze(2)).sum(1) / counts
        common = (summed @ self.component).unsqueeze(1) * self.component
        return BaseModelOutputWithPooling(vectors, summed - common)


class SifForMarkers(_SifPreTrained):
    """logits = W S + b, with S = [s1, s2, (s1 + s2) / 2, s1 - s2, s1 * s2] of the SIF vectors."""

    encode_pairs = staticmethod(encode_texts)

    def __init__(self, config: SifConfig) -> None:
        super().__init__(config)
        self.num_labels = label_count(config)
        self.encoder = SifModel(config)
        self.classifier = nn.Linear(5 * config.hidden_size, self.num_labels)
        self.post_init()

    def features(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """S `[batch, 5 * size]` of `input_ids [batch, 2, tokens]`."""
        batch, two, tokens = input_ids.shape
        encoded = self.encoder(
            input_ids.reshape(batch * two, tokens), attention_mask.reshape(batch * two, tokens)
        )
        s1, s2 = encoded.pooler_output.reshape(batch, two, -1).unbind(1)
        return pair_features(s1, s2)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor | None = None,
        **kwargs: object,
    ) -> MarkerOutput:
        """Score the markers of `input_ids [batch, 2, tokens]`: `logits [batch, markers]`."""
        logits = self.classifier(self.features(input_ids, attention_mask))
        loss = None if labels is None else cross_entropy(logits, labels)
        return MarkerOutput(loss=loss, logits=logits)


known_to_auto(SifConfig, model=SifModel, classifier=SifForMarkers)
