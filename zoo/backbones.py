"""The encoder of transformers that a recipe trains: its tokenizer, weights, attention, LoRA, the
position of its vector, its longest input, and its padding."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self

import torch
from huggingface_hub.dataclasses import strict
from tokenizers.processors import Sequence, TemplateProcessing
from torch import nn
from transformers import (
    CONFIG_MAPPING,
    AttentionInterface,
    AutoConfig,
    AutoModel,
    AutoModelForTextEncoding,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES as MASKED

import zoo
from corpora.errors import ConfigError, DiscorporaError, nearest, require
from zoo.attention import FAMILIES
from zoo.declared import BackboneRecipe
from zoo.loading import load_config, load_tokenizer, opening
from zoo.modeling import ZooModel, check_whole, uses_bf16
from zoo.modeling_discorpora import Pooling as Pooling
from zoo.modeling_discorpora import pooled as pooled
from zoo.vocabularies import train_subwords

log = logging.getLogger("zoo")

DROPOUTS = {
    "attention_dropout": ("attention_probs_dropout_prob", "attention_dropout"),
    "hidden_dropout": ("hidden_dropout_prob", "hidden_dropout", "dropout"),
}
"""Our settings, with their names in configurations; XLNet has one dropout for everything."""

LAST_TOKEN = frozenset({"xlnet", "t5", "mt5", "umt5"})
"""Encoders with a special token at the end of texts, not at the start: XLNet's [CLS], T5's `</s>`.
"""

AFTER_PADDING = frozenset(
    {"camembert", "data2vec-text", "esm", "ibert", "layoutlmv3", "lilt", "longformer", "luke"}
    | {"markuplm", "xmod"}
)
"""Backbones that, as RoBERTa, number positions from pad_token_id + 1, so that fewer are usable."""

HIDE_PADDING = FAMILIES | {"albert", "big_bird", "deberta", "deberta-v2"}
HIDE_PADDING |= {"modernbert", "mpnet", "xlnet"}
"""Backbones (`model_type`) known to hide padding, which need no test."""
TOLERANCE = 1e-4
"""Tolerance relative to the largest state; rounding in float32 is a hundredth of it."""
TEXT_TOKENS, PADDED_TOKENS = 6, 16
"""Tokens of the text that `padding_shows` encodes, without padding and with it."""


def tokenizer_of(backbone: str, pad_token: str = "") -> PreTrainedTokenizerBase:
    """Return the tokenizer of a pretrained backbone, with `pad_token` for padding if it is set.

    Raises `ConfigError` if `pad_token` is not in its vocabulary, if there is no padding token at
    all, and for a tokenizer written in Python (CANINE, ByT5).
    """
    zoo.register(backbone)
    tokenizer = load_tokenizer(backbone)
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise ConfigError(
            f"this backbone's tokenizer, {type(tokenizer).__name__}, is not supported",
            where=backbone,
            hint="name a backbone with a tokenizer.json",
        )
    if pad_token and pad_token in tokenizer.get_vocab():
        tokenizer.pad_token = pad_token
    elif pad_token or tokenizer.pad_token_id is None:
        example = tokenizer.eos_token or "TOKEN"
        raise ConfigError(
            f"pad_token {pad_token!r} is not in the vocabulary"
            if pad_token
            else "this backbone's tokenizer has no pad token",
            where=backbone,
            hint=f'name a token of its vocabulary: --pad_token "{example}"',
        )
    _separate_pairs(tokenizer)
    return tokenizer


def _separate_pairs(tokenizer: PreTrainedTokenizerBase) -> None:
    """Put the end token between two texts if a tokenizer adds no special token itself (GPT-2)."""
    backend, end = getattr(tokenizer, "backend_tokenizer", None), tokenizer.eos_token
    if backend is None or end is None or tokenizer.num_special_tokens_to_add(pair=True):
        return
    separator = TemplateProcessing("$A", f"$A {end} $B", [(end, tokenizer.eos_token_id)])
    earlier = backend.post_processor
    backend.post_processor = separator if earlier is None else Sequence([earlier, separator])


def tokenizer_for(
    recipe: BackboneRecipe, texts: Iterable[str], limit: int
) -> PreTrainedTokenizerBase:
    """Return the tokenizer of the recipe's backbone, or one trained on `texts` if it names none.
    `limit` is the maximum length, in tokens, that a trained tokenizer is given."""
    if recipe.backbone:
        return tokenizer_of(recipe.backbone, recipe.pad_token)
    return train_subwords(texts, recipe.vocab_size, lower=recipe.lower, max_length=limit)


def backbone_of(recipe: BackboneRecipe, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """Return the encoder of a recipe: its pretrained `backbone`, or one with random weights. Random
    weights fit the tokenizer's vocabulary. LoRA and recomputation are added if they are set."""
    table = dict(recipe.backbone_config)
    if table:
        table |= {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    dropouts = (recipe.attention_dropout, recipe.hidden_dropout)
    backbone = load_backbone(recipe.backbone, table, *dropouts)
    if recipe.recompute:
        try:
            backbone.activation_checkpointing_enable({"use_reentrant": False})
        except ValueError as error:
            raise ConfigError(
                f"{backbone.config.model_type} cannot recompute its layers",
                where="recompute = true",
                hint="increase gradient_accumulation instead",
                field="recompute",
            ) from error
    if recipe.lora_rank:
        add_lora(backbone, recipe)
    return backbone


def load_backbone(
    name: str,
    table: Mapping[str, Any],
    attention_dropout: float = -1.0,
    hidden_dropout: float = -1.0,
    dtype: torch.dtype = torch.float32,
) -> PreTrainedModel:
    """Return an encoder: pretrained, by its Hub id or folder `name`, or with random weights.

    For random weights, `table` is the encoder's configuration with a `model_type`. A model of this
    zoo gives its backbone, so that training can continue from it; a model with a decoder (T5), its
    encoder.
    Pretrained weights are loaded as `dtype`. `attention_dropout` and `hidden_dropout` replace the
    backbone's unless they are negative. Raises `ConfigError` for wrong values in `table`, a model
    without an encoder, one that does not read texts, or whose weights have other names, and
    `InputError` for damaged weights.
    """
    rates = {"attention_dropout": attention_dropout, "hidden_dropout": hidden_dropout}
    if bool(name) == bool(table):
        raise ConfigError(
            "give backbone or [settings.backbone_config], not both"
            if name
            else "there is no backbone",
            where="recipe",
            hint="give --backbone FOLDER_OR_ID, or a table [settings.backbone_config], which the "
            "recipes *_tiny have",
            field="backbone",
        )
    # A new encoder with random weights
    if not name:
        try:
            config = set_dropout(config_from(table), rates)
            return auto_class(config).from_config(config)
        except DiscorporaError:
            raise
        except Exception as error:  # transformers and torch raise errors of many kinds
            reason = " ".join(str(error).split())
            raise ConfigError(
                f"no encoder can be made with these settings ({type(error).__name__}: {reason})",
                hint="correct the setting; those of the encoders are in the documentation of "
                "transformers",
                field="backbone_config",
            ) from error
    # A pretrained encoder
    zoo.register(name)
    with opening(name, by="AutoModel") as options:
        config = set_dropout(load_config(name), rates)
        model, report = auto_class(config).from_pretrained(
            name, config=config, dtype=dtype, output_loading_info=True, **options
        )
        check_whole(model, report, name, optional="pooler")
    # The encoder within a model of this zoo or a model with a decoder
    if hasattr(model, "backbone"):
        return model.backbone
    is_ours = config.model_type.startswith("discorpora-")
    if is_ours or model.main_input_name != "input_ids":
        reads = f"reads {model.main_input_name}, not texts"
        raise ConfigError(
            f"{config.model_type} {'has no backbone to start from' if is_ours else reads}",
            where=name,
            hint="name an encoder of texts, such as google-bert/bert-base-uncased, or a model of "
            "this zoo that was trained from one",
        )
    return model


def text_encoding(config: PretrainedConfig) -> Any:
    """Return the Auto class that loads an encoder of texts, for T5 without its decoder."""
    has_encoder_class = type(config) in AutoModelForTextEncoding._model_mapping
    return AutoModelForTextEncoding if has_encoder_class else AutoModel


def auto_class(config: PretrainedConfig) -> Any:
    """Return the Auto class of an encoder. Raises `ConfigError` if it would load a decoder too."""
    encoder_class = text_encoding(config)
    if encoder_class is not AutoModel or not config.is_encoder_decoder:
        return encoder_class
    raise ConfigError(
        f"{config.model_type} has a decoder, and transformers has no class for its encoder only",
        where="backbone",
        hint="name an encoder such as BERT or ModernBERT, a decoder such as Qwen, or T5",
    )


def set_dropout(config: PretrainedConfig, rates: Mapping[str, float]) -> PretrainedConfig:
    """Return `config` with the dropout rates in `rates`, whose keys are those of `DROPOUTS`.

    A negative rate changes nothing. Raises `ConfigError` if the encoder lacks the dropout of a key.
    """
    inner = getattr(config, "backbone_config", None) or config
    for setting, rate in rates.items():
        key = next((name for name in DROPOUTS[setting] if hasattr(inner, name)), None)
        if rate >= 0 and key is None:
            problem = f"{inner.model_type} has none of its own"
            raise ConfigError(problem, where=setting, hint="leave it at -1")
        if rate >= 0:
            setattr(inner, str(key), rate)
    return config


def config_from(table: Mapping[str, Any]) -> PretrainedConfig:
    """Return the configuration of transformers that `table` describes: `model_type` and settings.
    Raises `ConfigError` for an unknown `model_type` or setting."""
    values = dict(table)
    try:
        config = AutoConfig.for_model(values.pop("model_type", ""))
        unknown = [key for key in values if not hasattr(config, key)]
        problem = f"{config.model_type} has no setting {unknown[0]!r}" if unknown else ""
    except ValueError:
        problem = f"no model_type {table.get('model_type')!r}"
    if problem:
        hint = "the encoders of transformers, such as bert or xlnet, and their settings are valid"
        raise ConfigError(problem, where="backbone_config", hint=hint)
    return type(config)(**values)


def add_lora(backbone: PreTrainedModel, recipe: BackboneRecipe) -> None:
    """Freeze the encoder, and add LoRA matrices of rank `lora_rank` to each linear layer.

    Raises `DiscorporaError` if `peft` is not installed.
    """
    peft = require("peft", "lora", f"for lora_rank = {recipe.lora_rank}")
    config = peft.LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        lora_dropout=recipe.lora_dropout,
        target_modules="all-linear",
    )
    peft.inject_adapter_in_model(config, backbone)


