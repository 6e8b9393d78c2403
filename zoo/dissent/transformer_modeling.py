"""A fine-tuned encoder that reads both sentences at once (section 3.2)."""

from __future__ import annotations

from typing import Any

from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.configuration_utils import SubConfigSpec

from zoo.backbones import Pooling, max_positions, pooled
from zoo.dissent.modeling import MarkerOutput
from zoo.dissent.pairs import encode_pairs
from zoo.modeling import ZooModel, known_to_auto, label_count
from zoo.trials import warn_of_padding


@strict
class PairTransformerConfig(PretrainedConfig):
    """The backbone's configuration, where the pair's vector stands, and the longest pair."""

    model_type = "discorpora-dissent-transformer"
    sub_configs_defaults = {
        "backbone_config": SubConfigSpec(config_class=AutoConfig, model_type="bert")
    }

    backbone_config: PretrainedConfig | dict[str, Any] | None = None
    pooling: Pooling = "first"
    dropout: float = 0.1
    max_tokens: int = 128
    pad_token_id: int | None = 0


class _PairPreTrained(ZooModel):
    config_class = PairTransformerConfig
    base_model_prefix = ""
    main_input_name = "input_ids"

    def _init_weights(self, module: nn.Module) -> None:
        if module is getattr(self, "classifier", None):
            init.normal_(module.weight, std=0.02)
            init.zeros_(module.bias)


class PairTransformerModel(_PairPreTrained):
    """The encoder alone: what `AutoModel` loads from the folder of a fine-tuned model."""

    _keys_to_ignore_on_load_unexpected = [r"^classifier\."]

    def __init__(self, config: PairTransformerConfig) -> None:
        super().__init__(config)
        self.backbone = AutoModel.from_config(config.backbone_config)
        self.post_init()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the backbone's own `forward`."""
        return self.backbone(*args, **kwargs)


class PairTransformer(_PairPreTrained):
    """Two sentences to a label: `softmax(W dropout(h_first) + b)`.

    The label is a marker, or, after fine-tuning on other data, an NLI label or a sense.
    """

    once_a_row = ("classifier",)
    encode_pairs = staticmethod(encode_pairs)

    def __init__(self, config: PairTransformerConfig) -> None:
        super().__init__(config)
        self.num_labels = label_count(config)
        self.backbone: PreTrainedModel = AutoModel.from_config(config.backbone_config)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(self.backbone.config.hidden_size, self.num_labels)
        self.post_init()

    @classmethod
    def from_backbone(
        cls, backbone: PreTrainedModel, max_tokens: int, **config: Any
    ) -> PairTransformer:
        """A classifier with a new last layer around `backbone`.

        `max_tokens` is lowered to what the backbone takes. Warns of one that does not hide padding.
        """
        warn_of_padding(backbone)
        limit = max_positions(backbone.config)
        model = cls(
            PairTransformerConfig(
                backbone_config=backbone.config,
                max_tokens=min(max_tokens, limit) if limit else max_tokens,
                **config,
            )
        )
        model.backbone = backbone
        return model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> MarkerOutput:
        """Score the labels of `input_ids [batch, tokens]`: both sentences, padded on the right.

        `token_type_ids` go to the backbone where its tokenizer makes them. Returns
        `logits [batch, labels]` and, with `labels [batch]`, the mean cross-entropy.
        """
        types = {k: v for k, v in kwargs.items() if k == "token_type_ids" and v is not None}
        found = self.backbone(input_ids=input_ids, attention_mask=attention_mask, **types)
        vectors = pooled(found.last_hidden_state, attention_mask, self.config.pooling)
        logits = self.classifier(self.dropout(vectors))
        loss = None if labels is None else cross_entropy(logits.float(), labels)
        return MarkerOutput(loss=loss, logits=logits)


known_to_auto(PairTransformerConfig, model=PairTransformerModel, classifier=PairTransformer)
