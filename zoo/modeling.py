"""Shared by all models of the zoo: safe loading, and the model folder."""

from __future__ import annotations

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
from zoo.compact import is_packed, unpack
from zoo.folders import auto_map, write_modules
from zoo.presets import shipped

DROPOUTS = {
    "attention_dropout": ("attention_probs_dropout_prob", "attention_dropout"),
    "hidden_dropout": ("hidden_dropout_prob", "hidden_dropout", "dropout"),
}
"""Names of the settings in configurations; XLNet has one dropout for everything."""
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.pickle", "*.ckpt", "*.msgpack", "*.h5")


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
        """As in transformers; raises `InputError` for weights in a pickle or of another class."""
        path = pretrained_model_name_or_path
        if path is not None:  # else the caller gives the weights
            check_weights(path)
            if "config" not in kwargs and Path(path).is_dir():
                there = PretrainedConfig.get_config_dict(path)[0].get("model_type")
                expected = cls.config_class.model_type
                if there != expected:
                    problem = f"holds a model of type {there!r}, not {expected!r}"
                    raise InputError(problem, where=str(path))
        kwargs["use_safetensors"] = True
        if kwargs.get("torch_dtype") is None:  # transformers' old name for it
            kwargs.setdefault("dtype", torch.float32)
        if path is None or not is_packed(path):
            with readable(str(path)):
                return super().from_pretrained(path, *args, **kwargs)
        config = kwargs.pop("config", None) or cls.config_class.from_pretrained(path)
        config.stored = "float32"
        with readable(str(path)):
            weights = unpack(path)
        model = super().from_pretrained(
            None, *args, config=config, state_dict=weights, dtype=torch.float32
        )
        model.config._name_or_path = str(path)  # where its tokenizer is
        return model


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


def check_there(name: str) -> None:
    """Reject a recipe's name, and a path that does not exist."""
    if Path(name).exists():
        return
    if name in shipped():
        raise ConfigError(
            "is a recipe, not a trained model",
            where=name,
            hint=f"train it first: discorpora train {name} --dataset DATASET --output FOLDER",
        )
    # A Hub id has one slash at most.
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
        raise ConfigError(
            "there is no such folder",
            where=name,
            hint="give a folder with config.json and model.safetensors, or a Hub id such as "
            "bert-base-uncased",
        )