def merge_lora(model: nn.Module) -> None:
    """Add the LoRA matrices to the frozen weights, and remove LoRA's layers from the model."""
    if not any(".lora_" in name for name, _ in model.named_parameters()):
        return
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, module in list(model.named_modules()):
        if isinstance(module, BaseTunerLayer):
            module.merge()
            model.set_submodule(name, module.get_base_layer())
    model.requires_grad_(True)


def set_attention(backbone: PreTrainedModel, way: str) -> None:
    """Set the attention implementation of a backbone to `way`; "auto" changes nothing. It must be
    called on the complete model: transformers forgets the setting when a backbone's configuration
    becomes part of another. Raises `ConfigError` for an implementation that the backbone lacks."""
    if way == "auto":
        return
    rates = [getattr(backbone.config, name, 0.0) for name in DROPOUTS["attention_dropout"]]
    if way == "flex_attention" and (rate := max(rates)):
        raise ConfigError(
            f"it has no dropout of the attention weights, which is {rate} here",
            where=f'attention = "{way}"',
            hint="set attention_dropout = 0, or name another one",
        )
    try:
        backbone.set_attn_implementation(way)
    except Exception as error:  # the library `kernels` raises errors of many kinds
        known = ["auto", *AttentionInterface().valid_keys(), "eager"]
        reason = " ".join(str(error).split()).partition(". ")[0]
        suggestion = "" if way in known else nearest(way, known)
        raise ConfigError(
            f"{backbone.config.model_type} cannot: {reason}",
            where=f'attention = "{way}"',
            hint=f"{suggestion}use auto, or name another one: eager, sdpa, flash_attention_2 (it "
            "needs flash-attn), flash_attention_3, flex_attention, or a kernel such as "
            "kernels-community/flash-attn2 (it needs kernels)",
            field="attention",
        ) from error


