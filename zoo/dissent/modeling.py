"""DisSent's classifiers of two sentences, and the encoders in them (sections 3.1, 3.2, A.5)."""

from __future__ import annotations

from typing import Any, Literal

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding_bag
from transformers import PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import SequenceClassifierOutput

from zoo.attention import padding_known
from zoo.backbones import BackboneConfig, OverBackbone, Pooling, pooled
from zoo.dissent.data import NgramVocabulary, encode_ngrams, encode_pairs, encode_texts
from zoo.modeling import ZooModel, known_to_auto, label_count
from zoo.modeling_discorpora import BackboneModel, BiLstmEncoder, SifEncoder, WordModel


class PairModel(ZooModel):
    """A classifier of two sentences; each subclass has its own `logits`."""

    main_input_name = "input_ids"

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.num_labels = label_count(config)

    def logits(self, input_ids: Tensor, attention_mask: Tensor, **kwargs: Any) -> Tensor:
        """Return the scores of the labels for each pair, `[batch, labels]`."""
        raise NotImplementedError

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """Return `logits [batch, labels]`, and with `labels [batch]` their mean cross-entropy.

        The ids are those that the model's `encode_pairs` returns. The argument `padded`, if given,
        says whether the batch has padding, so that a transformer need not ask the GPU.
        """
        logits = self.logits(input_ids, attention_mask, **kwargs)
        loss = None if labels is None else cross_entropy(logits.float(), labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


def pair_features(s1: Tensor, s2: Tensor) -> Tensor:
    """Return S of equation 2, `[batch, 5 * width]`, for two sentence vectors `[batch, width]`."""
    return torch.cat([s1, s2, (s1 + s2) / 2, s1 - s2, s1 * s2], dim=1)


def encode_features(
    encoder: nn.Module, input_ids: Tensor, attention_mask: Tensor, **more: Any
) -> Tensor:
    """Encode both sentences of `input_ids [batch, 2, tokens]`, and return their `pair_features`."""
    vectors = encoder(input_ids.flatten(0, 1), attention_mask.flatten(0, 1), **more).pooler_output
    return pair_features(*vectors.unflatten(0, (-1, 2)).unbind(1))


@strict
class BiLstmConfig(PretrainedConfig):
    """The sizes of the encoder and the classifier.

    `hidden_size` is that of one direction, `projection_size` that of the `linear_layers` of the
    classifier. `pooling` is over the tokens. Random word vectors have the standard
    deviation `embedding_std`; with `drop_unknown` words without a vector are left out.
    """

    model_type = "discorpora-dissent-bilstm"

    vocab_size: int = 30000
    embedding_size: int = 300
    hidden_size: int = 2048
    projection_size: int = 512
    pooling: Literal["max", "mean"] = "max"
    train_embeddings: bool = True
    embedding_std: float = 1.0
    drop_unknown: bool = False
    linear_layers: Literal[2, 3] = 2
    pad_token_id: int | None = 0


class BiLstmModel(ZooModel, BiLstmEncoder):
    """Encodes a sentence as a vector: word embeddings, BiLSTM, pooling over the real tokens."""

    config_class = BiLstmConfig


class BiLstmForMarkers(PairModel, WordModel):
    """Predicts the marker that joined two sentences (equations 1 and 2).

    S = [s1, s2, (s1 + s2) / 2, s1 - s2, s1 * s2]; logits = W2 (W1 S + b1) + b2. With three linear
    layers, the middle one has `projection_size`, as in the released code.
    """

    config_class = BiLstmConfig
    once_a_row = ("projection", "middle", "classifier")
    encode_pairs = staticmethod(encode_texts)

    def __init__(self, config: BiLstmConfig) -> None:
        super().__init__(config)
        self.encoder = BiLstmModel(config)
        size = config.projection_size
        self.projection = nn.Linear(5 * 2 * config.hidden_size, size)
        self.middle = nn.Linear(size, size) if config.linear_layers == 3 else nn.Identity()
        self.classifier = nn.Linear(size, self.num_labels)
        self.post_init()

    def logits(self, input_ids: Tensor, attention_mask: Tensor, **kwargs: Any) -> Tensor:
        packed = kwargs.get("packed")
        features = encode_features(self.encoder, input_ids, attention_mask, packed=packed)
        return self.classifier(self.middle(self.projection(features)))


@strict
class SifConfig(PretrainedConfig):
    """The sizes of the table of word vectors."""

    model_type = "discorpora-dissent-sif"

    vocab_size: int = 30000
    hidden_size: int = 300
    pad_token_id: int | None = 0


class SifModel(ZooModel, SifEncoder):
    """Encodes a sentence as the weighted mean of its word vectors minus the common component."""

    config_class = SifConfig


class SifForMarkers(PairModel):
    """Computes logits = W S + b, where S is equation 2 for the SIF vectors of two sentences."""

    config_class = SifConfig
    base_model_prefix = "encoder"
    _init_weights = SifEncoder._init_weights
    encode_pairs = staticmethod(encode_texts)

    def __init__(self, config: SifConfig) -> None:
        super().__init__(config)
        self.encoder = SifModel(config)
        self.classifier = nn.Linear(5 * config.hidden_size, self.num_labels)
        self.post_init()

    def logits(self, input_ids: Tensor, attention_mask: Tensor, **kwargs: Any) -> Tensor:
        return self.classifier(encode_features(self.encoder, input_ids, attention_mask))


@strict
class NgramConfig(PretrainedConfig):
    """The size of the classifier of n-grams.

    `features` is twice the number of n-grams; the id after the last feature is padding."""

    model_type = "discorpora-dissent-ngram"

    features: int = 2


class NgramForMarkers(PairModel):
    """Computes `logits = W x / |x| + b`, where x is 1 for each n-gram of the pair, else 0."""

    config_class = NgramConfig
    encode_pairs = staticmethod(encode_ngrams)
    read_tokenizer = staticmethod(NgramVocabulary.from_pretrained)

    def __init__(self, config: NgramConfig) -> None:
        super().__init__(config)
        self.weight = nn.Parameter(torch.zeros(config.features + 1, self.num_labels))
        self.bias = nn.Parameter(torch.zeros(self.num_labels))
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        for parameter in module.parameters(recurse=False):
            init.zeros_(parameter)

    def logits(self, input_ids: Tensor, attention_mask: Tensor, **kwargs: Any) -> Tensor:
        """Return the scores of the labels; `input_ids` are the ids of a pair's n-grams."""
        counts = attention_mask.sum(1, keepdim=True).clamp(min=1)
        shares = attention_mask.to(self.weight.dtype) / counts.sqrt()
        summed = embedding_bag(input_ids, self.weight, per_sample_weights=shares, mode="sum")
        return summed + self.bias


@strict
class PairTransformerConfig(BackboneConfig):
    """The backbone's configuration, the pooling of a pair's states, and the maximum of its
    tokens."""

    model_type = "discorpora-dissent-transformer"

    pooling: Pooling = "first"
    dropout: float = 0.1
    max_tokens: int = 128


class PairTransformerModel(ZooModel, BackboneModel):
    """The encoder without the classifier, which `AutoModel` loads from a fine-tuned model."""

    config_class = PairTransformerConfig


class PairTransformer(OverBackbone, PairModel):
    """Predicts the label of two sentences encoded together: `softmax(W dropout(h_first) + b)`.

    The label is a marker, or, after fine-tuning on other data, an NLI label or a sense.
    """

    config_class = PairTransformerConfig
    once_a_row = ("classifier",)
    encode_pairs = staticmethod(encode_pairs)

    def __init__(self, config: PairTransformerConfig) -> None:
        super().__init__(config)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(self.backbone.config.hidden_size, self.num_labels)
        self.post_init()

    def logits(self, input_ids: Tensor, attention_mask: Tensor, **kwargs: Any) -> Tensor:
        types = {k: v for k, v in kwargs.items() if k == "token_type_ids" and v is not None}
        with padding_known(kwargs.get("padded")):
            outputs = self.backbone(input_ids=input_ids, attention_mask=attention_mask, **types)
        vectors = pooled(outputs.last_hidden_state, attention_mask, self.config.pooling)
        return self.classifier(self.dropout(vectors))


known_to_auto(BiLstmConfig, model=BiLstmModel, classifier=BiLstmForMarkers)
known_to_auto(SifConfig, model=SifModel, classifier=SifForMarkers)
known_to_auto(NgramConfig, classifier=NgramForMarkers)
known_to_auto(PairTransformerConfig, model=PairTransformerModel, classifier=PairTransformer)
