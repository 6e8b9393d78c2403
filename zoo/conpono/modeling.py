"""The CONPONO model: one encoder, W_k, a masked-word head (section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.configuration_utils import SubConfigSpec
from transformers.utils.generic import ModelOutput

from corpora.errors import ConfigError
from zoo.backbones import is_decoder
from zoo.conpono.backbones import mask_of, takes_types, takes_vectors
from zoo.conpono.heads import MaskedWords, Ordering, Relations, contrast
from zoo.modeling import ZooModel, known_to_auto
from zoo.training.throughput import operations
from zoo.trials import warn_of_padding

STANDARD_DEVIATION = 0.02
ONCE_A_ROW = ("relations", "ordering", "masked_words", "backbone.pooler")
WORDS_AT_ONCE = 2048
"""Masked words that the head takes in one go, or as many as one block has more."""


@strict
class ConponoConfig(PretrainedConfig):
    """The backbone's configuration, and what the model was trained for.

    `objective` "bso" is the ordering baseline, which has no W_k.
    """

    model_type = "discorpora-conpono"
    sub_configs_defaults = {
        "backbone_config": SubConfigSpec(config_class=AutoConfig, model_type="bert")
    }

    backbone_config: PretrainedConfig | dict[str, Any] | None = None
    objective: Literal["conpono", "bso"] = "conpono"
    encoder: Literal["full", "isolated", "uni"] = "full"
    k: int = 2
    anchor_sentences: int = 4
    target_sentences: int = 3
    max_tokens: int = 512
    mlm: bool = True
    vector: Literal["cls", "mean"] = "cls"
    pad_token_id: int | None = 0


@dataclass
class ConponoOutput(ModelOutput):
    """`loss` is the sum of its parts `objective_loss` and `mlm_loss`.

    `scores [batch, 2K, candidates]`, or `[batch, pairs]` for the ordering baseline.
    """

    loss: Tensor | None = None
    objective_loss: Tensor | None = None
    mlm_loss: Tensor | None = None
    scores: Tensor | None = None


class ConponoModel(ZooModel):
    """Tells the text at distance k from an anchor among candidates.

    `backbone` is the encoder that evaluations take; `recompute` makes training forget a block's
    activations and compute them again in the backward pass (GradCache's exchange of time for
    memory: the gradients are those of the whole batch).
    """

    config_class = ConponoConfig
    base_model_prefix = "backbone"
    main_input_name = "order"

    def __init__(self, config: ConponoConfig) -> None:
        super().__init__(config)
        self.backbone: PreTrainedModel = AutoModel.from_config(config.backbone_config)
        width = self.backbone.config.hidden_size
        if config.objective == "bso":
            self.ordering = Ordering(width)
        else:
            self.relations = Relations(2 * config.k, width, uni=config.encoder == "uni")
        if config.mlm:
            embeddings = self.backbone.get_input_embeddings().weight
            self.masked_words = MaskedWords(self.backbone.config, embeddings.size(1))
        self.recompute = False
        self.post_init()

    @classmethod
    def from_backbone(cls, backbone: PreTrainedModel, **settings: Any) -> ConponoModel:
        """A model around `backbone` with new heads; `settings` are fields of the configuration.

        Raises `ConfigError` for a decoder whose [CLS] is wanted: it has seen nothing but itself.
        Warns of a backbone that does not hide padding.
        """
        if settings.get("vector", "cls") == "cls" and is_decoder(backbone.config):
            raise ConfigError(
                f"the first token of {backbone.config.model_type} has not seen the text",
                where="vector",
                hint='set vector = "mean", or take a backbone that reads in both directions',
            )
        warn_of_padding(backbone)
        model = cls(ConponoConfig(backbone_config=backbone.config, **settings))
        model.backbone = backbone
        return model

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, Relations):
            init.normal_(module.weight, std=STANDARD_DEVIATION)
        elif isinstance(module, Ordering):
            init.normal_(module.linear.weight, std=STANDARD_DEVIATION)
            init.zeros_(module.linear.bias)
        elif isinstance(module, MaskedWords):
            init.normal_(module.dense.weight, std=STANDARD_DEVIATION)
            for bias in (module.dense.bias, module.norm.bias, module.bias):
                init.zeros_(bias)
            init.ones_(module.norm.weight)

    def forward(
        self,
        blocks: Sequence[Mapping[str, Any]],
        order: Tensor,
        labels: Tensor,
        **kwargs: object,
    ) -> ConponoOutput:
        """Encode the blocks that `Collator` makes; `order [batch * sequences]`.

        `labels [batch, 2K]` for CONPONO, `[batch, pairs]` for the ordering baseline.
        """
        if self.recompute and self.training and torch.is_grad_enabled():
            encoded = [checkpoint(self._encode_alone, b, use_reentrant=False) for b in blocks]
        else:
            encoded = list(self._encode_together(blocks))
        vectors = torch.cat([found for found, _ in encoded])[order]
        vectors = vectors.view(len(labels), -1, vectors.size(-1))
        mlm_loss = vectors.new_zeros((), dtype=torch.float32)
        masked = sum(block["mlm_labels"].numel() for block in blocks)
        if self.config.mlm and masked:
            mlm_loss = torch.stack([loss for _, loss in encoded]).sum() / masked
        with torch.autocast(vectors.device.type, enabled=False):
            if self.config.objective == "bso":
                scores = self.ordering(vectors)
                objective_loss = binary_cross_entropy_with_logits(scores, labels.float())
            else:
                scores = self.relations(vectors)
                objective_loss = contrast(scores, labels)
        return ConponoOutput(objective_loss + mlm_loss, objective_loss, mlm_loss, scores)

    def floating_point_ops(self, inputs: Mapping[str, Any], *args: Any, **kwargs: Any) -> int:
        """What the Trainer counts: `zoo.training.throughput.operations` of real tokens."""
        return operations(self, len(inputs["labels"]), int(inputs["real_tokens"]))

    @property
    def once_a_row(self) -> tuple[str, ...]:
        """Modules that few tokens meet, or none: their operations are counted once an example."""
        there = dict(self.named_modules())
        return tuple(name for name in ONCE_A_ROW if name in there)

    def _encode_alone(self, block: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """The vectors `[sequences, width]` of a block, and its summed masked-word loss."""
        vectors, states = self.encode(block)
        return vectors, self._masked_loss(states, block["mlm_labels"])

    def _encode_together(
        self, blocks: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The same of all blocks, with one look-up of words for them and few runs of the head.

        The gradient of a look-up is a matrix as large as the vocabulary: a block's share of it
        would cost as much as that of the whole batch. Masked words are gathered likewise.
        """
        words: Sequence[Tensor | None] = [None] * len(blocks)
        if takes_vectors(self.backbone):
            sizes = [block["input_ids"].numel() for block in blocks]
            flat = torch.cat([block["input_ids"].flatten() for block in blocks])
            words = self.backbone.get_input_embeddings()(flat).split(sizes)
        held: list[tuple[Tensor, Tensor]] = []
        for number, (block, vectors) in enumerate(zip(blocks, words, strict=True), 1):
            pooled, states = self.encode(block, vectors)
            held.append((states, block["mlm_labels"]))
            loss = states.new_zeros((), dtype=torch.float32)
            if number == len(blocks) or sum(len(each) for _, each in held) >= WORDS_AT_ONCE:
                gathered, labels = (torch.cat(parts) for parts in zip(*held, strict=True))
                loss = self._masked_loss(gathered, labels)
                held.clear()
            yield pooled, loss

    def encode(
        self, block: Mapping[str, Any], words: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The vectors `[sequences, width]` of a block, and the states `[masked, width]`.

        `input_ids`, `token_type_ids` `[rows, tokens]`; `position_ids` where rows are packed;
        `segments`, the number of the sequence that holds each token, or None where there is no
        padding; `starts [sequences]` and `masked`, places in the flattened rows.
        `words [rows * tokens, width]`: the vectors of `input_ids`, if they were looked up before.
        """
        ids, packed = block["input_ids"], block["position_ids"] is not None
        more: dict[str, Tensor] = {}
        if words is None:
            more["input_ids"] = ids
        else:
            more["inputs_embeds"] = words.view(*ids.shape, -1)
        if packed:
            more["position_ids"] = block["position_ids"]
        if takes_types(self.backbone):
            more["token_type_ids"] = block["token_type_ids"]
        if block["segments"] is not None:
            more["attention_mask"] = mask_of(self.backbone, block["segments"], packed)
        found = self.backbone(**more).last_hidden_state
        states = found.flatten(0, 1)
        if self.config.vector == "mean":
            vectors = means(found, block["segments"], block["starts"])
        else:
            vectors = self.pool(states[block["starts"]])
        return vectors, states[block["masked"]]

    def _masked_loss(self, states: Tensor, labels: Tensor) -> Tensor:
        """The summed loss of the hidden words, from `states [masked, width]`."""
        if not self.config.mlm or not labels.numel():
            return states.new_zeros((), dtype=torch.float32)
        words = self.backbone.get_input_embeddings().weight
        return self.masked_words(states, words, labels)

    def pool(self, states: Tensor) -> Tensor:
        """The vectors of `states [sequences, width]` at [CLS]: through the backbone's pooler,

        where it has one (the paper's "pooled representation"), else as they are.
        """
        pooler = getattr(self.backbone, "pooler", None)
        if pooler is None:
            return states
        if isinstance(pooler, nn.Linear):  # ALBERT's and BigBird's, with the activation beside it
            names = ("pooler_activation", "activation")
            found = (getattr(self.backbone, name, None) for name in names)
            activation = next(function for function in found if function is not None)
            return activation(pooler(states))
        return pooler(states[:, None])


def means(states: Tensor, segments: Tensor | None, starts: Tensor) -> Tensor:
    """The mean of each sequence's tokens, `[sequences, width]`, row by row.

    `states [rows, tokens, width]`; `segments` and `starts` as `ConponoModel.encode` has them.
    Nothing is read back from the device.
    """
    if segments is None:
        return states.mean(1)
    real = (segments > 0).flatten().to(states.dtype)
    places = torch.arange(len(real), device=states.device)
    owner = torch.bucketize(places, starts, right=True) - 1  # padding goes to the one before it
    sums = states.new_zeros(len(starts), states.size(2))
    sums = sums.index_add(0, owner, states.flatten(0, 1) * real.unsqueeze(1))
    return sums / real.new_zeros(len(starts)).index_add(0, owner, real).unsqueeze(1)


known_to_auto(ConponoConfig, model=ConponoModel)