@contextmanager
def training_attention(backbone: PreTrainedModel, recipe: BackboneRecipe) -> Iterator[None]:
    """Use the attention that trains fastest in bfloat16 on a CPU; elsewhere change nothing.

    On a CPU the backward pass of torch's fused kernel does not use the matrix units, and takes two
    fifths of a training step of short texts. So the setting "auto" uses `zoo.attention` there.
    Families that `zoo.attention` does not support get eager attention, and so do compiled
    backbones, for which `zoo.attention` gives NaN. At the end the previous attention is set again.
    """
    previous = backbone.config._attn_implementation
    on_cpu = not torch.accelerator.is_available()
    if recipe.attention != "auto" or not on_cpu or not uses_bf16(recipe.bf16):
        yield
        return
    supported = backbone.config.model_type in FAMILIES and not recipe.compile
    set_attention(backbone, "bf16" if supported else "eager")
    try:
        yield
    finally:
        set_attention(backbone, previous)


def pooling_of(config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase) -> Pooling:
    """Return the token whose state is a text's vector: "first" ([CLS]) or "last"."""
    return "last" if uses_last_token(config) or tokenizer.cls_token_id is None else "first"


def is_decoder(config: PretrainedConfig) -> bool:
    """Return True for a decoder, in which each token sees only itself and earlier tokens.

    A decoder has a class for causal language models in transformers, and none for masked ones.
    """
    kind = config.model_type
    is_causal = kind in CAUSAL and kind not in MASKED and kind not in LAST_TOKEN
    return is_causal or bool(getattr(config, "is_decoder", False))


