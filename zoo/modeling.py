"""Shared by all models of the zoo: safe loading, and the model folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from corpora.errors import DiscorporaError, InputError
from zoo.compact import unpack
from zoo.folders import auto_map, write_modules
from zoo.loading import config_of, opening


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


def parameter_count(model: torch.nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


@contextmanager
def within_memory(where: str, hint: str) -> Iterator[None]:
    """Turn an out-of-memory error into one message; `hint` says what to do."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            raise DiscorporaError("out of memory", where=where, hint=hint) from error
        if "out of memory" not in str(error):
            raise
        raise DiscorporaError("out of memory on the GPU", where=where, hint=hint) from error


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


@contextmanager
def float32_products(*, tf32: bool) -> Iterator[None]:
    """Inside, a GPU's products of float32 are those of TF32 (three digits) or exact.

    Of matrices, convolutions and recurrent layers, which torch would treat differently by default.
    By the API that torch has from 2.9 on; the older one warns.
    """
    if not torch.cuda.is_available():
        yield
        return
    backends: Any = torch.backends
    parts = backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn
    former = [part.fp32_precision for part in parts]
    for part in parts:
        part.fp32_precision = "tf32" if tf32 else "ieee"
    try:
        yield
    finally:
        for part, precision in zip(parts, former, strict=True):
            part.fp32_precision = precision


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
