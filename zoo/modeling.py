"""Shared by all models of the zoo: safe loading, and the model folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTextEncoding,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

import zoo
from corpora.errors import ConfigError, DiscorporaError, InputError
from zoo.compact import unpack
from zoo.folders import auto_map, write_modules
from zoo.loading import config_of, load_config, opening

DROPOUTS = {
    "attention_dropout": ("attention_probs_dropout_prob", "attention_dropout"),
    "hidden_dropout": ("hidden_dropout_prob", "hidden_dropout", "dropout"),
}
"""Names of the settings in configurations; XLNet has one dropout for everything."""


class ZooModel(PreTrainedModel):
    """A `PreTrainedModel` that loads weights only from safetensors, in float32 by default.

    Weights of four bits (`zoo.compact`) become float32.
    """

    config_class: type[PretrainedConfig]

    # `forward` ignores keyword arguments; the Trainer must not scale the loss because of them.
    accepts_loss_kwargs = False

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | PathLike[str] | None, *args: Any, **kwargs: Any
    ) -> Self:
        """As in transformers; raises `InputError` as `opening` does, and for another class's."""
        path = pretrained_model_name_or_path
        if path is None:  # the weights are given
            return super().from_pretrained(None, *args, **kwargs)
        if kwargs.get("torch_dtype") is None:  # transformers' old name for it
            kwargs.setdefault("dtype", torch.float32)
        reported = kwargs.pop("output_loading_info", False)
        with opening(path, by=cls.__name__) as options:
            stored, expected = config_of(path), cls.config_class.model_type
            there = str(stored.get("model_type", ""))
            if "config" not in kwargs and there != expected:
                problem = f"holds a model of type {there!r}, not {expected!r}"
                raise InputError(problem, where=str(path))
            kwargs |= {**options, "output_loading_info": True}
            place: str | PathLike[str] | None = path
            if stored.get("stored") == "int4":
                config = kwargs.pop("config", None) or cls.config_class.from_pretrained(path)
                config.stored, place = "float32", None
                kwargs |= {"config": config, "state_dict": unpack(path), "dtype": torch.float32}
            loaded: Any = super().from_pretrained(place, *args, **kwargs)
            model, report = loaded
            check_whole(model, report, str(path))
        if place is None:
            model.config._name_or_path = str(path)  # where its tokenizer is
        return loaded if reported else model


def check_whole(model: Any, report: Mapping[str, Any], where: str, optional: str = "") -> list[str]:
    """The weights of a loaded model that its files lack, all of them of the part `optional`.

    Raises `InputError` for others: they would be drawn at random.
    """
    missing = sorted(report["missing_keys"])
    if other := [key for key in missing if not optional or optional not in key.split(".")]:
        raise InputError(
            f"has no weights for {len(other)} parts of {type(model).__name__}, such as {other[0]}",
            where=where,
            hint="they would be drawn at random: is it a checkpoint of another model class, or "
            "stored by another library?",
        )
    return missing


def known_to_auto(
    config: type[PretrainedConfig],
    model: type[PreTrainedModel] | None = None,
    classifier: type[PreTrainedModel] | None = None,
) -> None:
    """Register a `model_type` with the Auto classes of transformers."""
    AutoConfig.register(config.model_type, config, exist_ok=True)
    if model is not None:
        AutoModel.register(config, model, exist_ok=True)
    if classifier is not None:
        AutoModelForSequenceClassification.register(config, classifier, exist_ok=True)


def label_count(config: PretrainedConfig) -> int:
    """The number of labels, which transformers' types allow to be None."""
    assert config.num_labels is not None
    return config.num_labels


def load_backbone(
    name: str,
    table: Mapping[str, Any],
    attention_dropout: float = -1.0,
    hidden_dropout: float = -1.0,
    dtype: torch.dtype = torch.float32,
) -> PreTrainedModel:
    """An encoder for `AutoModel`: pretrained by name or folder, or made from `table`.

    A `table` is a configuration with its `model_type`; weights are then random. Of a model of this
    zoo the backbone is used, so that training can continue from it; of a model with a decoder (T5),
    the encoder. Raises `ConfigError` for wrong values in `table`, a model without an encoder, one
    that does not read texts, or whose weights have other names, `InputError` for damaged weights.
    `attention_dropout` and `hidden_dropout` replace the backbone's unless they are negative.
    Pretrained weights are loaded as `dtype`.
    """
    rates = {"attention_dropout": attention_dropout, "hidden_dropout": hidden_dropout}
    if bool(name) == bool(table):
        raise ConfigError(
            "give backbone or [settings.backbone_config], not both"
            if name
            else "there is no backbone",
            where="recipe",
            hint="give --backbone FOLDER_OR_ID, or a table [settings.backbone_config]",
        )
    if not name:
        try:
            config = set_dropout(config_from(table), rates)
            return auto_class(config).from_config(config)
        except DiscorporaError:
            raise
        except Exception as error:  # transformers and torch raise whatever a value comes to
            said = " ".join(str(error).split())
            raise ConfigError(
                f"no encoder can be made with these settings ({type(error).__name__}: {said})",
                where="backbone_config",
                hint="correct the setting; those of the encoders are in the documentation of "
                "transformers",
            ) from error
    zoo.register(name)
    with opening(name, by="AutoModel") as options:
        config = set_dropout(load_config(name), rates)
        model, report = auto_class(config).from_pretrained(
            name, config=config, dtype=dtype, output_loading_info=True, **options
        )
        check_whole(model, report, name, optional="pooler")
    if hasattr(model, "backbone"):
        return model.backbone
    own = config.model_type.startswith("discorpora-")
    if own or model.main_input_name != "input_ids":
        reads = f"reads {model.main_input_name}, not texts"
        raise ConfigError(
            f"{config.model_type} {'has no backbone to start from' if own else reads}",
            where=name,
            hint="name an encoder of texts, such as google-bert/bert-base-uncased, or a model of "
            "this zoo that was trained from one",
        )
    return model