def uses_last_token(config: PretrainedConfig) -> bool:
    """Return True if a text's vector is that of its last token, as in decoders, XLNet and T5."""
    return config.model_type in LAST_TOKEN or is_decoder(config)


def max_positions(config: PretrainedConfig) -> int | None:
    """Return the longest input of a backbone in tokens, or None if it has no limit."""
    kind = config.model_type
    limit = getattr(config, "max_position_embeddings", None) or 0
    if kind == "xlnet" or limit <= 0:
        return None
    if kind == "mpnet":
        return limit - 2  # its padding index is 1, whatever the tokenizer's
    starts_after_padding = kind in AFTER_PADDING or "roberta" in kind
    return limit - (config.pad_token_id + 1 if starts_after_padding else 0)


def warn_of_padding(backbone: PreTrainedModel) -> None:
    """Log a warning if padding after a text changes the backbone's states of it (FNet, YOSO)."""
    kind = backbone.config.model_type
    if kind in HIDE_PADDING or kind.startswith("discorpora-"):
        return
    with suppress(RuntimeError, AttributeError, LookupError, AssertionError, TypeError, ValueError):
        # If the backbone fails here, it also fails in training, where the error is reported.
        if padding_shows(backbone):
            log.warning(
                "%s: padding changes the vectors of a text, so they depend on the texts that are "
                "in the same batch",
                kind,
            )


@torch.inference_mode()
def padding_shows(backbone: PreTrainedModel) -> bool:
    """Return True if a backbone's states of a text change when padding follows the text.

    It encodes one text alone and padded. The global random state and compiled code do not change.
    """
    size, padding = backbone.config.vocab_size, backbone.config.pad_token_id or 0
    width = min(PADDED_TOKENS, max_positions(backbone.config) or PADDED_TOKENS)
    # Words of the vocabulary's middle: MPNet and ESM treat special tokens, at its ends, otherwise.
    ids = torch.linspace(size // 3, 2 * size // 3, width, device=backbone.device).long()[None]
    ids += ids == padding
    mask = torch.ones_like(ids)
    ids[:, TEXT_TOKENS:], mask[:, TEXT_TOKENS:] = padding, 0
    was_training = backbone.training
    backbone.eval()
    try:
        with torch.random.fork_rng(devices=[]):
            alone, padded = (
                backbone.forward(input_ids=ids[:, :end], attention_mask=mask[:, :end])
                for end in (TEXT_TOKENS, width)
            )
    finally:
        backbone.train(was_training)
    states, padded_states = alone.last_hidden_state, padded.last_hidden_state[:, :TEXT_TOKENS]
    difference = (states - padded_states).abs().max() / states.abs().max().clamp(min=1e-30)
    return difference.item() > max(TOLERANCE, 8 * torch.finfo(states.dtype).eps)


@strict
class BackboneConfig(PretrainedConfig):
    """The configuration of a model around a backbone; it contains the backbone's configuration."""

    # transformers 5.20 and later also has a table of defaults; this older way works in all.
    sub_configs = {"backbone_config": AutoConfig}

    backbone_config: PretrainedConfig | dict[str, Any] | None = None
    pad_token_id: int | None = 0

    def __post_init__(self, **kwargs: Any) -> None:
        """Make the backbone's configuration from a table, and check the type of `max_tokens`."""
        backbone = self.backbone_config or {}
        if not isinstance(backbone, PretrainedConfig):
            config_class = CONFIG_MAPPING[backbone.get("model_type", "bert")]
            self.backbone_config = config_class.from_dict(backbone)
        if not isinstance(limit := getattr(self, "max_tokens", 0), int):
            raise ValueError(f"max_tokens = {limit!r}: expected a whole number")
        super().__post_init__(**kwargs)


class OverBackbone(ZooModel):
    """A model around a `backbone`; new linear layers start as BERT's do."""

    config: Any
    base_model_prefix = "backbone"
    main_input_name = "input_ids"

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        backbone_config = config.backbone_config
        encoder_class = auto_class(backbone_config)
        self.backbone: PreTrainedModel = encoder_class.from_config(backbone_config)

    @classmethod
    def from_backbone(
        cls,
        backbone: PreTrainedModel,
        max_tokens: int = 512,
        pad_token_id: int | None = 0,
        **settings: Any,
    ) -> Self:
        """Return a model around `backbone` with new heads.

        `settings` are fields of its configuration. `max_tokens` is lowered to the backbone's limit.
        Logs a warning if padding changes the backbone's states.
        """
        warn_of_padding(backbone)
        max_tokens = min(max_tokens, max_positions(backbone.config) or max_tokens)
        settings |= {"max_tokens": max_tokens, "pad_token_id": pad_token_id}
        config: Any = cls.config_class
        model = cls(config(backbone_config=backbone.config, **settings))
        model.backbone = backbone
        return model
