"""Shared by all models of the zoo: loading, devices, precision, and saving."""

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
from zoo.compact import pack_folder, write_graph
from zoo.folders import SENTENCE_TOKENIZER, auto_map, family_of, write_modules
from zoo.loading import config_of, opening
from zoo.modeling_discorpora import StoredModel


class ZooModel(StoredModel):
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
        """Load a model from a folder or Hub id, with the arguments that transformers takes. Raises
        `InputError` for a model of another type, and if weights are missing or damaged."""
        path = pretrained_model_name_or_path
        if path is None:  # the caller passes the weights
            return super().from_pretrained(None, *args, **kwargs)
        if kwargs.get("torch_dtype") is None:  # transformers' old name for it
            kwargs.setdefault("dtype", torch.float32)
        with_report = kwargs.pop("output_loading_info", False)
        with opening(path, by=cls.__name__) as options:
            stored, expected = config_of(path), cls.config_class.model_type
            model_type = str(stored.get("model_type", ""))
            if "config" not in kwargs and model_type != expected:
                problem = f"holds a model of type {model_type!r}, not {expected!r}"
                raise InputError(problem, where=str(path))
            kwargs |= {**options, "output_loading_info": True}
            loaded: Any = super().from_pretrained(path, *args, **kwargs)
            model, report = loaded
            check_whole(model, report, str(path))
        return loaded if with_report else model


def check_whole(model: Any, report: Mapping[str, Any], where: str, optional: str = "") -> list[str]:
    """Raise `InputError` if weights of a loaded model were missing in its files, so are random.

    `report` is the loading report of transformers; `where` names the model in the message. Weights
    of the module `optional`, such as "pooler", may be missing. Returns the missing names.
    """
    missing = sorted(report["missing_keys"])
    needed = [key for key in missing if not optional or optional not in key.split(".")]
    if needed:
        raise InputError(
            f"has no weights for {len(needed)} parts of {type(model).__name__}, "
            f"such as {needed[0]}",
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
    """Register classes with `AutoConfig`, `AutoModel` and `AutoModelForSequenceClassification`.
    Then these load a folder whose `model_type` is that of the class `config`."""
    AutoConfig.register(config.model_type, config, exist_ok=True)
    if model is not None:
        AutoModel.register(config, model, exist_ok=True)
    if classifier is not None:
        AutoModelForSequenceClassification.register(config, classifier, exist_ok=True)


def label_count(config: PretrainedConfig) -> int:
    """Return the number of labels of a configuration; transformers' types would allow None."""
    assert config.num_labels is not None
    return config.num_labels


def parameter_count(model: torch.nn.Module) -> int:
    """Return the number of trainable parameters."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


@contextmanager
def clear_write_errors(folder: Path) -> Iterator[None]:
    """Turn an error of writing to `folder` (by torch, safetensors, ...) into a `DiscorporaError`.
    Other errors inside the block, such as bugs, pass unchanged."""
    try:
        yield
    except Exception as error:  # the tokenizers library raises nothing narrower
        text = str(error)
        by_torch = isinstance(error, RuntimeError) and re.search("PytorchStreamWriter|write", text)
        by_system = isinstance(error, OSError | SafetensorError) or "(os error " in text
        if not by_torch and not by_system:
            raise
        raise DiscorporaError(
            f"cannot write: {text.splitlines()[0]}",
            where=str(folder),
            hint="check the free disk space and run the same command again: it continues",
        ) from error


def best_device() -> torch.device:
    """Return the accelerator of this machine, or its CPU if it has none."""
    # `current_accelerator` alone names the one that torch was built for, even if absent.
    available = torch.accelerator.is_available()
    accelerator = torch.accelerator.current_accelerator() if available else None
    return accelerator or torch.device("cpu")


@contextmanager
def float32_products(*, tf32: bool) -> Iterator[None]:
    """Inside the block, a GPU computes products of float32 in TF32 (three digits), or exactly.

    This holds for matrices, convolutions and recurrent layers alike; by torch's defaults they
    differ. The API is that of torch 2.9 and later; the older one warns.
    """
    if not torch.cuda.is_available():
        yield
        return
    backends: Any = torch.backends
    parts = backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn
    previous = [part.fp32_precision for part in parts]
    for part in parts:
        part.fp32_precision = "tf32" if tf32 else "ieee"
    try:
        yield
    finally:
        for part, precision in zip(parts, previous, strict=True):
            part.fp32_precision = precision


def uses_bf16(setting: bool | str) -> bool:
    """Return True if `setting` is true, or is "auto" and the GPU supports bfloat16."""
    if setting == "auto":
        # Older GPUs only emulate it, slowly.
        has_gpu = torch.cuda.is_available()
        return has_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(setting)


def save_model(
    model: PreTrainedModel, tokenizer: Any, folder: Path, *, packed: bool = False
) -> None:
    """Write a model, its tokenizer, and the files that other libraries need to load it.

    No path of this machine is written. The tokenizer pads on the right, as our models expect. If
    the model is `packed`, its weights are stored in four bits (`zoo.compact`), which only the code
    in the folder reads, with the graph of its encoder.
    """
    for config in (model.config, getattr(model.config, "backbone_config", None)):
        if config is not None:
            config._name_or_path = ""
    if classes := auto_map(model.config):
        model.config.auto_map = classes
    if isinstance(tokenizer, PreTrainedTokenizerBase):
        tokenizer.padding_side = "right"
        for key in SENTENCE_TOKENIZER:  # a shipped scorer's, whose code is not copied too
            tokenizer.init_kwargs.pop(key, None)
        if family_of(model.config).task == "text-ranking":
            model.config.sep_token_id = tokenizer.sep_token_id  # see modeling_discorpora.Scorer
    with clear_write_errors(folder):
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_modules(model, folder, packed=packed)
        if packed:
            pack_folder(folder)
            write_graph(model, folder)
    for weights in folder.glob("*.safetensors"):
        weights.chmod((folder / "config.json").stat().st_mode)  # safetensors makes them private