def text_encoding(config: PretrainedConfig) -> Any:
    """The Auto class of an encoder of texts: for T5 that of its encoder, without the decoder."""
    there = type(config) in AutoModelForTextEncoding._model_mapping
    return AutoModelForTextEncoding if there else AutoModel


def auto_class(config: PretrainedConfig) -> Any:
    """The same, for an encoder without a decoder. Raises `ConfigError` if there is none."""
    kind = text_encoding(config)
    if kind is not AutoModel or not config.is_encoder_decoder:
        return kind
    raise ConfigError(
        f"{config.model_type} has a decoder, and transformers has no class for its encoder only",
        where="backbone",
        hint="name an encoder such as BERT or ModernBERT, a decoder such as Qwen, or T5",
    )


def set_dropout(config: PretrainedConfig, rates: Mapping[str, float]) -> PretrainedConfig:
    """Set the dropouts in `rates`, by the settings' names, unless they are negative.

    Raises `ConfigError` for an encoder without a dropout of that kind.
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
    """A configuration from a recipe's table. Raises `ConfigError` for an unknown key or type."""
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


def parameter_count(model: torch.nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


@contextmanager
def within_memory(where: str, hint: str) -> Iterator[None]:
    """Turn an out-of-memory error of the GPU into one message; `hint` says what to do.

    It mentions other processes if they use a quarter of the GPU or more.
    """
    try:
        yield
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        problem = "out of memory on the GPU"
        # Raised by a torch without CUDA, or if there is no memory even for this query.
        with suppress(RuntimeError, AssertionError):
            free, total = torch.cuda.mem_get_info()
            others = total - free - torch.cuda.memory_reserved()
            if others >= total / 4:
                problem += f": other processes use {others >> 30} of its {total >> 30} GiB"
                hint = f"choose another by CUDA_VISIBLE_DEVICES, or wait for them; or {hint}"
        raise DiscorporaError(problem, where=where, hint=hint) from error


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn errors of torch and safetensors in writing a file into one message."""
    try:
        yield
    except Exception as error:  # the tokenizers library raises nothing narrower
        said = str(error)
        by_torch = isinstance(error, RuntimeError) and re.search("PytorchStreamWriter|write", said)
        by_system = isinstance(error, OSError | SafetensorError) or "(os error " in said
        if not by_torch and not by_system:
            raise
        raise DiscorporaError(
            f"cannot write: {said.splitlines()[0]}",
            where=str(folder),
            hint="check the free disk space and run the same command again: it continues",
        ) from error


def best_device() -> torch.device:
    """The accelerator of this machine, or its CPU.

    `current_accelerator` alone names the one that torch was built for, even if absent.
    """
    there = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return there or torch.device("cpu")


def uses_bf16(setting: bool | str) -> bool:
    """Whether to compute in bfloat16: as set, or for `auto` on a GPU that supports it."""
    if setting == "auto":
        # Older GPUs only emulate it, slowly.
        there = torch.cuda.is_available()
        return there and torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(setting)


def save_model(model: PreTrainedModel, tokenizer: Any, folder: Path) -> None:
    """Write config.json, model.safetensors, the tokenizer, and the files for other libraries.

    No path of this machine is written. The tokenizer pads on the right, as our models expect.
    """
    for config in (model.config, getattr(model.config, "backbone_config", None)):
        if config is not None:
            config._name_or_path = ""
    if classes := auto_map(model.config):
        model.config.auto_map = classes
    if isinstance(tokenizer, PreTrainedTokenizerBase):
        tokenizer.padding_side = "right"
    with explained(folder):
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_modules(model, folder)
    for weights in folder.glob("*.safetensors"):
        weights.chmod((folder / "config.json").stat().st_mode)  # safetensors makes them private