def check_weights(path: str | PathLike[str]) -> None:
    """Reject a local folder whose weights are a pickle: loading one can run any code."""
    folder = Path(path)
    if not folder.is_dir() or any(folder.glob("*.safetensors")):
        return
    found = sorted(file.name for kind in PICKLES for file in folder.glob(kind))
    problem = f"its weights are in {found[0]}" if found else "it has no weights"
    raise InputError(
        f"{problem}; only model.safetensors is read",
        where=str(folder),
        hint="convert it with safetensors.torch.save_file, or ask its author for safetensors",
    )


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
    the encoder. Raises `ConfigError` for a model without an encoder, one that does not read texts,
    or whose weights have other names, `InputError` for damaged weights. `attention_dropout` and
    `hidden_dropout` replace the backbone's unless they are negative. Pretrained weights are loaded
    as `dtype`.
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
        return encoder_from(set_dropout(config_from(table), rates))
    check_there(name)
    check_weights(name)
    zoo.register(name)
    with readable(name):
        config = set_dropout(AutoConfig.from_pretrained(name), rates)
        model, report = _auto_class(config).from_pretrained(
            name, config=config, dtype=dtype, use_safetensors=True, output_loading_info=True
        )
    missing = [key for key in report["missing_keys"] if "pooler" not in key.split(".")]
    if missing:
        raise ConfigError(
            f"lacks {len(missing)} weights of {config.model_type}, such as {missing[0]}",
            where=name,
            hint="they would be random: check whether another library wrote it",
        )
    if hasattr(model, "backbone"):
        return model.backbone
    if model.main_input_name != "input_ids":
        raise ConfigError(
            f"{config.model_type} reads {model.main_input_name}, not texts",
            where=name,
            hint="name an encoder of texts, such as google-bert/bert-base-uncased",
        )
    if model.config.model_type.startswith("discorpora-"):
        raise ConfigError(
            f"a model of type {model.config.model_type!r} has no backbone to start from",
            where=name,
            hint="name a pretrained encoder, or a model of this zoo that was trained from one",
        )
    return model


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn errors of transformers and safetensors in reading a model into one message."""
    try:
        yield
    except SafetensorError as error:
        raise InputError(
            f"its weights are damaged or truncated: {error}",
            where=name,
            hint="copy or download model.safetensors again",
        ) from error
    except (OSError, ValueError, KeyError) as error:
        if isinstance(error, DiscorporaError):
            raise
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ConfigError(
            f"AutoModel cannot load this model: {said[0]}",
            where=name,
            hint="give a folder with config.json (and its model_type) and model.safetensors, as "
            "save_pretrained of transformers writes it, or a Hub id",
        ) from error


def encoder_from(config: Any) -> Any:
    """An encoder with random weights, without a decoder."""
    return _auto_class(config).from_config(config)


def _auto_class(config: PretrainedConfig) -> Any:
    if type(config) in AutoModelForTextEncoding._model_mapping:  # for T5, the encoder
        return AutoModelForTextEncoding
    if not config.is_encoder_decoder:
        return AutoModel
    raise ConfigError(
        f"{config.model_type} has a decoder, and transformers has no class for its encoder only",
        where="backbone",
        hint="name an encoder such as BERT or ModernBERT, a decoder such as Qwen, or T5",
    )


def set_dropout(config: PretrainedConfig, rates: Mapping[str, float]) -> PretrainedConfig:
    """Set the dropouts in `rates`, by the settings' names, unless they are negative.

    Raises `ConfigError` for a rate above 1, and for an encoder without a dropout of that kind.
    """
    inner = getattr(config, "backbone_config", None) or config
    for setting, rate in rates.items():
        key = next((name for name in DROPOUTS[setting] if hasattr(inner, name)), None)
        if rate >= 0 and (key is None or rate > 1):
            raise ConfigError(
                f"{setting} {rate}" if key else f"{inner.model_type} has none of its own",
                where=setting,
                hint="give a number from 0 to 1, or -1 for the backbone's",
            )
        if rate >= 0:
            setattr(inner, str(key), rate)
    return config


def config_from(table: Mapping[str, Any]) -> PretrainedConfig:
    """A configuration from a recipe's table. Raises `ConfigError` for an unknown key or type."""
    values = dict(table)
    try:
        config = AutoConfig.for_model(values.pop("model_type", ""))
    except ValueError as error:
        raise ConfigError(
            f"no model_type {table.get('model_type')!r}",
            where="backbone_config",
            hint="name one of transformers' encoders, such as bert or xlnet",
        ) from error
    for key in values:
        if not hasattr(config, key):
            problem = f"{config.model_type} has no setting {key!r}"
            raise ConfigError(problem, where="backbone_config")
    return type(config)(**values)


def parameter_count(model: torch.nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def out_of_memory(where: str, hint: str) -> DiscorporaError:
    """The error of a run that is out of GPU memory; `hint` says what to do.

    It mentions other processes if they use a quarter of the GPU or more.
    """
    problem = "out of memory on the GPU"
    # Raised by a torch without CUDA, or if there is no memory even for this query.
    with suppress(RuntimeError, AssertionError):
        free, total = torch.cuda.mem_get_info()
        others = total - free - torch.cuda.memory_reserved()
        if others >= total / 4:
            problem += f": other processes use {others >> 30} of its {total >> 30} GiB"
            hint = f"choose another by CUDA_VISIBLE_DEVICES, or wait for them; or {hint}"
    return DiscorporaError(problem, where=where, hint=hint)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn errors of torch and safetensors in writing a file into one message."""
    try:
        yield
    except Exception as error:  # the tokenizers library raises nothing narrower
        words = ("PytorchStreamWriter", "write") if isinstance(error, RuntimeError) else ()
        if not isinstance(error, OSError | SafetensorError) and not any(
            word in str(error) for word in (*words, "(os error ")
        ):
            raise
        raise DiscorporaError(
            f"cannot write: {str(error).splitlines()[0]}",
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
